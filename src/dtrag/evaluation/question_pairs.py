"""What the gate of the case memory says about pairs of questions, and how often it is right.

A trap is a pair of questions that look alike and ask something else; a false hit is a trap that the gate lets through.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dtrag.core.cases.same_question import SameQuestion, same_question
from dtrag.core.metrics.intervals import clopper_pearson
from dtrag.errors import InvalidInput

MAX_PAIRS = 100_000
OTHER_KIND = "unlabelled"


@dataclass(frozen=True, slots=True)
class QuestionPair:
    """Two questions; `same` is None when it is unknown whether they ask the same."""

    id: str
    base: str
    other: str
    same: bool | None = None
    kind: str = ""


@dataclass(frozen=True, slots=True)
class KindCounts:
    """Pairs of one kind, and how many of them the gate took for the same."""

    kind: str
    same: bool | None
    pairs: int
    accepted: int


@dataclass(frozen=True, slots=True)
class PairsReport:
    """The gate's decisions and their counts."""

    decisions: tuple[tuple[QuestionPair, SameQuestion], ...]

    @property
    def traps(self) -> int:
        """Pairs that ask something else."""
        return sum(pair.same is False for pair, _ in self.decisions)

    @property
    def false_hits(self) -> int:
        """Traps that the gate took for the same."""
        return sum(pair.same is False and decision.same for pair, decision in self.decisions)

    @property
    def paraphrases(self) -> int:
        """Pairs that ask the same."""
        return sum(pair.same is True for pair, _ in self.decisions)

    @property
    def hits(self) -> int:
        """Paraphrases that the gate took for the same."""
        return sum(pair.same is True and decision.same for pair, decision in self.decisions)

    @property
    def upper_bound(self) -> float:
        """The one-sided 95 % Clopper-Pearson upper bound of false hits among traps; 1.0 without traps."""
        return clopper_pearson(self.false_hits, self.traps)[1]

    def kinds(self) -> list[KindCounts]:
        """The counts by kind: traps, paraphrases, others."""
        counts: dict[tuple[str, bool | None], list[int]] = {}
        for pair, decision in self.decisions:
            row = counts.setdefault((pair.kind or OTHER_KIND, pair.same), [0, 0])
            row[0] += 1
            row[1] += decision.same
        order = {False: 0, True: 1, None: 2}
        return [
            KindCounts(kind, same, pairs, accepted)
            for (kind, same), (pairs, accepted) in sorted(counts.items(), key=lambda row: (order[row[0][1]], row[0][0]))
        ]

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON."""
        return {
            "pairs": [
                {"id": pair.id, "same": decision.same, "reason": decision.reason} for pair, decision in self.decisions
            ],
            "traps": self.traps,
            "false_hits": self.false_hits,
            "upper_bound": self.upper_bound,
            "paraphrases": self.paraphrases,
            "hits": self.hits,
        }


def read_pairs(lines: Iterable[str], name: str) -> list[QuestionPair]:
    """The pairs of a JSON-lines text. Raises `InvalidInput` with the number of the first line that is wrong."""
    pairs: list[QuestionPair] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if len(pairs) == MAX_PAIRS:
            raise InvalidInput(f"{name} has more than {MAX_PAIRS:,} pairs. Split it into several files.")
        pairs.append(_pair(line, f"{name}, line {number}"))
    return pairs


def _pair(line: str, place: str) -> QuestionPair:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f'{place}: this is not JSON. Each line is {{"id", "base", "other", "same"?}}.') from error
    if not isinstance(row, dict):
        raise InvalidInput(f'{place}: a line must be an object {{"id", "base", "other", "same"?}}.')
    for key in ("base", "other"):
        if not isinstance(row.get(key), str) or not row[key].strip():
            raise InvalidInput(f'{place}: "{key}" must be a question as text.')
    if not isinstance(row.get("id"), (str, int)) or isinstance(row["id"], bool):
        raise InvalidInput(f'{place}: "id" must be a text or a number.')
    if not isinstance(row.get("same"), (bool, type(None))):
        raise InvalidInput(f'{place}: "same" must be true or false; leave it out when it is unknown.')
    kind = row.get("kind", "")
    return QuestionPair(
        str(row["id"]), row["base"], row["other"], row.get("same"), kind if isinstance(kind, str) else ""
    )


def judged(pairs: Sequence[QuestionPair]) -> PairsReport:
    """The gate's decision about each pair."""
    return PairsReport(tuple((pair, same_question(pair.base, pair.other)) for pair in pairs))
