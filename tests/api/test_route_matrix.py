"""Every route × everybody who may call it × own, foreign and unknown objects.

`ROUTES` describes every route of the service. A new one fails `test_every_route_is_described` until it is in there.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import httpx2
import pytest
import pytest_asyncio
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from dtrag.adapters.postgres.stores.review import PostgresReview
from dtrag.core.access.api_key import Need, new_secret
from dtrag.core.taxonomy.review import ReviewItem
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.delivery.api.app import create_app
from dtrag.delivery.api.authentication import SHORT
from dtrag.delivery.api.permissions import OPEN, Needs
from dtrag.settings import Settings, set_feature_flag
from tests.api.confined import House, house
from tests.api.shape import FORM, assert_failure, form
from tests.cases import each
from tests.store import Databases

Kind = Literal["document", "agent", "item", "case"]
Address = tuple[str, str]

MINE, THEIRS = ["AI", "ML"], ["HR", "Salary"]


@dataclass(frozen=True)
class Described:
    """What a route needs, which kind of object its address names, and what to send.

    `own` is the status for somebody who may: 404 is asked for a version of the tree that there is not, and
    422 for a provision without a reference.
    """

    need: Need
    about: Kind | None = None
    sent: Any = None
    own: int = 200
    whole_tree: bool = False


AGENT = {"version": "1.0.0", "node_paths": [MINE]}
COMPLETION = {"model": "dtrag", "messages": [{"role": "user", "content": "What does machine learning find?"}]}
RETRIEVAL = {"knowledge_id": "all", "query": "machine", "retrieval_setting": {"top_k": 3, "score_threshold": 0.0}}
TOOL = {"name": "ask", "arguments": {"question": "What does machine learning find?"}}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": TOOL}
UPLOAD = form(("files", b"matrix.md", b"# Matrix\n\nA machine is learning."), ("category", None, b"AI/ML"))
CASE = {"query": "What does machine learning find?", "category_path": MINE, "content": "See the book of trees."}
VOTE = {"log_id": "nobodys", "case_id": "none", "feedback": "ignored"}
EVALUATION = {"dataset": "books", "questions": [{"text": "What is a tree?", "answerable": False}]}
LEXICON = {"entries": [{"spoken": ["긱사 밥"], "official": ["식당운영"]}]}
ROUTES: dict[Address, Described] = {
    ("GET", "/session"): Described("browse"),
    ("DELETE", "/session"): Described("read", own=204),
    ("POST", "/search"): Described("browse", sent={"query": "machine"}),
    ("POST", "/search/batch"): Described("read", sent={"searches": [{"query": "machine"}]}),
    ("POST", "/search/neural"): Described("read", sent={"query": "machine"}, own=503),
    ("POST", "/ask"): Described("browse", sent={"question": "What does machine learning find?"}),
    ("POST", "/chat/run"): Described("browse", sent={"message": "What does machine learning find?"}),
    ("POST", "/chat/stream"): Described("browse", sent={"message": "What does machine learning find?"}),
    ("POST", "/chat/feedback"): Described("read", sent={"trace_id": str(uuid.UUID(int=7)), "thumbs": "up"}, own=404),
    ("GET", "/v1/models"): Described("browse"),
    ("GET", "/v1/models/{model:path}"): Described("browse", own=404),
    ("POST", "/v1/chat/completions"): Described("browse", sent=COMPLETION),
    ("POST", "/v1/responses"): Described(
        "browse", sent={"model": "dtrag", "input": "What does machine learning find?"}
    ),
    ("POST", "/v1/embeddings"): Described("read", sent={"model": "dtrag", "input": "machine"}, own=404),
    ("POST", "/retrieval"): Described("browse", sent=RETRIEVAL),
    ("POST", "/mcp"): Described("browse", sent=CALL),
    ("POST", "/mcp/agents/{agent_id}"): Described("ask", "agent", CALL),
    ("GET", "/documents"): Described("browse"),
    ("GET", "/overview"): Described("browse"),
    ("POST", "/documents"): Described("write", sent=UPLOAD, own=201),
    ("GET", "/documents/{document_id}/text"): Described("browse", "document"),
    ("GET", "/documents/{document_id}/passages"): Described("browse", "document"),
    ("GET", "/documents/{document_id}/who"): Described("admin", "document", whole_tree=True),
    ("GET", "/documents/{document_id:path}"): Described("browse", "document"),
    ("DELETE", "/documents/{document_id:path}"): Described("write", "document", own=204),
    # What is a caller's own is tried in test_jobs.py; here about one that there is not.
    ("GET", "/jobs"): Described("read"),
    ("GET", "/jobs/{job_id}"): Described("read", own=404),
    ("POST", "/jobs/{job_id}/cancel"): Described("write", own=404),
    ("POST", "/backups"): Described("admin", own=422, whole_tree=True),
    ("POST", "/sources/sync"): Described("admin", own=422, whole_tree=True, sent={}),
    ("POST", "/jobs/{job_id}/retry"): Described("write", own=404),
    ("GET", "/regulations"): Described("browse"),
    ("GET", "/regulations/show"): Described("browse", own=422),
    ("GET", "/regulations/outline"): Described("browse", own=422),
    ("GET", "/regulations/text"): Described("browse", own=422),
    ("GET", "/regulations/citations"): Described("browse"),
    ("GET", "/regulations/diff"): Described("browse", own=422),
    ("GET", "/regulations/stale"): Described("browse"),
    ("POST", "/regulations/search"): Described("browse", sent={"query": "휴학 기간"}),
    ("POST", "/regulations/verify"): Described("browse", sent={"text": "학칙 제21조"}),
    ("GET", "/agents"): Described("browse"),
    ("POST", "/agents/from-category"): Described("write", sent=AGENT),
    ("GET", "/agents/{agent_id}"): Described("read", "agent"),
    ("PUT", "/agents/{agent_id}"): Described("write", "agent", AGENT),
    ("DELETE", "/agents/{agent_id}"): Described("write", "agent", own=204),
    ("GET", "/agents/{agent_id}/manifest"): Described("read", "agent"),
    ("GET", "/agents/{agent_id}/editions"): Described("read", "agent"),
    ("GET", "/agents/{agent_id}/spending"): Described("read", "agent"),
    ("GET", "/agents/{agent_id}/reach"): Described("read", "agent"),
    ("POST", "/agents/reach"): Described("read", sent={"node_paths": [MINE]}),
    ("POST", "/agents/{agent_id}/search"): Described("read", "agent", {"query": "machine"}),
    ("POST", "/agents/{agent_id}/ask"): Described("ask", "agent", {"question": "What is machine learning?"}),
    ("GET", "/review"): Described("write"),
    ("GET", "/review/{item_id}"): Described("write", "item"),
    ("POST", "/review/{item_id}/approve"): Described("write", "item", {}),
    ("POST", "/review/{item_id}/correct"): Described("write", "item", {"path": MINE}),
    ("POST", "/review/{item_id}/skip"): Described("write", "item", {}),
    ("POST", "/cbr/suggest"): Described("read", sent={"query": "machine"}),
    ("POST", "/cbr/feedback"): Described("read", sent=VOTE, own=404),
    ("POST", "/cbr/case"): Described("write", sent=CASE),
    ("GET", "/cbr/cases"): Described("read"),
    ("GET", "/cbr/cases/{case_id}"): Described("read", "case"),
    ("PUT", "/cbr/cases/{case_id}"): Described("write", "case", {"content": "Changed."}),
    ("PUT", "/cbr/cases/{case_id}/quality"): Described("write", "case", {"quality_score": 0.9}),
    ("DELETE", "/cbr/cases/{case_id}"): Described("write", "case"),
    ("GET", "/cbr/stats"): Described("read"),
    ("GET", "/cbr/logs"): Described("admin"),
    ("GET", "/cbr/export"): Described("admin"),
    ("POST", "/classify"): Described("read", sent={"text": "Machine learning with trees."}),
    ("POST", "/filter/validate"): Described("read", sent=[MINE]),
    ("POST", "/filter/test"): Described("read", sent={"allowed_paths": [MINE], "test_documents": []}),
    ("GET", "/metrics/filter"): Described("admin", whole_tree=True),
    ("GET", "/taxonomy"): Described("read", whole_tree=True),
    ("POST", "/taxonomy"): Described("admin", sent={"operations": []}, own=422, whole_tree=True),
    ("GET", "/taxonomy/{version}/tree"): Described("browse"),
    ("GET", "/api/taxonomy/tree/{version}"): Described("read"),
    ("GET", "/taxonomy/{version}/diff/{base}"): Described("read", whole_tree=True),
    ("GET", "/taxonomy/{version}/preview"): Described("admin", own=404, whole_tree=True),
    ("POST", "/taxonomy/{version}/activate"): Described("admin", sent={}, own=404, whole_tree=True),
    ("POST", "/taxonomy/{version}/rollback"): Described("admin", sent={}, own=404, whole_tree=True),
    ("GET", "/lexicon"): Described("admin", whole_tree=True),
    ("POST", "/lexicon"): Described("admin", sent=LEXICON, own=201, whole_tree=True),
    ("DELETE", "/lexicon/{number}"): Described("admin", own=404, whole_tree=True),
    # What is a caller's own is tried in test_conversations.py and test_traces.py; here about one that there is not.
    ("GET", "/conversations"): Described("read"),
    ("GET", "/conversations/{conversation_id}"): Described("read", own=404),
    ("PUT", "/conversations/{conversation_id}"): Described("read", sent={"title": "Leave"}, own=404),
    ("DELETE", "/conversations/{conversation_id}"): Described("read", own=404),
    ("GET", "/evaluations"): Described("admin", whole_tree=True),
    ("POST", "/evaluations"): Described("admin", sent=EVALUATION, own=202, whole_tree=True),
    ("GET", "/evaluations/{run_id}"): Described("admin", own=404, whole_tree=True),
    ("GET", "/traces"): Described("read"),
    ("GET", "/traces/{trace_id}"): Described("read", own=404),
    ("POST", "/traces/{trace_id}/replay"): Described("read", sent={}, own=404),
    ("POST", "/traces/{trace_id}/bundle"): Described("read", sent={}, own=404),
    ("GET", "/tools"): Described("read"),
    ("POST", "/tools/{name}/approve"): Described("admin", sent={"fingerprint": "0" * 64}, own=404, whole_tree=True),
    ("DELETE", "/tools/{name}/approve"): Described("admin", own=404, whole_tree=True),
    ("GET", "/audit"): Described("admin", whole_tree=True),
    ("GET", "/audit/verify"): Described("admin", whole_tree=True),
    ("GET", "/isolation"): Described("admin", whole_tree=True),
    ("POST", "/isolation"): Described("admin", sent={"requests": 1}, own=422, whole_tree=True),
    ("GET", "/keys"): Described("admin", whole_tree=True),
    ("POST", "/keys"): Described("admin", sent={"name": "", "role": "reader"}, own=422, whole_tree=True),
    ("DELETE", "/keys/{name:path}"): Described("admin", own=404, whole_tree=True),
    ("GET", "/settings"): Described("admin", whole_tree=True),
    ("PUT", "/settings/{name}"): Described("admin", sent={"value": "eager"}, own=404, whole_tree=True),
    ("DELETE", "/settings/{name}"): Described("admin", own=404, whole_tree=True),
    ("GET", "/statements/{language}"): Described("browse"),
    ("GET", "/metrics"): Described("read", whole_tree=True),
    ("GET", "/docs"): Described("read"),
    ("GET", "/openapi.json"): Described("read"),
}
MAY: dict[str, set[Need]] = {
    "reader": {"ask", "browse", "read"},
    "editor": {"ask", "browse", "read", "write"},
    "admin": {"ask", "browse", "read", "write", "admin"},
}


def routes_of(api: FastAPI) -> dict[Address, list[Needs]]:
    """Method and path of every route, with the needs that it declares."""
    found: dict[Address, list[Needs]] = {}
    for route in iter_route_contexts(api.routes):
        needs = [d.dependency for d in getattr(route, "dependencies", []) if isinstance(d.dependency, Needs)]
        for method in getattr(route, "methods", None) or {"(any)"}:
            found[method, str(getattr(route, "path", route))] = needs
    return found


def test_every_route_is_described() -> None:
    found = routes_of(create_app(Settings.load(environ={}, embedder="none")))
    without_key = OPEN | {("GET", path) for path in SHORT}
    keyed = {address: needs for address, needs in found.items() if address not in without_key}
    assert set(found) - set(keyed) == without_key
    assert set(keyed) == set(ROUTES), "describe new routes in ROUTES, with what they need"
    declared = {address: [(need.need, need.whole_tree) for need in needs] for address, needs in keyed.items()}
    assert declared == {address: [(about.need, about.whole_tree)] for address, about in ROUTES.items()}


@pytest.fixture(scope="module", autouse=True)
def enabled() -> Iterator[None]:
    """The case memory is enabled."""
    set_feature_flag("cbr_enabled", True)
    yield
    set_feature_flag("cbr_enabled", None)


@pytest_asyncio.fixture(scope="module")
async def built(houses_of_module: Databases) -> AsyncIterator[House]:
    async with house(houses_of_module.settings()) as running:
        await running.client("admin", None, "admin")
        await running.client("reader", ["AI/ML"], "reader")
        await running.client("editor", ["AI/ML"], "editor")
        await running.client("other", ["HR"], "editor")
        yield running


@pytest.fixture(scope="module")
def lasting() -> dict[tuple[Kind, str], str]:
    """Ids of the objects that no request of the tests changes, by kind and branch."""
    return {}


async def make(built: House, kind: Kind, branch: list[str]) -> str:
    """A new object in the branch; returns its id."""
    admin = built.clients["admin"]
    if kind == "agent":
        made = await admin.post("/agents/from-category", json={**AGENT, "node_paths": [branch]})
        return str(made.json()["agent_id"])
    name = f"{uuid.uuid4().hex}.md".encode()
    if kind == "case":
        made = await admin.post("/cbr/case", json={**CASE, "category_path": branch})
        return str(made.json()["case_id"])
    parts = (("files", name, b"# One\n\nA machine of its own."), ("category", None, "/".join(branch).encode()))
    uploaded = await admin.post("/documents", content=form(*parts), headers=FORM)
    document_id = str(uploaded.json()["documents"][0]["document_id"])
    if kind == "document":
        return document_id
    node = (await built.app.index.snapshot()).taxonomy.find(CategoryPath.parse(branch))
    assert node is not None
    proposal = {"path": branch, "reasons": [], "alternatives": [], "disagreeing": False, "reason_statements": []}
    now = datetime.datetime.now(datetime.UTC)
    item = ReviewItem(
        item_id=uuid.uuid4(),
        kind="classification",
        node_id=node,
        document_id=uuid.UUID(document_id),
        confidence=0.5,
        proposal=proposal,
        created_at=now,
    )
    await PostgresReview(built.app.database).add(item)
    return str(item.item_id)


async def made_once(lasting: dict[tuple[Kind, str], str], built: House, kind: Kind, branch: list[str]) -> str:
    """An object in the branch for requests that leave it as it is."""
    key = kind, "/".join(branch)
    if key not in lasting:
        lasting[key] = await make(built, kind, branch)
    return lasting[key]


async def send(client: httpx2.AsyncClient, address: Address, object_id: str = "") -> httpx2.Response:
    """The described request about the object."""
    method, path = address
    for name in ("{document_id:path}", "{document_id}", "{agent_id}", "{item_id}", "{case_id}"):
        path = path.replace(name, object_id)
    path = (
        path.replace("{conversation_id}", "nobodys")
        .replace("{language}", "ko")
        .replace("{trace_id}", "nobodys")
        .replace("{number}", "999")
        .replace("{name:path}", "nobodys")
    )
    version = "9.9.9" if ROUTES[address].own == 404 else "active"
    path = path.replace("{version}", version).replace("{base}", version)
    sent = ROUTES[address].sent
    if isinstance(sent, bytes):
        return await client.request(method, path, content=sent, headers=FORM)
    return await client.request(method, path, json=sent) if sent is not None else await client.request(method, path)


def same(response: httpx2.Response, object_id: str) -> str:
    """The body, without what names this request and this object."""
    body = response.json()
    body.pop("request_id")
    return str(body).replace(object_id, "ID")


@each("address", ROUTES)
async def test_without_a_valid_key_nothing_is_answered(
    built: House, lasting: dict[tuple[Kind, str], str], address: Address
) -> None:
    now = datetime.datetime.now(datetime.UTC)
    names = {"expired": uuid.uuid4().hex, "revoked": uuid.uuid4().hex}
    expired = await built.app.keys.create(names["expired"], role="admin", expires=now + datetime.timedelta(hours=1))
    revoked = await built.app.keys.create(names["revoked"], role="admin")
    await built.app.keys.revoke(names["revoked"])
    async with built.app.database.connection("owner") as connection:
        await connection.execute("update api_keys set expires_at = now() where name = %s", (names["expired"],))
    about = ROUTES[address].about
    object_id = await made_once(lasting, built, about, MINE) if about else ""
    for secret in (None, new_secret(), expired.secret, revoked.secret):
        # From another address each time: wrong keys are limited by address.
        number = uuid.uuid4().hex
        transport = httpx2.ASGITransport(app=built.api, client=(f"2001:db8:{number[:4]}:{number[4:8]}::1", 1))
        headers = {"x-api-key": secret} if secret else {}
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:8001", headers=headers) as client:
            assert_failure(await send(client, address, object_id), 401)


@each("who", ["reader", "editor", "admin"])
@each("address", ROUTES)
async def test_own_foreign_and_unknown_objects(
    built: House, lasting: dict[tuple[Kind, str], str], address: Address, who: str
) -> None:
    described, client = ROUTES[address], built.clients[who]
    may = described.need in MAY[who] and (who == "admin" or not described.whole_tree)
    if described.about is None:
        response = await send(client, address)
        if may:
            assert response.status_code == described.own, response.text
        else:
            assert_failure(response, 403)
        return
    own, foreign = [await made_once(lasting, built, described.about, branch) for branch in (MINE, THEIRS)]
    unknown = str(uuid.uuid4())
    if may and address[0] != "GET":
        own = await make(built, described.about, MINE)
        foreign = await make(built, described.about, THEIRS) if who == "admin" else foreign
    if not may:
        answers = [await send(client, address, object_id) for object_id in (own, foreign, unknown)]
        assert len({assert_failure(response, 403)["detail"] for response in answers}) == 1
        return
    assert (await send(client, address, own)).status_code == described.own
    missing = await send(client, address, unknown)
    assert_failure(missing, 404)
    theirs = await send(client, address, foreign)
    if who == "admin":
        assert theirs.status_code == described.own
        return
    assert_failure(theirs, 404)
    assert same(theirs, foreign) == same(missing, unknown)
    assert theirs.headers.keys() == missing.headers.keys()
    read: dict[Kind, Address] = {
        "document": ("GET", "/documents/{document_id:path}"),
        "agent": ("GET", "/agents/{agent_id}"),
        "item": ("GET", "/review/{item_id}"),
        "case": ("GET", "/cbr/cases/{case_id}"),
    }
    kept = await send(built.clients["admin"], read[described.about], foreign)
    assert kept.status_code == 200
    if described.about == "item":
        assert kept.json()["status"] == "waiting"


@each("address", [address for address, about in ROUTES.items() if about.about and about.need in MAY["editor"]])
async def test_the_owner_of_another_branch_finds_nothing(
    built: House, lasting: dict[tuple[Kind, str], str], address: Address
) -> None:
    about = ROUTES[address].about
    assert about is not None
    own, unknown = await made_once(lasting, built, about, MINE), str(uuid.uuid4())
    theirs, missing = [await send(built.clients["other"], address, object_id) for object_id in (own, unknown)]
    assert_failure(theirs, 404)
    assert same(theirs, own) == same(missing, unknown)


async def test_the_form_of_ids_makes_no_difference(built: House) -> None:
    for odd in ("x", "%00", "..%2fagents", "1", "a" * 300):
        for address, described in ROUTES.items():
            if described.about and described.need in {"ask", "browse", "read"}:
                assert_failure(await send(built.clients["reader"], address, odd), 404, 405, 422)
