"""The options that every measuring `dtrag eval` command has, declared once, and what it does with its run."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dtrag.delivery.cli.context import Json, invocation, run_async
from dtrag.delivery.cli.eval_outputs import Against, Keep, Outputs, Report, Save, deliver, show
from dtrag.delivery.cli.exit_codes import OK

if TYPE_CHECKING:
    from dtrag.core.evaluation_run import EvaluationRun
    from dtrag.settings import Settings

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
    """The options of one call; those of its outputs are checked."""

    context: typer.Context
    folder: Path
    corpus: Path | None
    limit: int | None
    no_embedder: bool
    outputs: Outputs
    as_json: bool

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
        from dtrag.delivery.cli.console import note

        for text in notes:
            note(text)
        show(lines, measured, run_async(deliver(run, self.outputs, settings)), as_json=self.as_json)
        return OK


def _call(
    context: typer.Context,
    folder: Folder,
    *,
    corpus: Corpus = None,
    limit: Limit = None,
    no_embedder: NoEmbedder = False,
    save: Save = None,
    against: Against = None,
    report: Report = None,
    keep: Keep = False,
    as_json: Json = False,
) -> EvaluationCall:
    outputs = Outputs.checked(save, against, report, keep=keep)
    return EvaluationCall(context, folder, corpus, limit, no_embedder, outputs, as_json)


_SHARED = inspect.signature(_call, eval_str=True).parameters
_FIRST = 4
"""The shared options that come before a command's own ones."""


def evaluation(command: Callable[..., int]) -> Callable[..., int]:
    """A command with the shared options and its own ones; it gets the shared ones as its `EvaluationCall`."""
    _, *own = inspect.signature(command, eval_str=True).parameters.values()

    @functools.wraps(command)
    def run(**options: Any) -> int:
        call = _call(**{name: options.pop(name) for name in _SHARED})
        return command(call, **options)

    shared = list(_SHARED.values())
    signature = inspect.Signature([*shared[:_FIRST], *own, *shared[_FIRST:]], return_annotation=int)
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    return run
