"""How sure we are that the passages answer, from signals that mean the same for every question, and the decision."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dtrag.core.documents import SearchResult
from dtrag.core.scoring import LexicalStatistics, idf
from dtrag.core.text import term_id, terms


@dataclass(frozen=True, slots=True)
class Confidence:
    """`value` in [0, 1]; `answers` is the decision; `reason` says in words how it was reached."""

    value: float
    answers: bool
    reason: str


WEIGHTS = {"intercept": -4.0, "lexical": 8.0, "coverage": 3.0}
ABSTAIN_BELOW = 0.2


def signals(question: str, passages: Sequence[SearchResult], statistics: LexicalStatistics) -> dict[str, float]:
    """Both in [0, 1]. `lexical`: the best passage's BM25 as a share of the question's ceiling. `coverage`: the idf
    share of the question's terms that occur in the passage that covers most, its title and headings included."""
    wanted = {term: idf(statistics.document_frequency(term), max(1, statistics.chunks)) for term in _ids(question)}
    total = sum(wanted.values())
    best = 0.0
    for passage in passages[:5]:
        found = set(_ids(" ".join((passage.title, *passage.breadcrumb, passage.text))))
        best = max(best, sum(weight for term, weight in wanted.items() if term in found))
    lexical = max((passage.bm25_score for passage in passages), default=0.0)
    return {"lexical": lexical, "coverage": best / total if total else 0.0}


def confidence_of(question: str, passages: Sequence[SearchResult], statistics: LexicalStatistics) -> Confidence:
    """Logistic in the signals."""
    if not passages:
        return Confidence(0.0, False, "No passage was found.")
    found = signals(question, passages, statistics)
    value = 1.0 / (1.0 + math.exp(-(WEIGHTS["intercept"] + sum(WEIGHTS[name] * found[name] for name in found))))
    reason = (
        f"The best passages hold {found['coverage']:.0%} of what the question asks by weight of its words, "
        f"and reach {found['lexical']:.0%} of the highest possible text score."
    )
    return Confidence(round(value, 3), value >= ABSTAIN_BELOW, reason)


def _ids(text: str) -> list[int]:
    return [term_id(term) for term in terms(text)]
