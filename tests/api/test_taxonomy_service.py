"""`/api/taxonomy/tree/{version}` when `TAXONOMY_BASE` names another service: a real one on loopback."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import pytest_asyncio

from dtrag.adapters.web.fetch import SECONDS, TaxonomyService
from dtrag.core.access.visible_tree import read_sent_tree
from dtrag.core.taxonomy.apply import MOST_NODES
from dtrag.errors import InvalidInput
from dtrag.settings import Settings
from tests.api.confined import House, house
from tests.web_server import Asked, WebServer, always, answer, web_server

TREE = {
    "version": "5.2.0",
    "tree": [
        {
            "name": "ai",
            "node_id": 7,
            "documents": 9,
            "children": [
                {"name": "ML", "node_id": 8, "documents": 4, "children": [{"name": "Hidden below", "documents": 3}]},
                {"name": "MLOps", "documents": 5},
            ],
        },
        {"name": "HR", "documents": 1, "children": [{"name": "Salary", "documents": 8}]},
        {"name": "R&D", "children": [{"name": "ML", "documents": 2}]},
        {"name": "학사"},
    ],
}


@dataclass
class Elsewhere:
    """The other service: what it answers can be changed between requests."""

    server: WebServer
    sent: bytes = answer(body=json.dumps(TREE).encode())
    wait: float = 0.0

    async def give(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(self.wait)
        writer.write(self.sent)

    @asynccontextmanager
    async def answering(self, sent: bytes, wait: float = 0.0) -> AsyncIterator[None]:
        before, self.sent, self.wait = self.sent, sent, wait
        yield
        self.sent, self.wait = before, 0.0


@pytest_asyncio.fixture(scope="module")
async def elsewhere() -> AsyncIterator[Elsewhere]:
    made = Elsewhere(WebServer())

    async def give(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await made.give(asked, writer)

    async with web_server(give) as server:
        made.server = server
        yield made


@pytest_asyncio.fixture(scope="module")
async def built(tmp_path_factory: pytest.TempPathFactory, elsewhere: Elsewhere) -> AsyncIterator[House]:
    folder: Path = tmp_path_factory.mktemp("taxonomy-service")
    settings = Settings.load(
        environ={"TAXONOMY_BASE": f"{elsewhere.server.address}/"}, data_dir=folder / "data", embedder="none"
    )
    async with house(settings, folder / "house") as opened:
        yield opened


def paths(tree: list[dict[str, Any]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for node in tree:
        found |= {"/".join(node["path"]): node["documents"]} | paths(node["children"])
    return found


async def test_the_tree_of_the_other_service_is_returned(built: House, elsewhere: Elsewhere) -> None:
    everyone = await built.client("all", None)
    sent = await everyone.get("/api/taxonomy/tree/5.2.0")
    assert sent.status_code == 200 and sent.json()["version"] == "5.2.0"
    assert paths(sent.json()["tree"]) == {
        **{"ai": 9, "ai/ML": 4, "ai/ML/Hidden below": 3, "ai/MLOps": 5},
        **{"HR": 1, "HR/Salary": 8, "R&D": 0, "R&D/ML": 2, "학사": 0},
    }
    asked = elsewhere.server.requests[-1]
    assert asked.path == "/api/taxonomy/tree/5.2.0"
    assert not {"authorization", "x-api-key", "cookie"} & asked.headers.keys()
    assert (await everyone.get("/api/taxonomy/tree/newest")).status_code == 422
    own = (await everyone.get("/taxonomy/active/tree")).json()
    assert paths(own["tree"])["AI/ML"] == 2  # dtrag's own tree is where it was


async def test_a_caller_with_a_scope_gets_its_branches_only(built: House, elsewhere: Elsewhere) -> None:
    ml = await built.client("ml", ["AI/ML"])
    sent = await ml.get("/api/taxonomy/tree/active")
    # "Hidden below" is in no branch that dtrag knows, and a category of the same name elsewhere is another one.
    assert paths(sent.json()["tree"]) == {"AI": 0, "AI/ML": 4}
    for hidden in ("Salary", "MLOps", "R&D", "Hidden", "5.2.0", 'node_id":7', 'node_id":8'):
        assert hidden not in sent.text
    version = sent.json()["version"]
    assert (await ml.get(f"/api/taxonomy/tree/{quote(version)}")).json() == sent.json()
    assert {asked.path for asked in elsewhere.server.requests[-2:]} == {"/api/taxonomy/tree/active"}
    asked_before = len(elsewhere.server.requests)
    assert (await ml.get("/api/taxonomy/tree/5.2.0")).status_code == 404
    assert len(elsewhere.server.requests) == asked_before


async def test_a_late_service_is_a_502_after_a_second(built: House, elsewhere: Elsewhere) -> None:
    everyone = await built.client("all", None)
    async with elsewhere.answering(answer(), wait=20):
        started = time.monotonic()
        late = await everyone.get("/api/taxonomy/tree/active")
        assert SECONDS <= time.monotonic() - started < 3 * SECONDS
    assert (late.status_code, late.json()["type"]) == (502, "TaxonomyServiceFailed")
    assert "it took longer than 1 s" in late.json()["detail"]


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (answer(500), "it answered 500"),
        (answer(401), "it answered 401"),
        (answer(body=b"<html>", content_type="text/html"), "of the type 'text/html'"),
        (answer(body=b"{tree"), "not JSON"),
        (answer(body=b"[" * 100_000), "not JSON"),
        (answer(body=b"[]"), "no list `tree`"),
        (answer(body=b'{"version": "1.0.0", "tree": [{"name": "\\ud800"}]}'), "`name`"),
        (b"nonsense\r\n\r\n", "not valid HTTP"),
        (b"", "not valid HTTP"),
    ],
)
async def test_what_is_not_a_tree_is_a_502_for_every_caller(
    built: House, elsewhere: Elsewhere, sent: bytes, reason: str
) -> None:
    async with elsewhere.answering(sent):
        for client in (await built.client("all", None), await built.client("ml", ["AI/ML"])):
            failed = await client.get("/api/taxonomy/tree/active")
            assert failed.status_code == 502 and reason in failed.json()["detail"]
            assert str(elsewhere.server.port) not in failed.text


async def test_a_version_that_the_other_service_does_not_have_is_a_404(built: House, elsewhere: Elsewhere) -> None:
    async with elsewhere.answering(answer(404)):
        missing = await (await built.client("all", None)).get("/api/taxonomy/tree/9.9.9")
    assert missing.status_code == 404 and "has none of this version" in missing.json()["detail"]


async def test_an_unreachable_service_is_a_502(settings: Settings) -> None:
    async with web_server(always(b"")) as server:
        address = server.address
    gone = TaxonomyService.of(replace(settings, taxonomy_base=address))
    assert gone is not None
    with pytest.raises(Exception, match="it does not accept connections") as caught:
        await gone.tree("active")
    assert getattr(caught.value, "http_status", None) == 502


@pytest.mark.parametrize(
    "base", ["api:8000", "ftp://api", "http://", "http://me:secret@api", "http://api/?a=b", "https:"]
)
def test_an_address_that_is_none_is_refused_at_the_start(settings: Settings, base: str) -> None:
    with pytest.raises(InvalidInput, match="TAXONOMY_BASE must be") as caught:
        TaxonomyService.of(replace(settings, taxonomy_base=base))
    assert "secret" not in str(caught.value)


def test_trees_beyond_the_limits_are_refused() -> None:
    deep: dict[str, Any] = {"name": "deep"}
    for _ in range(8):
        deep = {"name": "deep", "children": [deep]}
    wide = [{"name": f"n{number}"} for number in range(MOST_NODES + 1)]
    refused: list[list[Any]] = [
        [deep],
        wide,
        [{"name": "a", "documents": -1}],
        [{"name": "a", "children": None}],
        ["a"],
        [{}],
    ]
    for tree in refused:
        with pytest.raises(InvalidInput, match="its "):
            read_sent_tree(json.dumps({"version": "1.0.0", "tree": tree}).encode())
