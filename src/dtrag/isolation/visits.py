"""Sends the same requests to two worlds and compares the responses, ignoring ids and times."""

from __future__ import annotations

import json
import random
import re
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import httpx2
from starlette.types import ASGIApp

from dtrag.core.chat import BOUNDARY
from dtrag.isolation.library import SERVER_FOLDER, Visitor, Vocabulary
from dtrag.settings import set_feature_flag

Route = str
"""Method, and path as OpenAPI writes it: `GET /documents/{document_id}`."""
PROMPTS: Route = "prompts to models"
"""The pseudo route of prompts to language models."""
SEARCH: Route = "POST /search"
_ID = re.compile(r"(?<![0-9A-Za-z])(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})\b")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?")
_TIMES = frozenset(
    "latency seconds elapsed created stages step_timings documents_per_second meets_target cache_hit started "
    "request_id correlation_id signature record_hash scope_hash csrf".split()
)
"""Fields with durations, times, cache hits, request ids, signatures, salted hashes and tokens, beside those that end as
`_TIME_ENDINGS`."""
_TIME_ENDINGS = ("_time", "_ms", "_at")
_DEGRADED = re.compile(r'"degraded": ?\[(?!\])|"status": ?"(?:degraded|unhealthy)"')
"""A part of an answer that was left out, or a check of /health that may have taken too long."""
_HEADERS = frozenset({"content-type", "www-authenticate", "location", "etag", "allow", "cache-control", "vary"})
"""Headers whose values are compared; for others only the names."""
_JSON = "application/json"

sent_prompts: ContextVar[list[str] | None] = ContextVar("dtrag_sent_prompts", default=None)
"""The prompts to language models during a request; None if they are not recorded."""


@dataclass(frozen=True, slots=True)
class World:
    """The service of one world; `headers` has what each visitor is known by, if it is.

    `known` are ids of objects by names that both share.
    """

    service: ASGIApp
    headers: Mapping[str, Mapping[str, str]]
    known: Mapping[str, str]

    async def send(
        self, visitor: Visitor, method: str, path: str, content: object = None, content_type: str = _JSON
    ) -> httpx2.Response:
        """The response to a request, without a socket. `content`: a JSON value, or the bytes of a form."""
        body = content if isinstance(content, bytes) else b"" if content is None else json.dumps(content).encode()
        headers = {"content-type": content_type, "accept": "*/*", "content-length": str(len(body))}
        headers |= self.headers.get(visitor.name, {})
        request = httpx2.Request(method, f"http://localhost{path}", headers=headers, content=body)
        response = await httpx2.ASGITransport(self.service).handle_async_request(request)
        await response.aread()
        return response


@dataclass(frozen=True, slots=True)
class Exchange:
    """The response to one request, without ids and times; `late`: a part of it timed out."""

    route: Route
    answer: str
    late: bool = False
    ms: float = 0.0


@dataclass
class Visit:
    """One visitor in one world. Two visits with the same random seed send the same requests."""

    world: World
    visitor: Visitor
    chance: random.Random
    exchanges: list[Exchange] = field(default_factory=list)
    _ids: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.words = Vocabulary(self.visitor, self.chance)

    async def send(
        self, route: Route, content: object = None, *, query: str = "", content_type: str = _JSON, **parts: str
    ) -> Any:
        """Send a request to the route, its `{name}` replaced by `parts`; responses are compared later.

        Returns the parsed body; {} if it is not JSON.
        """
        method, _, path = route.partition(" ")
        for name, value in parts.items():
            path = path.replace("{" + name + "}", value)
        prompts: list[str] = []
        token = sent_prompts.set(prompts)
        started = time.perf_counter()
        try:
            response = await self.world.send(self.visitor, method, f"{path}{query}", content, content_type)
        finally:
            sent_prompts.reset(token)
        ms = (time.perf_counter() - started) * 1_000
        late = response.status_code == 503 or _DEGRADED.search(response.text) is not None
        self.exchanges.append(Exchange(route, self._plain(response), late, ms))
        self.exchanges.extend(Exchange(PROMPTS, self._without_ids(text)) for text in prompts)
        return _parsed(response.text, {})

    async def get(self, *routes: Route) -> None:
        """Send requests to these routes, which have no part to replace."""
        for route in routes:
            await self.send(route)

    def known(self, name: str) -> str:
        """The id of an object of the world."""
        return self.world.known[name]

    def _plain(self, response: httpx2.Response) -> str:
        headers = sorted(f"{name}: {value}" if name in _HEADERS else name for name, value in response.headers.items())
        kind = response.headers.get("content-type", "")
        return "\n".join([str(response.status_code), *headers, "", self._body(response.text, kind)])

    def _body(self, text: str, kind: str) -> str:
        if kind.startswith(_JSON):
            return json.dumps(self._value(_parsed(text, text)), ensure_ascii=False, indent=1)
        if kind.startswith("text/event-stream"):
            return "\n".join(self._line(line) for line in text.split("\n") if not line.startswith(":"))
        return self._without_ids(text)

    def _line(self, line: str) -> str:
        name, _, data = line.partition(": ")
        return f"{name}: {json.dumps(self._value(_parsed(data, data)), ensure_ascii=False)}"

    def _value(self, value: object) -> object:
        if isinstance(value, dict):
            return {
                self._without_ids(name): _timeless(item)
                if name in _TIMES or name.endswith(_TIME_ENDINGS)
                else self._value(item)
                for name, item in value.items()
            }
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if isinstance(value, str) and value.startswith("{") and isinstance(parsed := _parsed(value, None), dict):
            return self._value(parsed)  # the text of a tool's result
        return self._without_ids(value) if isinstance(value, str) else value

    def _without_ids(self, text: str) -> str:
        """The text with ids numbered in order of appearance, and times and random delimiters replaced."""
        text = BOUNDARY.sub("<fence>", _MOMENT.sub("<moment>", text))
        return _ID.sub(lambda match: self._ids.setdefault(match[0], f"<id {len(self._ids)}>"), text)


def _parsed(text: str, otherwise: object) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return otherwise


def _timeless(value: object) -> object:
    """A placeholder for a time; its presence and the names of its parts are compared."""
    if isinstance(value, dict):
        return dict.fromkeys(value, "<time>")
    return value if value is None else "<time>"


Play = Callable[[Visit], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A group of requests. One that `writes` changes what other visitors see, and runs alone."""

    name: str
    play: Play
    routes: frozenset[Route]
    writes: bool


SCENARIOS: list[Scenario] = []
"""All scenarios in order; filled by `scenario`."""


def scenario(*routes: Route, writes: bool = False) -> Callable[[Play], Play]:
    """Register the decorated coroutine with the routes that it requests."""

    def enter(play: Play) -> Play:
        SCENARIOS.append(Scenario(play.__name__, play, frozenset(routes), writes))
        return play

    return enter


@contextmanager
def features(*names: str) -> Iterator[None]:
    """These flags are on inside the block."""
    for name in names:
        set_feature_flag(name, True)
    try:
        yield
    finally:
        for name in names:
            set_feature_flag(name, None)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a caller noticed of what it may not see: see `docs/how-to/audit.md` for the kinds."""

    kind: str
    path: str
    identity: str
    what: str


@dataclass(slots=True)
class Comparison:
    """Compared pairs of responses and differences, by route; and the times of searches in each world."""

    pairs: Counter[Route] = field(default_factory=Counter)
    differing: Counter[Route] = field(default_factory=Counter)
    examples: list[Finding] = field(default_factory=list)
    requests: int = 0
    search_ms: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))

    def as_dict(self, exempt: Mapping[Route, str]) -> dict[str, Any]:
        """The report; `exempt` are the routes that are not compared, with reasons."""
        return {
            "pairs": self.pairs.total(),
            "differences": self.differing.total(),
            "requests": self.requests,
            "routes": {
                route: {"pairs": pairs, "differences": self.differing[route]}
                for route, pairs in sorted(self.pairs.items())
            },
            "exempt": dict(sorted(exempt.items())),
        }

    def medians(self) -> list[float | None]:
        """The median time of a search in each world, in milliseconds."""
        return [round(statistics.median(times), 3) if times else None for times in self.search_ms]

    def differs(self, route: Route, scenario: Scenario, visitor: Visitor, what: str, most: int = 20) -> None:
        """Count a difference and store the first ones."""
        self.differing[route] += 1
        if len(self.examples) < most:
            self.examples.append(Finding("difference", f"{route} ({scenario.name})", visitor.name, what))


async def compare(
    scenario: Scenario, worlds: Sequence[World], visitor: Visitor, seed: str, *, into: Comparison, attempts: int = 3
) -> None:
    """Play the scenario in both worlds and compare all responses.

    If a part of a response timed out in one world, a scenario that only reads is repeated.
    """
    for attempt in range(1, attempts + 1):
        visits = [Visit(world, visitor, random.Random(seed)) for world in worlds]  # nosec  # noqa: S311 - repeatable
        for visit in visits:
            await scenario.play(visit)
        into.requests += sum(exchange.route != PROMPTS for visit in visits for exchange in visit.exchanges)
        first, second = (visit.exchanges for visit in visits)
        late = any(exchange.late for exchange in (*first, *second))
        same = [exchange.answer for exchange in first] == [exchange.answer for exchange in second]
        if same or scenario.writes or not late or attempt == attempts:
            break
    for visit, times in zip(visits, into.search_ms, strict=True):
        times += [exchange.ms for exchange in visit.exchanges if exchange.route == SEARCH]
    _judge(scenario, visitor, first, second, into)


def _judge(
    scenario: Scenario, visitor: Visitor, first: Sequence[Exchange], second: Sequence[Exchange], into: Comparison
) -> None:
    missing = Exchange("", "(no request)")
    for left, right in zip_longest(first, second, fillvalue=missing):
        route = left.route or right.route
        if route not in scenario.routes and route != PROMPTS:
            raise AssertionError(f"{scenario.name} does not declare the route {route}")
        into.pairs[route] += 1
        if (left.route, left.answer) != (right.route, right.answer):
            into.differs(route, scenario, visitor, excerpts_at_difference(left.answer, right.answer))
        if SERVER_FOLDER in left.answer or SERVER_FOLDER in right.answer:
            into.differs(route, scenario, visitor, "a folder of the server is in the response")


def excerpts_at_difference(first: str, second: str) -> str:
    """Excerpts of both texts around their first difference."""
    pairs = enumerate(zip(first, second, strict=False))
    at = next((position for position, pair in pairs if pair[0] != pair[1]), min(len(first), len(second)))
    start = max(0, at - 60)
    return f"…{first[start : at + 80]!r}… against …{second[start : at + 80]!r}…"
