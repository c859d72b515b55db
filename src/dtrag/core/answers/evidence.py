"""Signals of how well passages answer a question, comparable across questions and collections.

No signal is normalised over the results of its query, so that the best passage of an unanswerable question does not
look good. Each is in [0, 1] unless stated otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from dtrag.core.documents import SearchResult
from dtrag.core.ranking.bm25 import LexicalStatistics, idf
from dtrag.core.text.analysis import STOP_WORDS, normalise, term_ids
from dtrag.core.text.patterns import DIGITS
from dtrag.core.text.question_words import asks
from dtrag.core.text.questions import content, weighted_terms
from dtrag.core.text.sentences import analysed_sentences

READ = 5
"""Passages whose text is read: those that an answer is composed of."""
COMPARED = 10
"""Passages whose scores are compared; missing ones count as 0."""
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
"""Name -> meaning. confidence_weights.json has the weights of a logistic regression under these names."""
PACK_SIGNALS: Mapping[str, str] = {
    "regulation_score": "BM25 of the best regulation (mean of its three best articles), not divided by what the "
    "question can reach; 1 is twice the score of a rare term",
    "regulation_situations": "the part of the question's words that spoken forms of several words explain",
    "regulation_covered": "1 when the first article covers every concept of the question",
    "regulation_similarity": "similarity of the nearest article to the question; absent without vectors",
}
"""Signals of the regulation pack, present when it ranked the passages."""

_CAPITALISED = re.compile(r"\b[A-Z][\w-]*")


@dataclass(frozen=True, slots=True)
class QuestionContent:
    """Terms of a question's content with weights (idf, reduced for words that only ask), and neighbouring pairs."""

    weights: Mapping[int, float]
    pairs: Mapping[tuple[int, int], float]
    total: float

    @classmethod
    def of(cls, question: str, statistics: LexicalStatistics) -> QuestionContent:
        """With weights from the statistics of the passages in the caller's scope."""
        shares = dict(weighted_terms(question))
        content_terms = list(term_ids(content(question)))
        weights = {
            term: shares.get(term, 1.0) * idf(frequency, max(1, statistics.chunks))
            for term, frequency in zip(content_terms, statistics.document_frequencies(content_terms), strict=True)
        }
        pairs = {pair: min(weights[pair[0]], weights[pair[1]]) for pair in pairwise(content_terms)}
        return cls(weights, pairs, sum(weights.values()))

    def part(self, matched: Collection[int]) -> float:
        """The share of the weight of the matched terms."""
        return sum(map(self.weights.__getitem__, sorted(matched))) / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class PassageEvidence:
    """Match of one passage with the question; `sentences` are pairs of the matched share and the text."""

    coverage: float
    phrase: float
    sentences: tuple[tuple[float, str], ...]
    matched: frozenset[int]


def read(passage: SearchResult, question: QuestionContent) -> PassageEvidence:
    """Match the passage sentence by sentence."""
    matched = question.weights.keys() & term_ids(" ".join((passage.title, *passage.breadcrumb)))
    parts: list[tuple[float, str]] = []
    neighbours: set[tuple[int, int]] = set()
    for sentence in analysed_sentences(passage.text):
        body = sentence.terms
        inside = question.weights.keys() & body
        if inside:
            parts.append((question.part(inside), sentence.text))
            matched |= inside
            if any(first in inside and second in inside for first, second in question.pairs):
                neighbours |= question.pairs.keys() & {*pairwise(body), *zip(body, body[2:], strict=False)}
    total = sum(question.pairs.values())
    phrase = sum(question.pairs[pair] for pair in neighbours) / total if total else 0.0
    return PassageEvidence(question.part(matched), phrase, tuple(parts), frozenset(matched))


def by_words(passages: Sequence[SearchResult]) -> list[SearchResult]:
    """The passages without their vector scores: for a question whose model proposes passages and decides nothing."""
    return [replace(passage, vector_score=0.0) for passage in passages]


def signals(question: str, passages: Sequence[SearchResult], statistics: LexicalStatistics) -> dict[str, float]:
    """The values of `SIGNALS`, from the first `COMPARED` passages; the order of equal passages does not matter."""
    weighed = QuestionContent.of(question, statistics)
    compared = passages[:COMPARED]
    shares = _falling(passage.bm25_score for passage in compared)
    cosines = _falling(passage.vector_score for passage in compared)
    both = _falling((passage.bm25_score + passage.vector_score) / 2 for passage in compared)
    readings = [read(passage, weighed) for passage in compared[:READ]]
    best = max(compared, key=lambda passage: passage.bm25_score, default=None)
    text = normalise(" ".join((best.title, *best.breadcrumb, best.text))) if best is not None else ""
    parts = sorted((part for reading in readings for part in reading.sentences), reverse=True)
    first, second = (*(part for part, _ in parts[:2]), 0.0, 0.0)[:2]
    return {
        "lexical": shares[0],
        "lead": _lead(shares),
        "drop": (shares[0] - shares[4]) / shares[0] if shares[0] else 0.0,
        "coverage": max((reading.coverage for reading in readings), default=0.0),
        "phrase": max((reading.phrase for reading in readings), default=0.0),
        "sentence": first - second,
        "numbers": _numbers_missing(question, text),
        "names": _names_missing(question, text),
        "kind": _kind(question, parts[0][1] if parts else ""),
        "cosine": cosines[0],
        "together": _lead(both) if cosines[0] else 0.0,
    }


def _falling(scores: Iterable[float]) -> list[float]:
    ordered = sorted((min(1.0, max(0.0, score)) for score in scores), reverse=True)
    return ordered + [0.0] * (COMPARED - len(ordered))


def _lead(falling: Sequence[float]) -> float:
    return falling[0] - sum(falling[1:]) / (COMPARED - 1)


def _numbers_missing(question: str, text: str) -> float:
    numbers = set(DIGITS.findall(normalise(question)))
    return float(not numbers <= set(DIGITS.findall(text))) if numbers else 0.0


def _names_missing(question: str, text: str) -> float:
    """Compared as written, because a stem may be another name."""
    names = {normalise(name) for name in _CAPITALISED.findall(question)} - STOP_WORDS
    return sum(name not in text for name in names) / len(names) if names else 0.0


def _kind(question: str, sentence: str) -> float:
    if not asks(question, "figure"):
        return 0.0
    return 1.0 if DIGITS.search(sentence) else -1.0
