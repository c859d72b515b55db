"""`dtrag.testing`: apps on throw-away databases, and the examples of docs/how-to/testing.md as they are written."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from dtrag import App
from dtrag.core.access.scope import Access, Grant
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.errors import InvalidInput
from dtrag.testing import (
    HashEmbedder,
    Models,
    OverlapReranker,
    ScriptedModel,
    add_texts,
    open_throwaway,
    throwaway_database,
)

PAGE = (Path(__file__).parents[2] / "docs/how-to/testing.md").read_text("utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
LEAVE = "# Leave\n\nA full-time employee has 26 days of paid annual leave."
QUESTION = "How many days of annual leave does a full-time employee have?"


@pytest_asyncio.fixture
async def app() -> AsyncIterator[App]:
    async with open_throwaway() as opened:
        yield opened


@pytest.mark.parametrize("code", EXAMPLES, ids=[re.findall(r"def (test_\w+)", code)[0] for code in EXAMPLES])
async def test_an_example_passes(code: str) -> None:
    names: dict[str, Any] = {}
    exec(compile(code, "docs/how-to/testing.md", "exec"), names)
    (example,) = [value for name, value in names.items() if name.startswith("test_")]
    await example()


async def test_every_mode_searches_in_scope(app: App) -> None:
    await add_texts(app, {"leave.md": LEAVE}, category="HR/Leave")
    await add_texts(app, {"pump.txt": "The pump has a valve of brass."}, category="Machines")
    taxonomy = (await app.index.snapshot()).taxonomy
    machinist = Access((Grant.of([CategoryPath.parse("Machines")], taxonomy),))
    for mode in ("hybrid", "lexical", "strict", "vector"):
        results, metrics = await app.search("brass valve", 3, mode=mode)
        assert results[0].text == "The pump has a valve of brass."
        assert metrics.degraded == ()
        visible, _ = await app.search("employee valve", 3, mode=mode, scope=machinist)
        assert {result.title for result in visible} <= {"pump"}


async def test_a_model_writes_the_answer_from_the_passages() -> None:
    model = ScriptedModel(["It is 26 days of paid annual leave. [1]"])
    async with open_throwaway(Models(HashEmbedder(), reranker=OverlapReranker(), chat=model)) as app:
        await add_texts(app, {"leave.md": LEAVE})
        answer = await app.ask(QUESTION)
    assert (answer.model, answer.text) == (model.id, "It is 26 days of paid annual leave. [1]")
    assert any("26 days" in message.content for request in model.requests for message in request)


async def test_a_text_of_the_same_name_replaces_the_one_before(app: App) -> None:
    await add_texts(app, {"pump.txt": "The pump is red."})
    (document,) = await add_texts(app, {"pump.txt": "The pump is green."})
    assert (await app.document(document))[1].strip() == "The pump is green."
    assert await app.counts() == (1, 1)


async def test_unreadable_texts_are_reported(app: App) -> None:
    with pytest.raises(InvalidInput, match=r"'empty.txt' cannot be read: no text in it"):
        await add_texts(app, {"empty.txt": "  "})
    with pytest.raises(InvalidInput, match=r"'scan.pdf' cannot be read"):
        await add_texts(app, {"scan.pdf": "this is no PDF"})


async def test_apps_on_one_database_share_documents_but_not_vectors_of_other_models() -> None:
    with throwaway_database() as database:
        async with open_throwaway(database=database) as first:
            await add_texts(first, {"pump.txt": "The pump has a valve of brass."})
        async with open_throwaway(Models(HashEmbedder(id="hash@00000002")), database=database) as second:
            results, metrics = await second.search("brass", mode="vector")
            assert (results, metrics.vectors_pending) == ([], True)
            assert (await second.vectors.fill()).made == 1
            results, _ = await second.search("brass", mode="vector")
            assert [result.title for result in results] == ["pump"]


def test_a_program_leaves_nothing_behind() -> None:
    program = (
        "import asyncio, sys, dtrag, dtrag.app\n"
        "assert not [name for name in sys.modules if name.startswith('dtrag.testing')]\n"
        "from dtrag.testing import open_throwaway\n"
        "assert 'pytest' not in sys.modules\n"
        "async def main():\n"
        "    async with open_throwaway() as app:\n"
        "        print(app.settings.data_dir)\n"
        "asyncio.run(main())\n"
    )
    command = [sys.executable, "-c", program]
    finished = subprocess.run(command, check=True, timeout=120, capture_output=True, text=True)
    assert not Path(finished.stdout.strip()).parent.exists()
