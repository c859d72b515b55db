"""Keys that read as users of a source: what its rights hide is in no response to the others, whatever they request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from dtrag.core.source_rights import Rights, RightsEntry, everyone, shown
from tests.api.confined import House, house
from tests.shelf import SITE, USERS, Shelf
from tests.store import Databases

ANN, BO = USERS[:2]
CANARY = "quokka"
BRANCH = "Shared drive"
QUESTION = f"How often is the {CANARY} looked after?"
OTHERS = ("bo", "stranger", "whole tree", "branch admin")
REQUESTS: tuple[tuple[str, str, Any], ...] = (
    ("GET", "/documents", None),
    ("GET", f"/documents?q={CANARY}", None),
    ("GET", f"/documents?category={BRANCH}", None),
    ("GET", "/overview", None),
    ("GET", "/taxonomy/active/tree", None),
    ("GET", "/api/taxonomy/tree/active", None),
    ("GET", "/review", None),
    ("GET", "/traces", None),
    ("GET", "/cbr/cases", None),
    ("GET", "/cbr/logs", None),
    ("GET", "/cbr/stats", None),
    ("GET", "/regulations", None),
    ("GET", "/conversations", None),
    *(("POST", "/search", {"query": CANARY, "mode": mode}) for mode in ("hybrid", "lexical", "strict", "vector")),
    ("POST", "/search", {"query": CANARY, "filters": {"taxonomy_paths": [[BRANCH]]}}),
    ("POST", "/chat/run", {"message": QUESTION}),
    ("POST", "/v1/chat/completions", {"model": "dtrag", "messages": [{"role": "user", "content": QUESTION}]}),
    ("POST", "/v1/responses", {"model": "dtrag", "input": QUESTION}),
    ("POST", "/cbr/suggest", {"query": QUESTION}),
    ("POST", "/classify", {"text": f"The {CANARY} is looked after."}),
    (
        "POST",
        "/retrieval",
        {"knowledge_id": "all", "query": CANARY, "retrieval_setting": {"top_k": 5, "score_threshold": 0.0}},
    ),
)
DESK = {"override_settings": {"features": {"hitl_below_conf": 0.9}}}
HIDDEN = "every other Thursday"
"""Words of the document that only ann reads, and that no request contains."""


@pytest.fixture(autouse=True)
def cases_are_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CBR_ENABLED", "true")


@pytest_asyncio.fixture(scope="module")
async def built(houses_of_module: Databases) -> AsyncIterator[House]:
    files = {
        "secret.md": f"# Of the {CANARY}\n\nThe {CANARY} is looked after {HIDDEN} by the keeper.\n",
        "open.md": "# Of the garden\n\nThe garden is looked after on Monday.\n",
    }
    rights = {"secret.md": Rights.of([[RightsEntry(ANN, True)]]), "open.md": Rights.of([[RightsEntry(BO, True)]])}
    shelf = Shelf(files, rights, {everyone(SITE): set(USERS)})
    async with house(houses_of_module.settings(review_below=1.0)) as running:
        await running.client("owner", None, "admin")
        await running.app.sync(shelf, BRANCH)
        await running.client("ann", [BRANCH], "admin", [shown(ANN)])
        await running.client("bo", [BRANCH], "admin", [shown(BO)])
        await running.client("stranger", [BRANCH], "editor")
        await running.client("whole tree", None, "editor")
        await running.client("branch admin", [BRANCH], "admin")
        yield running


async def response(built: House, name: str, method: str, path: str, body: Any) -> str:
    got = await built.clients[name].request(method, path, json=body)
    assert got.status_code == 200 or name != "ann", got.text
    return got.text


async def test_what_is_hidden_is_in_no_response_to_others(built: House) -> None:
    for _ in range(2):  # the second time after everything that ann's requests have left behind
        seen = [request for request in REQUESTS if HIDDEN in await response(built, "ann", *request)]
        assert len(seen) >= 8, seen
        for name in OTHERS:
            for request in REQUESTS:
                assert HIDDEN not in await response(built, name, *request), (name, request)


async def test_questions_of_a_user_are_reviewed_by_administrators_of_the_whole_tree(built: House) -> None:
    """Also one that cites nothing: its words show what there is to be asked."""
    for path, body in (("/chat/run", "message"), ("/ask", "question")):
        await response(built, "ann", "POST", path, {body: "Who feeds the zebrafish of the dean?"})
    agent = await built.app.agents.create("1.0.0", [[BRANCH]], DESK, name="Desk")
    await response(
        built, "ann", "POST", f"/agents/{agent.agent_id}/ask", {"question": "Who feeds the axolotl of the dean?"}
    )
    shown_to_owner = await response(built, "owner", "GET", "/review", None)
    assert "zebrafish" in shown_to_owner and "axolotl" in shown_to_owner
    for name in OTHERS:
        seen = await response(built, name, "GET", "/review", None)
        assert "zebrafish" not in seen and "axolotl" not in seen, name


async def test_trees_and_documents_have_no_hidden_categories(built: House) -> None:
    documents = (await built.clients["owner"].get("/documents")).json()["documents"]
    secret = next(each for each in documents if "secret" in each["source_url"])
    names = {name: await response(built, name, "GET", "/taxonomy/active/tree", None) for name in (*OTHERS, "ann")}
    category = secret["taxonomy_path"][-1]
    assert category in names["ann"]
    for name in OTHERS:
        assert category not in names[name], name
        for part in ("", "/text", "/passages"):
            got = await built.clients[name].get(f"/documents/{secret['document_id']}{part}")
            assert got.status_code == 404, (name, part)
        deleted = await built.clients[name].delete(f"/documents/{secret['document_id']}")
        assert deleted.status_code == 404, name
    assert (await built.clients["ann"].get(f"/documents/{secret['document_id']}/text")).status_code == 200


@pytest.mark.parametrize("name", OTHERS)
async def test_nothing_is_written_over_a_hidden_document(built: House, name: str) -> None:
    upload = {"files": ("x.md", b"# Other\n\nText.\n")}
    got = await built.clients[name].post("/documents", files=upload, data={"category": BRANCH})
    assert got.status_code in (400, 403, 422), got.text
