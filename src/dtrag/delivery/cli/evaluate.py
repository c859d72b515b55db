"""`dtrag eval retrieval` and `dtrag eval answers`: measure quality on a collection with judgements."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.delivery.cli.context import Json, invocation, run_async
from dtrag.delivery.cli.exit_codes import OK
from dtrag.delivery.cli.search import Mode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from dtrag.app import App
    from dtrag.core.documents import SearchMetrics, SearchResult
    from dtrag.evaluation.answers import AnswerMeasures, AnswerSet
    from dtrag.evaluation.retrieval import RetrievalMeasures, RetrievalSet
    from dtrag.settings import Settings

NoEmbedder = Annotated[bool, typer.Option("--no-embedder", help="Create no vectors, as DTRAG_EMBEDDER=none.")]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The collection.", show_default=False)]
app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Measure quality.")


@app.callback()
def evaluations() -> None:
    """Measure quality."""


@app.command("retrieval")
def retrieval(
    context: typer.Context,
    folder: Folder,
    mode: Annotated[Mode, typer.Option(help="The search mode.")] = Mode.hybrid,
    no_embedder: NoEmbedder = False,
    as_json: Json = False,
) -> int:
    """Measure retrieval on a collection with judgements.

    DIR contains corpus.jsonl, queries.jsonl and qrels.tsv. The corpus is indexed
    in a temporary database, every query is searched, the measures are averaged.
    """
    settings = invocation(context).settings(embedder="none" if no_embedder else None)
    from dtrag.evaluation.retrieval import read_set

    measured, notes = run_async(_measure(settings, read_set(folder), mode.value))
    from dtrag.delivery.cli.console import data, facts, note, show_json

    for text in notes:
        note(text)
    if as_json:
        show_json(measured)
    else:
        data().print(facts(_rows(measured)))
    return OK


@asynccontextmanager
async def _indexed(settings: Settings, corpus: Path) -> AsyncIterator[tuple[App, list[str]]]:
    """An app with the corpus in a temporary database, and the notes on its ingestion."""
    from dtrag.app import open_throwaway
    from dtrag.delivery.cli.progress import ingest_progress
    from dtrag.errors import InvalidInput

    async with open_throwaway(settings) as app:
        with ingest_progress("Indexing the corpus") as update:
            report = await app.ingest([corpus], None, update)
        if report.failed:
            raise InvalidInput(f"{report.failed[0][0]}: {report.failed[0][1]}")
        yield app, report.notes


async def _measure(settings: Settings, dataset: RetrievalSet, mode: str) -> tuple[RetrievalMeasures, list[str]]:
    from dtrag.core.access.confinement import OWNER
    from dtrag.delivery.cli.progress import progress
    from dtrag.evaluation.retrieval import evaluate

    async with _indexed(settings, dataset.corpus) as (app, notes):

        async def search(text: str, top_k: int) -> tuple[list[SearchResult], SearchMetrics]:
            return await app.search(text, top_k, mode=mode, scope=OWNER)

        with progress("Searching") as show:
            measured = await evaluate(
                search, dataset, mode, lambda done, total: show(done, total, f"{done:,}/{total:,} queries")
            )
        return measured, notes


def _rows(measured: RetrievalMeasures) -> list[tuple[str, str]]:
    latency = measured["latency_ms"]
    return [
        ("dataset", measured["dataset"]),
        ("mode", measured["mode"]),
        ("queries", str(measured["queries"])),
        ("ndcg@10", f"{measured['ndcg@10']:.4f}"),
        ("recall@10", f"{measured['recall@10']:.4f}"),
        ("recall@50", f"{measured['recall@50']:.4f}"),
        ("precision@5", f"{measured['precision@5']:.4f}"),
        ("mrr@10", f"{measured['mrr@10']:.4f}"),
        ("complete@10", f"{measured['complete@10']:.4f}"),
        ("latency", f"p50 {latency['p50']:.1f} ms, p95 {latency['p95']:.1f} ms"),
    ]


@app.command("answers")
def answers(
    context: typer.Context,
    folder: Folder,
    limit: Annotated[int | None, typer.Option(min=1, help="Number of questions.", show_default="all")] = None,
    no_embedder: NoEmbedder = False,
    as_json: Json = False,
) -> int:
    """Measure answers on questions with known answers.

    DIR contains corpus.jsonl and queries.jsonl, with "answers" for each question.
    The corpus is indexed in a temporary database and every question is asked. The
    known answers are searched in the answers; every quotation is compared with
    its document.
    """
    settings = invocation(context).settings(embedder="none" if no_embedder else None)
    from dtrag.evaluation.answers import read_answers, rows_of

    measured, notes = run_async(_answers(settings, read_answers(folder, limit)))
    from dtrag.delivery.cli.console import data, facts, note, show_json

    for text in notes:
        note(text)
    if as_json:
        show_json(measured)
    else:
        data().print(facts(rows_of(measured)))
    return OK


async def _answers(settings: Settings, dataset: AnswerSet) -> tuple[AnswerMeasures, list[str]]:
    from dtrag.core.access.confinement import OWNER
    from dtrag.delivery.cli.progress import progress
    from dtrag.evaluation.answers import evaluate_answers

    async with _indexed(settings, dataset.corpus) as (app, notes):

        async def read(document_id: str) -> str:
            return (await app.document(document_id, scope=OWNER))[1]

        with progress("Asking") as show:
            measured = await evaluate_answers(
                app.ask, read, dataset, lambda done, total: show(done, total, f"{done:,}/{total:,} questions")
            )
        return measured, notes
