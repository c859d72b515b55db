"""`dtrag eval cbr`: what the case memory gains on questions that come back, and whether it harms others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

from dtrag.delivery.cli.context import run_async
from dtrag.delivery.cli.eval_options import EvaluationCall, evaluation
from dtrag.delivery.cli.eval_outputs import run_of
from dtrag.delivery.cli.evaluate import indexed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dtrag.app import App
    from dtrag.core.evaluation_run import EvaluationRun
    from dtrag.evaluation.case_memory import AskedQuestion, Plan
    from dtrag.evaluation.retrieval import RetrievalSet
    from dtrag.settings import Settings

FLAG = "cbr_enabled"


@evaluation
def cbr(
    call: EvaluationCall,
    *,
    wrong: Annotated[float, typer.Option(min=0, max=1, help="Share of ratings that are wrong.")] = 0.0,
    corrections: Annotated[
        bool, typer.Option(help="A reviewer chooses the relevant passages for answers that were rated down.")
    ] = True,
) -> int:
    """Measure what the case memory gains and harms.

    Half of the questions are asked and rated in a temporary database. Then
    the same ones in slightly other words (repeat), and the other half
    (other), are asked with the memory and without it.
    """
    settings = call.settings()
    from dtrag.evaluation.case_memory import Plan, rows_of
    from dtrag.evaluation.retrieval import read_retrieval_set

    dataset = read_retrieval_set(call.folder, call.corpus, call.limit)
    run, facts, notes = run_async(_measure(settings, dataset, Plan(wrong_ratings=wrong, corrections=corrections)))
    measured = cast("Mapping[str, object]", {**run.summary().as_dict(), "taught": facts})
    return call.finish(run, settings, rows_of(run, facts), measured, notes)


async def _measure(
    settings: Settings, dataset: RetrievalSet, plan: Plan
) -> tuple[EvaluationRun, Mapping[str, int], list[str]]:
    from dtrag.delivery.cli.progress import progress
    from dtrag.evaluation.case_memory import evaluate_case_memory, rows
    from dtrag.settings import set_feature_flag

    async with indexed(settings, dataset.corpus) as (opened, notes):
        try:
            with progress("Asking") as advance:
                measured = await evaluate_case_memory(
                    dataset.questions,
                    _AppMemory(opened),
                    plan,
                    lambda done, total: advance(done, total, f"{done:,}/{total:,} questions"),
                )
        finally:
            set_feature_flag(FLAG, None)
        options = {"wrong": f"{plan.wrong_ratings:g}", "corrections": str(plan.corrections)}
        run = run_of(opened, "cases", dataset.name, rows(measured), **options)
        return run, measured.taught(), notes


class _AppMemory:
    """An open app as `MemoryUnderTest`."""

    def __init__(self, opened: App) -> None:
        self._app = opened

    async def ask(self, question: str, *, memory: bool) -> AskedQuestion:
        """The answer, with its passages as they are now."""
        from dtrag.core.access.confinement import OWNER
        from dtrag.core.access.scope import EVERYTHING
        from dtrag.evaluation.case_memory import AskedQuestion
        from dtrag.settings import set_feature_flag

        set_feature_flag(FLAG, memory)
        response = await self._app.pipeline.execute(question, scope=OWNER)
        retrieved = [chunk["chunk_id"] for chunk in response.retrieved_chunks]
        cited = list(dict.fromkeys(citation.chunk_id for citation in response.citations))
        taxonomy = (await self._app.index.snapshot()).taxonomy
        passages = await self._app.index.fetch(list(dict.fromkeys((*retrieved, *cited))), EVERYTHING, taxonomy)
        before = response.answered_before
        return AskedQuestion(
            trace_id=response.trace_id,
            question=question,
            text=response.answer,
            decision=response.decision,
            confidence=response.confidence,
            retrieved=[passages[key] for key in retrieved if key in passages],
            cited=[passages[key] for key in cited if key in passages],
            shown_case=before.case_id if before is not None else None,
            unfinished=response.unfinished,
        )

    async def rate(self, asked: AskedQuestion, *, up: bool) -> None:
        """The rating of the answer, by its asker."""
        await self._app.feedback.give(asked.trace_id, thumbs="up" if up else "down")

    async def correct(self, asked: AskedQuestion, chunk_ids: Sequence[str]) -> None:
        """Through the review queue, as a reviewer does it."""
        from dtrag.core.taxonomy.review import OfferedAnswer

        offered = OfferedAnswer(
            question=asked.question,
            text=asked.text,
            decision=asked.decision,
            confidence=asked.confidence,
            cited=tuple(passage.chunk_id for passage in asked.cited),
            retrieved=tuple(passage.chunk_id for passage in asked.retrieved),
            reasons=("The answer was rated down.",),
        )
        await self._app.review.offer_answer(offered, None)
        items, _ = await self._app.review.waiting(1_000)
        for item in items:
            if item.kind == "answer" and item.proposal["question"] == asked.question:
                await self._app.review.correct(str(item.item_id), passages=chunk_ids)
