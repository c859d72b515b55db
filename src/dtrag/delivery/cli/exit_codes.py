"""How the process ends: the exit codes, and how a mistake is told to people and to programs."""

from __future__ import annotations

import sys
from typing import Protocol, runtime_checkable

OK = 0
FAILURE = 1
USAGE = 2
SOME_FILES_FAILED = 3
DATABASE_UNREACHABLE = 4
UNFINISHED = 5
DISK_FULL = 6
INTERRUPTED = 130
TERMINATED = 143

EXIT_CODES: dict[int, str] = {
    OK: "done",
    FAILURE: "it failed",
    USAGE: "the command line or an argument is wrong",
    SOME_FILES_FAILED: "some files could not be read; the others are in",
    DATABASE_UNREACHABLE: "the database or server cannot be reached",
    UNFINISHED: "`dtrag ask`: the search was not finished in time; nothing is known about the answer",
    DISK_FULL: "the disk is too full to add anything",
    INTERRUPTED: "interrupted by Ctrl-C",
    TERMINATED: "ended by SIGTERM",
}


class Ended(Exception):
    """The process was told to end, and everything has been put away."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


class OutputClosed(Exception):
    """Nobody reads our standard output any more."""


@runtime_checkable
class UsageMistake(Protocol):
    """What Typer raises for a wrong command line, whichever Click it brings along."""

    exit_code: int

    def format_message(self) -> str:
        """The mistake in one sentence."""

    def show(self) -> None:
        """Print usage and mistake to stderr."""


def report(kind: str, message: str, wants_json: bool, *, human: bool = True) -> None:
    """A line for people on stderr and, under `--json`, `{"error": {"type", "message"}}` on stdout."""
    if human:
        print(f"dtrag: {message}", file=sys.stderr)  # noqa: T201 - stderr is for people
    if wants_json:
        import json

        try:
            print(json.dumps({"error": {"type": kind, "message": message}}, indent=2), flush=True)  # noqa: T201
        except BrokenPipeError as error:
            raise OutputClosed from error
