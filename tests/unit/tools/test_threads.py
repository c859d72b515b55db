"""Blocking functions as tools: their errors are returned, and a hanging one does not keep the process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import pytest

from dtrag.tools.schema import run_in_thread


async def test_results_and_errors_come_back() -> None:
    assert await run_in_thread(lambda a, b: a + b, {"a": 1, "b": 2}) == 3
    with pytest.raises(KeyError):
        await run_in_thread(lambda: {"a": 1}["x"], {})


@pytest.mark.parametrize("error", [StopIteration(1), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
async def test_errors_that_asyncio_reserves_are_replaced(error: BaseException) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(RuntimeError, match=f"the tool raised {type(error).__name__}"):
        await run_in_thread(fail, {})


def test_the_process_exits_while_a_tool_hangs() -> None:
    program = """
import asyncio, time
from dtrag.tools import Tool, ToolRegistry, execute_tool, tool

@tool
def block() -> None:
    "Blocks."
    time.sleep(600)

registry = ToolRegistry()
registry.register(block)
print(asyncio.run(execute_tool("block", {}, 0.2, registry=registry)).error)
"""
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "Tool execution timeout (0.2s)\n"
    assert time.perf_counter() - started < 30
