"""`dtrag demo`: indexes the samples and answers two questions."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dtrag.delivery.cli.ask import NO_LANGUAGE_MODEL, show, show_notes
from dtrag.delivery.cli.context import Json, invocation, run_async
from dtrag.delivery.cli.exit_codes import OK, SOME_FILES_FAILED
from dtrag.delivery.cli.ingest import as_dict as report_as_dict
from dtrag.errors import DtragError

if TYPE_CHECKING:
    from dtrag.core.documents import Answer
    from dtrag.ingestion.sources import IngestReport
    from dtrag.settings import Settings

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
    from dtrag.delivery.cli.console import note, show_json

    if as_json:
        show_json(
            {
                "data_dir": str(settings.data_dir),
                "ingest": [report_as_dict(report) for report in result.reports],
                "answers": [asdict(answer) for answer in result.answers],
            }
        )
    else:
        _show(settings, result)
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
    from dtrag.delivery.cli.progress import ingest_progress

    async with open_app(settings) as app:
        reports = []
        for category, files in SAMPLES.items():
            with ingest_progress() as update:
                reports.append(await app.ingest([folder / file for file in files], category, update))
        answers = [await app.ask(question, {"taxonomy_paths": [CATEGORY]}, scope=OWNER) for question in QUESTIONS]
    return DemoResult(tuple(reports), tuple(answers))


def _show(settings: Settings, result: DemoResult) -> None:
    from rich.rule import Rule
    from rich.text import Text

    from dtrag.delivery.cli.console import command_name, data, plural, safe, table

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
        show(answer, console)
    console.print()
    console.print(f"The database is in {_location(settings)}. Next, type:", soft_wrap=True)
    for line in NEXT:
        console.print(f"    {command_name()} {line}", style="bold", soft_wrap=True)


def _location(settings: Settings) -> str:
    return "DTRAG_DATABASE_URL" if settings.database_url else str(settings.data_dir)
