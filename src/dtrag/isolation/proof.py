"""Compares twin worlds in rounds, until enough requests were sent; and the result of the isolation test."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dtrag.isolation.case_scenarios import ask_in_one_world
from dtrag.isolation.library import ONE, VISITORS, Visitor
from dtrag.isolation.scenarios import EXEMPT
from dtrag.isolation.visits import SCENARIOS, Comparison, Finding, World, compare
from dtrag.isolation.worlds import Serve, TwinWorlds, WordHashes, twin_worlds
from dtrag.ports import Embedder
from dtrag.settings import Settings, timeouts_times

EXAMPLES = 20
WRITERS_PER_ROUND = 3
"""Visitors per round that run the writing scenarios, which take longest; the others follow in later rounds."""
LEAST_OF_TWO = 1_500
"""Below this number of requests one pair of twin worlds, with an embedder of words, is enough."""

PATIENCE_TIMES = 20.0
"""Factor of the time limits: a part of an answer that is late in one world would be a difference."""

OnProgress = Callable[[int, int | None, str], None]


def silent(done: int, total: int | None, text: str) -> None:
    """Report no progress."""


@dataclass(slots=True)
class Proof:
    """The result of an isolation test: numbers of the index and of requests, and what was found."""

    documents: int = 0
    nodes: int = 0
    identities: int = 0
    requests: int = 0
    http: int = 0
    seconds: float = 0.0
    twins: Comparison = field(default_factory=Comparison)
    paths: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    examples: list[Finding] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether there is a leak."""
        return bool(self.kinds)

    def add(self, findings: Iterable[Finding]) -> None:
        """Count findings and store the first ones."""
        for finding in findings:
            self.kinds[finding.kind] += 1
            if len(self.examples) < EXAMPLES:
                self.examples.append(finding)

    def as_dict(self) -> dict[str, Any]:
        """The JSON object of the report."""
        first, second = self.twins.medians()
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
            "timing_ms": {"foreign": first, "nonsense": second},
            "seconds": round(self.seconds, 1),
        }


async def prove(
    settings: Settings,
    serve: Serve,
    *,
    requests: int = 10_000,
    documents: int = 5_000,
    nodes: int = 200,
    seed: int = 1,
    on_progress: OnProgress = silent,
) -> Proof:
    """Send at least `requests` to twin worlds, half of them to a pair with the embedder of the settings.

    Of the first pair, one world has at least this many `documents` in this many categories (`nodes`).
    """
    proof, embedders = Proof(), list[Embedder | None]([WordHashes()])
    if requests >= LEAST_OF_TWO:
        embedders.append(None)

    def show(current: Comparison) -> None:
        sent, differences = current.requests, current.differing.total()
        on_progress(sent, requests, f"{sent:,}/{requests:,} requests to twin worlds, {differences:,} differences")

    for number, embedder in enumerate(embedders, 1):
        on_progress(0, None, "filling twin worlds")
        size = documents if number == 1 else 0
        async with twin_worlds(
            settings, embedder, serve, seed, documents=size, nodes=nodes, case_files=number == 2
        ) as pair:
            hidden, started = await pair.hidden_documents(), time.perf_counter()
            if number == 1:
                proof.documents, _ = await pair.apps[0].counts()
                proof.nodes = len((await pair.apps[0].index.snapshot()).taxonomy.nodes)
            with LogWatch(proof), timeouts_times(PATIENCE_TIMES):
                share = requests * number // len(embedders)
                await compare_worlds(pair, share, proof.twins, seed=seed, on_progress=show)
            if (left := await pair.hidden_documents()) != hidden:
                changed = f"{left} documents and passages outside all scopes, {hidden} before"
                proof.add([Finding("change", "HTTP", "", changed)])
            proof.seconds += time.perf_counter() - started
    proof.identities = len(VISITORS)
    proof.requests = proof.http = proof.twins.requests
    proof.add(proof.twins.examples)
    if differences := proof.twins.differing.total():
        proof.kinds["difference"] = differences
    return proof


async def compare_worlds(
    pair: TwinWorlds,
    requests: int,
    into: Comparison,
    *,
    seed: int = 1,
    on_progress: Callable[[Comparison], None] = lambda comparison: None,
) -> None:
    """Play rounds of all scenarios until `into` counts this many requests; the last round may be incomplete."""
    number = 0
    while into.requests < requests:
        pair.begin_round(number)
        await play_round(pair.worlds, number, into, seed=seed, most=requests, on_progress=on_progress)
        number += 1


async def play_round(
    worlds: Sequence[World],
    number: int,
    into: Comparison,
    *,
    seed: int = 1,
    visitors: Sequence[Visitor] = VISITORS,
    most: int | None = None,
    on_progress: Callable[[Comparison], None] = lambda comparison: None,
) -> None:
    """Play every scenario once, until `most` requests were sent in all; before that, others ask in the first world.

    Reading scenarios are played by all visitors concurrently, writing ones one after the other.
    """
    await ask_in_one_world(worlds[0], f"{seed}:{number}")
    for scenario in SCENARIOS:
        name = f"{seed}:{number}:{scenario.name}"
        if scenario.writes:
            first = number * WRITERS_PER_ROUND
            for place in range(first, first + min(WRITERS_PER_ROUND, len(visitors))):
                visitor = visitors[place % len(visitors)]
                await compare(scenario, worlds, visitor, f"{name}:{visitor.name}", into=into)
        else:
            async with asyncio.TaskGroup() as group:
                for visitor in visitors:
                    group.create_task(compare(scenario, worlds, visitor, f"{name}:{visitor.name}", into=into))
        on_progress(into)
        if most is not None and into.requests >= most:
            break


class LogWatch(logging.Handler):
    """Searches log lines for words that only hidden documents have, inside the block."""

    _WORDS = re.compile(rf"\b({'|'.join(sorted(ONE.own_words))})")

    def __init__(self, proof: Proof) -> None:
        super().__init__()
        self._proof = proof

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler`."""
        text = self.format(record)
        if self._WORDS.search(text.casefold()):
            self._proof.add([Finding("log", record.name, "", text[:200])])

    def __enter__(self) -> None:
        """Begin to watch."""
        logging.getLogger("dtrag").addHandler(self)

    def __exit__(self, *exception: object) -> None:
        """End it."""
        logging.getLogger("dtrag").removeHandler(self)
