"""Exit codes, and how errors are reported to users and programs."""

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
    OK: "success",
    FAILURE: "failure",
    USAGE: "the command line or an argument is invalid",
    SOME_FILES_FAILED: "some files could not be read; the others were indexed",
    DATABASE_UNREACHABLE: "the database or server cannot be reached",
    UNFINISHED: "`dtrag ask`: the time limit was reached; it is unknown whether the documents answer",
    DISK_FULL: "the disk is too full to add anything",
    INTERRUPTED: "interrupted by Ctrl-C",
    TERMINATED: "terminated by SIGTERM",
}


class Ended(Exception):
    """The process was terminated after it released its resources."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


class OutputClosed(Exception):
    """The reader of standard output has closed it."""


@runtime_checkable
class UsageMistake(Protocol):
    """The exception that Typer raises for an invalid command line, with any version of Click."""

    exit_code: int

    def format_message(self) -> str:
        """The error in one sentence."""

    def show(self) -> None:
        """Print usage and error to stderr."""


def report(kind: str, message: str, wants_json: bool, *, human: bool = True) -> None:
    """Print a line on stderr and, with `--json`, `{"error": {"type", "message"}}` on stdout."""
    if human:
        print(f"dtrag: {message}", file=sys.stderr)  # noqa: T201 - stderr is for people
    if wants_json:
        import json

        try:
            print(json.dumps({"error": {"type": kind, "message": message}}, indent=2), flush=True)  # noqa: T201
        except BrokenPipeError as error:
            raise OutputClosed from error
