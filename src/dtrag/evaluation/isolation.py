"""The isolation test: callers with restricted scopes send hostile requests, and responses are searched for canaries.

The comparison of twin worlds (`evaluation/twins`) is part of the same test.

Kinds of leaks: `content` (a word or id from outside the scope), `existence` (a foreign object is answered differently
from a nonexistent one), `counts` (a number includes documents outside), `statistics` (scores depend on documents
outside), `log` (a canary in a log line), `change` (something outside was changed), `policy` (the database itself shows
a caller rows from outside) and `difference` (twin worlds that differ only outside the scope respond differently).
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import statistics
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypedDict, Unpack

from dtrag.core.access.api_key import Caller
from dtrag.core.access.scope import EVERYTHING, Scope, Viewer
from dtrag.core.documents import Answer, DocumentSummary, SearchMetrics, SearchResult
from dtrag.core.text.analysis import clean
from dtrag.errors import DtragError, InvalidInput
from dtrag.evaluation.canaries import TOKEN, Garden, Identity
from dtrag.evaluation.hostile_requests import Arguments, HostileRequest, next_request, over_http
from dtrag.evaluation.twins.scenarios import EXEMPT
from dtrag.evaluation.twins.visits import Comparison, ComparisonReport, excerpts_at_difference, route_name
from dtrag.memory.cases import CaseMemory
from dtrag.ports import Index
from dtrag.retrieval.request import SearchOptions

AT_ONCE = 8
"""Concurrent requests; more would only wait for the database."""
HTTP_SHARE = 0.08
"""Share of the requests that go through the HTTP service, which takes several times as long."""
EXAMPLES = 20
PROGRESS_EVERY = 100
"""Requests between two reports of progress."""

Call = Callable[[Identity, str, str, Mapping[str, object] | None], Awaitable[tuple[int, str]]]
"""Sends method, path and JSON body as the caller; returns the status, and the body without ids and times."""


class Readable(Protocol):
    """The reading methods of the app."""

    @property
    def index(self) -> Index:
        """The index."""

    @property
    def cases(self) -> CaseMemory:
        """The case memory."""

    async def search(
        self,
        query: str,
        top_k: int = ...,
        filters: Mapping[str, Any] | None = ...,
        *,
        mode: str = ...,
        scope: Viewer = ...,
        **options: Unpack[SearchOptions],
    ) -> tuple[list[SearchResult], SearchMetrics]: ...

    async def ask(self, question: str, *, scope: Viewer = ...) -> Answer: ...

    async def documents(self, limit: int = ..., offset: int = ..., *, scope: Viewer = ...) -> list[DocumentSummary]: ...

    async def counts(self, *, scope: Viewer = ...) -> tuple[int, int]: ...

    async def document(self, document_id: str, *, scope: Viewer = ...) -> tuple[DocumentSummary, str]: ...


@dataclass(frozen=True, slots=True)
class Leak:
    """One leak: its kind, the request path, the caller, and the leaked content."""

    kind: str
    path: str
    identity: str
    what: str


class LeakRow(TypedDict):
    """A leak in a report."""

    kind: str
    path: str
    identity: str
    what: str


class Timing(TypedDict):
    """Median times in milliseconds of requests with a foreign word and with a nonexistent word."""

    foreign: float | None
    nonsense: float | None


class ProofReport(TypedDict):
    """The result of `dtrag audit isolation --json`."""

    requests: int
    http: int
    documents: int
    nodes: int
    identities: int
    leaks: int
    kinds: dict[str, int]
    examples: list[LeakRow]
    paths: dict[str, int]
    twins: ComparisonReport
    timing_ms: Timing
    seconds: float


@dataclass(slots=True)
class Proof:
    """The results of a run. Times are in milliseconds, of requests with a foreign word and with a nonexistent word."""

    documents: int
    nodes: int
    identities: int
    requests: int = 0
    http: int = 0
    seconds: float = 0.0
    twins: Comparison = field(default_factory=Comparison)
    paths: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    examples: list[Leak] = field(default_factory=list)
    foreign_ms: list[float] = field(default_factory=list)
    nonsense_ms: list[float] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether there is a leak."""
        return bool(self.kinds)

    def add_leak(self, leak: Leak) -> None:
        """Count a leak and store the first ones."""
        self.kinds[leak.kind] += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(leak)

    def add_comparison(self, twins: Comparison) -> None:
        """Add the results of the twin worlds."""
        self.twins.add(twins)
        self.requests += twins.requests
        self.http += twins.requests
        self.seconds += twins.seconds
        for difference in twins.examples:
            if len(self.examples) < EXAMPLES:
                path = f"{route_name(difference.route)} ({difference.scenario})"
                self.examples.append(Leak("difference", path, difference.visitor, difference.what))
        if twins.differing:
            self.kinds["difference"] += twins.differing.total()

    def as_dict(self) -> ProofReport:
        """The report."""
        return {
            "requests": self.requests,
            "http": self.http,
            "documents": self.documents,
            "nodes": self.nodes,
            "identities": self.identities,
            "leaks": self.kinds.total(),
            "kinds": dict(sorted(self.kinds.items())),
            "examples": [
                {"kind": leak.kind, "path": leak.path, "identity": leak.identity, "what": leak.what}
                for leak in self.examples
            ],
            "paths": dict(sorted(self.paths.items())),
            "twins": self.twins.as_dict(EXEMPT),
            "timing_ms": {"foreign": _median(self.foreign_ms), "nonsense": _median(self.nonsense_ms)},
            "seconds": round(self.seconds, 1),
        }


async def run_isolation_test(
    app: Readable,
    garden: Garden,
    identities: Sequence[Identity],
    requests: int,
    *,
    seed: int = 1,
    call: Call | None = None,
    on_progress: Callable[[int, int, str], None] = lambda done, total, words: None,
) -> Proof:
    """Send the requests and check every response. With `call` some of them go through the HTTP service.

    Raises `InvalidInput` if nothing is hidden from any of the callers.
    """
    identities = garden.confined(identities)
    if not identities:
        raise InvalidInput("Every caller may see everything: there is nothing to test. Use a tree of several branches.")
    proof = Proof(garden.documents, len(garden.by_node), len(identities))
    trial = _Trial(app, garden, identities, proof, call)
    started = time.perf_counter()
    with _LogWatch(proof):
        numbers = iter(range(requests))

        async def work() -> None:
            for number in numbers:
                await trial.send_next(random.Random(f"{seed}:{number}"))  # nosec  # noqa: S311 - repeatable
                if proof.requests % PROGRESS_EVERY == 0:
                    leaks = proof.kinds.total()
                    on_progress(proof.requests, requests, f"{proof.requests:,}/{requests:,} requests, {leaks:,} leaks")

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(work())
    for identity in identities:
        for fault in await garden.policy_faults(identity):
            proof.add_leak(Leak("policy", "database", identity.name, fault))
    documents, _ = await app.counts(scope=EVERYTHING)
    if call is not None and documents != len(garden.hidden):
        proof.add_leak(Leak("change", "HTTP", "", f"{documents:,} documents of {len(garden.hidden):,} are left"))
    if garden.cases:
        cases = (await app.cases.statistics_of_all()).total_cases
        if cases != len(garden.cases):
            proof.add_leak(Leak("change", "HTTP", "", f"{cases:,} cases of {len(garden.cases):,} are left"))
    proof.seconds = time.perf_counter() - started
    return proof


class _LogWatch(logging.Handler):
    """Searches log lines for canaries during the run."""

    def __init__(self, proof: Proof):
        super().__init__()
        self._proof = proof

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        if TOKEN.search(text.casefold()):
            self._proof.add_leak(Leak("log", record.name, "", text[:200]))

    def __enter__(self) -> None:
        logging.getLogger("dtrag").addHandler(self)

    def __exit__(self, *exception: object) -> None:
        logging.getLogger("dtrag").removeHandler(self)


@dataclass(frozen=True, slots=True)
class _Response:
    """All that a response says, the part that is compared with its twin, and texts by chunk id or document id."""

    body: str
    compared: str
    texts: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, body: str, texts: Mapping[str, str] | None = None) -> _Response:
        """A response that is compared as a whole."""
        return cls(body, body, texts or {})


class _Trial:
    """One run: sends requests and checks their responses."""

    def __init__(self, app: Readable, garden: Garden, identities: Sequence[Identity], proof: Proof, call: Call | None):
        self._app = app
        self._garden = garden
        self._identities = identities
        self._proof = proof
        self._call = call
        self._senders: dict[str, Callable[[Identity, Arguments], Awaitable[_Response]]] = {
            "search": self._search,
            "ask": self._ask,
            "documents": self._documents,
            "counts": self._counts,
            "document": self._document,
            "passages": self._passages,
            "fetch": self._fetch,
            "suggest": self._suggest,
            "case counts": self._case_counts,
            "http": self._http,
        }

    async def send_next(self, chance: random.Random) -> None:
        """Send one request of a random caller, with its twin."""
        identity = chance.choice(self._identities)
        make = over_http if self._call is not None and chance.random() < HTTP_SHARE else next_request
        request = make(self._garden, chance, identity)
        self._proof.requests += 1
        self._proof.http += request.kind == "http"
        self._proof.paths[request.path] += 1
        first = chance.random() < 0.5  # the order of the twins affects caches, so it is random
        leaks: list[Leak] = []
        for _ in range(self._garden.attempts):
            leaks = [
                Leak(kind, request.path, identity.name, what[:300])
                async for kind, what in self._leaks(request, identity, first=first)
            ]
            if not leaks:
                break
        for leak in leaks:
            self._proof.add_leak(leak)

    async def _leaks(
        self, request: HostileRequest, identity: Identity, *, first: bool
    ) -> AsyncIterator[tuple[str, str]]:
        """Kind and content of what the response reveals; `first`: it is requested before its twin."""
        if request.warm:
            await self._app.search(**request.arguments, scope=EVERYTHING)
        before = await self._garden.count(identity) if request.kind == "counts" else 0
        if request.twin is not None and not first:
            other, other_ms = await self._timed(request, identity, request.twin)
        response, ms = await self._timed(request, identity, request.arguments)
        if request.twin is not None and first:
            other, other_ms = await self._timed(request, identity, request.twin)
        for word in await self._garden.seen(_without(response.body, request.echo), identity):
            yield "content", word
        for key in await self._garden.altered(response.texts):
            yield "content", f"the text of {key} is not its own"
        if request.kind == "counts" and response.body.isdecimal():
            allowed = sorted((before, await self._garden.count(identity)))
            if not allowed[0] <= int(response.body) <= allowed[1]:
                yield "counts", f"{response.body} documents, where {allowed[1]} may be seen"
        if request.kind == "case counts":
            expected = f"{self._garden.count_cases(identity)}"
            if response.body != expected:
                yield "counts", f"{response.body} cases, where {expected} may be seen"
        if request.twin is None:
            return
        self._proof.foreign_ms.append(ms)
        self._proof.nonsense_ms.append(other_ms)
        foreign, unknown = (_without(text, request.echo) for text in (response.compared, other.compared))
        if foreign != unknown and await self._garden.seen(" ".join(request.echo), identity):
            kind = "statistics" if request.kind == "search" else "existence"
            yield kind, excerpts_at_difference(foreign, unknown)

    async def _timed(
        self, request: HostileRequest, identity: Identity, arguments: Arguments
    ) -> tuple[_Response, float]:
        started = time.perf_counter()
        try:
            answer = await self._senders[request.kind](identity, arguments)
        except DtragError as error:
            answer = _Response.of(f"{type(error).__name__}: {error}")
        return answer, (time.perf_counter() - started) * 1000

    async def _search(self, identity: Identity, arguments: Arguments) -> _Response:
        results, metrics = await self._app.search(**arguments, scope=identity.access)
        scores = [(r.chunk_id, r.bm25_score, r.vector_score, r.hybrid_score, r.explanation) for r in results]
        how = (
            metrics.bm25_candidates,
            metrics.vector_candidates,
            metrics.imagined_candidates,
            metrics.absent,
            metrics.degraded,
            metrics.notes,
        )
        return _Response(repr((results, metrics)), repr((scores, how)), {r.chunk_id: r.text for r in results})

    async def _ask(self, identity: Identity, arguments: Arguments) -> _Response:
        answer = await self._app.ask(**arguments, scope=identity.access)
        return _Response(repr(answer), answer.text)

    async def _documents(self, identity: Identity, arguments: Arguments) -> _Response:
        return _Response.of(repr(await self._app.documents(**arguments, scope=identity.access)))

    async def _counts(self, identity: Identity, arguments: Arguments) -> _Response:
        documents, _ = await self._app.counts(scope=identity.access)
        return _Response.of(str(documents))

    async def _document(self, identity: Identity, arguments: Arguments) -> _Response:
        document, text = await self._app.document(**arguments, scope=identity.access)
        return _Response.of(repr((document, text)), {document.document_id: text})

    async def _passages(self, identity: Identity, arguments: Arguments) -> _Response:
        document_id = uuid.UUID(arguments["document_id"])
        return _Response.of(repr(await self._app.index.chunk_ids(document_id, await self._scope(identity))))

    async def _fetch(self, identity: Identity, arguments: Arguments) -> _Response:
        keys = [f"{arguments['document_id']}:0"]
        scope = await self._scope(identity)
        passages = await self._app.index.fetch(keys, scope, self._garden.taxonomy)
        return _Response.of(repr(passages), {key: passage.text for key, passage in passages.items()})

    async def _suggest(self, identity: Identity, arguments: Arguments) -> _Response:
        found = await self._app.cases.suggest(**arguments, caller=_caller(identity))
        return _Response(repr(found.cases), repr([(case.case_id, score) for case, score in found.cases]))

    async def _case_counts(self, identity: Identity, arguments: Arguments) -> _Response:
        statistics = await self._app.cases.statistics(caller=_caller(identity))
        return _Response.of(str(statistics.total_cases))

    async def _http(self, identity: Identity, arguments: Arguments) -> _Response:
        assert self._call is not None  # noqa: S101 - attempts over HTTP are made only with it
        status, body = await self._call(identity, arguments["method"], arguments["path"], arguments.get("body"))
        return _Response(body, f"{status} {body}")

    async def _scope(self, identity: Identity) -> Scope:
        return identity.access.resolved((await self._app.index.snapshot()).taxonomy)


def _caller(identity: Identity) -> Caller:
    return Caller(identity.name, "editor", identity.access)


def _without(text: str, echo: Sequence[str]) -> str:
    """The response without the sent texts, which the service may repeat."""
    for sent in sorted(filter(None, echo), key=len, reverse=True):
        for form in (sent, repr(sent)[1:-1], json.dumps(sent, ensure_ascii=False)[1:-1], clean(sent)):
            text = text.replace(form, "*")
    return text


def _median(values: Sequence[float]) -> float | None:
    return round(statistics.median(values), 3) if values else None
