"""`/documents`: files in, found, listed, out again; and what hostile uploads come to."""

from __future__ import annotations

import asyncio
import unicodedata

import httpx2
import pytest

from dtrag.delivery.api.dependencies import Service
from dtrag.delivery.api.routes.uploads import display_name
from tests.api.shape import FORM, assert_failure, file_form, form


async def _search(client: httpx2.AsyncClient, query: str) -> list[str]:
    found = await client.post("/search", json={"query": query, "mode": "lexical"})
    return [result["metadata"]["document_id"] for result in found.json()["results"]]


async def test_round_trip(client: httpx2.AsyncClient, service: Service) -> None:
    sent = file_form(b"quokka.md", b"# Quokkas\n\nThe quokkadium opens at noon.\n")
    response = await client.post("/documents", content=sent, headers=FORM)
    assert response.status_code == 201
    body = response.json()
    assert body["counts"] == {"documents": 1, "chunks": 1, "unchanged": 0, "removed": 0, "failed": 0}
    (entry,) = body["documents"]
    assert entry["file"] == "quokka.md"
    assert not entry["unchanged"]
    key = entry["document_id"]
    assert await _search(client, "quokkadium") == [key]

    document = (await client.get(f"/documents/{key}")).json()
    assert (await client.get(f"/documents/{key}?text=false")).json() == {**document, "text": None}
    assert document["source_url"] == "upload:quokka.md"
    assert "quokkadium" in document["text"]
    assert document["characters"] == len(document["text"])

    again = await client.post("/documents", content=sent, headers=FORM)
    assert again.status_code == 201
    unchanged = {"document_id": key, "file": "quokka.md", "unchanged": True, "placement": None}
    assert again.json()["documents"] == [unchanged]
    assert again.json()["counts"]["unchanged"] == 1

    deleted = await client.delete(f"/documents/{key}")
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert await _search(client, "quokkadium") == []
    assert_failure(await client.get(f"/documents/{key}"), 404)
    assert_failure(await client.delete(f"/documents/{key}"), 404)
    assert list(service.uploads.iterdir()) == []

    back = await client.post("/documents", content=sent, headers=FORM)
    [indexed] = back.json()["documents"]
    assert (indexed["document_id"], indexed["unchanged"]) == (key, False)


async def test_a_list_is_searched_filtered_sorted_and_continued(client: httpx2.AsyncClient) -> None:
    for title, name, sentences in (("Bee", b"bee.md", 2), ("ant", b"ant.md", 1), ("Cicada", b"cicada.md", 3)):
        text = f"# {title}\n\n" + "The insectarium opens. " * sentences
        body = form(("files", name, text.encode()), ("category", None, b"Insects/Small"))
        assert (await client.post("/documents", content=body, headers=FORM)).status_code == 201

    async def titles(**query: str) -> list[str]:
        listed = (await client.get("/documents", params=query)).json()
        assert listed["total"]["documents"] >= len(listed["documents"])
        return [document["title"] for document in listed["documents"]]

    assert await titles(category="Insects", sort="title") == ["ant", "Bee", "Cicada"]
    assert await titles(category="Insects", sort="largest") == ["Cicada", "Bee", "ant"]
    assert await titles(category="Insects", sort="oldest") == ["Bee", "ant", "Cicada"]
    assert await titles(q="CICADA.md") == ["Cicada"]
    assert await titles(category="Insects", q="cicada", type="application/pdf") == []
    assert await titles(category="Insects/None") == []
    first = (await client.get("/documents", params={"category": "Insects", "sort": "title", "limit": "2"})).json()
    assert first["total"]["documents"] == 3
    following = {"category": "Insects", "sort": "title", "limit": "2", "after": first["next"]}
    last = (await client.get("/documents", params=following)).json()
    assert [document["title"] for document in last["documents"]] == ["Cicada"]
    assert last["next"] is None
    for wrong in (
        {"sort": "size"},
        {"after": "title:x:y", "sort": "title"},
        {"type": "text/x"},
        {"q": "x" * 201},
        {"x": "1"},
    ):
        assert_failure(await client.get("/documents", params=wrong), 422)
    assert_failure(await client.get("/documents", params={"after": first["next"], "sort": "newest"}), 422)


async def test_the_same_name_replaces(client: httpx2.AsyncClient) -> None:
    first = await client.post("/documents", content=file_form(b"menu.txt", b"Soup of parsnipolis."), headers=FORM)
    second = await client.post("/documents", content=file_form(b"menu.txt", b"Stew of turniplandia."), headers=FORM)
    assert first.json()["documents"][0]["document_id"] == second.json()["documents"][0]["document_id"]
    assert await _search(client, "parsnipolis") == []
    assert len(await _search(client, "turniplandia")) == 1


async def test_every_document_of_a_file_has_its_id(client: httpx2.AsyncClient) -> None:
    lines = b"".join(b'{"id": "%d", "title": "T%d", "text": "Gadgetoria number %d."}\n' % (n, n, n) for n in range(5))
    sent = file_form(b"gadgets.jsonl", lines)
    first = (await client.post("/documents", content=sent, headers=FORM)).json()
    assert first["counts"]["documents"] == len(first["documents"]) == 5
    again = (await client.post("/documents", content=sent, headers=FORM)).json()
    assert {entry["document_id"] for entry in again["documents"]} == {e["document_id"] for e in first["documents"]}
    assert all(entry["unchanged"] for entry in again["documents"])
    shorter = file_form(b"gadgets.jsonl", lines.split(b"\n", 1)[1])
    assert (await client.post("/documents", content=shorter, headers=FORM)).json()["counts"]["removed"] == 1


async def test_a_bad_file_fails_alone(client: httpx2.AsyncClient, service: Service) -> None:
    body = form(
        ("files", b"broken.pdf", b"%PDF-1.7 and then nothing"),
        ("files", b"good.txt", b"The marzipanic clause."),
        ("files", b"what.xyz", b"?"),
        ("files", b"good.txt", b"Another one."),
    )
    response = await client.post("/documents", content=body, headers=FORM)
    assert response.status_code == 201
    result = response.json()
    assert [entry["file"] for entry in result["documents"]] == ["good.txt"]
    assert sorted(entry["file"] for entry in result["failed"]) == ["broken.pdf", "good.txt", "what.xyz"]
    assert result["counts"]["failed"] == 3
    assert all(entry["reason"] for entry in result["failed"])
    assert str(service.uploads) not in response.text
    assert await _search(client, "marzipanic")
    assert list(service.uploads.iterdir()) == []


async def test_when_every_file_fails(client: httpx2.AsyncClient) -> None:
    one = await client.post("/documents", content=file_form(b"broken.pdf", b"%PDF-1.7 no"), headers=FORM)
    body = assert_failure(one, 422)
    assert body["detail"].startswith("broken.pdf: ")
    assert body["failed"][0]["file"] == "broken.pdf"
    assert body["documents"] == []
    both = form(("files", b"a.xyz", b"1"), ("files", b"b.xyz", b"2"))
    assert (
        "None of the 2 files"
        in assert_failure(await client.post("/documents", content=both, headers=FORM), 422)["detail"]
    )


async def test_category(client: httpx2.AsyncClient) -> None:
    body = form(("category", None, "학사/휴학".encode()), ("files", b"leave.txt", b"Zephyrette leave rules."))
    key = (await client.post("/documents", content=body, headers=FORM)).json()["documents"][0]["document_id"]
    assert (await client.get(f"/documents/{key}")).json()["taxonomy_path"] == ["학사", "휴학"]
    bad = form(("category", None, b"../etc"), ("files", b"leave.txt", b"x"))
    assert "Unsafe" in assert_failure(await client.post("/documents", content=bad, headers=FORM), 422)["detail"]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"../../../../etc/cron.d/x.txt", "x.txt"),
        (b"C:\\..\\x.txt", "x.txt"),
        (b"..\\..\\y.txt", "y.txt"),
        (b"/etc/passwd.txt", "passwd.txt"),
        (b"a\x00.txt", "a.txt"),
        (b"CON.txt", "CON.txt"),
        (b"n" * 5_000 + b".txt", "n" * 251 + ".txt"),
        (b"m" * 1_000 + b".txt", "m" * 251 + ".txt"),
        ("한글 이름.txt".encode(), "한글 이름.txt"),
        (unicodedata.normalize("NFD", "한글 둘.txt").encode(), "한글 둘.txt"),
        (b"<img src=x onerror=alert(1)>.txt", "<img src=x onerror=alert(1)>.txt"),
        (b"bad\xff\xfe.txt", "badÿþ.txt"),
        (b"%s%n{0}$HOME;`id`.txt", "%s%n{0}$HOME;`id`.txt"),
    ],
)
async def test_hostile_file_names_are_only_names(
    client: httpx2.AsyncClient, service: Service, raw: bytes, shown: str
) -> None:
    response = await client.post("/documents", content=file_form(raw, b"Harmless words."), headers=FORM)
    if response.status_code == 400:  # the grammar of forms does not allow it
        assert_failure(response, 400)
        assert b"\x00" in raw or len(raw) > 4_000
        return
    assert response.status_code == 201, response.text
    (entry,) = response.json()["documents"]
    assert entry["file"] == shown
    assert list(service.uploads.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("..", "unnamed"),
        (".", "unnamed"),
        ("", "unnamed"),
        ("a/..", "unnamed"),
        ("\u202egnp.exe", "gnp.exe"),
        ("\ud800x.txt", "x.txt"),
        ("tab\there\r\n.md", "tabhere.md"),
        ("한" * 300 + ".hwpx", "한" * 250 + ".hwpx"),
        ("x." + "y" * 400, "x." + "y" * 253),
        (".bashrc", ".bashrc"),
    ],
)
def test_display_name(given: str, shown: str) -> None:
    assert display_name(given) == shown


async def test_a_client_library_keeps_korean_names(client: httpx2.AsyncClient) -> None:
    files = {"files": ('한글 "둘".txt', b"Quillfeather.", "text/plain")}
    response = await client.post("/documents", files=files)
    assert response.json()["documents"][0]["file"].startswith("한글 ")


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (form(), "no file"),
        (form(("files", b"", b"")), "no file"),
        (form(("files", None, b"text")), "not a file"),
        (form(("file", b"a.txt", b"x")), "'file'"),
        (form(("category", None, b"A")), "no file"),
        (form(("files", b"a.txt", b"x"), ("category", None, b"A"), ("category", None, b"B")), "category"),
        (form(("files", b"a.txt", b"x"), ("category", b"c.txt", b"B")), "category"),
    ],
)
async def test_incomplete_forms(client: httpx2.AsyncClient, content: bytes, word: str) -> None:
    assert word in assert_failure(await client.post("/documents", content=content, headers=FORM), 422)["detail"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no multipart at all",
        form(("files", b"a.txt", b"x"))[:-20],
        form(("files", b"a.txt", b"x"), ("files", b"b.txt", b"half a fi"))[:-20],
        form(*[("files", b"%d.txt" % n, b"x") for n in range(101)]),
        form(*[("category", None, b"x") for _ in range(11)]),
        form(("category", None, b"x" * 70_000), ("files", b"a.txt", b"x")),
        b"--x1f0a9boundary\r\nContent-Disposition: form-data\r\n\r\nx\r\n--x1f0a9boundary--\r\n",
        b"--x1f0a9boundary\r\nContent-Disposition: form-data; name=" + b"h" * 300_000,
    ],
)
async def test_broken_forms(client: httpx2.AsyncClient, service: Service, content: bytes) -> None:
    assert_failure(await client.post("/documents", content=content, headers=FORM), 400, 422)
    assert list(service.uploads.iterdir()) == []


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", "", "application/octet-stream"])
async def test_other_media_types(client: httpx2.AsyncClient, content_type: str) -> None:
    headers = {"content-type": content_type} if content_type else {}
    assert_failure(await client.post("/documents", content=b"{}", headers=headers), 415)


async def test_a_form_without_boundary(client: httpx2.AsyncClient) -> None:
    headers = {"content-type": "multipart/form-data"}
    assert_failure(await client.post("/documents", content=b"x", headers=headers), 400)


async def test_an_upload_above_the_limit(client: httpx2.AsyncClient) -> None:
    big = file_form(b"big.txt", b"x" * (2 << 20))
    assert_failure(await client.post("/documents", content=big, headers=FORM), 413)

    async def streamed() -> object:
        for start in range(0, len(big), 65_536):
            yield big[start : start + 65_536]

    assert_failure(await client.post("/documents", content=streamed(), headers=FORM), 413)  # type: ignore[arg-type]


async def test_uploads_side_by_side(client: httpx2.AsyncClient) -> None:
    async def send(number: int) -> httpx2.Response:
        content = f"Parallelogram {number} of the sidewinder.".encode()
        return await client.post("/documents", content=file_form(b"side%d.txt" % number, content), headers=FORM)

    responses = await asyncio.gather(*(send(number) for number in range(4)), client.get("/livez"))
    assert [response.status_code for response in responses] == [201] * 4 + [200]
    assert len(await _search(client, "sidewinder")) == 4


async def test_pages_of_documents(client: httpx2.AsyncClient) -> None:
    for number in range(3):
        content = f"Page filler {number}.".encode()
        await client.post("/documents", content=file_form(b"page%d.txt" % number, content), headers=FORM)
    everything = (await client.get("/documents", params={"limit": 1000})).json()
    assert everything["total"]["documents"] == len(everything["documents"])
    assert everything["total"]["chunks"] == sum(document["chunks"] for document in everything["documents"])
    assert (everything["limit"], everything["offset"]) == (1000, 0)
    assert "text" not in everything["documents"][0]
    page = (await client.get("/documents", params={"limit": 1, "offset": 1})).json()
    assert page["documents"] == everything["documents"][1:2]
    assert (await client.get("/documents", params={"offset": 1_000_000_000})).json()["documents"] == []


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "offset=-1", "offset=" + "9" * 40, "limit=1.5"])
async def test_bad_pages(client: httpx2.AsyncClient, query: str) -> None:
    assert query.split("=", maxsplit=1)[0] in assert_failure(await client.get(f"/documents?{query}"), 422)["detail"]


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize(
    "key",
    [
        "5e523d0f-cdff-4a8a-91e7-8458951d28e8",
        "x",
        "%00",
        "..%2F..%2Fetc",
        "'%20OR%201=1",
        "%F0%9F%A6%9C",
        "a" * 3_000,
        "%ED%A0%80",
    ],
)
async def test_unknown_ids(client: httpx2.AsyncClient, method: str, key: str) -> None:
    body = assert_failure(await client.request(method, f"/documents/{key}"), 404)
    assert body["type"] == "NotFound"
    assert set(body) == {"detail", "type", "request_id", "detail_statements"}
    assert [each["code"] for each in body["detail_statements"]] == ["error_not_found"]
