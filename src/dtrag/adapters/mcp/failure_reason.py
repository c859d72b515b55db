"""Why a connection to an MCP server ended: set by its transport, shown in errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

LAST_LINE_CHARACTERS = 200
"""Characters of the last line of stderr that are shown."""


@dataclass(slots=True)
class ConnectionState:
    """State of one connection. `stderr_tail` is the end of the program's stderr: untrusted text."""

    on_failure: Callable[[], None]
    problem: str = ""
    stderr_tail: str = ""
    closing: bool = False
    """We end it ourselves: an end is not a fault of the server."""

    def failed(self, problem: str) -> None:
        """The connection is unusable; the first reported problem is the cause of the others."""
        if not self.closing:
            self.problem = self.problem or problem
        self.on_failure()

    def reason(self, otherwise: str) -> str:
        """The problem, or `otherwise`, with the last line of the server's stderr."""
        lines = [line.strip() for line in self.stderr_tail.splitlines() if line.strip()]
        last = f' Its last line of stderr: "{lines[-1][:LAST_LINE_CHARACTERS]}".' if lines else ""
        return f"{self.problem or otherwise}{last}"
