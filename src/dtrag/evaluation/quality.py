"""`RAGQualityEvaluator`: the quality of an answer and of the contexts that it was written from."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from dtrag.core.quality import scores
from dtrag.core.quality.relevancy import is_refusal
from dtrag.core.quality.scores import Judgement, QualityResult, Relevance
from dtrag.errors import DtragError, InvalidInput
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
