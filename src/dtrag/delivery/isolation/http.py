"""The proof of isolation put together: twin worlds, and an index with canaries; callers with keys; no socket."""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dtrag.app import App, open_app, open_throwaway
from dtrag.core.access.confinement import OWNER
from dtrag.core.taxonomy.tree import UNCLASSIFIED, CategoryPath
from dtrag.delivery.api.app import create_app
from dtrag.delivery.isolation.asgi_client import send_request
from dtrag.delivery.isolation.twin_worlds import twin_worlds
from dtrag.errors import InvalidInput
from dtrag.evaluation.canaries import TOKEN, Garden, Hidden, Identity, WordHashes, identities, library, tree
from dtrag.evaluation.isolation import Call, Proof, tried
from dtrag.evaluation.twins.run import compare_worlds
from dtrag.evaluation.twins.visits import Comparison
from dtrag.ports import Embedder
from dtrag.settings import Settings

IDENTITIES = 24
LIVE_DOCUMENTS = 20_000
"""Documents of a live index that are looked for: the newest."""
PAGE = 1_000
TWIN_SHARE = 0.6
"""Part of the requests that go to the twin worlds, all of them over HTTP."""
LEAST_TWINS = 1_000
"""Requests to twin worlds below which one pair of worlds, with an embedder of words, is enough."""
RATE = 1_000_000
"""Requests a minute of the callers: the limit is not what is tried here."""
_CHANGING = re.compile(r'"(request_id|correlation_id)": ?"[^"]*"|"[a-z0-9_]*(time|latency)[a-z_]*": ?[0-9.e-]+')

Told = Callable[[int, int | None, str], None]


async def prove(
    settings: Settings,
    *,
    requests: int = 10_000,
    documents: int = 5_000,
    nodes: int = 200,
    live: bool = False,
    seed: int = 1,
    on_progress: Told = lambda done, total, words: None,
) -> Proof:
    """Try to see what must not be seen, in throw-away indexes or, reading only, in the live one.

    At least `requests` are sent; twin worlds are tried on throw-away indexes only.
    """
    if live:
        async with open_app(settings) as app:
            garden = await grown(app, LIVE_DOCUMENTS)
            callers = identities(garden.taxonomy, _branches(garden), IDENTITIES, seed)
            return await tried(app, garden, callers, requests, seed=seed, on_progress=on_progress)
    twins = await _twins(settings, round(requests * TWIN_SHARE), seed, on_progress)
    left = max(1, requests - twins.requests)
    async with open_throwaway(replace(settings, classify="off", reranker="none"), WordHashes()) as app:
        paths, texts = await planted(app, documents, nodes, seed, on_progress)
        garden = await grown(app, documents, texts)
        callers = identities(garden.taxonomy, paths, IDENTITIES, seed)
        call = await service_call(app, callers)
        proof = await tried(app, garden, callers, left, seed=seed, call=call, on_progress=on_progress)
    proof.compared(twins)
    return proof


async def _twins(settings: Settings, requests: int, seed: int, on_progress: Told) -> Comparison:
    """Twin worlds with an embedder of words, and such with the embedder of the settings (or without any)."""
    embedders: list[Embedder | None] = [WordHashes()]
    if requests >= LEAST_TWINS:
        embedders.append(None)
    found = Comparison()
    for number, embedder in enumerate(embedders, 1):

        def told(now: Comparison, before: int = found.requests) -> None:
            sent, differences = before + now.requests, now.differing.total()
            words = f"{sent:,}/{requests:,} requests to twin worlds, {differences:,} differences"
            on_progress(sent, requests, words)

        on_progress(0, None, "twin worlds are filled")
        async with twin_worlds(settings, embedder, seed) as pair:
            share = requests * number // len(embedders) - found.requests
            compared = await compare_worlds(
                pair.worlds, max(1, share), seed=seed, on_round=pair.begin_round, on_progress=told
            )
        found.add(compared)
    return found


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
        content = b"" if body is None else json.dumps(body).encode()
        answered = await send_request(api, method, path, content, secret=secrets[identity.name])
        return answered.status, _CHANGING.sub("", answered.text)

    return call
