"""A quoted table row comes with header and unit through every endpoint, each exactly as in the document."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest_asyncio

from tests.api.shape import FORM, form

TOWNS = ["Arles", "Basel", "Calais", "Dover", "Essen", "Florence", "Ghent", "Hull", "Izmir", "Jena"]
ROWS = [(f"{town} {part}", 60 + number) for number, (town, part) in enumerate((t, p) for p in "NSEW" for t in TOWNS)]
LONG = "with breakfast and city tax, paid against a receipt of the hotel"
DOCUMENT = (
    "<h1>Hotels</h1><p>What is paid for a night in the towns of the list.</p><p>(unit: EUR)</p>"
    "<table><tr><th>Town</th><th>Ceiling</th><th>Condition</th></tr>"
    + "".join(f"<tr><td>{town}</td><td>{rate}</td><td>{LONG}</td></tr>" for town, rate in ROWS)
    + "</table>"
)
QUESTION = "Which ceiling in EUR is paid for a hotel in Jena W?"
ROW = f"Jena W | 99 | {LONG}"
HEADER = "Town | Ceiling | Condition"


@pytest_asyncio.fixture(scope="module", autouse=True)
async def text(client: httpx2.AsyncClient) -> str:
    """The text of the ingested document."""
    body = form(("files", b"hotels.html", DOCUMENT.encode()), ("category", None, b"Travel"))
    stored = (await client.post("/documents", content=body, headers=FORM)).json()["documents"][0]
    document: dict[str, Any] = (await client.get(f"/documents/{stored['document_id']}")).json()
    assert document["chunks"] > 2
    return str(document["text"])


def the_row(citations: list[dict[str, Any]], text: str) -> dict[str, Any]:
    """The citation of the row that answers, after every span was compared with the document."""
    for citation in citations:
        assert text[citation["start"] : citation["end"]] == citation["quote"]
        for part in citation["context"]:
            assert text[part["start"] : part["end"]] == part["text"]
    return next(citation for citation in citations if citation["quote"] == ROW)


def check(citation: dict[str, Any], answer: str) -> None:
    assert citation["display"] == ROW
    assert [(part["kind"], part["text"]) for part in citation["context"]] == [
        ("unit", "(unit: EUR)"),
        ("header", HEADER),
    ]
    lines = answer.split("\n")
    assert lines[:2] == ["(unit: EUR)", HEADER]
    assert f"{ROW} [{citation['number']}]" in lines


async def test_ask(client: httpx2.AsyncClient, text: str) -> None:
    body = (await client.post("/ask", json={"question": QUESTION})).json()
    check(the_row(body["citations"], text), body["text"])


async def test_chat(client: httpx2.AsyncClient, text: str) -> None:
    body = (await client.post("/chat/run", json={"message": QUESTION})).json()
    check(the_row(body["sources"], text), body["answer"])


async def test_the_protocol_of_chat_clients(client: httpx2.AsyncClient, text: str) -> None:
    request = {"model": "dtrag", "messages": [{"role": "user", "content": QUESTION}]}
    message = (await client.post("/v1/chat/completions", json=request)).json()["choices"][0]["message"]
    check(the_row(message["citations"], text), message["content"])
