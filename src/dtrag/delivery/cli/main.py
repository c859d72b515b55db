"""`dtrag`: runs one command and converts its outcome into an exit code.

Only the standard library is imported before the command starts, so that Ctrl-C is handled from the first moment.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import NoReturn

from dtrag.delivery.cli.exit_codes import FAILURE, INTERRUPTED, OK, TERMINATED, Ended, OutputClosed, report
from dtrag.delivery.process_end import leave

INTERRUPTED_TEXT = "Interrupted; what was acknowledged is kept."


def run() -> NoReturn:
    """The console script."""
    leave(main(sys.argv[1:]))


def main(arguments: Sequence[str]) -> int:
    """Run the command line `arguments` (without the program's name); returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without UTF-8 shows `?`, not a traceback
    options = list(arguments[: _end_of_options(arguments)])
    wants_json = bool({"--json", "--format=json"} & set(options)) or ("--format", "json") in pairwise(options)
    try:
        code = _command(arguments, wants_json)
        sys.stdout.flush()
    except (BrokenPipeError, OutputClosed):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader of the output closed it, as in `dtrag … | head`
        return OK
    except KeyboardInterrupt:
        code = INTERRUPTED
    if code in {INTERRUPTED, TERMINATED}:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the end of the process is left to interrupt
        report("Interrupted", INTERRUPTED_TEXT, wants_json)
    return code


def _command(arguments: Sequence[str], wants_json: bool) -> int:
    from dtrag.delivery.cli.context import Invocation
    from dtrag.errors import DtragError

    invocation = Invocation()
    try:
        from dtrag.delivery.cli.commands import app

        code = app(args=list(arguments), prog_name="dtrag", standalone_mode=False, obj=invocation)
        return code if isinstance(code, int) else OK
    except Ended as ended:
        return ended.exit_code
    except DtragError as error:
        report(type(error).__name__, str(error), wants_json)
        return error.exit_code
    except (BrokenPipeError, OutputClosed):
        raise
    except Exception as error:  # noqa: BLE001 - the outermost boundary
        return _unexpected(error, invocation.shows_tracebacks, wants_json)


def _unexpected(error: Exception, shows_traceback: bool, wants_json: bool) -> int:
    from dtrag.delivery.cli.exit_codes import UsageMistake

    if isinstance(error, UsageMistake):
        error.show()
        report("Usage", error.format_message(), wants_json, human=False)
        return error.exit_code
    advice = "The details are above." if shows_traceback else "For details run it again as: dtrag --debug …"
    if shows_traceback:
        import traceback

        traceback.print_exception(error, file=sys.stderr)
    message = str(error).strip().partition("\n")[0]
    report("Unexpected", f"An unexpected error: {type(error).__name__}: {message} {advice}", wants_json)
    return FAILURE


def _end_of_options(arguments: Sequence[str]) -> int:
    return arguments.index("--") if "--" in arguments else len(arguments)
