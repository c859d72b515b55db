"""Why a connection to an MCP server ended: told by its transport, read by whoever explains it to people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

LAST_LINE_CHARACTERS = 200
"""Characters of a server's own last words that are shown."""


@dataclass(slots=True)
class Health:
    """State of one connection. `said` is the end of what a program wrote to stderr: data from outside."""

    on_failure: Callable[[], None]
    problem: str = ""
    stderr_tail: str = ""
    closing: bool = False
    """We end it ourselves: what ends now is no fault of the server."""

    def failed(self, problem: str) -> None:
        """The connection is of no use any more; the first problem told is the cause of the others."""
        if not self.closing:
            self.problem = self.problem or problem
        self.on_failure()

    def reason(self, otherwise: str) -> str:
        """What to tell: the problem, or `otherwise`, with the server's last line."""
        lines = [line.strip() for line in self.stderr_tail.splitlines() if line.strip()]
        last = f' It said last: "{lines[-1][:LAST_LINE_CHARACTERS]}".' if lines else ""
        return f"{self.problem or otherwise}{last}"
