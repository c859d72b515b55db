"""How deep the calls are from the pipeline's search step to the SQL of the passages."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Generator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import dtrag
from dtrag.app import App
from dtrag.pipeline.retrieve import step2_retrieve
from dtrag.pipeline.state import PipelineState

PACKAGE = str(Path(dtrag.__file__).parent)
MAX_FRAMES = 10
"""Functions of dtrag from `step2_retrieve`, itself included, to the statement that reads the passages."""


class Stacks:
    """The functions of dtrag that are being called, also across the tasks that they create."""

    def __init__(self) -> None:
        self._of_task: dict[asyncio.Task[Any], list[str]] = {}

    def create_task(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
        **options: Any,
    ) -> asyncio.Task[Any]:
        names = self.names()
        task = asyncio.Task(coroutine, loop=loop, **options)
        self._of_task[task] = names
        return task

    def names(self) -> list[str]:
        frame, names = sys._getframe(1), list[str]()
        while frame.f_back is not None:
            frame = frame.f_back
            if frame.f_code.co_filename.startswith(PACKAGE):
                names.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_code.co_name}")
        try:
            task = asyncio.current_task()
        except RuntimeError:
            task = None
        return (self._of_task.get(task, []) if task is not None else []) + names[::-1]


async def test_the_passages_are_read_at_most_ten_calls_below_the_search_step(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stacks, depths, execute = Stacks(), list[list[str]](), psycopg.AsyncCursor.execute

    async def recording(self: Any, query: Any, *arguments: Any, **options: Any) -> Any:
        names = stacks.names()
        if "passages_in_scope" in str(query) and "retrieve.py:step2_retrieve" in names:
            depths.append(names[names.index("retrieve.py:step2_retrieve") :])
        return await execute(self, query, *arguments, **options)

    (tmp_path / "manual.txt").write_text("The kettle has a valve.", "utf-8")
    await app.ingest(tmp_path / "manual.txt", "AI")
    await app.index.snapshot()
    monkeypatch.setattr(psycopg.AsyncCursor, "execute", recording)
    loop = asyncio.get_running_loop()
    loop.set_task_factory(stacks.create_task)
    try:
        await step2_retrieve(PipelineState(query="kettle valve", run=app.run))
    finally:
        loop.set_task_factory(None)
    assert depths
    assert len(depths[0]) <= MAX_FRAMES, "\n".join(depths[0])
