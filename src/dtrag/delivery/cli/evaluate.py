"""`dtrag eval retrieval` and `dtrag eval answers`: measure quality on judged questions."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.delivery.cli.context import Json, invocation, run_async
from dtrag.delivery.cli.exit_codes import OK
from dtrag.delivery.cli.search import Mode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from dtrag.app import App
    from dtrag.core.documents import SearchMetrics, SearchResult
    from dtrag.evaluation.answers import AnswerMeasures, AnswerSet
    from dtrag.evaluation.retrieval import RetrievalMeasures, RetrievalSet
    from dtrag.settings import Settings

NoEmbedder = Annotated[bool, typer.Option("--no-embedder", help="Create no vectors, as DTRAG_EMBEDDER=none.")]
Folder = Annotated[
    Path, typer.Argument(metavar="DIR", help="The set: a folder, or its file of questions.", show_default=False)
]
Corpus = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A file or a folder with the documents.", show_default="DIR/corpus.jsonl"),
]
Limit = Annotated[int | None, typer.Option(min=1, help="Number of questions.", show_default="all")]
app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Measure quality.")


@app.callback()
def evaluations() -> None:
    """Measure quality."""


@app.command("retrieval")
def retrieval(
    context: typer.Context,
    folder: Folder,
    *,
    corpus: Corpus = None,
    mode: Annotated[Mode, typer.Option(help="The search mode.")] = Mode.hybrid,
    limit: Limit = None,
    no_embedder: NoEmbedder = False,
    as_json: Json = False,
) -> int:
    """Measure retrieval on judged questions.

    DIR contains questions (queries.jsonl or questions.jsonl) whose relevant
    documents or articles are listed with them or in qrels.tsv. The documents
    are indexed in a temporary database, every question is searched, and the
    measures are averaged, with 95 % intervals.
    """
    settings = invocation(context).settings(embedder="none" if no_embedder else None)
    from dtrag.evaluation.retrieval import read_retrieval_set, rows_of

    measured, notes = run_async(_measure(settings, read_retrieval_set(folder, corpus, limit), mode.value))
    from dtrag.delivery.cli.console import data, facts, note, show_json

    for text in notes:
        note(text)
    if as_json:
        show_json(measured)
    else:
        data().print(facts(rows_of(measured)))
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
        if not report.documents:
            raise InvalidInput(f"{corpus} contains no document with text.")
        yield app, report.notes


async def _measure(settings: Settings, dataset: RetrievalSet, mode: str) -> tuple[RetrievalMeasures, list[str]]:
    from dtrag.core.access.confinement import OWNER
    from dtrag.delivery.cli.progress import progress
    from dtrag.evaluation.retrieval import evaluate

    async with _indexed(settings, dataset.corpus) as (app, ingest_notes):

        async def search(text: str, top_k: int) -> tuple[list[SearchResult], SearchMetrics]:
            return await app.search(text, top_k, mode=mode, scope=OWNER)

        with progress("Searching") as show:
            measured, notes = await evaluate(
                search, dataset, mode, lambda done, total: show(done, total, f"{done:,}/{total:,} queries")
            )
        return measured, ingest_notes + notes


@app.command("answers")
def answers(
    context: typer.Context,
    folder: Folder,
    *,
    corpus: Corpus = None,
    limit: Limit = None,
    no_embedder: NoEmbedder = False,
    as_json: Json = False,
) -> int:
    """Measure answers to judged questions.

    DIR contains questions (queries.jsonl or questions.jsonl) with known
    answers, with relevant documents or articles, or marked as unanswerable. The
    documents are indexed in a temporary database and every question is asked.
    Known answers are searched in the answers, quotations are compared with what
    is relevant and with the text of their documents.
    """
    settings = invocation(context).settings(embedder="none" if no_embedder else None)
    from dtrag.evaluation.answers import read_answer_set, rows_of

    dataset = read_answer_set(folder, corpus, limit)
    measured, notes = run_async(_answers(settings, dataset))
    from dtrag.delivery.cli.console import data, facts, note, show_json

    for text in notes:
        note(text)
    if as_json:
        show_json(measured)
    else:
        data().print(facts(rows_of(dataset.name, measured)))
    return OK


async def _answers(settings: Settings, dataset: AnswerSet) -> tuple[AnswerMeasures, list[str]]:
    from dtrag.core.access.confinement import OWNER
    from dtrag.core.access.scope import EVERYTHING
    from dtrag.delivery.cli.progress import progress
    from dtrag.evaluation.answers import evaluate_answers

    async with _indexed(settings, dataset.corpus) as (app, ingest_notes):
        taxonomy = (await app.index.snapshot()).taxonomy

        async def read_text(document_id: str) -> str:
            return (await app.document(document_id, scope=OWNER))[1]

        async def read_passages(chunk_ids: Sequence[str]) -> Mapping[str, SearchResult]:
            return await app.index.fetch(chunk_ids, EVERYTHING, taxonomy)

        with progress("Asking") as show:
            measured, notes = await evaluate_answers(
                app.ask,
                read_text,
                read_passages,
                dataset,
                lambda done, total: show(done, total, f"{done:,}/{total:,} questions"),
            )
        return measured, ingest_notes + notes
