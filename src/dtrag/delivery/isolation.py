"""The proof of isolation put together: an index with canaries, callers with keys, and the service without a socket."""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.types import Message, Scope

from dtrag.app import App, open_app, open_throwaway
from dtrag.core.confinement import OWNER
from dtrag.core.taxonomy import UNCLASSIFIED, CategoryPath
from dtrag.delivery.api.service import create_app
from dtrag.errors import InvalidInput
from dtrag.evaluation.canaries import TOKEN, Garden, Hidden, Identity, WordHashes, identities, library, tree
from dtrag.evaluation.isolation import Call, Proof, tried
from dtrag.settings import Settings

IDENTITIES = 24
LIVE_DOCUMENTS = 20_000
"""Documents of a live index that are looked for: the newest."""
PAGE = 1_000
RATE = 1_000_000
"""Requests a minute of the callers: the limit is not what is tried here."""
_CHANGING = re.compile(r'"(request_id|correlation_id)": ?"[^"]*"|"[a-z0-9_]*(time|latency)[a-z_]*": ?[0-9.e-]+')

Told = Callable[[int, int | None, str], None]


async def prove(
    settings: Settings,
    *,
    requests: int = 10_000,
    documents: int = 20_000,
    nodes: int = 200,
    live: bool = False,
    seed: int = 1,
    on_progress: Told = lambda done, total, words: None,
) -> Proof:
    """Try to see what must not be seen, in a throw-away index or, reading only, in the live one."""
    if live:
        async with open_app(settings) as app:
            garden = await grown(app, LIVE_DOCUMENTS)
            callers = identities(garden.taxonomy, _branches(garden), IDENTITIES, seed)
            return await tried(app, garden, callers, requests, seed=seed, on_progress=on_progress)
    async with open_throwaway(replace(settings, classify="off", reranker="none"), WordHashes()) as app:
        paths, texts = await planted(app, documents, nodes, seed, on_progress)
        garden = await grown(app, documents, texts)
        callers = identities(garden.taxonomy, paths, IDENTITIES, seed)
        call = await service_call(app, callers)
        return await tried(app, garden, callers, requests, seed=seed, call=call, on_progress=on_progress)


async def planted(
    app: App, documents: int, nodes: int, seed: int, on_progress: Told = lambda done, total, words: None
) -> tuple[list[tuple[str, ...]], dict[str, str]]:
    """Write a library with canaries into the app's index; returns the paths of its branches, and its texts by id."""
    chance = random.Random(seed)  # nosec B311  # noqa: S311 - no secret: the same number makes the same library
    paths = tree(nodes, chance)
    with tempfile.TemporaryDirectory(prefix="dtrag-canaries-") as folder:
        file = Path(folder) / "library.jsonl"
        lines = list(library(paths, documents, chance))
        file.write_text("\n".join(lines) + "\n", "utf-8")
        report = await app.ingest(
            [file], None, lambda now: on_progress(0, None, f"{now.documents:,}/{documents:,} documents planted")
        )
    if report.failed:
        raise InvalidInput(f"The library with canaries could not be read: {report.failed[0][1]}")
    return paths, {row["id"]: row["text"] for row in map(json.loads, lines)}


async def grown(app: App, most: int, texts: Mapping[str, str] | None = None) -> Garden:
    """What is in the index: every document with its branch, and words of it to ask for.

    `texts` are those of the documents by the ids in their metadata; without them titles stand for the texts.
    """
    taxonomy = (await app.index.snapshot()).taxonomy
    hidden: list[Hidden] = []
    while len(hidden) < most:
        page = await app.documents(min(PAGE, most - len(hidden)), len(hidden), scope=OWNER)
        for found in page:
            path = found.taxonomy_path
            node = taxonomy.find(CategoryPath.parse(path)) if path else None
            text = (texts or {}).get(str(found.metadata.get("id")), found.title)
            author = str(found.metadata.get("author", ""))
            words = (
                tuple(dict.fromkeys(TOKEN.findall(f"{text} {found.title} {author}")))
                or tuple(text.split()[:5])
                or ("nothing",)
            )
            hidden.append(
                Hidden(found.document_id, UNCLASSIFIED if node is None else node, found.title, text, author, words)
            )
        if len(page) < PAGE:
            break
    if not hidden:
        raise InvalidInput("There are no documents to try it on. Leave --live out, or read some with: dtrag ingest")
    return Garden(taxonomy, hidden)


def _branches(garden: Garden) -> list[tuple[str, ...]]:
    """The branches of a live tree that hold documents."""
    paths = sorted({garden.taxonomy.path(found.node_id) for found in garden.hidden} - {()})
    if len(paths) < 2:
        raise InvalidInput(
            "The documents hang in fewer than two branches: there is nothing to keep apart. Leave --live out."
        )
    return paths


async def service_call(app: App, callers: list[Identity]) -> Call:
    """A way to send requests through the whole service, each caller with a key of its own."""
    api = create_app(app.settings)
    api.state.service.opened = app
    secrets = {}
    for caller in callers:
        created = await app.keys.create(caller.name, [path.names for path in caller.paths], "editor", rate=RATE)
        secrets[caller.name] = created.secret

    async def call(identity: Identity, method: str, path: str, body: dict[str, Any] | None) -> tuple[int, str]:
        status, text = await request(api, method, path, body, secrets[identity.name])
        return status, _CHANGING.sub("", text)

    return call


async def request(api: FastAPI, method: str, path: str, body: dict[str, Any] | None, secret: str) -> tuple[int, str]:
    """Send one request into the ASGI application; returns status and body."""
    sent = b"" if body is None else json.dumps(body).encode()
    name, _, query = path.partition("?")
    headers = {"host": "localhost", "authorization": f"Bearer {secret}", "content-type": "application/json"}
    headers["content-length"] = str(len(sent))
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": name,
        "raw_path": name.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [
            (key.encode(), value.encode()) for key, value in {**headers, "content-length": str(len(sent))}.items()
        ],
        "client": ("127.0.0.1", 1),
        "server": ("localhost", 80),
    }
    status, parts = 0, []

    async def receive() -> Message:
        return {"type": "http.request", "body": sent, "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        else:
            parts.append(message.get("body", b""))

    await api(scope, receive, send)
    return status, b"".join(parts).decode("utf-8", "replace")
