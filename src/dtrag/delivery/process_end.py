"""The end of a process that has closed everything it opened."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def leave(code: int) -> NoReturn:
    """End the process with this code, without waiting for daemon threads and without finalising the interpreter.

    A daemon thread may still be inside a model when the interpreter is finalised. When it returns, Python ends it in
    the middle of C++ code, which aborts the process (`terminate called without an active exception`) or hangs.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):  # none, closed, or without a reader
            continue
    os._exit(code)
