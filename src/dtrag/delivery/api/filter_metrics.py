"""How the filters of one service do: times of looking at them, documents filtered, and attempts to get around them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from datetime import UTC, datetime

from dtrag.core.access.filter_attacks import AttemptKind

KEPT = 1_000
"""Times that the quantiles are taken of, the newest ones."""


class FilterWatch:
    """Figures since the start of this process; used on the event loop only."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=KEPT)
        self._attempts: Counter[AttemptKind] = Counter()
        self.looked = 0
        self.documents = 0
        self.filtering_s = 0.0
        self.last_violation: datetime | None = None

    def record(self, seconds: float) -> None:
        """The filters of a request were looked at in that time."""
        self.looked += 1
        self._seconds.append(seconds)

    def filtered(self, documents: int, seconds: float) -> None:
        """So many documents went through a filter."""
        self.documents += documents
        self.filtering_s += seconds

    def attempted(self, kind: AttemptKind) -> None:
        """Somebody tried to get around a filter."""
        self._attempts[kind] += 1
        self.last_violation = datetime.now(UTC)

    def attempts(self, kind: AttemptKind) -> int:
        """Attempts of that kind."""
        return self._attempts[kind]

    def quantiles_ms(self, shares: Sequence[float]) -> list[float]:
        """The times below which these shares of the newest ones lie, in milliseconds; 0.0 before the first."""
        ordered = sorted(self._seconds)
        if not ordered:
            return [0.0] * len(shares)
        return [round(ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000, 4) for share in shares]

    @property
    def documents_per_second(self) -> float:
        """Documents that went through filters in a second; 0.0 before the first."""
        return round(self.documents / self.filtering_s, 1) if self.filtering_s else 0.0
