"""Follow-up questions through the whole pipeline: found with what was said before, answered as they were asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dtrag.app import App, open_app
from dtrag.core.chat import Message
from dtrag.pipeline import steps
from dtrag.pipeline.run_context import Run
from tests.model_server import ModelServer
from tests.store import Databases

PAGES = {
    "leave.md": "# Vacation\n\nA full-time employee gets 26 vacation days. Part-time staff get 13 vacation days.",
    "desks.md": "# Desks\n\nPart-time staff share a desk with one more of the part-time staff.",
    "badges.md": "# Badges\n\nThe badges of staff are printed at the desk in the hall.",
}
HISTORY = (
    Message("user", "How many vacation days does a full-time employee get?"),
    Message("assistant", "A full-time employee gets 26 vacation days a year. [1]"),
)
QUESTION = "and for part-time staff?"
WRITTEN = "How many vacation days do part-time staff get?"


async def shelved(app: App, folder: Path) -> None:
    for name, text in PAGES.items():
        (folder / name).write_text(text, "utf-8")
    await app.ingest([folder], "HR")


async def loaded(app: App) -> None:
    """The first call of a model loads its library, which takes longer than a step may."""
    assert app.model is not None
    await app.model.complete([Message("user", "Hello")], max_tokens=5, seconds=60)


def replying(messages: list[dict[str, Any]]) -> str:
    """A model that can do both: write a question out, and answer from passages."""
    if messages[0]["content"].startswith("You rewrite"):
        return WRITTEN
    return "Part-time staff get 13 vacation days. [1]"


async def test_without_a_model_earlier_words_find_the_page(databases: Databases, tmp_path: Path) -> None:
    async with open_app(databases.settings(trace_text="on")) as app:
        await shelved(app, tmp_path)
        alone = await app.pipeline.execute(QUESTION)
        found = await app.pipeline.execute(QUESTION, history=HISTORY)
        assert found.query == QUESTION
        assert found.retrieved_chunks[0].title == "Vacation" != alone.retrieved_chunks[0].title
        assert "13 vacation days" in found.answer
        trace = await app.traces.get(found.trace_id)
        [step] = [step for step in trace.steps if step.name == "rewrite"]
        assert (step.outcome, trace.question) == ("done", QUESTION)
        assert "vacation" in step.facts["search_query"]
        assert "contrast" in step.facts["note"]
        assert "rewrite" not in {step.name for step in (await app.traces.get(alone.trace_id)).steps}


async def test_without_texts_the_trace_does_not_hold_the_rewritten_question(
    databases: Databases, tmp_path: Path
) -> None:
    async with open_app(databases.settings()) as app:
        await shelved(app, tmp_path)
        found = await app.pipeline.execute(QUESTION, history=HISTORY)
        assert "vacation" not in str((await app.traces.get(found.trace_id)).as_dict())


async def test_a_model_rewrites_the_question(databases: Databases, tmp_path: Path) -> None:
    with ModelServer(replying) as server:
        settings = databases.settings(llm="openai:test", llm_base_url=server.url, llm_api_key="k", trace_text="on")
        async with open_app(settings) as app:
            await shelved(app, tmp_path)
            await loaded(app)
            found = await app.pipeline.execute(QUESTION, history=HISTORY)
            assert found.retrieved_chunks[0].title == "Vacation"
            assert "13 vacation days" in found.answer
            trace = await app.traces.get(found.trace_id)
            assert [call.step for call in trace.calls] == ["rewrite", "read", "compose"]
            assert trace.calls[0].reply == WRITTEN
            [step] = [step for step in trace.steps if step.name == "rewrite"]
            assert step.facts["search_query"] == WRITTEN


@pytest.mark.usefixtures("shipped_limits")
async def test_a_hanging_model_is_not_waited_for(databases: Databases, tmp_path: Path) -> None:
    with ModelServer(replying) as server:
        server.fault = lambda body: "hang" if str(body["messages"][0]["content"]).startswith("You rewrite") else None
        settings = databases.settings(llm="openai:test", llm_base_url=server.url, llm_api_key="k")
        async with open_app(settings) as app:
            await shelved(app, tmp_path)
            await loaded(app)
            started = time.perf_counter()
            found = await app.pipeline.execute(QUESTION, history=HISTORY)
            assert time.perf_counter() - started < 5
            assert found.retrieved_chunks[0].title == "Vacation"
            assert "13 vacation days" in found.answer
            trace = await app.traces.get(found.trace_id)
            [step] = [step for step in trace.steps if step.name == "rewrite"]
            assert step.seconds < 2 * step.budget
            assert "carried over (contrast)" in step.facts["note"]


async def test_a_step_that_is_out_of_time_still_carries_the_words_over(
    databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def late(question: str, history: Sequence[Message], run: Run) -> tuple[str, str]:
        await asyncio.sleep(30)
        return question, ""

    monkeypatch.setattr(steps, "standalone", late)
    async with open_app(databases.settings()) as app:
        await shelved(app, tmp_path)
        found = await app.pipeline.execute(QUESTION, history=HISTORY)
        assert found.retrieved_chunks[0].title == "Vacation"
        [step] = [step for step in (await app.traces.get(found.trace_id)).steps if step.name == "rewrite"]
        assert (step.outcome, "contrast" in step.facts["note"]) == ("timeout", True)
