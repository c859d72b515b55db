"""An app in memory does what an app on PostgreSQL does, without a process, a file or a model."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from dtrag import App
from dtrag.core.access.scope import Access, Grant
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.errors import Forbidden, InvalidInput, NotFound
from dtrag.testing import MemoryState, Models, OverlapReranker, ScriptedModel, add_texts, open_in_memory
from dtrag.testing.models import HashEmbedder

QUESTION = "How many days of annual leave does a full-time employee have?"


@pytest_asyncio.fixture
async def app() -> AsyncIterator[App]:
    async with open_in_memory() as opened:
        await add_texts(
            opened,
            {
                "leave.md": "# Leave\n\nA full-time employee has 26 days of paid annual leave.",
                "sick.md": "# Sickness\n\nA sick employee tells the office in the morning.",
            },
            category="HR/Leave",
        )
        await add_texts(opened, {"pump.txt": "The pump has a valve of brass."}, category="Machines")
        yield opened


async def scope_of(app: App, path: str) -> Access:
    """What a caller with a grant to one branch may see."""
    taxonomy = (await app.index.snapshot()).taxonomy
    return Access((Grant.of([CategoryPath.parse(path)], taxonomy),))


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "strict", "vector"])
async def test_it_searches_in_every_mode(app: App, mode: str) -> None:
    results, metrics = await app.search("brass valve", 3, mode=mode)
    assert results[0].text == "The pump has a valve of brass."
    assert results[0].taxonomy_path == ["Machines"]
    assert metrics.degraded == ()


async def test_it_answers_with_citations(app: App) -> None:
    answer = await app.ask(QUESTION)
    assert answer.decision in {"answer", "review"}
    assert "26 days" in answer.text
    (citation,) = answer.citations
    assert citation.quote == "A full-time employee has 26 days of paid annual leave."


async def test_a_caller_sees_its_branches_only(app: App) -> None:
    machines, leave = await scope_of(app, "Machines"), await scope_of(app, "HR")
    assert {result.title for result in (await app.search("employee valve", 10, scope=machines))[0]} == {"pump"}
    assert "pump" not in {result.title for result in (await app.search("employee valve", 10, scope=leave))[0]}
    answer = await app.ask(QUESTION, scope=machines)
    assert "26 days" not in answer.text
    assert [row.title for row in await app.documents(scope=machines)] == ["pump"]
    assert await app.counts(scope=leave) == (2, 2)


async def test_a_caller_cannot_write_or_read_outside_of_its_branches(app: App) -> None:
    machines = await scope_of(app, "Machines")
    with pytest.raises(Forbidden):
        await add_texts(app, {"new.txt": "A text."}, category="HR", scope=machines)
    (leave,) = [row for row in await app.documents() if row.title == "Leave"]
    with pytest.raises(NotFound):
        await app.document(leave.document_id, scope=machines)
    with pytest.raises(NotFound):
        await app.delete_document(leave.document_id, scope=machines)


async def test_a_model_writes_the_answer_from_the_passages(app: App) -> None:
    model = ScriptedModel(["It is 26 days of paid annual leave. [1]"])
    async with open_in_memory(Models(HashEmbedder(), reranker=OverlapReranker(), chat=model)) as other:
        await add_texts(other, {"leave.md": "A full-time employee has 26 days of paid annual leave."})
        answer = await other.ask(QUESTION)
    assert answer.model == model.id
    assert answer.text.startswith("It is 26 days of paid annual leave.")
    assert any("26 days" in message.content for request in model.requests for message in request)


async def test_a_model_that_fails_leaves_quotations() -> None:
    async with open_in_memory(Models(HashEmbedder(), chat=ScriptedModel([RuntimeError("it is off.")]))) as app:
        await add_texts(app, {"leave.md": "A full-time employee has 26 days of paid annual leave."})
        answer = await app.ask(QUESTION)
    assert answer.model is None
    assert "26 days" in answer.text
    assert answer.degraded


async def test_a_text_of_the_same_name_replaces_the_one_before(app: App) -> None:
    (before,) = await add_texts(app, {"pump.txt": "The pump is green."}, category="Machines")
    assert (await app.document(before))[1].strip() == "The pump is green."
    assert await app.counts(scope=await scope_of(app, "Machines")) == (1, 1)


async def test_files_and_folders_are_ingested_and_followed(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# One\n\nThe first text.", "utf-8")
    (tmp_path / "b.txt").write_text("The second text.", "utf-8")
    async with open_in_memory() as app:
        assert (await app.ingest(tmp_path, category="Texts")).failed == []
        (tmp_path / "a.md").rename(tmp_path / "c.md")
        report = await app.ingest(tmp_path, category="Texts", prune=True)
        assert len(report.renamed) == 1
        assert await app.counts() == (2, 2)


async def test_unreadable_files_are_reported(app: App) -> None:
    with pytest.raises(InvalidInput, match=r"'empty.txt' cannot be read: no text in it"):
        await add_texts(app, {"empty.txt": "  "})
    with pytest.raises(InvalidInput, match=r"'scan.pdf' cannot be read"):
        await add_texts(app, {"scan.pdf": "this is no PDF"})


async def test_another_embedder_makes_its_own_vectors() -> None:
    state = MemoryState()
    async with open_in_memory(state=state) as first:
        await add_texts(first, {"pump.txt": "The pump has a valve of brass."})
    async with open_in_memory(Models(HashEmbedder(id="hash@00000002")), state=state) as second:
        results, metrics = await second.search("brass", mode="vector")
        assert (results, metrics.vectors_pending) == ([], True)
        assert (await second.vectors.fill()).made == 1
        results, metrics = await second.search("brass", mode="vector")
        assert [result.title for result in results] == ["pump"]
        assert (metrics.degraded, metrics.vectors_pending) == ((), False)


async def test_governance_works_too(app: App) -> None:
    operations = [{"op": "merge", "paths": [["Machines"]], "into": ["HR"]}]
    proposed = await app.taxonomy.propose(operations, "One branch.")
    await app.taxonomy.activate(proposed.version)
    assert (await app.search("brass valve"))[0][0].taxonomy_path == ["HR"]
    await app.taxonomy.rollback("1.0.0")
    assert (await app.search("brass valve"))[0][0].taxonomy_path == ["Machines"]
    assert (await app.audit.verify()).ok


def test_nothing_of_it_is_imported_by_dtrag_and_it_needs_no_pytest() -> None:
    code = (
        "import sys, dtrag, dtrag.app\n"
        "assert not [name for name in sys.modules if name.startswith('dtrag.testing')]\n"
        "import dtrag.testing\n"
        "assert 'pytest' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
