"""Where documents came from: folders of the server are shown to administrators of the whole tree only."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
import pytest_asyncio

from dtrag.adapters.postgres.passage_cache import shown_address
from tests.api.confined import House, house
from tests.store import Databases

QUESTION = "How long is the sabbatical of the lighthouse keeper?"


@pytest_asyncio.fixture
async def built(houses: Databases, tmp_path: Path) -> AsyncIterator[House]:
    async with house(houses.settings()) as running:
        folder = tmp_path / "originals"
        (folder / "휴가").mkdir(parents=True)
        (folder / "휴가" / "keeper.md").write_text("# Keeper\n\nThe sabbatical of the lighthouse keeper is 9 weeks.")
        assert (await running.app.ingest([folder], category="AI/ML")).failed == []
        yield running


async def answers(client: httpx2.AsyncClient, agent_id: str) -> dict[str, str]:
    """By route: everything that it says."""
    found = await client.post("/search", json={"query": QUESTION})
    document_id = found.json()["results"][0]["metadata"]["document_id"]
    body = {"model": "dtrag", "messages": [{"role": "user", "content": QUESTION}]}
    sent = {
        "search": found,
        "ask": await client.post("/ask", json={"question": QUESTION}),
        "chat": await client.post("/chat/run", json={"message": QUESTION}),
        "stream": await client.post("/chat/stream", json={"message": QUESTION}),
        "openai": await client.post("/v1/chat/completions", json=body),
        "responses": await client.post("/v1/responses", json={"model": "dtrag", "input": QUESTION}),
        "agent": await client.post(f"/agents/{agent_id}/ask", json={"question": QUESTION}),
        "documents": await client.get("/documents"),
        "document": await client.get(f"/documents/{document_id}"),
    }
    assert {answer.status_code for answer in sent.values()} == {200}
    return {name: answer.text for name, answer in sent.items()}


async def test_only_administrators_of_the_whole_tree_see_folders_of_the_server(built: House, tmp_path: Path) -> None:
    admin = await built.client("admin", None, "admin")
    agent = await admin.post("/agents/from-category", json={"version": "1.0.0", "node_paths": [["AI", "ML"]]})
    agent_id = agent.json()["agent_id"]
    callers = {
        "reader of everything": await built.client("reader", None, "reader"),
        "editor of a branch": await built.client("editor", ["AI/ML"]),
        "administrator of a branch": await built.client("part", ["AI"], "admin"),
    }
    folder = tmp_path.name
    # First whoever may see it: what is kept in memory is not shown to others.
    shown = await answers(admin, agent_id)
    assert {route for route, text in shown.items() if f"/{folder}/originals/" not in text} == set()
    for who, client in callers.items():
        for route, text in (await answers(client, agent_id)).items():
            assert folder not in text and "file:" not in text, (who, route)
            assert '"%ED%9C%B4%EA%B0%80/keeper.md"' in text, (who, route)


@pytest.mark.parametrize(
    ("uri", "path", "shown"),
    [
        ("file:///srv/a/b%20c.md", "a/b c.md", "a/b%20c.md"),
        ("file:///srv/a/rows.jsonl#7", "a/rows.jsonl", "a/rows.jsonl#7"),
        ("file:///srv/a/old.md", "", "old.md"),
        ("upload:hr/leave/x.md", "", "upload:hr/leave/x.md"),
        ("https://example.org/x", "", "https://example.org/x"),
    ],
)
def test_addresses_without_folders_of_the_server(uri: str, path: str, shown: str) -> None:
    assert shown_address(uri, path, server_paths=False) == shown
    assert shown_address(uri, path, server_paths=True) == uri
