"""The probability that what an answer quotes is the answer to the question; it decides between `answer` and `review`.

`confidence` (core/answers/passage_confidence.py) says whether the documents answer; of the answers above it, many quote
something else. The weights in `answer_confidence_weights.json` are fitted to whether the words that an answer has to
show are shown (`scripts/fit_answer_confidence.py`; docs/explanation/confidence.md).
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

import numpy as np

from dtrag.core.answers.grounding import claim_of
from dtrag.core.answers.passage_confidence import COSTS, Confidence, LogisticModel, Policy, Thresholds
from dtrag.core.answers.sentence_signals import QuestionTerms
from dtrag.core.documents import Citation, PackFindings, SearchResult
from dtrag.core.ranking.bm25 import LexicalStatistics
from dtrag.core.statements import Statement, stated
from dtrag.core.text.analysis import language, normalise, term_ids
from dtrag.core.text.numbers import numbers_in

COMPARED = 10
"""Passages over which the score of the cited one is standardised."""
MARGIN = 0.02
"""Confidence of the documents at which its log-odds are cut."""
ANSWER_SIGNALS: Mapping[str, str] = {
    "documents": "log-odds of the confidence that the documents answer, a fourth of them",
    "lead": "BM25 of the first quoted passage, standardised over ten passages, a third of it",
    "value": "1 when the question asks for a kind of value and the marked sentence has one, -1 if not; else 0",
    "shown": "the part of the question's terms, by idf, official ones too, in the first quotation and its headings",
}
"""Name -> meaning."""


@dataclass(frozen=True, slots=True)
class AnswerConfidence:
    """`value` in [0, 1]; `sure`: high enough for the decision `answer`; `signals` are its inputs.

    `lacking`: what forbids `answer`, as a sentence.
    """

    value: float
    sure: bool
    signals: Mapping[str, float]
    lacking: Statement | None = None


@dataclass(frozen=True, slots=True)
class AnswerModel:
    """A fitted model, and the probability from which on an answer counts as one."""

    model: LogisticModel
    threshold: float


@functools.cache
def models() -> Mapping[str, AnswerModel]:
    """The shipped models by kind: `regulations`, `korean`, `other`."""
    read = json.loads(resources.files(__package__).joinpath("answer_confidence_weights.json").read_text("utf-8"))
    return {
        name: AnswerModel(LogisticModel(row["intercept"], row["weights"]), row["threshold"])
        for name, row in read["models"].items()
    }


def model_name(question: str, pack: PackFindings | None) -> str:
    """The model for a question: `regulations` when the pack ranked the passages."""
    if pack is not None:
        return "regulations"
    return "korean" if language(question) == "ko" else "other"


def answer_signals(
    question: str,
    citations: Sequence[Citation],
    passages: Sequence[SearchResult],
    *,
    statistics: LexicalStatistics,
    documents: float,
    pack: PackFindings | None,
) -> dict[str, float]:
    """The values of `ANSWER_SIGNALS`; there is a citation, and `documents` is the confidence that they answer."""
    query = QuestionTerms(question, statistics, pack.terms if pack is not None else ())
    first = citations[0]
    compared = passages[:COMPARED]
    place = next((at for at, each in enumerate(compared) if each.chunk_id == first.chunk_id), None)
    scores = np.array([each.bm25_score for each in compared])
    spread = float(scores.std()) if len(scores) else 0.0
    sentence = " ".join(first.quote[start - first.start : end - first.start] for start, end in first.marked)
    shown = frozenset(term_ids(_shown(first, passages)))
    bounded = min(1 - MARGIN, max(MARGIN, documents))
    return {
        "documents": math.log(bounded / (1 - bounded)) / 4,
        "lead": float(scores[place] - scores.mean()) / spread / 3 if place is not None and spread > 1e-9 else 0.0,
        "value": 0.0 if query.value is None else 1.0 if query.has_value(sentence or first.display) else -1.0,
        "shown": query.part(shown.intersection(query.weights)),
    }


def _shown(citation: Citation, passages: Sequence[SearchResult]) -> str:
    """The quotation with its context and the headings of its passage."""
    headings = next(((p.title, *p.breadcrumb) for p in passages if p.chunk_id == citation.chunk_id), ())
    return " ".join((*headings, *(part.text for part in citation.context), citation.display or citation.quote))


def lacking(question: str, citations: Sequence[Citation], passages: Sequence[SearchResult]) -> Statement | None:
    """A number, a name or the negation of the question that no quotation has; None when they have all of them."""
    text = " ".join(_shown(citation, passages) for citation in citations)
    claim, numbers, words = claim_of(question), numbers_in(text), normalise(text)
    for key, written in (*claim.numbers.items(), *claim.names.items()):
        if key not in (numbers if key in claim.numbers else words):
            return stated("answer_lacks", "The quotations do not have “{words}” of the question.", words=written)
    if claim.denied and not claim_of(text).denied:
        return stated("answer_lacks_denial", "The question denies something, and the quotations do not.")
    return None


def answer_confidence(
    question: str,
    citations: Sequence[Citation],
    passages: Sequence[SearchResult],
    *,
    statistics: LexicalStatistics,
    documents: Confidence,
    pack: PackFindings | None,
    policy: Policy = "balanced",
) -> AnswerConfidence:
    """How probable it is that the quotations answer, and whether that suffices under the policy."""
    fitted = models()[model_name(question, pack)]
    values = answer_signals(question, citations, passages, statistics=statistics, documents=documents.value, pack=pack)
    value = fitted.model.probability(values)
    threshold = Thresholds(fitted.threshold, fitted.threshold).at_cost(COSTS[policy]).review
    reason = lacking(question, citations, passages)
    return AnswerConfidence(round(value, 3), value >= threshold and not reason, values, reason)
