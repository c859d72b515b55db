"""`dtrag imagine`: everyday questions that passages answer, written by a language model or imported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from dtrag.delivery.cli.console import (
    ListFormat,
    Rows,
    Verbatim,
    counted_progress,
    data,
    fill_vectors,
    note,
    plural,
    safe,
    show_json,
    show_result,
)
from dtrag.delivery.cli.context import Category, Form, Json, Yes, confirmed, with_app
from dtrag.delivery.cli.exit_codes import FAILURE, OK
from dtrag.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dtrag.app import App
    from dtrag.core.access.scope import Scope
    from dtrag.ingestion.imagine import CostEstimate, ImagineReport

app = typer.Typer(
    rich_markup_mode=None, no_args_is_help=True, help="Imagined everyday questions, with which searches compare."
)

SHOWN = 50
"""Passages that `list` prints as text."""


@app.command("run")
def run(
    context: typer.Context,
    *,
    category: Category = None,
    most: Annotated[int | None, typer.Option(min=1, help="Passages of this run at most.", show_default=False)] = None,
    later: Annotated[bool, typer.Option("--later", help="Leave it to a running service, as a job.")] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> int:
    """Let the language model write questions for the passages without any.

    Shows what it would cost, by the prices in DTRAG_LLM_PRICES, and asks. Every
    few passages are stored: an interrupted run continues where it stopped.
    """

    async def estimated(opened: App) -> CostEstimate:
        return await opened.imagination.estimate(await _scope(opened, category), most)

    estimate = with_app(context, estimated)
    if not estimate.passages:
        none = "Every passage has imagined questions already."
        return show_result(as_json, {"passages": 0, "questions": 0}, notes=[none])
    if not yes:
        note(price(estimate))
        refusal = "Nothing was sent: there is no terminal to ask on. Add --yes to send these passages."
        if not confirmed("Send these passages to the model?", refusal):
            return OK

    if later:
        job = with_app(context, lambda opened: opened.queue_imagination(category, most))
        return show_result(as_json, job.view(), f"Job {job.job_id}: dtrag jobs show {job.job_id}")

    async def imagined(opened: App) -> ImagineReport:
        return await run_with_progress(opened, await _scope(opened, category), most)

    return _show(with_app(context, imagined), as_json)


async def run_with_progress(opened: App, scope: Scope, most: int | None = None, *, wait: bool = True) -> ImagineReport:
    """Run with progress, and make the vectors of the questions."""
    with counted_progress("Imagining", "passages") as show:
        report = await opened.imagination.run(scope, most=most, on_progress=show)
    await fill_vectors(opened, wait=wait)
    return report


@app.command("list")
def list_questions(
    context: typer.Context, *, category: Category = None, as_json: Json = False, form: Form = ListFormat.table
) -> int:
    """List the imagined questions and where they are from.

    They are never text of a document: no answer quotes them.
    """
    rows = with_app(context, lambda opened: _rows(opened, category))
    if as_json or form is not ListFormat.table:
        questions = [(row["id"], row["origin"], text) for row in rows for text in row["questions"]]  # type: ignore[attr-defined]
        return show_result(as_json or form, {"passages": rows}, Rows(("Passage", "Origin", "Question"), questions))
    console = data()
    for row in rows[:SHOWN]:
        console.print(safe(f"{row['id']} (imagined by {row['origin']})"), soft_wrap=True, style="bold")
        for question in row["questions"]:  # type: ignore[attr-defined]
            console.print(safe(f"  {question}"), soft_wrap=True)
    if len(rows) > SHOWN:
        note(f"… and {len(rows) - SHOWN:,} more: dtrag imagine export prints all of them")
    if rows:
        note(f"{plural(len(rows), 'passage')} with imagined questions")
    else:
        note("There are no imagined questions yet. Write some with: dtrag imagine run")
    return OK


@app.command("import")
def import_file(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON lines, as of `export`.", show_default=False)],
    *,
    category: Category = None,
    as_json: Json = False,
) -> int:
    """Store the questions of a file, in place of earlier ones of the same passages.

    A line is {"id": "3-2-29:제2조", "questions": ["…", "…"]}. The id names a
    provision (by the code or the name of its regulation) or a passage: the name
    of its file and its number ("handbook.md/3"), or the id of a search result.
    """

    async def imported(opened: App) -> ImagineReport:
        scope = await _scope(opened, category)
        with counted_progress("Importing", "passages") as show, _opened(file) as lines:
            report = await opened.imagination.import_lines(lines, scope, show)
        await fill_vectors(opened)
        return report

    report = with_app(context, imported)
    _show(report, as_json)
    return FAILURE if report.invalid or report.unknown else OK


@app.command("export")
def export(context: typer.Context, *, category: Category = None, as_json: Json = False) -> int:
    """Print the imagined questions as JSON lines, for `dtrag imagine import`."""
    rows = with_app(context, lambda opened: _rows(opened, category))
    lines = Verbatim("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows))
    return show_result(as_json, {"passages": rows}, lines)


@app.command("drop")
def drop(context: typer.Context, *, category: Category = None, yes: Yes = False, as_json: Json = False) -> int:
    """Delete the imagined questions; the documents stay."""
    refusal = "Nothing was deleted: there is no terminal to ask on. Add --yes to delete them."
    if not yes and not confirmed("Delete the imagined questions?", refusal):
        return OK

    async def dropped(opened: App) -> int:
        return await opened.imagination.drop(await _scope(opened, category))

    count = with_app(context, dropped)
    return show_result(as_json, {"dropped": count}, f"Deleted {plural(count, 'imagined question')}")


async def _scope(opened: App, category: str | None) -> Scope:
    from dtrag.core.access.confinement import OWNER

    return await opened.branch(category, scope=OWNER)


async def _rows(opened: App, category: str | None) -> list[Mapping[str, object]]:
    listed = opened.imagination.listed(await _scope(opened, category))
    return [
        {"id": name, "questions": list(passage.questions), "origin": passage.origin} async for name, passage in listed
    ]


def _opened(file: Path) -> TextIO:
    try:
        return file.open(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}. Give a file of JSON lines.") from error


def price(estimate: CostEstimate) -> str:
    """The estimate as a sentence."""
    tokens = f"about {estimate.input_tokens:,} tokens to {estimate.model}, about {estimate.output_tokens:,} back"
    cost = f"about {estimate.cost:,.0f} won" if estimate.cost else "no price is set (DTRAG_LLM_PRICES)"
    return f"{plural(estimate.passages, 'passage')} without questions: {tokens}; {cost}"


def _show(report: ImagineReport, as_json: bool) -> int:
    if as_json:
        show_json(questions_as_dict(report))
    else:
        show_report(report)
    return OK


def questions_as_dict(report: ImagineReport) -> Mapping[str, object]:
    """The JSON object of a report."""
    return {
        "passages": report.passages,
        "questions": report.questions,
        "skipped": report.skipped,
        "failed": report.failed,
        "unknown": report.unknown,
        "invalid": report.invalid,
        "problems": report.problems,
        "calls": report.usage.calls,
        "tokens": report.usage.tokens,
        "cost": round(report.usage.cost, 2),
    }


def show_report(report: ImagineReport) -> None:
    """Print what a run or an import did, and what it left out."""
    data().print(f"{plural(report.questions, 'imagined question')} of {plural(report.passages, 'passage')} stored")
    if report.usage.calls:
        note(f"{plural(report.usage.calls, 'call')}, {report.usage.tokens:,} tokens, {report.usage.cost:,.0f} won")
    if report.skipped:
        note(f"{plural(report.skipped, 'passage')} skipped: no usable question. Run it again, or try another model.")
    if report.failed:
        note(f"{plural(report.failed, 'call')} failed. Run it again for these passages; see: dtrag doctor --models")
    if report.invalid:
        note(f'{plural(report.invalid, "line")} left out: a line is {{"id": "…", "questions": ["…"]}}')
    if report.unknown:
        note(f"{plural(report.unknown, 'line')} left out: no passage has that id. `dtrag imagine export` shows ids.")
    for problem in report.problems:
        note(f"  {problem}")
