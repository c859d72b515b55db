"""`dtrag eval retrieval` and `dtrag eval answers`: how good both are on a collection with judgements."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dtrag.delivery.cli.context import Json, invocation, run_async
from dtrag.delivery.cli.exit_codes import OK
from dtrag.delivery.cli.search import Mode

if TYPE_CHECKING:
    from dtrag.core.documents import SearchMetrics, SearchResult
    from dtrag.evaluation.answers import AnswerSet
    from dtrag.evaluation.retrieval import RetrievalSet
    from dtrag.settings import Settings

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Measure quality.")


@app.callback()
def evaluations() -> None:
    """Measure quality."""


@app.command("retrieval")
def retrieval(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The collection.", show_default=False)],
    mode: Annotated[Mode, typer.Option(help="How to rank.")] = Mode.hybrid,
    no_embedder: Annotated[
        bool, typer.Option("--no-embedder", help="Make no vectors, as DTRAG_EMBEDDER=none.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Measure retrieval on a collection with judgements.

    DIR holds corpus.jsonl, queries.jsonl and qrels.tsv. The corpus is read into a
    throw-away database, every query is searched, the measures are averaged.
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


async def _measure(settings: Settings, dataset: RetrievalSet, mode: str) -> tuple[dict[str, Any], list[str]]:
    from dtrag.app import open_throwaway
    from dtrag.core.access.confinement import OWNER
    from dtrag.delivery.cli.progress import ingest_progress, progress
    from dtrag.errors import InvalidInput
    from dtrag.evaluation.retrieval import evaluate

    async with open_throwaway(settings) as app:
        with ingest_progress("Reading the corpus") as update:
            report = await app.ingest([dataset.corpus], None, update)
        if report.failed:
            raise InvalidInput(f"{report.failed[0][0]}: {report.failed[0][1]}")

        async def search(text: str, wanted: int) -> tuple[list[SearchResult], SearchMetrics]:
            return await app.search(text, wanted, mode=mode, scope=OWNER)

        with progress("Searching") as show:
            measured = await evaluate(
                search, dataset, mode, lambda done, total: show(done, total, f"{done:,}/{total:,} queries")
            )
        return measured, report.notes


def _rows(measured: dict[str, Any]) -> list[tuple[str, str]]:
    latency = measured["latency_ms"]
    rows = [(name, str(measured[name])) for name in ("dataset", "mode", "queries")]
    names = ("ndcg@10", "recall@10", "recall@50", "precision@5", "mrr@10", "complete@10")
    rows += [(name, f"{measured[name]:.4f}") for name in names]
    return [*rows, ("latency", f"p50 {latency['p50']:.1f} ms, p95 {latency['p95']:.1f} ms")]


@app.command("answers")
def answers(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The collection.", show_default=False)],
    limit: Annotated[int | None, typer.Option(min=1, help="Ask so many of the questions.", show_default=False)] = None,
    no_embedder: Annotated[
        bool, typer.Option("--no-embedder", help="Make no vectors, as DTRAG_EMBEDDER=none.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Measure answers on questions with known answers.

    DIR holds corpus.jsonl and queries.jsonl, with "answers" for each question. The
    corpus is read into a throw-away database, every question is asked, and the
    answers are searched for the known ones; every quotation is compared with its
    document.
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


async def _answers(settings: Settings, dataset: AnswerSet) -> tuple[dict[str, Any], list[str]]:
    from dtrag.app import open_throwaway
    from dtrag.core.access.confinement import OWNER
    from dtrag.delivery.cli.progress import ingest_progress, progress
    from dtrag.errors import InvalidInput
    from dtrag.evaluation.answers import evaluate_answers

    async with open_throwaway(settings) as app:
        with ingest_progress("Reading the corpus") as update:
            report = await app.ingest([dataset.corpus], None, update)
        if report.failed:
            raise InvalidInput(f"{report.failed[0][0]}: {report.failed[0][1]}")

        async def read(document_id: str) -> str:
            return (await app.document(document_id, scope=OWNER))[1]

        with progress("Asking") as show:
            measured = await evaluate_answers(
                app.ask, read, dataset, lambda done, total: show(done, total, f"{done:,}/{total:,} questions")
            )
        return measured, report.notes
