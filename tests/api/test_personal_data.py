"""Numbers that enter through every route, in every field: with `pii=mask` none of them is stored anywhere."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from psycopg import sql

from dtrag.adapters.postgres.server.server import EmbeddedServer
from dtrag.settings import Settings
from tests.api.confined import House, house
from tests.api.shape import FORM, form
from tests.api.test_route_matrix import MINE, ROUTES
from tests.store import Databases, Store

FORWARDED = ("/session", "/isolation", "/documents")
"""Routes that are not tried field by field: they start processes, or are tried below."""


@dataclass
class Canaries:
    """Phone numbers, each used once, and where."""

    used: dict[str, str] = field(default_factory=dict)

    def number(self, place: str) -> str:
        """A number that no other place has."""
        number = f"010-{9_000 + len(self.used) // 10}-{7_000 + len(self.used)}"
        self.used[number] = place
        return number

    def in_text(self, text: str) -> set[str]:
        """The places whose numbers a text contains, also without their hyphens."""
        digits = text.replace("-", "")
        return {place for number, place in self.used.items() if number.replace("-", "") in digits}

    def in_rows(self, store: Store) -> set[str]:
        """The places whose numbers a table of the database contains."""
        tables = store.rows("select relname from pg_class where relnamespace = 'dtrag'::regnamespace and relkind = 'r'")
        reached: set[str] = set()
        for (table,) in tables:
            with store.connect() as connection:
                rows = connection.execute(sql.SQL("select t::text from {} t").format(sql.Identifier(table))).fetchall()
            reached |= {f"{place} in {table}" for (row,) in rows for place in self.in_text(row)}
        return reached

    def in_files(self, folder: Path) -> set[str]:
        """The places whose numbers a file contains, that of PostgreSQL's log of changes included."""
        pattern = re.compile("|".join(map(re.escape, self.used)).encode())
        reached: set[str] = set()
        for path in folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                matches = set(pattern.findall(path.read_bytes()))
                reached |= {f"{self.used[number.decode()]} in {path.name}" for number in matches}
        return reached


@pytest.fixture(autouse=True)
def enabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CBR_ENABLED", "true")
    monkeypatch.setenv("FEATURE_NEURAL_CASE_SELECTOR", "true")


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all strings in a value of JSON."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from leaves(item, (*path, place))
    elif isinstance(value, str):
        yield path


def with_text(value: Any, path: tuple[Any, ...], text: str) -> Any:
    """A copy of the value with the text behind the string at this place."""
    if not path:
        return f"{value} {text}"
    copied = dict(value) if isinstance(value, dict) else list(value)
    copied[path[0]] = with_text(copied[path[0]], path[1:], text)
    return copied


async def upload(client: httpx2.AsyncClient, canaries: Canaries) -> list[str]:
    """Documents with numbers in texts, titles, headings, fields, ids, names and categories; returns their ids."""
    number = canaries.number
    markdown = (
        f"# Contact {number('title')}\n\nThe machine room answers {number('text')}.\n\n## Line {number('heading')}\n\n"
        f"After six the machine guard answers.\n\n| Name | Phone |\n|---|---|\n| Kim | {number('table')} |\n"
    )
    row = {
        "id": f"row {number('part')}",
        "title": "Staff",
        "text": f"전화 {number('row')}",
        "category_path": ["AI", f"ML {number('category')}"],
        "metadata": {"author": number("field"), f"key {number('field name')}": "1"},
    }
    parts = form(
        ("files", f"hong_{number('name')}.md".encode(), markdown.encode()),
        ("files", b"rows.jsonl", json.dumps(row, ensure_ascii=False).encode()),
        ("files", b"page.html", f"<title>T {number('html title')}</title><p>Call {number('html')}</p>".encode()),
        ("files", b"table.csv", f"name,phone\nKim,{number('csv')}\n".encode()),
    )
    sent = await client.post("/documents", content=parts, headers=FORM)
    assert sent.status_code == 201, sent.text
    return [str(key) for key in re.findall(r'"document_id":\s?"([0-9a-f-]{36})"', sent.text)]


async def every_field(client: httpx2.AsyncClient, canaries: Canaries) -> None:
    """Send every route's body once for each of its strings, with a number behind that string."""
    for (method, path), described in ROUTES.items():
        if described.sent is None or isinstance(described.sent, bytes) or "{" in path or path.startswith(FORWARDED):
            continue
        for place in leaves(described.sent):
            text = canaries.number(f"{method} {path} {'.'.join(map(str, place))}")
            await client.request(method, path, json=with_text(described.sent, place, text))
    for path in ("/documents?text=", "/conversations/", "/cbr/cases/", "/traces/", "/unknown/", "/taxonomy?x="):
        await client.get(path + canaries.number(f"GET {path}"))


async def a_conversation(built: House, client: httpx2.AsyncClient, canaries: Canaries) -> None:
    """Questions that are answered, rated, suggested, reviewed and corrected; agents, keys, cases, tree versions."""
    number = canaries.number
    for thumbs in ("up", "down"):
        question = f"What does machine learning find for {number(f'question {thumbs}')}?"
        body = {"message": question, "conversation_id": f"talk:{number('conversation')}"}
        answered = (await client.post("/chat/run", json=body)).json()
        rated = {"trace_id": answered["metadata"]["trace_id"], "thumbs": thumbs, "reason": number(f"reason {thumbs}")}
        assert (await client.post("/chat/feedback", json=rated)).status_code == 200
    await built.app.retention.flush()
    [item] = [row for row in (await client.get("/review")).json()["items"] if row["kind"] == "answer"]
    shown = (await client.get(f"/review/{item['item_id']}")).json()["proposal"]
    correction = {"passages": [shown["passages"][0]["chunk_id"]], "note": f"Ask {number('note')}"}
    corrected = await client.post(f"/review/{item['item_id']}/correct", json=correction)
    assert corrected.status_code == 200, corrected.text
    messages = [
        {"role": "user", "content": f"I am {number('history')}."},
        {"role": "assistant", "content": f"You are {number('reply')}."},
        {"role": "user", "content": f"Which machine has {number('completion')}?"},
    ]
    assert (await client.post("/v1/chat/completions", json={"model": "dtrag", "messages": messages})).status_code == 200
    await client.post(
        "/cbr/case", json={"query": f"Who is {number('case')}?", "category_path": MINE, "content": "Kim."}
    )
    await client.post("/keys", json={"name": f"key of {number('key')}", "role": "reader", "scope": [MINE]})
    agent = {"version": "1.0.0", "node_paths": [MINE], "name": f"agent {number('agent')}"}
    await client.post("/agents/from-category", json=agent)
    operation = {"op": "add", "path": ["AI", f"Category {number('operation')}"]}
    await client.post("/taxonomy", json={"operations": [operation], "rationale": number("rationale")})


@asynccontextmanager
async def filled(settings: Settings, canaries: Canaries) -> AsyncIterator[tuple[House, list[str]]]:
    async with house(settings) as built:
        client = await built.client("boss", None, "admin")
        documents = await upload(client, canaries)
        await every_field(client, canaries)
        await a_conversation(built, client, canaries)
        yield built, documents


@pytest.mark.parametrize("cases", ["postgres", "sqlite"])
async def test_no_number_is_stored(
    houses: Databases, embedded: EmbeddedServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, cases: str
) -> None:
    canaries, folder = Canaries(), tmp_path / "cases" if cases == "sqlite" else None
    settings = houses.settings(pii="mask", cbr_data_dir=folder, cbr_retain="always", trace_text="on")
    with caplog.at_level(logging.INFO):
        async with filled(settings, canaries) as (built, _):
            traces = await built.app.traces.newest(20)
            assert any("[phone" in trace.question for trace in traces)
            assert (await built.app.audit.verify()).ok
    store = houses.store(settings)
    assert len(canaries.used) > 60
    assert canaries.in_rows(store) == set()
    assert canaries.in_files(embedded.address.data_dir) == set()
    assert folder is None or canaries.in_files(folder) == set()
    own = [record.getMessage() for record in caplog.records if record.name.startswith("dtrag")]
    assert canaries.in_text(" ".join(own)) == set()


async def test_without_masking_they_are_stored(houses: Databases) -> None:
    canaries = Canaries()
    settings = houses.settings(cbr_retain="always", trace_text="on")
    async with filled(settings, canaries):
        pass
    reached = canaries.in_rows(houses.store(settings))
    assert {place.partition(" in ")[0] for place in reached} > {
        "title", "text", "heading", "table", "row", "field", "name", "part", "csv", "html", "note", "case", "key",
        "question up", "reason up", "rationale", "conversation",
    }  # fmt: skip
