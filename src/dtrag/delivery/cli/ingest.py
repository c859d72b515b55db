"""`dtrag ingest`, `reindex` and `demo`: index files and folders, the stored texts again, or the samples."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.delivery.cli.ask import NO_LANGUAGE_MODEL, show_notes
from dtrag.delivery.cli.ask import show as show_answer
from dtrag.delivery.cli.console import (
    command_name,
    data,
    facts,
    fill_vectors,
    ingest_progress,
    note,
    plural,
    progress,
    safe,
    show_json,
    show_result,
    table,
)
from dtrag.delivery.cli.context import Json, invocation, run_async, with_app
from dtrag.delivery.cli.exit_codes import OK, SOME_FILES_FAILED, USAGE
from dtrag.errors import DtragError, InvalidInput

if TYPE_CHECKING:
    from dtrag.app import App
    from dtrag.core.documents import Answer
    from dtrag.ingestion.exclusion import Excluded
    from dtrag.ingestion.folders import FolderPlan
    from dtrag.ingestion.sources import IngestReport
    from dtrag.settings import Settings

DefaultCategory = Annotated[
    str | None,
    typer.Option("--category", metavar="PATH", help='Category of documents that state none, such as "AI/ML".'),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN",
        help='Leave matching files of folders out, as with a line of a .dtragignore file: "*.tmp", "drafts/".',
    ),
]
SHOWN_CHANGES = 20
SHOWN_SKIPPED = 5
"""Limits of the text output; `--json` has everything."""


def ingest(
    context: typer.Context,
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files and folders.", show_default=False)],
    category: DefaultCategory = None,
    *,
    exclude: Exclude = None,
    work: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The regulation that the files are editions of, if they do not name one."),
    ] = None,
    effective: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="Effective date of regulations that state none, such as 2024-03-01."),
    ] = None,
    prune: Annotated[
        bool,
        typer.Option("--prune", help="Also remove documents of deleted and excluded files, and follow renamed files."),
    ] = False,
    prune_all: Annotated[
        bool, typer.Option("--prune-all", help="As --prune, even if more than a third of a folder is removed.")
    ] = False,
    prune_editions: Annotated[
        bool,
        typer.Option(
            "--prune-editions", help="Also remove superseded editions that the files do not contain any more."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --prune: show what would change, but change nothing.")
    ] = False,
    wait: Annotated[
        bool,
        typer.Option(
            "--wait/--no-wait",
            help="Make the vectors before the command ends, unless a service of the index is running; or leave them to "
            "the next process.",
        ),
    ] = True,
    imagine: Annotated[
        bool,
        typer.Option(
            "--imagine",
            help="Then let the language model write everyday questions for passages without any, as dtrag imagine run.",
        ),
    ] = False,
    as_json: Json = False,
) -> int:
    """Index files and folders.

    Formats: Markdown, plain text, HTML, PDF, DOCX, PPTX, ODT, HWPX, HWP, HWPML, EML,
    XLSX, XLS, ODS, CSV, JSON lines, JSON, XML, PNG, JPEG, TIFF.
    Unchanged files are skipped, so the same command may be repeated at any time,
    also after an interruption. Documents are found by their words at once; then
    the vectors of their passages are made.
    """
    _check_arguments(paths, only_plan=dry_run, prunes=prune or prune_all)
    if dry_run:
        plan = with_app(context, lambda opened: opened.plan_prune(paths, exclude=exclude or ()))
        return show_plan(plan, as_json, force=prune_all)

    async def run(opened: App) -> IngestReport:
        if imagine:
            opened.imagination.require_model()
        with ingest_progress() as update:
            report = await opened.ingest(
                paths,
                category,
                update,
                prune="all" if prune_all else prune,
                prune_editions=prune_editions,
                exclude=exclude or (),
                work=work or "",
                effective=effective,
                wait=False,
            )
        if not as_json:
            show(report)
        await fill_vectors(opened, wait=wait)
        imagined = await _imagined(opened, wait=wait, as_json=as_json) if imagine else None
        from dtrag.core.access.confinement import OWNER

        if as_json:
            pending = {"vectors_pending": await opened.pending_vectors(scope=OWNER)}
            show_json({**as_dict(report), **pending, **({"imagined": imagined} if imagine else {})})
        return report

    return SOME_FILES_FAILED if with_app(context, run).failed else OK


async def _imagined(opened: App, *, wait: bool, as_json: bool) -> Mapping[str, object]:
    """Let the language model write questions, after the estimate of the costs; returns the JSON object of the run."""
    from dtrag.core.access.scope import EVERYTHING
    from dtrag.delivery.cli.imagine import price, questions_as_dict, run_with_progress, show_report

    note(price(await opened.imagination.estimate()))
    run = await run_with_progress(opened, EVERYTHING, wait=wait)
    if not as_json:
        show_report(run)
    return questions_as_dict(run)


def _check_arguments(paths: Sequence[Path], *, only_plan: bool, prunes: bool) -> None:
    """Raise `InvalidInput` for a plan without pruning, for a URL, and if none of the paths exists."""
    if only_plan and not prunes:
        raise InvalidInput("--dry-run requires --prune: dtrag ingest FOLDER --prune --dry-run")
    refuse_addresses(paths)
    if not any(path.exists() for path in paths):
        raise InvalidInput(f"There is no such file or folder: {', '.join(map(str, paths[:3]))}.")


def refuse_addresses(paths: Sequence[Path]) -> None:
    """Raise `InvalidInput` for a URL; the message says what to do instead."""
    for path in paths:
        address = re.match(r"(https?|ftp|s3|gs):/+(.*)", str(path), re.IGNORECASE)  # `Path` merges the two slashes
        if address and not path.exists():
            url = f"{address[1]}://{address[2]}"
            raise InvalidInput(f"dtrag reads files; download {url} first, then: dtrag ingest FILE")


def as_dict(report: IngestReport) -> Mapping[str, object]:
    """The JSON object of a report."""
    return {
        "documents": report.documents,
        "chunks": report.chunks,
        "unchanged": report.unchanged,
        "removed": report.removed,
        "files": report.files,
        "seconds": round(report.seconds, 3),
        "structure": dict(report.structure),
        "failed": _reasons(report.failed),
        "skipped": _reasons(report.skipped),
        "excluded": report.excluded,
        "renamed": [{"from": old, "to": new} for old, new in report.renamed],
        "pruned": report.pruned,
        "document_ids": report.document_ids,
        "notes": list(map(str, report.notes)),
    }


def _reasons(files: Sequence[tuple[str, object]]) -> list[dict[str, str]]:
    return [{"path": path, "reason": str(reason)} for path, reason in files]


def show(report: IngestReport) -> None:
    """Print the report: counts and failures on stdout, notes on stderr."""
    rows = [
        ("Documents", f"{report.documents:,} new or changed"),
        ("Chunks", f"{report.chunks:,}"),
        ("Unchanged", f"{report.unchanged:,}"),
        ("Removed", f"{report.removed:,}"),
        ("Seconds", f"{report.seconds:,.1f}"),
    ]
    if report.structure:
        rows.append(("Structure", ", ".join(plural(count, kind) for kind, count in report.structure.items())))
    console = data()
    console.print(facts(rows))
    if report.failed:
        console.print(f"\n{plural(len(report.failed), 'file')} could not be read:", style="bold")
        console.print(table(("File", "Reason"), [(path, str(reason)) for path, reason in report.failed]))
    _show_changes(report.renamed, report.pruned)
    _show_skipped(report.skipped)
    _show_excluded(report.excluded)
    for each in report.notes:
        note(str(each))


def show_plan(plan: FolderPlan, as_json: bool, *, force: bool, changed: Sequence[str] | None = None) -> int:
    """Print what `--prune` or a sync would do; exit code 2 if it would refuse."""
    refusal = "" if force else plan.refusal
    if as_json:
        show_json(
            {
                "added": plan.added,
                **({} if changed is None else {"changed": list(changed)}),
                "renamed": [{"from": old, "to": new} for old, new in plan.renamed],
                "removed": plan.removed,
                "removed_documents": plan.removed_documents,
                "known_files": plan.known,
                "skipped": _reasons(plan.skipped),
                "excluded": plan.excluded,
                "refusal": refusal,
            }
        )
        return USAGE if refusal else OK
    removed = f"{plural(len(plan.removed), 'file')} with {plural(plan.removed_documents, 'document')}"
    rows = [
        ("Would add", plural(len(plan.added), "file")),
        *([] if changed is None else [("Would read again", plural(len(changed), "file"))]),
        ("Would rename", plural(len(plan.renamed), "file")),
        ("Would remove", f"{removed}, of {plural(plan.known, 'known file')}"),
    ]
    console = data()
    console.print(facts(rows))
    _show_changes(plan.renamed, plan.removed, plan.added)
    _show_skipped(plan.skipped)
    _show_excluded(plan.excluded)
    note(refusal or "Nothing was changed. Run it without --dry-run to apply the changes.")
    return USAGE if refusal else OK


def _show_changes(renamed: Sequence[tuple[str, str]], removed: Sequence[str], added: Sequence[str] = ()) -> None:
    lines = [
        *(f"+ {path}" for path in added),
        *(f"> {old}  ->  {new}" for old, new in renamed),
        *(f"- {path}" for path in removed),
    ]
    console = data()
    for line in lines[:SHOWN_CHANGES]:
        console.print(safe(line), soft_wrap=True)
    if len(lines) > SHOWN_CHANGES:
        console.print(f"… and {len(lines) - SHOWN_CHANGES:,} more: --json lists all of them")


def _show_skipped(skipped: Sequence[tuple[str, str]]) -> None:
    """Print the number of skipped files and the first names on stderr."""
    if skipped:
        names = ", ".join(Path(path).name for path, _ in skipped[:SHOWN_SKIPPED])
        more = ", …" if len(skipped) > SHOWN_SKIPPED else ""
        note(f"{plural(len(skipped), 'file')} of unknown kinds skipped: {names}{more} (--json lists them with reasons)")


def _show_excluded(excluded: Sequence[Excluded]) -> None:
    """Print on stderr how much was left out, and by what."""
    if excluded:
        folders = sum(each.path.endswith("/") for each in excluded)
        counts = [plural(len(excluded) - folders, "file")] if len(excluded) > folders else []
        counts += [plural(folders, "folder")] if folders else []
        by = ", ".join(f"{count:,} by {origin}" for origin, count in Counter(each.by for each in excluded).items())
        note(f"{' and '.join(counts)} excluded: {by} (--json lists them with their patterns)")


def reindex(context: typer.Context, as_json: Json = False) -> int:
    """Rebuild the index from the stored texts.

    Required after a change of the analyzer. Searches work meanwhile, over the
    documents that are indexed already. The vectors follow, as after an ingest.
    """

    async def run(opened: App) -> int:
        from dtrag.core.access.confinement import OWNER

        total, _ = await opened.counts(scope=OWNER)
        with progress("Reindexing") as update:
            documents = await opened.reindex(
                lambda done: update(done, total or None, f"{done:,} of {plural(total, 'document')}")
            )
        await fill_vectors(opened)
        return documents

    started = time.perf_counter()
    documents = with_app(context, run)
    seconds = time.perf_counter() - started

    done = f"{plural(documents, 'document')} reindexed in {seconds:,.1f} s"
    return show_result(as_json, {"documents": documents, "seconds": round(seconds, 3)}, done)


CATEGORY = "Samples"
# The regulation book, and an earlier edition of its first regulation. The Markdown beside it has the same text.
SAMPLES = {
    "Samples/University": ("hanbit-university/regulations.hwpx", "hanbit-university/regulations-2023.md"),
    "Samples/Handbook": ("tarrowby-handbook",),
}
QUESTIONS = (
    "휴학은 최대 몇 학기까지 할 수 있나요?",
    "How many days of paid annual leave does a full-time employee have?",
)
NEXT = (
    'ask "도서관에서 학부생은 책을 몇 권까지 빌릴 수 있나요?"',
    "ingest FOLDER --category Mine",
    "up",
)


class SamplesMissing(DtragError):
    """The sample documents are not in: {folders}. Run the demo in a checkout of dtrag, or index your own files with:
    dtrag ingest FOLDER"""


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What a demo did."""

    reports: tuple[IngestReport, ...]
    answers: tuple[Answer, ...]


def demo(context: typer.Context, as_json: Json = False) -> int:
    """Index the samples and answer two questions about them."""
    settings = invocation(context).settings()
    result = run_async(_demo(settings, samples()))

    if as_json:
        show_json(
            {
                "data_dir": str(settings.data_dir),
                "ingest": [as_dict(report) for report in result.reports],
                "answers": result.answers,
            }
        )
    else:
        _show_demo(settings, result)
    for answer in result.answers:
        show_notes(answer)
    if not settings.llm:
        note(NO_LANGUAGE_MODEL)
    return SOME_FILES_FAILED if any(report.failed for report in result.reports) else OK


def samples() -> Path:
    """The folder of the samples: in the package, in the checkout of the package, or in the current folder."""
    package = Path(__file__).resolve().parents[2]
    folders = [package / "samples", package.parents[1] / "examples", Path.cwd() / "examples"]
    for folder in folders:
        if all((folder / sample).exists() for files in SAMPLES.values() for sample in files):
            return folder
    raise SamplesMissing(folders=", ".join(map(str, folders)))


async def _demo(settings: Settings, folder: Path) -> DemoResult:
    from dtrag.app import open_app
    from dtrag.core.access.confinement import OWNER

    async with open_app(settings) as app:
        reports = []
        for category, files in SAMPLES.items():
            with ingest_progress() as update:
                reports.append(await app.ingest([folder / file for file in files], category, update))
        answers = [await app.ask(question, {"taxonomy_paths": [CATEGORY]}, scope=OWNER) for question in QUESTIONS]
    return DemoResult(tuple(reports), tuple(answers))


def _show_demo(settings: Settings, result: DemoResult) -> None:
    from rich.rule import Rule
    from rich.text import Text

    console = data()
    documents = sum(report.documents for report in result.reports)
    unchanged = sum(report.unchanged for report in result.reports)
    seconds = sum(report.seconds for report in result.reports)
    read = f"{plural(documents, 'document')} read, {plural(unchanged, 'file')} unchanged, in {seconds:.1f} s"
    console.print(f"Samples: {read}")
    failed = [failure for report in result.reports for failure in report.failed]
    if failed:
        console.print(table(("File", "Reason"), failed))
    for answer in result.answers:
        console.print()
        console.print(Rule(Text(safe(answer.question), style="bold"), align="left"))
        show_answer(answer, console)
    console.print()
    console.print(f"The database is in {_location(settings)}. Next, type:", soft_wrap=True)
    for line in NEXT:
        console.print(f"    {command_name()} {line}", style="bold", soft_wrap=True)


def _location(settings: Settings) -> str:
    return "DTRAG_DATABASE_URL" if settings.database_url else str(settings.data_dir)
