"""`dtrag embedder`: measures an embedder and the reranker on the stored documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.core.response import plain
from dtrag.delivery.cli.console import Facts, ListFormat, Rows, counted_progress, megabytes, plural, show_result
from dtrag.delivery.cli.context import Form, Json, invocation, run_async
from dtrag.errors import InvalidInput

if TYPE_CHECKING:
    from dtrag.evaluation.embedder_check import EmbedderReport
    from dtrag.settings import Settings

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Measure an embedder on your documents.")

PROVES = (
    "The questions are made from the passages: they compare models and weights on these documents, and do not show how "
    "well questions of users are answered. For that: dtrag eval retrieval"
)
UNKNOWN = 0.02
"""Share of unknown tokens above which a model does not read a language well."""


@app.callback()
def embedders() -> None:
    """Measure an embedder on your documents."""


@app.command("check")
def check(
    context: typer.Context,
    path: Annotated[
        str | None,
        typer.Argument(metavar="PATH", help="A folder with a model, or a value of DTRAG_EMBEDDER.", show_default=False),
    ] = None,
    *,
    passages: Annotated[int, typer.Option(min=20, help="Passages to sample.")] = 1_000,
    questions: Annotated[int, typer.Option(min=20, help="Questions to make from them.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Chooses the sample.")] = 0,
    as_json: Json = False,
    form: Form = ListFormat.table,
) -> int:
    """Measure an embedder, and the reranker in use, on the stored documents.

    Without PATH the embedder in use. A sample of the passages is embedded in
    memory; nothing is stored. Shows languages, milliseconds, memory, nDCG@10 by
    words, by vectors and fused, and the best weight of the fusion.
    """
    if path is not None and Path(path).expanduser().exists():
        path = f"dir:{Path(path).expanduser().absolute()}"
    settings = invocation(context).settings(embedder=path)
    report = run_async(_measured(settings, passages, questions, seed))
    rows = [
        (
            each.language,
            each.passages,
            each.questions,
            "–" if each.unknown_tokens is None else f"{each.unknown_tokens:.1%}",
            f"{each.words:.3f}",
            f"{each.vectors:.3f}" if each.supported else "–",
            f"{each.fused:.3f}",
        )
        for each in report.languages
    ]
    columns = ("Lang.", "Passages", "Questions", "Unknown", "Words", "Vectors", "Fused")
    return show_result(as_json or form, plain(report), Facts(_facts(report)), Rows(columns, rows), notes=_notes(report))


async def _measured(settings: Settings, passages: int, questions: int, seed: int) -> EmbedderReport:
    from dtrag.app import open_app
    from dtrag.core.access.confinement import OWNER
    from dtrag.evaluation.embedder_check import check_embedder

    async with open_app(settings, standby=True) as opened:
        if opened.embedder is None:
            raise InvalidInput("There is no embedder to check: set DTRAG_EMBEDDER, or name a folder with a model.")
        with counted_progress("Embedding", "texts") as show:
            return await check_embedder(
                opened.index,
                await opened.branch(None, scope=OWNER),
                opened.embedder,
                analyzer=opened.analyzer,
                reranker=opened.reranker,
                weight=settings.vector_weight,
                passages=passages,
                questions=questions,
                seed=seed,
                on_progress=show,
            )


def _facts(report: EmbedderReport) -> list[tuple[str, str]]:
    low, high = report.gain_interval
    made = ", ".join(plural(count, f"{kind} question") for kind, count in report.kinds.items())
    lines = [
        ("Embedder", f"{report.model}; {report.dim} dimensions, {report.max_tokens} tokens, floor {report.floor:.2f}"),
        ("Sample", f"{plural(report.passages, 'passage')}; {made}"),
        ("Time", f"{report.ms_per_question:.1f} ms a question, {report.ms_per_passage:.1f} ms a passage (median)"),
        ("Memory", "not measured here" if report.memory_bytes is None else f"{megabytes(report.memory_bytes)} more"),
        ("nDCG@10", f"words {report.words:.3f}, vectors {report.vectors:.3f}, fused {report.fused:.3f}"),
        ("By weight", "  ".join(f"{step / 10:.1f} {value:.3f}" for step, value in enumerate(report.by_weight))),
        (
            "Held out",
            f"{report.held_out:.3f} with the weight of the other half: {report.gain:+.3f} [{low:+.3f}, {high:+.3f}] "
            f"against {report.weight:g}",
        ),
        ("Weight", f"DTRAG_VECTOR_WEIGHT={report.recommended_weight:g}"),
    ]
    if (reranker := report.reranker) is not None:
        change = f"{reranker.fused:.3f} to {reranker.reranked:.3f} on {plural(reranker.questions, 'question')}"
        lines.append(("Reranker", f"{reranker.model}: {change}, {reranker.ms_per_passage:.1f} ms a passage"))
    return lines


def _notes(report: EmbedderReport) -> list[str]:
    unread = [each.language for each in report.languages if (each.unknown_tokens or 0.0) > UNKNOWN]
    advice = "set DTRAG_EMBED_LANGUAGES to the others, or choose another model"
    notes = [f"The tokenizer does not know many words of: {', '.join(unread)}; {advice}."] if unread else []
    if report.recommended_weight == report.weight:
        notes.append(f"No other weight is surely better than {report.weight:g} here: keep it.")
    return [*notes, PROVES]
