"""The options that every measuring `dtrag eval` command has, declared once, and what it does with its run."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dtrag.delivery.cli.console import data, facts, note, show_json
from dtrag.delivery.cli.context import Json, invocation, run_async
from dtrag.delivery.cli.exit_codes import OK
from dtrag.errors import InvalidInput

if TYPE_CHECKING:
    from dtrag.core.evaluation_run import EvaluationRun
    from dtrag.evaluation.report import RunComparison
    from dtrag.settings import Settings

Save = Annotated[
    Path | None,
    typer.Option(
        metavar="RUN.json", help="Save the run: settings, versions, a row for each question.", show_default=False
    ),
]
Against = Annotated[
    Path | None,
    typer.Option(metavar="RUN.json", help="Compare with a saved run, question by question.", show_default=False),
]
Report = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="Write a report that ends in .md, .html, .json or .jsonl.", show_default=False),
]
Keep = Annotated[bool, typer.Option("--keep", help="Keep the run in the database, for GET /evaluations.")]


def show(
    lines: Sequence[tuple[str, str]], measured: Mapping[str, object], comparison: RunComparison | None, *, as_json: bool
) -> None:
    """Print the measures, and the comparison if there is one."""
    if as_json:
        show_json({**measured, **({"against": comparison.as_dict()} if comparison else {})})
        return
    data().print(facts(lines))
    if comparison is None:
        return
    rows = [
        ("", f"against the run of {comparison.baseline.created_at:%Y-%m-%d %H:%M}, {comparison.questions:,} questions")
    ]
    rows += [
        (
            change.name.replace("_", " "),
            f"{change.difference:+.3f}  [{change.low:+.3f}, {change.high:+.3f}]  {change.verdict}",
        )
        for change in comparison.measures
    ]
    data().print()
    data().print(facts(rows))


NoEmbedder = Annotated[bool, typer.Option("--no-embedder", help="Create no vectors, as DTRAG_EMBEDDER=none.")]
Folder = Annotated[
    Path, typer.Argument(metavar="DIR", help="The set: a folder, or its file of questions.", show_default=False)
]
Corpus = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A file or a folder with the documents.", show_default="DIR/corpus.jsonl"),
]
Must = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A file with the words that the answers have to show.", show_default=False),
]
Limit = Annotated[int | None, typer.Option(min=1, help="Number of questions.", show_default="all")]


@dataclass(frozen=True, slots=True)
class EvaluationCall:
    """The options of one call. Raises `InvalidInput` now for what would fail after the run."""

    context: typer.Context
    folder: Folder
    _: KW_ONLY
    corpus: Corpus = None
    limit: Limit = None
    no_embedder: NoEmbedder = False
    save: Save = None
    against: Against = None
    report: Report = None
    keep: Keep = False
    as_json: Json = False

    def __post_init__(self) -> None:
        from dtrag.evaluation.report import FORMATS, read_run

        for file in self.report or ():
            if file.suffix not in FORMATS:
                raise InvalidInput(f"{file} must end in one of {', '.join(FORMATS)}: the ending chooses the format.")
        for file in [*(self.report or ()), *([self.save] if self.save else [])]:
            if not file.absolute().parent.is_dir():
                raise InvalidInput(f"{file} cannot be written: the folder {file.absolute().parent} does not exist.")
        if self.against is not None:
            read_run(self.against)

    def settings(self, **more: Any) -> Settings:
        """The settings of the call; `more` by name."""
        return invocation(self.context).settings(embedder="none" if self.no_embedder else None, **more)

    def finish(
        self,
        run: EvaluationRun,
        settings: Settings,
        lines: Sequence[tuple[str, str]],
        measured: Mapping[str, object],
        notes: Sequence[str],
    ) -> int:
        """Print the notes, deliver the run and show the measures; the exit code."""
        for text in notes:
            note(text)
        show(lines, measured, run_async(self._deliver(run, settings)), as_json=self.as_json)
        return OK

    async def _deliver(self, run: EvaluationRun, settings: Settings) -> RunComparison | None:
        """Save, report and keep the run; the comparison, if there is one. Raises `InvalidInput`."""
        from dtrag.app import open_app
        from dtrag.evaluation.report import compare, read_run, write_report

        comparison = compare(run, read_run(self.against)) if self.against else None
        for file in self.report or ():
            write_report(file, run, comparison)
        if self.save:
            write_report(self.save if self.save.suffix else self.save.with_suffix(".json"), run, comparison)
        if self.keep:
            async with open_app(settings) as app:
                await app.evaluations.keep(run)
        return comparison


_SHARED = inspect.signature(EvaluationCall, eval_str=True).parameters
_FIRST = 4
"""The shared options that come before a command's own ones."""


def evaluation(command: Callable[..., int]) -> Callable[..., int]:
    """A command with the shared options and its own ones; it gets the shared ones as its `EvaluationCall`."""
    _, *own = inspect.signature(command, eval_str=True).parameters.values()

    @functools.wraps(command)
    def run(**options: Any) -> int:
        call = EvaluationCall(**{name: options.pop(name) for name in _SHARED})
        return command(call, **options)

    shared = list(_SHARED.values())
    signature = inspect.Signature([*shared[:_FIRST], *own, *shared[_FIRST:]], return_annotation=int)
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    return run
