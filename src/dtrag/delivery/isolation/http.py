"""Runs the isolation test: twin worlds, and an index with canaries. Requests go into the ASGI app without a socket."""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from dtrag.adapters.postgres.unscoped import UnscopedReads
from dtrag.app import App, open_app, open_throwaway
from dtrag.core.access.confinement import OWNER
from dtrag.core.taxonomy.tree import UNCLASSIFIED, CategoryPath
from dtrag.delivery.api.app import create_app
from dtrag.delivery.isolation.asgi_client import send_request
from dtrag.delivery.isolation.twin_worlds import MEMORY, twin_worlds
from dtrag.errors import InvalidInput
from dtrag.evaluation.canaries import TOKEN, Garden, Hidden, Identity, WordHashes, identities, library, tree
from dtrag.evaluation.isolation import Call, Proof, run_isolation_test
from dtrag.evaluation.live_garden import LiveGarden
from dtrag.evaluation.twins.run import compare_worlds
from dtrag.evaluation.twins.visits import Comparison
from dtrag.ports import Embedder
from dtrag.settings import Settings, set_feature_flag

IDENTITIES = 24
MOST_CASES = 500
"""Cases with canaries in the test index."""
PAGE = 1_000
TWIN_SHARE = 0.6
"""Share of the requests that go to the twin worlds, all over HTTP."""
LEAST_TWINS = 1_000
"""Below this number of requests one pair of twin worlds, with an embedder of words, is enough."""
RATE = 1_000_000
"""Requests per minute of the callers: rate limits are not tested here."""
_VARYING = re.compile(r'"(request_id|correlation_id)": ?"[^"]*"|"[a-z0-9_]*(time|latency)[a-z_]*": ?[0-9.e-]+')

OnProgress = Callable[[int, int | None, str], None]


async def prove(
    settings: Settings,
    *,
    requests: int = 10_000,
    documents: int = 5_000,
    nodes: int = 200,
    live: bool = False,
    seed: int = 1,
    on_progress: OnProgress = lambda done, total, text: None,
) -> Proof:
    """Test isolation in temporary indexes or, reading only, in the live one.

    At least `requests` are sent; twin worlds are compared in temporary indexes only.
    """
    if live:
        async with open_app(settings) as app:
            collection = await LiveGarden.load(app.index, UnscopedReads(app.database))
            if not collection.hidden:
                raise InvalidInput("There are no documents to test with. Omit --live, or index some with: dtrag ingest")
            callers = identities(collection.taxonomy, _branches(collection), IDENTITIES, seed)
            return await run_isolation_test(app, collection, callers, requests, seed=seed, on_progress=on_progress)
    twins = await _twins(settings, round(requests * TWIN_SHARE), seed, on_progress)
    remaining = max(1, requests - twins.requests)
    async with open_throwaway(replace(settings, classify="off", reranker="none"), WordHashes()) as app:
        paths, texts = await plant_canaries(app, documents, nodes, seed, on_progress)
        garden = await load_garden(app, texts)
        callers = identities(garden.taxonomy, paths, IDENTITIES, seed)
        call = await service_call(app, callers)
        with case_memory_enabled():
            await plant_cases(app, garden)
            proof = await run_isolation_test(
                app, garden, callers, remaining, seed=seed, call=call, on_progress=on_progress
            )
    proof.add_comparison(twins)
    return proof


async def _twins(settings: Settings, requests: int, seed: int, on_progress: OnProgress) -> Comparison:
    """Compare twin worlds with an embedder of words, and others with the embedder of the settings, if any."""
    embedders: list[Embedder | None] = [WordHashes()]
    if requests >= LEAST_TWINS:
        embedders.append(None)
    total = Comparison()
    for number, embedder in enumerate(embedders, 1):

        def show(current: Comparison, before: int = total.requests) -> None:
            sent, differences = before + current.requests, current.differing.total()
            text = f"{sent:,}/{requests:,} requests to twin worlds, {differences:,} differences"
            on_progress(sent, requests, text)

        on_progress(0, None, "filling twin worlds")
        async with twin_worlds(settings, embedder, seed, case_files=number == len(embedders) > 1) as pair:
            share = requests * number // len(embedders) - total.requests
            comparison = await compare_worlds(
                pair.worlds, max(1, share), seed=seed, on_round=pair.begin_round, on_progress=show
            )
        total.add(comparison)
    return total


async def plant_canaries(
    app: App, documents: int, nodes: int, seed: int, on_progress: OnProgress = lambda done, total, text: None
) -> tuple[list[tuple[str, ...]], dict[str, str]]:
    """Index a library with canaries; returns the paths of its branches, and its texts by id."""
    chance = random.Random(seed)  # nosec B311  # noqa: S311 - no secret: the same seed gives the same library
    paths = tree(nodes, chance)
    with tempfile.TemporaryDirectory(prefix="dtrag-canaries-") as folder:
        file = Path(folder) / "library.jsonl"
        lines = list(library(paths, documents, chance))
        file.write_text("\n".join(lines) + "\n", "utf-8")
        report = await app.ingest(
            [file], None, lambda done: on_progress(0, None, f"{done.documents:,}/{documents:,} documents indexed")
        )
    if report.failed:
        raise InvalidInput(f"The library with canaries could not be read: {report.failed[0][1]}")
    return paths, {row["id"]: row["text"] for row in map(json.loads, lines)}


@contextmanager
def case_memory_enabled() -> Iterator[None]:
    """The flag of the case memory is on inside the block."""
    set_feature_flag(MEMORY, True)
    try:
        yield
    finally:
        set_feature_flag(MEMORY, None)


async def plant_cases(app: App, garden: Garden) -> None:
    """Add cases with canaries: each belongs to the branch of a document, and cites its first passage."""
    step = max(1, len(garden.hidden) // MOST_CASES)
    for document in garden.hidden[::step]:
        path = garden.taxonomy.path(document.node_id)
        if not path:
            continue
        case = await app.cases.add(
            f"What is {document.text[:900]}?",
            path,
            f"{document.title} {' '.join(document.words)}",
            metadata={"author": document.author},
            passages=[f"{document.document_id}:0"],
        )
        garden.add_case(document, case.case_id)


async def load_garden(app: App, texts: Mapping[str, str]) -> Garden:
    """The documents of the test index with their branches, and words of each to search for.

    `texts` are the texts of the documents by the ids in their metadata.
    """
    taxonomy = (await app.index.snapshot()).taxonomy
    hidden: list[Hidden] = []
    while len(hidden) < len(texts) and (page := await app.documents(PAGE, len(hidden), scope=OWNER)):
        for document in page:
            node = taxonomy.find(CategoryPath.parse(document.taxonomy_path))
            text, author = texts[document.metadata["id"]], document.metadata["author"]
            words = tuple(dict.fromkeys(TOKEN.findall(f"{text} {document.title} {author}")))
            node_id = UNCLASSIFIED if node is None else node
            hidden.append(Hidden(document.document_id, node_id, document.title, text, author, words))
    return Garden(taxonomy, hidden)


def _branches(garden: Garden) -> list[tuple[str, ...]]:
    """The branches of a live tree that contain documents."""
    paths = sorted({garden.taxonomy.path(document.node_id) for document in garden.hidden} - {()})
    if len(paths) < 2:
        raise InvalidInput("The documents are in fewer than two branches: there is nothing to isolate. Omit --live.")
    return paths


async def service_call(app: App, callers: list[Identity]) -> Call:
    """A function that sends requests through the service, with a key for each caller."""
    api = create_app(app.settings)
    api.state.service.opened = app
    secrets = {}
    for caller in callers:
        created = await app.keys.create(caller.name, [path.names for path in caller.paths], "editor", rate=RATE)
        secrets[caller.name] = created.secret

    async def call(identity: Identity, method: str, path: str, body: Mapping[str, object] | None) -> tuple[int, str]:
        content = b"" if body is None else json.dumps(body).encode()
        answered = await send_request(api, method, path, content, secret=secrets[identity.name])
        return answered.status, _VARYING.sub("", answered.text)

    return call
