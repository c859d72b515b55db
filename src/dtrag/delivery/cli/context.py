"""What the options before the command say, the option that every command has, and the one way into async code."""

from __future__ import annotations

import signal
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import typer

from dtrag.delivery.cli.exit_codes import TERMINATED, Ended

if TYPE_CHECKING:
    from dtrag.settings import Settings

T = TypeVar("T")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Direct = Annotated[bool, typer.Option("--direct", help="Do not use a running `dtrag up` of this data folder.")]
Categories = Annotated[
    list[str] | None,
    typer.Option("--category", metavar="PATH", help='Only this branch, such as "AI/ML"; may be repeated.'),
]


@dataclass(slots=True)
class Invocation:
    """One run of the command line."""

    data_dir: Path | None = None
    database_url: str | None = None
    debug: bool = False
    log_level: str = ""

    def settings(self, **overrides: Any) -> Settings:
        """The environment's settings under the options'. Sets up logging. Raises `InvalidInput`."""
        from dtrag.logs import configure
        from dtrag.settings import Settings

        settings = Settings.load(data_dir=self.data_dir, database_url=self.database_url, **overrides)
        self.log_level = settings.log_level
        configure(settings.log_level, settings.log_format)
        return settings

    @property
    def shows_tracebacks(self) -> bool:
        """Asked for with `--debug` or DTRAG_LOG_LEVEL=DEBUG."""
        return self.debug or self.log_level.upper() == "DEBUG"


def invocation(context: typer.Context) -> Invocation:
    """The run that a command belongs to."""
    return cast("Invocation", context.find_root().obj)


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end. Ctrl-C and SIGTERM cancel it, so that it puts away what it opened, and then end the run.

    Raises `KeyboardInterrupt` or `Ended` after that.
    """
    import asyncio  # not where a running service answers: it is a tenth of such a command's time

    terminated = False

    async def supervised() -> T:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - asyncio.run makes one

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
