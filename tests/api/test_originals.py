"""Pages of originals over HTTP: which caller sees them, and what is said to the others."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2
import pytest
import pytest_asyncio

from tests.api.confined import House, house
from tests.api.shape import FORM, assert_failure, form
from tests.pdf_writer import Placed, write_pdf
from tests.store import Databases

PDF = write_pdf([[Placed(60, 780, "The kettle of the dormitory boils at noon.")], [Placed(60, 780, "It is emptied.")]])


@pytest_asyncio.fixture(scope="module")
async def built(houses_of_module: Databases) -> AsyncIterator[House]:
    settings = houses_of_module.settings(keep_originals="on", public="AI/ML")
    async with house(settings) as running:
        await running.client("admin", None, "admin")
        await running.client("branch-admin", ["AI"], "admin")
        await running.client("reader", ["AI/ML"], "reader")
        for name, branch in (("viewer", "AI/ML"), ("elsewhere", "HR")):
            await running.client(name, [branch], "reader", originals=True)
        yield running


@pytest_asyncio.fixture(scope="module")
async def document(built: House) -> str:
    """The id of a document in AI/ML with an original."""
    sent = form(("files", b"kettle.pdf", PDF), ("category", None, b"AI/ML"))
    response = await built.clients["admin"].post("/documents", content=sent, headers=FORM)
    return str(response.json()["documents"][0]["document_id"])


async def test_the_page_and_the_places_of_a_text(built: House, document: str) -> None:
    viewer = built.clients["viewer"]
    text = (await viewer.get(f"/documents/{document}/text")).json()
    assert text["original"] is True
    start = text["text"].index("dormitory")
    shown = (await viewer.get(f"/documents/{document}/pages", params={"start": start, "end": start + 20})).json()
    assert (shown["document_id"], shown["pages"]) == (document, 2)
    [marked] = shown["marked"]
    [(left, top, right, bottom)] = marked["boxes"]
    assert marked["page"] == 1
    assert 0 < left < right < 1
    assert 0 < top < bottom < 0.1
    response = await viewer.get(f"/documents/{document}/pages/2")
    assert response.content.startswith(b"\x89PNG")
    assert response.headers["content-type"] == "image/png"
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert_failure(await viewer.get(f"/documents/{document}/pages/3"), 422)
    assert_failure(await viewer.get(f"/documents/{document}/pages/0"), 422)
    assert_failure(await viewer.get(f"/documents/{document}/pages?end=20001"), 422)
    about = {"actor": "viewer", "subject": document}
    lines = (await built.clients["admin"].get("/audit", params=about)).json()["lines"]
    actions = [line["action"] for line in lines if line["decision"] == "allowed"]
    assert {f"GET /documents/{{document_id}}/{part}" for part in ("text", "pages", "pages/{page}")} == set(actions)


@pytest.mark.parametrize(
    ("who", "status"), [("admin", 200), ("branch-admin", 403), ("reader", 403), ("viewer", 200), ("elsewhere", 404)]
)
async def test_who_sees_it(built: House, document: str, who: str, status: int) -> None:
    client = built.clients[who]
    for path in ("pages", "pages/1"):
        response = await client.get(f"/documents/{document}/{path}")
        if status == 200:
            assert response.status_code == 200
            continue
        body = assert_failure(response, status)
        unknown = assert_failure(await client.get(f"/documents/{'0' * 8}{document[8:]}/{path}"), status)
        assert body["detail"].replace(document, "") == unknown["detail"].replace(f"{'0' * 8}{document[8:]}", "")
        if status == 403:
            assert body["detail"].endswith("dtrag keys create --originals")
    text = await client.get(f"/documents/{document}/text")
    assert text.status_code == (404 if status == 404 else 200)
    if text.status_code == 200:
        assert text.json()["original"] is (status == 200)


async def test_nobody_without_a_key_sees_it(built: House, document: str) -> None:
    transport = httpx2.ASGITransport(app=built.api)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:8001") as client:
        text = (await client.get(f"/documents/{document}/text")).json()
        assert text["original"] is False
        for path in ("pages", "pages/1"):
            assert_failure(await client.get(f"/documents/{document}/{path}"), 401)


async def test_a_key_has_the_right_only_when_it_was_made_with_it(built: House) -> None:
    admin = built.clients["admin"]
    for body, may in (({"name": "sees"} | {"originals": True}, True), ({"name": "reads"}, False)):
        made = await admin.post("/keys", json=body)
        assert (made.status_code, made.json()["originals"]) == (201, may)
    listed = {key["name"]: key["originals"] for key in (await admin.get("/keys")).json()["keys"]}
    assert (listed["sees"], listed["reads"]) == (True, False)
    agent = (await admin.post("/agents/from-category", json={"version": "1.0.0", "node_paths": [["AI", "ML"]]})).json()
    public = {"name": "site", "role": "public", "agent_id": agent["agent_id"], "originals": True}
    assert "public key cannot see" in assert_failure(await admin.post("/keys", json=public), 422)["detail"]
    created = [line["details"] for line in await built.audited() if line["action"] == "keys.create"]
    assert [details["originals"] for details in created if details["name"] in {"sees", "reads"}] == [True, False]
