"""Blocking calls in threads of their own: bounded in number, and nobody waits for those left behind."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from dtrag.errors import Overloaded
from dtrag.tools.threads import MOST, in_thread


async def until(condition: Callable[[], bool]) -> None:
    """Wait for the condition, at most ten seconds."""
    for _ in range(1_000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come true")


def tool_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("tool-")]


async def test_results_and_errors_come_back() -> None:
    assert await in_thread(lambda a, b: a + b, {"a": 1, "b": 2}) == 3
    with pytest.raises(KeyError):
        await in_thread(lambda: {"a": 1}["x"], {})


@pytest.mark.parametrize("error", [StopIteration(1), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
async def test_errors_that_a_loop_keeps_for_itself_come_back_as_others(error: BaseException) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(RuntimeError, match=f"the tool raised {type(error).__name__}"):
        await in_thread(fail, {})


async def test_so_many_run_at_a_time_and_no_more() -> None:
    release = threading.Event()
    calls = [asyncio.create_task(in_thread(release.wait, {"timeout": 60})) for _ in range(MOST)]
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        await in_thread(release.wait, {})
    for call in calls[: MOST // 2]:
        call.cancel()
    await asyncio.gather(*calls[: MOST // 2], return_exceptions=True)
    with pytest.raises(Overloaded):  # those left behind count until they have ended
        await in_thread(release.wait, {})
    release.set()
    assert await asyncio.gather(*calls[MOST // 2 :]) == [True] * (MOST // 2)
    await until(lambda: not tool_threads())
    assert await in_thread(lambda: 7, {}) == 7


async def test_a_thread_that_cannot_start_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refused(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading, "Thread", Refused)
        for _ in range(MOST + 1):
            with pytest.raises(RuntimeError, match="can't start"):
                await in_thread(lambda: 1, {})
    assert await in_thread(lambda: 2, {}) == 2


def test_a_loop_that_has_ended_is_not_told() -> None:
    release = threading.Event()

    async def leave() -> None:
        call = asyncio.create_task(in_thread(release.wait, {"timeout": 60}))
        await asyncio.sleep(0.01)
        call.cancel()

    asyncio.run(leave())
    release.set()
    for thread in tool_threads():
        thread.join(10)
    assert not tool_threads()


def test_the_end_of_the_process_does_not_wait_for_a_thread() -> None:
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
