"""The isolation test of an existing index: what callers get is compared with what the database answers its owner then.

Nothing is written, and nothing is loaded as a whole: requests name some documents of every branch.
"""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from dtrag.adapters.postgres.lexical.strict_index import UnscopedReads
from dtrag.app import App
from dtrag.core.access.scope import Access, Grant, Scope
from dtrag.core.taxonomy.tree import CategoryPath, Taxonomy
from dtrag.core.text.patterns import UUID
from dtrag.errors import DtragError, InvalidInput
from dtrag.isolation.proof import OnProgress, Proof, silent
from dtrag.isolation.visits import Finding, excerpts_at_difference

CALLERS = 24
MOST_REQUESTED = 5_000
"""Documents that requests name, but at least one of every branch."""
ATTEMPTS = 3
"""How often a request must find a leak, as others may change documents meanwhile."""
AT_ONCE = 8
"""Concurrent requests; more would only wait for the database."""
PROGRESS_EVERY = 100
COUNTS = "documents: counts"


Response = tuple[str, Mapping[str, str]]
"""All that a response says, and the texts in it by chunk id or document id."""


@dataclass(frozen=True, slots=True)
class LiveCaller:
    """A caller that is restricted to some branches."""

    name: str
    access: Access

    async def scope(self, app: App) -> Scope:
        """Its scope in the present tree."""
        return self.access.resolved((await app.index.snapshot()).taxonomy)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request of a caller that names a document: its id, and words of its title."""

    app: App
    caller: LiveCaller
    document_id: str
    words: str
    chance: random.Random

    async def counts(self) -> Response:
        """The number of documents."""
        documents, _ = await self.app.counts(scope=self.caller.access)
        return str(documents), {}

    async def page(self) -> Response:
        """A page of the list of documents."""
        limit, offset = self.chance.choice((1, 20, 100)), self.chance.choice((0, 0, 7, 500))
        return repr(await self.app.documents(limit, offset, scope=self.caller.access)), {}

    async def document(self) -> Response:
        """The document with its text."""
        document, text = await self.app.document(self.document_id, scope=self.caller.access)
        return repr(document), {document.document_id: text}

    async def passages(self) -> Response:
        """The ids of its passages."""
        scope = await self.caller.scope(self.app)
        return repr(await self.app.index.chunk_ids(uuid.UUID(self.document_id), scope)), {}

    async def fetch(self) -> Response:
        """Its first passage."""
        taxonomy, scope = (await self.app.index.snapshot()).taxonomy, await self.caller.scope(self.app)
        passages = await self.app.index.fetch([f"{self.document_id}:0"], scope, taxonomy)
        return repr(passages), {key: passage.text for key, passage in passages.items()}

    async def search(self) -> Response:
        """A search for its words."""
        mode = self.chance.choice(("lexical", "hybrid", "strict", "vector"))
        top_k = self.chance.choice((3, 10, 50))
        results, metrics = await self.app.search(self.words, top_k, mode=mode, scope=self.caller.access)
        return repr((results, metrics)), {result.chunk_id: result.text for result in results}

    async def send(self, path: str) -> Response:
        """The response to the request, or its error."""
        try:
            return await REQUESTS[path](self)
        except DtragError as error:
            return f"{type(error).__name__}: {error}", {}


REQUESTS: dict[str, Callable[[Attempt], Awaitable[Response]]] = {
    COUNTS: Attempt.counts,
    "documents: list": Attempt.page,
    "documents: by id": Attempt.document,
    "index: passages of an id": Attempt.passages,
    "index: fetch": Attempt.fetch,
    "search: words of a title": Attempt.search,
}
BY_ID = frozenset({"documents: by id", "index: passages of an id", "index: fetch"})
"""Of a foreign id they say what they say of an unknown one."""


async def check_live(app: App, requests: int, *, seed: int = 1, on_progress: OnProgress = silent) -> Proof:
    """Send the requests and check every response, then the policies of the database.

    Raises `InvalidInput` without documents in two branches, or if nothing is hidden from any of the callers.
    """
    owner = UnscopedReads(app.database)
    taxonomy = (await app.index.snapshot()).taxonomy
    rows = await owner.documents_of_each_node(max(1, MOST_REQUESTED // max(1, len(taxonomy.nodes))))
    if not rows:
        raise InvalidInput("There are no documents to test with. Omit --live, or index some with: dtrag ingest")
    callers = callers_of(taxonomy, {row["node_id"] for row in rows}, CALLERS, seed)
    proof = Proof(await owner.total(), len({row["node_id"] for row in rows}), len(callers))
    started, numbers = time.perf_counter(), iter(range(requests))

    async def work() -> None:
        for number in numbers:
            chance = random.Random(f"{seed}:{number}")  # nosec B311  # noqa: S311 - repeatable
            row, path = chance.choice(rows), chance.choice(list(REQUESTS))
            words = " ".join(row["title"].split()[:5]) or "nothing"
            made = Attempt(app, chance.choice(callers), str(row["document_id"]), words, chance)
            proof.requests += 1
            proof.paths[path] += 1
            proof.add(await _findings(path, made, owner))
            if number % PROGRESS_EVERY == 0:
                leaks = proof.kinds.total()
                on_progress(proof.requests, requests, f"{proof.requests:,}/{requests:,} requests, {leaks:,} leaks")

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work())
    for caller in callers:
        faults = await policy_faults(app, owner, caller, [str(row["document_id"]) for row in rows])
        proof.add(Finding("policy", "database", caller.name, fault) for fault in faults)
    proof.seconds = time.perf_counter() - started
    return proof


def callers_of(taxonomy: Taxonomy, nodes: Collection[int], count: int, seed: int) -> list[LiveCaller]:
    """Callers with one to three of the branches of these nodes, who do not see all of them; the first sees none."""
    paths = sorted({taxonomy.path(node) for node in nodes} - {()})
    if len(paths) < 2:
        raise InvalidInput("The documents are in fewer than two branches: there is nothing to isolate. Omit --live.")
    chance = random.Random(seed)  # nosec B311  # noqa: S311 - no secret: the same seed gives the same callers
    callers = []
    for number in range(count):
        chosen = chance.sample(paths, k=min(len(paths), chance.randint(1, 3))) if number else [("Nowhere", "yet")]
        access = Access((Grant.of([CategoryPath.parse(path) for path in chosen], taxonomy),))
        if set(nodes) - (access.resolved(taxonomy).nodes or frozenset()):
            callers.append(LiveCaller(f"caller-{number}", access))
    return callers


async def _findings(path: str, made: Attempt, owner: UnscopedReads) -> list[Finding]:
    """What the request reveals, each time that it is sent."""
    findings: list[Finding] = []
    for _ in range(ATTEMPTS):
        findings = [Finding(kind, path, made.caller.name, what[:300]) async for kind, what in _leaks(path, made, owner)]
        if not findings:
            break
    return findings


async def _leaks(path: str, made: Attempt, owner: UnscopedReads) -> AsyncIterator[tuple[str, str]]:
    """Kind and content of what the response reveals."""
    before = await owner.count(await made.caller.scope(made.app)) if path == COUNTS else 0
    body, texts = await made.send(path)
    scope = await made.caller.scope(made.app)
    allowed = scope.nodes or frozenset()
    ids = set(UUID.findall(body)) - {made.document_id} | {key.partition(":")[0] for key in texts}
    for document_id, node in sorted((await owner.nodes(ids)).items()):
        if node not in allowed:
            yield "content", document_id
    stored = await owner.texts(texts) if texts else {}
    for key, text in sorted(texts.items()):
        if stored.get(key) != text:
            yield "content", f"the text of {key} is not its own"
    if path == COUNTS and body.isdecimal():
        least, most = sorted((before, await owner.count(scope)))
        if not least <= int(body) <= most:
            yield "counts", f"{body} documents, where {most} may be seen"
    if path in BY_ID and (await owner.nodes([made.document_id])).get(made.document_id) not in allowed:
        unknown = replace(made, document_id=str(uuid.uuid4()))
        other = (await unknown.send(path))[0].replace(unknown.document_id, "*")
        foreign = body.replace(made.document_id, "*")
        if foreign != other:
            yield "existence", excerpts_at_difference(foreign, other)


async def policy_faults(app: App, owner: UnscopedReads, caller: LiveCaller, document_ids: Sequence[str]) -> list[str]:
    """Tables without row-level security, or that show the caller other rows than it may see."""
    unprotected = await owner.tables_without_policy()
    faults = [f"{table} has no row-level security, or no policy for callers" for table in unprotected]
    differing: list[str] = []
    for _ in range(ATTEMPTS):
        scope = await caller.scope(app)
        shown = await owner.rows_under_policy(scope, document_ids)
        allowed = await owner.rows_in_scope(scope, document_ids)
        differing = [
            f"{table}: {shown[table]:,} rows, where {rows:,} may be seen"
            for table, rows in sorted(allowed.items())
            if shown[table] != rows
        ]
        if not differing:
            break
    return faults + differing
