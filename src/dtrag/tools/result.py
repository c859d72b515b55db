"""What came of executing a tool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ToolExecutionResult:
    """What came of executing a tool. `result` is plain JSON and None without success; `error` is None with success.

    `elapsed` in seconds. `note` says when the output was cut.
    """

    success: bool
    result: Any
    error: str | None
    tool_name: str
    elapsed: float
    note: str = ""
