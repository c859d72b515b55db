"""The quality of one answer, and of the answers to a set of judged questions (`dtrag eval quality`)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from dtrag.core.documents import Answer, SearchResult
from dtrag.core.evaluation_run import EvaluationRun, RunRow
from dtrag.core.metrics.intervals import Ratio
from dtrag.core.quality import scores
from dtrag.core.quality.relevancy import is_refusal
from dtrag.core.quality.scores import Judgement, QualityResult, Relevance
from dtrag.errors import DtragError, InvalidInput
from dtrag.evaluation.answers import AnswerSet
from dtrag.evaluation.judged_questions import (
    UNFINISHED,
    JudgedQuestion,
    article_names,
    document_names,
    missing_groups,
    shown_parts,
    unfinished_line,
    within_limit,
)
from dtrag.evaluation.judges import LexicalJudge
from dtrag.pipeline.answer.citation_marks import read_marks
from dtrag.ports import Judge

_LOG = logging.getLogger(__name__)


class RAGQualityEvaluator:
    """Evaluates answers with a judge; without one by `LexicalJudge`, which needs no model.

    result = await RAGQualityEvaluator().evaluate(query, answer, contexts, ground_truth)
    print(result.faithfulness, result.reasons)

    When another judge fails, the lexical one decides, and `degraded` of the result says why.
    """

    def __init__(self, judge: Judge | None = None):
        self._lexical = LexicalJudge()
        self._judge: Judge = judge or self._lexical

    async def evaluate(
        self, query: str, answer: str, contexts: Sequence[str], ground_truth: str | Sequence[str] | None = None
    ) -> QualityResult:
        """The quality of one answer.

        `contexts` are the texts that the answer was written from, best first. `ground_truth` is the right answer, or
        several of which one suffices; "" says that nothing answers the question. Raises `InvalidInput`.
        """
        if not query.strip():
            raise InvalidInput("The query is empty: the quality of an answer depends on its question.")
        if isinstance(contexts, str):
            raise InvalidInput("contexts must be a list of texts, not one text.")
        truths = [ground_truth] if ground_truth is None or isinstance(ground_truth, str) else list(ground_truth)
        text = read_marks(answer, contexts).text.strip()
        try:
            return await _Evaluation(self._judge, query, text, contexts).best(truths or [None])
        except DtragError as error:
            if self._judge is self._lexical:
                raise
            _LOG.warning("the judge %s failed, words decide: %s", self._judge.id, error)
            return await _Evaluation(self._lexical, query, text, contexts, str(error)).best(truths or [None])


@dataclass(frozen=True, slots=True)
class _Evaluation:
    """One answer, without its marks, before a judge."""

    judge: Judge
    query: str
    answer: str
    contexts: Sequence[str]
    degraded: str = ""

    async def best(self, truths: Sequence[str | None]) -> QualityResult:
        """The result for the ground truth that the answer and the contexts meet best."""
        claims: Sequence[Judgement] = ()
        relevance = Relevance(0.0, "it declines to answer")
        if not is_refusal(self.answer):
            claims = await self.judge.support(scores.claims_of(self.answer), self.contexts, self.query)
            relevance = await self.judge.relevance(self.query, self.answer)
        results = [await self._result(truth, claims, relevance) for truth in truths]
        return max(
            results, key=lambda result: (result.accepted, result.correctness or 0.0, result.contextual_recall or 0.0)
        )

    async def _result(self, truth: str | None, claims: Sequence[Judgement], relevance: Relevance) -> QualityResult:
        judge, refused = self.judge, is_refusal(self.answer)
        named = scores.claims_of(truth) if truth else []
        expected = await judge.support(named, self.contexts, self.query) if named else []
        stated = await judge.support(named, [self.answer], "") if named and not refused else []
        recalled, correctness = scores.recall(expected), scores.recall(stated)
        refusal = scores.refusal_of(refused, truth, recalled)
        return QualityResult(
            contextual_recall=recalled,
            contextual_precision=scores.precision(expected or claims, len(self.contexts)),
            faithfulness=scores.faithfulness(claims),
            answer_relevancy=relevance.score,
            correctness=correctness,
            refusal=refusal,
            accepted=scores.is_accepted(refusal, correctness, relevance, claims, recalled),
            judge=judge.id,
            claims=tuple(claims),
            expected=tuple(expected),
            reasons=_reasons(claims, expected, stated, relevance),
            degraded=self.degraded,
        )


def _reasons(
    claims: Sequence[Judgement], expected: Sequence[Judgement], stated: Sequence[Judgement], relevance: Relevance
) -> tuple[str, ...]:
    """What speaks against the answer or its contexts, for the reader."""
    reasons = [f"Not supported by the contexts: “{each.claim}”: {each.reason}." for each in claims if each.reason]
    reasons += [f"Missing in the contexts: “{each.claim}”: {each.reason}." for each in expected if each.reason]
    reasons += [f"Missing in the answer: “{each.claim}”: {each.reason}." for each in stated if each.reason]
    if relevance.reason:
        reasons.append(f"As a reply to the question: {relevance.reason}.")
    return tuple(reasons)


CONTEXTS = 10
"""Passages that are judged as contexts of an answer."""
MEASURES = {
    "contextual_recall": "claims of the known answers that the contexts support",
    "contextual_recall_articles": "relevant documents or articles among the contexts",
    "contextual_precision": "how far in front the supporting contexts are",
    "faithfulness": "mean score of the claims of answers",
    "answer_relevancy": "answers reply to their questions",
    "correctness": "claims of the known answers that the answers state",
    "accepted": "answers accepted, and right refusals",
    "sufficient": "what must be said is shown",
    "refused_wrongly": "answerable, declined although the contexts answer",
    "answered_unanswerable": "unanswerable, answered",
    "degraded": "judged by words because the judge failed",
    "unfinished": "not answered in time",
}
"""Measure -> meaning. Unfinished questions count in `unfinished` only.

Answers that decline count in `accepted` and the two measures of refusals only.
"""

Ask = Callable[[str], Awaitable[Answer]]
Contexts = Callable[[str, int], Awaitable[Sequence[SearchResult]]]
"""The best passages for a question, at most so many."""


async def evaluate_quality(
    ask: Ask,
    contexts: Contexts,
    evaluator: RAGQualityEvaluator,
    dataset: AnswerSet,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[RunRow]:
    """Ask every question of the set and judge the answer; one row each."""
    rows = []
    for number, question in enumerate(dataset.questions, start=1):
        passages = await contexts(question.text, CONTEXTS)
        answer = await within_limit(ask(question.text))
        if answer is None or answer.unfinished:
            ratios = dict.fromkeys(MEASURES, (0.0, 0.0)) | {"unfinished": (1.0, 1.0)}
            details = {"answer": "", "decision": UNFINISHED, "refusal": "", "reasons": [], "degraded": ""}
            rows.append(RunRow(question.id, question.text, ratios, details))
        else:
            texts = [_text(passage) for passage in passages]
            result = await evaluator.evaluate(question.text, answer.text, texts, ground_truth(question))
            rows.append(_row(question, answer, passages, result))
        if on_progress is not None:
            on_progress(number, len(dataset.questions))
    return rows


def ground_truth(question: JudgedQuestion) -> str | list[str] | None:
    """What the evaluator expects: "" for an unanswerable question, None where no answer is known."""
    if not question.answerable:
        return ""
    return list(question.gold) or question.reference or None


def _text(passage: SearchResult) -> str:
    """The passage below its headings, which say what it is about."""
    headings = " ".join(dict.fromkeys((passage.title, *passage.breadcrumb)))
    return f"{headings}\n{passage.text}" if headings else passage.text


def _row(question: JudgedQuestion, answer: Answer, passages: Sequence[SearchResult], result: QualityResult) -> RunRow:
    def optional(value: float | None) -> Ratio:
        return (0.0, 0.0) if value is None else (value, 1.0)

    answered = result.refusal in {"none", "missing"}
    answerable, unanswerable = float(question.answerable), float(not question.answerable)
    named = {name for passage in passages for name in (*article_names(passage), *document_names(passage))}
    relevant = set(question.judgements)
    expected = float(question.answerable and bool(question.expected))
    missing = missing_groups(shown_parts(answer), question.expected)
    ratios = {
        "contextual_recall": optional(result.contextual_recall),
        "contextual_recall_articles": optional(len(relevant & named) / len(relevant) if relevant else None),
        "contextual_precision": optional(result.contextual_precision if question.answerable else None),
        "faithfulness": optional(result.faithfulness if answered else None),
        "answer_relevancy": optional(result.answer_relevancy if answered else None),
        "correctness": optional(result.correctness if answered else None),
        "accepted": (float(result.accepted), 1.0),
        "sufficient": (expected * (answered and not missing), expected),
        "refused_wrongly": (answerable * (result.refusal == "wrong"), answerable),
        "answered_unanswerable": (unanswerable * answered, unanswerable),
        "degraded": (float(bool(result.degraded)), 1.0),
        "unfinished": (0.0, 1.0),
    }
    details = {
        "answer": answer.text,
        "decision": answer.decision,
        "refusal": result.refusal,
        "reasons": list(result.reasons),
        "degraded": result.degraded,
    }
    return RunRow(question.id, question.text, ratios, details)


def rows_of(run: EvaluationRun) -> list[tuple[str, str]]:
    """Names and values for the text output."""
    lines = [("dataset", run.dataset), ("judge", run.settings["judge"]), ("questions", f"{len(run.rows):,}")]
    lines += unfinished_line(sum(bool(row.ratios["unfinished"][0]) for row in run.rows))
    for measure, estimate in run.estimates().items():
        if measure != "unfinished" and estimate.value is not None and estimate.interval is not None:
            low, high = estimate.interval
            lines.append((measure.replace("_", " "), f"{estimate.value:.3f}  [{low:.3f}, {high:.3f}]"))
    return lines
