"""The result of executing a tool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict


@dataclass(frozen=True, slots=True)
class ToolExecutionResult:
    """The result of one execution. `result` is plain JSON, None on failure; `error` is None on success.

    `elapsed` in seconds. `note` says that the output was truncated.
    """

    success: bool
    result: Any
    error: str | None
    tool_name: str
    elapsed: float
    note: str = ""

    def as_row(self) -> ToolResult:
        """The result as the pipeline's state and responses hold it."""
        row = ToolResult(
            tool=self.tool_name, success=self.success, result=self.result, error=self.error, elapsed=self.elapsed
        )
        if self.note:
            row["note"] = self.note
        return row


class ToolResult(TypedDict):
    """The result of one tool of a plan, with the meaning of the fields of `ToolExecutionResult`."""

    tool: str
    success: bool
    result: Any
    error: str | None
    elapsed: float
    note: NotRequired[str]
