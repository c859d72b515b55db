"""How well passages answer a question, as a dozen figures that mean the same for every question and collection.

None of them is stretched over the results of its query: the best passage of a question that nothing answers stands out
no more than it is. Each is in [0, 1] unless it says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from dtrag.core.documents import SearchResult
from dtrag.core.ranking.bm25 import LexicalStatistics, idf
from dtrag.core.text.analysis import STOP_WORDS, normalise, term_id, terms
from dtrag.core.text.linguistics import asks_number_or_date
from dtrag.core.text.questions import content, weighted_terms
from dtrag.core.text.sentences import analysed_sentences

READ = 5
"""Passages whose text is read: those that answers are made of."""
COMPARED = 10
"""Passages whose scores are compared; where there are fewer, the missing ones count as 0."""
SIGNALS: Mapping[str, str] = {
    "lexical": "the best passage's BM25, as a share of what the question could reach at most",
    "lead": "how far that share is above the mean of the other nine of ten",
    "drop": "the part of the share that is lost by the fifth passage",
    "coverage": "the part of the question's words, by weight, that one passage holds (title and headings included)",
    "phrase": "the part of the question's neighbouring words that are neighbours in one passage, too",
    "sentence": "how much more of the question the best sentence holds than the next best",
    "numbers": "1 when a number of the question is missing in the best passage",
    "names": "the part of the question's capitalised words that is missing in the best passage",
    "kind": "1 when the question asks for a number and the best sentence has one, -1 when it has none; else 0",
    "cosine": "the highest cosine of a passage to the question; 0 without vectors",
    "together": "as `lead`, of the mean of share and cosine; 0 without vectors",
}
"""Name -> what it says. The weights of a logistic regression stand in confidence_weights.json under these names."""

_DIGITS = re.compile(r"\d+")
_CAPITALISED = re.compile(r"\b[A-Z][\w-]*")


@dataclass(frozen=True, slots=True)
class QuestionContent:
    """What a question asks about: its terms with their weights (idf, less for what only asks), and neighbours."""

    weights: Mapping[str, float]
    pairs: Mapping[tuple[str, str], float]
    total: float

    @classmethod
    def of(cls, question: str, statistics: LexicalStatistics) -> QuestionContent:
        """Terms of the question's content, weighed by the statistics of what the caller may see."""
        shares = dict(weighted_terms(question))
        asked = terms(content(question))
        weights = {}
        for term in asked:
            number = term_id(term)
            frequency = statistics.document_frequency(number)
            weights[term] = shares.get(number, 1.0) * idf(frequency, max(1, statistics.chunks))
        pairs = {pair: min(weights[pair[0]], weights[pair[1]]) for pair in pairwise(asked)}
        return cls(weights, pairs, sum(weights.values()))

    def part(self, found: set[str]) -> float:
        """The share of the terms' weight that is found."""
        return sum(map(self.weights.__getitem__, sorted(found))) / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class PassageEvidence:
    """What one passage holds of the question; `sentences` are pairs of the part held and the text."""

    coverage: float
    phrase: float
    sentences: tuple[tuple[float, str], ...]
    held: frozenset[str]


def read(passage: SearchResult, wanted: QuestionContent) -> PassageEvidence:
    """The passage, sentence by sentence."""
    held = {term for term in terms(" ".join((passage.title, *passage.breadcrumb))) if term in wanted.weights}
    parts: list[tuple[float, str]] = []
    neighbours: set[tuple[str, str]] = set()
    for sentence in analysed_sentences(passage.text):
        body = sentence.terms
        inside = {term for term in body if term in wanted.weights}
        if inside:
            parts.append((wanted.part(inside), sentence.text))
            held |= inside
            neighbours |= {pair for pair in pairwise(body) if pair in wanted.pairs}
            neighbours |= {pair for pair in zip(body, body[2:], strict=False) if pair in wanted.pairs}
    total = sum(wanted.pairs.values())
    phrase = sum(wanted.pairs[pair] for pair in neighbours) / total if total else 0.0
    return PassageEvidence(wanted.part(held), phrase, tuple(parts), frozenset(held))


def signals(question: str, passages: Sequence[SearchResult], statistics: LexicalStatistics) -> dict[str, float]:
    """Every one of `SIGNALS`, from the first `COMPARED` passages; the order of equal passages does not matter."""
    wanted = QuestionContent.of(question, statistics)
    compared = passages[:COMPARED]
    shares = _falling(passage.bm25_score for passage in compared)
    cosines = _falling(passage.vector_score for passage in compared)
    both = _falling((passage.bm25_score + passage.vector_score) / 2 for passage in compared)
    readings = [read(passage, wanted) for passage in compared[:READ]]
    best = max(compared, key=lambda passage: passage.bm25_score, default=None)
    there = normalise(" ".join((best.title, *best.breadcrumb, best.text))) if best is not None else ""
    parts = sorted((part for reading in readings for part in reading.sentences), reverse=True)
    first, second = (*(part for part, _ in parts[:2]), 0.0, 0.0)[:2]
    return {
        "lexical": shares[0],
        "lead": _lead(shares),
        "drop": (shares[0] - shares[4]) / shares[0] if shares[0] else 0.0,
        "coverage": max((reading.coverage for reading in readings), default=0.0),
        "phrase": max((reading.phrase for reading in readings), default=0.0),
        "sentence": first - second,
        "numbers": _numbers_missing(question, there),
        "names": _names_missing(question, there),
        "kind": _kind(question, parts[0][1] if parts else ""),
        "cosine": cosines[0],
        "together": _lead(both) if cosines[0] else 0.0,
    }


def _falling(scores: Iterable[float]) -> list[float]:
    ordered = sorted((min(1.0, max(0.0, score)) for score in scores), reverse=True)
    return ordered + [0.0] * (COMPARED - len(ordered))


def _lead(falling: Sequence[float]) -> float:
    return falling[0] - sum(falling[1:]) / (COMPARED - 1)


def _numbers_missing(question: str, there: str) -> float:
    asked = set(_DIGITS.findall(normalise(question)))
    return float(not asked <= set(_DIGITS.findall(there))) if asked else 0.0


def _names_missing(question: str, there: str) -> float:
    """Looked for as written: a stem may be another name."""
    asked = {normalise(name) for name in _CAPITALISED.findall(question)} - STOP_WORDS
    return sum(name not in there for name in asked) / len(asked) if asked else 0.0


def _kind(question: str, sentence: str) -> float:
    if not asks_number_or_date(question):
        return 0.0
    return 1.0 if _DIGITS.search(sentence) else -1.0
