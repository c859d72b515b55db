"""`dtrag eval`: measure quality on judged questions. `dtrag calibrate`: fit the confidence to your documents."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from dtrag.core.response import plain
from dtrag.core.statements import Statement
from dtrag.delivery.cli.console import Facts, ListFormat, Rows, counted_progress, ingest_progress, note, show_result
from dtrag.delivery.cli.context import Form, Json, run_async, with_app
from dtrag.delivery.cli.eval_options import EvaluationCall, Must, evaluation
from dtrag.delivery.cli.exit_codes import FAILURE, OK
from dtrag.delivery.cli.search import Mode
from dtrag.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from dtrag.app import App
    from dtrag.core.documents import SearchMetrics, SearchResult
    from dtrag.core.evaluation_run import EvaluationRun, RunRow, RunSummary
    from dtrag.evaluation.answers import AnswerMeasures, AnswerSet
    from dtrag.evaluation.calibration import Calibrated
    from dtrag.evaluation.case_memory import AskedQuestion, MeasurementPlan
    from dtrag.evaluation.retrieval import RetrievalMeasures, RetrievalSet
    from dtrag.settings import Settings

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Measure quality.")


@app.callback()
def evaluations() -> None:
    """Measure quality."""


@app.command("retrieval")
@evaluation
def retrieval(
    call: EvaluationCall, *, mode: Annotated[Mode, typer.Option(help="The search mode.")] = Mode.hybrid
) -> int:
    """Measure retrieval on judged questions.

    DIR contains questions (queries.jsonl or questions.jsonl) whose relevant
    documents or articles are listed with them or in qrels.tsv. The documents
    are indexed in a temporary database, every question is searched, and the
    measures are averaged, with 95 % intervals.
    """
    settings = call.settings()
    from dtrag.evaluation.retrieval import read_retrieval_set, rows_of

    dataset = read_retrieval_set(call.folder, call.corpus, call.limit)
    measured, notes, run = run_async(_measure(settings, dataset, mode.value))
    return call.finish(run, settings, rows_of(measured), cast("Mapping[str, object]", measured), notes)


@asynccontextmanager
async def indexed(settings: Settings, corpus: Path) -> AsyncIterator[tuple[App, list[str]]]:
    """An app with the corpus in a temporary database, and the notes on its ingestion."""
    from dtrag.app import open_throwaway

    async with open_throwaway(settings) as app:
        with ingest_progress("Indexing the corpus") as update:
            report = await app.ingest([corpus], None, update)
        if report.failed:
            raise InvalidInput(f"{report.failed[0][0]}: {report.failed[0][1]}")
        if not report.documents:
            raise InvalidInput(f"{corpus} contains no document with text.")
        yield app, list(map(str, report.notes))


async def _measure(
    settings: Settings, dataset: RetrievalSet, mode: str
) -> tuple[RetrievalMeasures, list[str], EvaluationRun]:
    from dtrag.core.access.confinement import OWNER
    from dtrag.evaluation.retrieval import evaluate

    async with indexed(settings, dataset.corpus) as (app, ingest_notes):

        async def search(text: str, top_k: int) -> tuple[list[SearchResult], SearchMetrics]:
            return await app.search(text, top_k, mode=mode, scope=OWNER)

        rows: list[RunRow] = []
        with counted_progress("Searching", "queries") as advance:
            measured, notes = await evaluate(
                search,
                dataset,
                mode,
                advance,
                on_row=rows.append,
            )
        return measured, ingest_notes + notes, app.evaluation_run("retrieval", dataset.name, rows, mode=mode)


@app.command("answers")
@evaluation
def answers(call: EvaluationCall, *, must: Must = None) -> int:
    """Measure answers to judged questions.

    DIR contains questions (queries.jsonl or questions.jsonl) with the words
    that an answer has to show, with known answers, with relevant documents or
    articles, or marked as unanswerable. The documents are indexed in a
    temporary database and every question is asked. An answer is right when it
    shows what it has to; quotations are compared with what is relevant and
    with the text of their documents.
    """
    settings = call.settings()
    from dtrag.evaluation.answers import read_answer_set, rows_of

    dataset = read_answer_set(call.folder, call.corpus, call.limit, must)
    measured, notes, run = run_async(_answers(settings, dataset))
    return call.finish(run, settings, rows_of(dataset.name, measured), cast("Mapping[str, object]", measured), notes)


async def _answers(settings: Settings, dataset: AnswerSet) -> tuple[AnswerMeasures, list[str], EvaluationRun]:
    from dtrag.core.access.confinement import OWNER

    async with indexed(settings, dataset.corpus) as (app, ingest_notes):
        with counted_progress("Asking", "questions") as advance:
            measured, notes, run = await app.evaluate_answers(dataset, advance, scope=OWNER)
        return measured, ingest_notes + notes, run


@app.command("runs")
def runs(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Number of runs.")] = 20,
    as_json: Json = False,
    form: Form = ListFormat.table,
) -> int:
    """List the runs that were kept with --keep, the newest first."""

    async def load(opened: App) -> list[RunSummary]:
        return await opened.evaluations.newest(limit)

    summaries = with_app(context, load)
    rows = [
        (str(run.run_id), f"{run.created_at:%Y-%m-%d %H:%M}", run.kind, run.dataset, run.questions) for run in summaries
    ]
    none = "" if summaries else "No run was kept yet. Keep one with: dtrag eval answers DIR --keep"
    shown = Rows(("run", "time", "kind", "dataset", "questions"), rows, whole=("run",))
    return show_result(as_json or form, {"evaluations": summaries}, shown, notes=[none])


@app.command("quality")
@evaluation
def quality(
    call: EvaluationCall,
    *,
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="lexical, model, or the folder of a claim checker.", show_default="DTRAG_JUDGE"
        ),
    ] = None,
    must: Must = None,
) -> int:
    """Judge answers to questions, and the passages they come from.

    DIR contains questions (queries.jsonl or questions.jsonl) with known
    answers, or marked as unanswerable. The documents are indexed in a
    temporary database and every question is asked. A judge says which claims
    of the answers the first ten passages support, which claims of the known
    answers they support, and whether the answer replies to the question.
    """
    settings = call.settings(judge=judge)
    from dtrag.evaluation.answers import read_answer_set
    from dtrag.evaluation.quality import rows_of

    run, notes = run_async(_quality(settings, read_answer_set(call.folder, call.corpus, call.limit, must)))
    return call.finish(run, settings, rows_of(run), plain(run.summary()), notes)


async def _quality(settings: Settings, dataset: AnswerSet) -> tuple[EvaluationRun, list[str]]:
    from dtrag.core.access.confinement import OWNER
    from dtrag.evaluation.quality import RAGQualityEvaluator, evaluate_quality

    async with indexed(settings, dataset.corpus) as (app, notes):

        async def contexts(text: str, top_k: int) -> list[SearchResult]:
            return (await app.search(text, top_k, scope=OWNER, highlights=False))[0]

        with counted_progress("Asking", "questions") as advance:
            rows = await evaluate_quality(
                app.ask,
                contexts,
                RAGQualityEvaluator(app.judge),
                dataset,
                advance,
            )
        failed = sum(bool(row.details["degraded"]) for row in rows)
        if failed:
            notes.append(f"The judge {app.judge.id} failed for {failed:,} questions; words decided there.")
        return app.evaluation_run("quality", dataset.name, rows), notes


FLAG = "cbr_enabled"


@app.command("cbr")
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
    from dtrag.evaluation.case_memory import MeasurementPlan, rows_of
    from dtrag.evaluation.retrieval import read_retrieval_set

    dataset = read_retrieval_set(call.folder, call.corpus, call.limit)
    run, facts, notes = run_async(
        _measure_cases(settings, dataset, MeasurementPlan(wrong_ratings=wrong, corrections=corrections))
    )
    measured = {**plain(run.summary()), "taught": facts}
    return call.finish(run, settings, rows_of(run, facts), measured, notes)


async def _measure_cases(
    settings: Settings, dataset: RetrievalSet, plan: MeasurementPlan
) -> tuple[EvaluationRun, Mapping[str, int], list[str]]:
    from dtrag.evaluation.case_memory import evaluate_case_memory, rows
    from dtrag.settings import set_feature_flag

    async with indexed(settings, dataset.corpus) as (opened, notes):
        try:
            with counted_progress("Asking", "questions") as advance:
                measured = await evaluate_case_memory(
                    dataset.questions,
                    _AppMemory(opened),
                    plan,
                    advance,
                )
        finally:
            set_feature_flag(FLAG, None)
        options = {"wrong": f"{plan.wrong_ratings:g}", "corrections": str(plan.corrections)}
        run = opened.evaluation_run("cases", dataset.name, rows(measured), **options)
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
        retrieved = [passage.chunk_id for passage in response.retrieved_chunks]
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

    async def rate(self, answer: AskedQuestion, *, up: bool) -> None:
        """The rating of the answer, by its asker."""
        await self._app.feedback.give(answer.trace_id, thumbs="up" if up else "down")

    async def correct(self, answer: AskedQuestion, chunk_ids: Sequence[str]) -> None:
        """Through the review queue, as a reviewer does it."""
        from dtrag.core.taxonomy.review import OfferedAnswer

        offered = OfferedAnswer(
            question=answer.question,
            text=answer.text,
            decision=answer.decision,
            confidence=answer.confidence,
            cited=tuple(passage.chunk_id for passage in answer.cited),
            retrieved=tuple(passage.chunk_id for passage in answer.retrieved),
            reasons=(Statement("", "The answer was rated down."),),
        )
        await self._app.review.offer_answer(offered, None)
        items, _ = await self._app.review.waiting(1_000)
        for item in items:
            if item.kind == "answer" and item.proposal["question"] == answer.question:
                await self._app.review.correct(str(item.item_id), passages=chunk_ids)


METHODS = {
    "shipped": "as shipped: no fit was better",
    "line": "shipped, with a fitted intercept and slope",
    "weights": "fitted weights",
}


def calibrate(
    context: typer.Context,
    questions: Annotated[
        Path | None,
        typer.Argument(metavar="[QUESTIONS.jsonl]", help="Judged questions, one per line.", show_default=False),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only measure, change nothing.")] = False,
    reset: Annotated[bool, typer.Option("--reset", help="Return to the shipped confidence.")] = False,
    as_json: Json = False,
) -> int:
    """Fit the confidence to your documents.

    A line is {"question": "...", "answerable": false}, or names the answer:
    {"question": "...", "document": "..."} or "answer". At least 20 lines, better
    75. It takes effect with the next question, in every process.
    """
    if reset == (questions is not None) or (reset and dry_run):
        raise typer.BadParameter("give either a file of questions (with or without --dry-run), or --reset alone")
    if questions is None:
        return _reset(context, as_json)
    from dtrag.evaluation.calibration import read_questions

    judged = read_questions(questions)

    async def fit(opened: App) -> Calibrated:
        with counted_progress("Asking", "questions") as advance:
            return await opened.calibrate(judged, lambda done: advance(done, len(judged)), keep=not dry_run)

    result = with_app(context, fit)
    refusals = [
        f"Refused for model {refusal.model} ({METHODS[refusal.method]}): {'; '.join(refusal.reasons)}."
        for refusal in result.refusals
    ]
    show_result(as_json, as_dict(result, stored=result.helps and not dry_run), Facts(_rows(result)), notes=refusals)
    if result.missed:
        note(
            f"For {result.missed:,} answerable questions the answer was not among the retrieved passages: "
            "they count as unanswered."
        )
    note(_outcome(result, dry_run))
    return OK if dry_run or result.helps else FAILURE


def _outcome(result: Calibrated, dry_run: bool) -> str:
    if dry_run:
        return "Nothing was changed (--dry-run)."
    if result.helps:
        return "Active from the next question on."
    return "Nothing was changed: no fit is better than the shipped confidence. More questions may help."


def _reset(context: typer.Context, as_json: bool) -> int:
    was_calibrated = with_app(context, lambda opened: opened.uncalibrate())
    done = "Back to the shipped confidence." if was_calibrated else "There was no calibration: nothing to reset."
    return show_result(as_json, {"reset": was_calibrated}, done)


def as_dict(result: Calibrated, *, stored: bool) -> Mapping[str, object]:
    """The JSON object of a calibration. Fitted values are null where the shipped confidence stays."""
    models = [
        {
            "model": name,
            "method": method,
            "intercept": model.intercept if (model := result.models.get(name)) else None,
            "weights": model.weights if model else None,
            "thresholds": result.thresholds.get(name),
        }
        for name, method in result.methods.items()
    ]
    return {
        "questions": result.questions,
        "cases": result.kinds,
        "missed": result.missed,
        "before": result.before,
        "after": result.after,
        "models": models,
        "refused": result.refusals,
        "kept": stored,
    }


def _rows(result: Calibrated) -> list[tuple[str, str]]:
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in result.kinds.items())
    rows = [("questions", f"{result.questions:,}"), ("cases", kinds)]
    names = {
        "auroc": "AUROC (1 is best, .5 a coin)",
        "selective_risk": "wrong among answered",
        "abstention": "abstention on unanswerable",
        "calibration_error": "calibration error (0 is best)",
        "log_loss": "log loss (0 is best)",
        "coverage_at_95": "coverage at .95 correct",
    }
    before, after = asdict(result.before), asdict(result.after)
    rows += [(label, f"{before[name]:.3f} before, {after[name]:.3f} after") for name, label in names.items()]
    return rows + [(f"model {name}", METHODS[method]) for name, method in result.methods.items()]
