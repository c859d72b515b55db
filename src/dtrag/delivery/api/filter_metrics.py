"""Figures of `GET /metrics/filter`: times of filter checks, documents filtered, attempts to bypass filters."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from datetime import UTC, datetime

from dtrag.core.access.filter_attacks import AttemptKind
from dtrag.core.metrics.ranking import percentile

NEWEST = 1_000
"""Number of newest times over which quantiles are computed."""


class FilterWatch:
    """Figures since the start of this process; used on the event loop only."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=NEWEST)
        self._attempts: Counter[AttemptKind] = Counter()
        self.checked = 0
        self.documents = 0
        self.filtering_s = 0.0
        self.last_violation: datetime | None = None

    def record(self, seconds: float) -> None:
        """Record the time of checking the filters of a request."""
        self.checked += 1
        self._seconds.append(seconds)

    def filtered(self, documents: int, seconds: float) -> None:
        """Record that so many documents were filtered."""
        self.documents += documents
        self.filtering_s += seconds

    def attempted(self, kind: AttemptKind) -> None:
        """Record an attempt to bypass a filter."""
        self._attempts[kind] += 1
        self.last_violation = datetime.now(UTC)

    def attempts(self, kind: AttemptKind) -> int:
        """Number of attempts of that kind."""
        return self._attempts[kind]

    def quantiles_ms(self, shares: Sequence[float]) -> list[float]:
        """Quantiles of the newest times in milliseconds; 0.0 before the first."""
        if not self._seconds:
            return [0.0] * len(shares)
        return [round(percentile([*self._seconds], share) * 1000, 4) for share in shares]

    @property
    def documents_per_second(self) -> float:
        """Documents filtered per second; 0.0 before the first."""
        return round(self.documents / self.filtering_s, 1) if self.filtering_s else 0.0
