"""`dtrag eval retrieval`, `answers` and `quality`: measure quality on judged questions."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from dtrag.delivery.cli.context import Json, run_async, with_app
from dtrag.delivery.cli.eval_options import EvaluationCall, Must, evaluation
from dtrag.delivery.cli.eval_outputs import run_of
from dtrag.delivery.cli.exit_codes import OK
from dtrag.delivery.cli.search import Mode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from dtrag.app import App
    from dtrag.core.documents import SearchMetrics, SearchResult
    from dtrag.core.evaluation_run import EvaluationRun, RunRow, RunSummary
    from dtrag.evaluation.answers import AnswerMeasures, AnswerSet
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
    from dtrag.delivery.cli.progress import ingest_progress
    from dtrag.errors import InvalidInput

    async with open_throwaway(settings) as app:
        with ingest_progress("Indexing the corpus") as update:
            report = await app.ingest([corpus], None, update)
        if report.failed:
            raise InvalidInput(f"{report.failed[0][0]}: {report.failed[0][1]}")
        if not report.documents:
            raise InvalidInput(f"{corpus} contains no document with text.")
        yield app, report.notes


async def _measure(
    settings: Settings, dataset: RetrievalSet, mode: str
) -> tuple[RetrievalMeasures, list[str], EvaluationRun]:
    from dtrag.core.access.confinement import OWNER
    from dtrag.delivery.cli.progress import progress
    from dtrag.evaluation.retrieval import evaluate

    async with indexed(settings, dataset.corpus) as (app, ingest_notes):

        async def search(text: str, top_k: int) -> tuple[list[SearchResult], SearchMetrics]:
            return await app.search(text, top_k, mode=mode, scope=OWNER)

        rows: list[RunRow] = []
        with progress("Searching") as advance:
            measured, notes = await evaluate(
                search,
                dataset,
                mode,
                lambda done, total: advance(done, total, f"{done:,}/{total:,} queries"),
                on_row=rows.append,
            )
        return measured, ingest_notes + notes, run_of(app, "retrieval", dataset.name, rows, mode=mode)


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
    from dtrag.core.access.scope import EVERYTHING
    from dtrag.delivery.cli.progress import progress
    from dtrag.evaluation.answers import evaluate_answers

    async with indexed(settings, dataset.corpus) as (app, ingest_notes):
        taxonomy = (await app.index.snapshot()).taxonomy

        async def read_text(document_id: str) -> str:
            return (await app.document(document_id, scope=OWNER))[1]

        async def read_passages(chunk_ids: Sequence[str]) -> Mapping[str, SearchResult]:
            return await app.index.fetch(chunk_ids, EVERYTHING, taxonomy)

        rows: list[RunRow] = []
        with progress("Asking") as advance:
            measured, notes = await evaluate_answers(
                app.ask,
                read_text,
                read_passages,
                dataset,
                lambda done, total: advance(done, total, f"{done:,}/{total:,} questions"),
                on_row=rows.append,
            )
        return measured, ingest_notes + notes, run_of(app, "answers", dataset.name, rows)


@app.command("runs")
def runs(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Number of runs.")] = 20,
    as_json: Json = False,
) -> int:
    """List the runs that were kept with --keep, the newest first."""

    async def load(opened: App) -> list[RunSummary]:
        return await opened.evaluations.newest(limit)

    kept = with_app(context, load)
    from dtrag.delivery.cli.console import data, note, show_json, table

    if as_json:
        show_json({"evaluations": [run.as_dict() for run in kept]})
    elif not kept:
        note("No run was kept yet. Keep one with: dtrag eval answers DIR --keep")
    else:
        rows = [
            (str(run.run_id), f"{run.created_at:%Y-%m-%d %H:%M}", run.kind, run.dataset, f"{run.questions:,}")
            for run in kept
        ]
        data().print(table(("run", "time", "kind", "dataset", "questions"), rows, whole=("run",)))
    return OK


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
    from dtrag.evaluation.quality_set import rows_of

    run, notes = run_async(_quality(settings, read_answer_set(call.folder, call.corpus, call.limit, must)))
    return call.finish(run, settings, rows_of(run), run.summary().as_dict(), notes)


async def _quality(settings: Settings, dataset: AnswerSet) -> tuple[EvaluationRun, list[str]]:
    from dtrag.core.access.confinement import OWNER
    from dtrag.delivery.cli.progress import progress
    from dtrag.evaluation.quality import RAGQualityEvaluator
    from dtrag.evaluation.quality_set import evaluate_quality

    async with indexed(settings, dataset.corpus) as (app, notes):

        async def contexts(text: str, top_k: int) -> list[SearchResult]:
            return (await app.search(text, top_k, scope=OWNER, highlights=False))[0]

        with progress("Asking") as advance:
            rows = await evaluate_quality(
                app.ask,
                contexts,
                RAGQualityEvaluator(app.judge),
                dataset,
                lambda done, total: advance(done, total, f"{done:,}/{total:,} questions"),
            )
        failed = sum(bool(row.details["degraded"]) for row in rows)
        if failed:
            notes.append(f"The judge {app.judge.id} failed for {failed:,} questions; words decided there.")
        return run_of(app, "quality", dataset.name, rows), notes
