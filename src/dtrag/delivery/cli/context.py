"""Global options, options shared by commands, and how commands run asynchronous code."""

from __future__ import annotations

import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, TypeVar, Unpack, cast

import typer

from dtrag.delivery.cli.console import ListFormat
from dtrag.delivery.cli.exit_codes import TERMINATED, Ended
from dtrag.errors import InvalidInput

if TYPE_CHECKING:
    from dtrag.app import App
    from dtrag.settings import Settings

T = TypeVar("T")

MOST_CHARACTERS = 100_000
"""Maximum read from standard input: more than a question may have, less than a file sent by mistake."""

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Form = Annotated[
    ListFormat,
    typer.Option("--format", help="How the list is printed; json is the same as --json."),
]
Direct = Annotated[bool, typer.Option("--direct", help="Do not use a running `dtrag up` of this data folder.")]
Categories = Annotated[
    list[str] | None,
    typer.Option("--category", metavar="PATH", help='Only this branch, such as "AI/ML"; may be repeated.'),
]
Category = Annotated[str | None, typer.Option(metavar="PATH", help='Only this branch, such as "AI/ML".')]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="DATE",
        help="Regulations as they were valid on this day, such as 2024-03-01.",
        show_default=False,
    ),
]
ListedId = Annotated[str, typer.Argument(metavar="ID", help="The id from the list.", show_default=False)]
ListedName = Annotated[str, typer.Argument(metavar="NAME", help="The name from the list.", show_default=False)]
Offset = Annotated[int, typer.Option(min=0, help="Number of entries to skip.")]


class SettingOptions(TypedDict, total=False):
    """Settings that commands override; None leaves the value of the environment."""

    embedder: str | None
    judge: str | None
    host: str | None
    port: int | None
    workers: int | None


@dataclass(slots=True)
class Invocation:
    """One run of the command line."""

    data_dir: Path | None = None
    database_url: str | None = None
    debug: bool = False
    log_level: str = ""

    def settings(self, **overrides: Unpack[SettingOptions]) -> Settings:
        """The settings of the environment, overridden by options. Configures logging. Raises `InvalidInput`."""
        from dtrag.logs import configure
        from dtrag.personal_data import mask_of
        from dtrag.settings import Settings

        settings = Settings.load(data_dir=self.data_dir, database_url=self.database_url, **overrides)
        self.log_level = settings.log_level
        configure(settings.log_level, settings.log_format, mask_of(settings))
        return settings

    @property
    def shows_tracebacks(self) -> bool:
        """Whether `--debug` or DTRAG_LOG_LEVEL=DEBUG is set."""
        return self.debug or self.log_level.upper() == "DEBUG"


def invocation(context: typer.Context) -> Invocation:
    """The invocation of a command."""
    return cast("Invocation", context.find_root().obj)


def question_of(words: Sequence[str]) -> str:
    """The words joined; a single `-` reads standard input to its end. Raises `InvalidInput`."""
    if list(words) != ["-"]:
        return " ".join(words)
    try:
        text = sys.stdin.read(MOST_CHARACTERS).strip()
    except UnicodeDecodeError as error:
        raise InvalidInput("Standard input is not UTF-8 text: it contains no question.") from error
    if not text:
        raise InvalidInput("Standard input is empty: it contains no question.")
    return text


def confirmed(question: str, refusal: str) -> bool:
    """Whether the user agrees. Raises `InvalidInput` with the refusal where there is no terminal to ask on."""
    if not sys.stdin.isatty():
        raise InvalidInput(refusal)
    return typer.confirm(question, err=True)


def text_of(file: Path, most_bytes: int, too_large: str, advice: str) -> str:
    """The text of a file. Raises `InvalidInput` with `too_large` or, for what is not text, with `advice`."""
    try:
        if file.stat().st_size > most_bytes:
            raise InvalidInput(f"{file.name} is too large for {too_large}")
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file.name} cannot be read as UTF-8 text. {advice}") from error


def with_app(context: typer.Context, work: Callable[[App], Awaitable[T]]) -> T:
    """The result of `work` with the app of the settings, which is opened for it and closed afterwards."""
    settings = invocation(context).settings()

    async def run() -> T:
        from dtrag.app import open_app

        async with open_app(settings) as app:
            return await work(app)

    return run_async(run())


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end. Ctrl-C and SIGTERM cancel it, so that it releases its resources first.

    Raises `KeyboardInterrupt` or `Ended` after a cancellation.
    """
    import asyncio  # imported late: it takes a tenth of the time of a command that a service answers

    terminated = False

    async def supervised() -> T:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - asyncio.run creates one

        def end() -> None:
            nonlocal terminated
            terminated = True
            task.cancel()

        with suppress(NotImplementedError, RuntimeError):  # the latter outside of the main thread
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end)
        return await work

    try:
        return asyncio.run(supervised())
    except asyncio.CancelledError:
        if terminated:
            raise Ended(TERMINATED) from None
        raise KeyboardInterrupt from None
