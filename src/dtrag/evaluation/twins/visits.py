"""Sends the same requests to two worlds and compares the responses, ignoring ids and times."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypedDict

from dtrag.evaluation.twins.library import SERVER_FOLDER, Visitor, Vocabulary

Route = tuple[str, str]
"""Method, and path as OpenAPI writes it."""
PROMPTS: Route = ("", "prompts to models")
"""The pseudo route of prompts to language models."""
_ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{32}\b")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?")
_TIMES = re.compile(
    r".*(_time|_ms|_at)|latency|seconds|elapsed|created|stages|step_timings|documents_per_second|meets_target|cache_hit"
    r"|started|request_id|correlation_id"
)
"""Fields with durations, times, cache hits and request ids."""
_DEGRADED = re.compile(r'"degraded": ?\[(?!\])|"status": ?"(?:degraded|unhealthy)"')
"""A part of an answer that was left out, or a check of /health that may have taken too long."""
_FENCE = re.compile(r"~~~[0-9a-f]{16}~~~")
_HEADERS = frozenset({"content-type", "www-authenticate", "location", "etag", "allow", "cache-control", "vary"})
"""Headers whose values are compared; for others only the names."""

sent_prompts: ContextVar[list[str] | None] = ContextVar("dtrag_sent_prompts", default=None)
"""The prompts to language models during a request; None if they are not recorded."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A request over HTTP. `content` is a JSON value, or the bytes of a form with its content type."""

    method: str
    path: str
    content: object = None
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Received:
    """A response over HTTP."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        """The parsed body; {} if it is not JSON."""
        try:
            return json.loads(self.text)
        except ValueError:
            return {}


Send = Callable[[Visitor, Sent], Awaitable[Received]]


@dataclass(frozen=True, slots=True)
class World:
    """One of the two worlds. `known` are ids of its objects by names that both worlds share."""

    send: Send
    known: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Exchange:
    """The response to one request, without ids and times; `late`: a part of it timed out."""

    route: Route
    answer: str
    late: bool = False


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
        self, method: str, path: str, content: object = None, *, query: str = "", content_type: str = "", **parts: str
    ) -> Received:
        """Send a request to the route `path` with its `{name}` replaced by `parts`; responses are compared later."""
        address = path
        for name, value in parts.items():
            address = address.replace("{" + name + "}", value)
        prompts: list[str] = []
        token = sent_prompts.set(prompts)
        try:
            sent = Sent(method, f"{address}{query}", content, content_type or "application/json")
            received = await self.world.send(self.visitor, sent)
        finally:
            sent_prompts.reset(token)
        late = received.status == 503 or _DEGRADED.search(received.text) is not None
        self.exchanges.append(Exchange((method, path), self._plain(received), late))
        self.exchanges.extend(Exchange(PROMPTS, self._without_ids(text)) for text in prompts)
        return received

    def _plain(self, received: Received) -> str:
        headers = sorted(f"{name}: {value}" if name in _HEADERS else name for name, value in received.headers.items())
        kind = received.headers.get("content-type", "")
        return "\n".join([str(received.status), *headers, "", self._body(received, kind)])

    def _body(self, received: Received, kind: str) -> str:
        if kind.startswith("application/json"):
            return json.dumps(self._value(received.json), ensure_ascii=False, indent=1)
        if kind.startswith("text/event-stream"):
            return "\n".join(self._line(line) for line in received.text.split("\n") if not line.startswith(":"))
        return self._without_ids(received.text)

    def _line(self, line: str) -> str:
        name, _, data = line.partition(": ")
        try:
            return f"{name}: {json.dumps(self._value(json.loads(data)), ensure_ascii=False)}"
        except ValueError:
            return self._without_ids(line)

    def _value(self, value: object) -> object:
        if isinstance(value, dict):
            return {
                self._without_ids(name): _timeless(item) if _TIMES.fullmatch(name) else self._value(item)
                for name, item in value.items()
            }
        if isinstance(value, list):
            return [self._value(item) for item in value]
        return self._without_ids(value) if isinstance(value, str) else value

    def _without_ids(self, text: str) -> str:
        """The text with ids numbered in order of appearance, and times and random delimiters replaced."""
        text = _FENCE.sub("<fence>", _MOMENT.sub("<moment>", text))
        return _ID.sub(lambda match: self._ids.setdefault(match[0], f"<id {len(self._ids)}>"), text)


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


@dataclass(frozen=True, slots=True)
class Difference:
    """A pair of different responses."""

    route: Route
    scenario: str
    visitor: str
    what: str


class RouteCounts(TypedDict):
    """Compared pairs of responses and differences of one route."""

    pairs: int
    differences: int


class ComparisonReport(RouteCounts):
    """The JSON object of a comparison."""

    requests: int
    routes: dict[str, RouteCounts]
    exempt: dict[str, str]


@dataclass(slots=True)
class Comparison:
    """Compared pairs of responses and differences, by route."""

    pairs: Counter[Route] = field(default_factory=Counter)
    differing: Counter[Route] = field(default_factory=Counter)
    examples: list[Difference] = field(default_factory=list)
    requests: int = 0
    seconds: float = 0.0

    def as_dict(self, exempt: Mapping[Route, str]) -> ComparisonReport:
        """The report; `exempt` are the routes that are not compared, with reasons."""
        routes = {
            route_name(route): RouteCounts(pairs=self.pairs[route], differences=self.differing[route])
            for route in sorted(self.pairs)
        }
        return {
            "pairs": self.pairs.total(),
            "differences": self.differing.total(),
            "requests": self.requests,
            "routes": routes,
            "exempt": {route_name(route): reason for route, reason in sorted(exempt.items())},
        }

    def add(self, other: Comparison) -> None:
        """Add the results of another run."""
        self.pairs += other.pairs
        self.differing += other.differing
        self.examples += other.examples
        self.requests += other.requests
        self.seconds += other.seconds

    def differs(self, difference: Difference, most: int = 20) -> None:
        """Count a difference and store the first ones."""
        self.differing[difference.route] += 1
        if len(self.examples) < most:
            self.examples.append(difference)


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
    _judge(scenario, visitor, first, second, into)


def _judge(
    scenario: Scenario, visitor: Visitor, first: Sequence[Exchange], second: Sequence[Exchange], into: Comparison
) -> None:
    for number in range(max(len(first), len(second))):
        left = first[number] if number < len(first) else None
        right = second[number] if number < len(second) else None
        route = (left or right or Exchange(PROMPTS, "")).route
        if route not in scenario.routes and route != PROMPTS:
            raise AssertionError(f"{scenario.name} does not declare the route {route_name(route)}")
        into.pairs[route] += 1
        answers = ["(no request)" if exchange is None else exchange.answer for exchange in (left, right)]
        if left is None or right is None or left.route != right.route or answers[0] != answers[1]:
            into.differs(Difference(route, scenario.name, visitor.name, excerpts_at_difference(*answers)))
        leaks_folder = any(exchange and SERVER_FOLDER in exchange.answer for exchange in (left, right))
        if leaks_folder:
            into.differs(Difference(route, scenario.name, visitor.name, "a folder of the server is in the response"))


def excerpts_at_difference(first: str, second: str) -> str:
    """Excerpts of both texts around their first difference."""
    pairs = enumerate(zip(first, second, strict=False))
    at = next((position for position, pair in pairs if pair[0] != pair[1]), min(len(first), len(second)))
    start = max(0, at - 60)
    return f"…{first[start : at + 80]!r}… against …{second[start : at + 80]!r}…"


def route_name(route: Route) -> str:
    """The route as text: `POST /search`."""
    return " ".join(part for part in route if part)
