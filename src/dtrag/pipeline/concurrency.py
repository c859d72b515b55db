"""How much is done at once: a bounded queue in front of the pipeline, and rooms of their own for CPU work and models.

Whoever comes when a queue is full, or would wait too long, is told at once when to come back (`Overloaded`): a service
that takes more than it can do answers nobody in time. CPU work and waiting for models are counted apart, for a hundred
runs can wait for models while two compute.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from dtrag.errors import Overloaded
from dtrag.settings import Settings

INSIDE_S = 10.0
"""Longest wait for a turn inside, in seconds: whoever was let in has been promised an answer, not a second refusal."""
UPLOAD_PATIENCE_S = 30.0
"""Longest wait of an upload for its turn: its files stay with the client meanwhile, and sending them again costs more
than waiting."""
LONGEST_RETRY_S = 5
"""Clients are told to come back after 1 to 5 seconds, at random: those sent away together do not return together."""


@dataclass(frozen=True, slots=True)
class Load:
    """How full a room is: at work in it, waiting for it, and turned away since the start."""

    working: int
    waiting: int
    refused: int


class Room:
    """`places` at work at once, `queue` waiting for at most `patience` seconds, in the order in which they came."""

    def __init__(self, places: int, queue: int, patience: float) -> None:
        self._places = max(1, places)
        self._free = asyncio.Semaphore(self._places)
        self._queue = queue
        self._patience = patience
        self._working = 0
        self._waiting = 0
        self._refused = 0

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """A place for as long as the block runs. Raises `Overloaded` when the queue is full or the wait too long."""
        if self._free.locked():
            await self._wait()
        else:
            await self._free.acquire()  # at once: nobody waits, and a place is free
        self._working += 1
        try:
            yield
        finally:
            self._working -= 1
            self._free.release()

    @property
    def load(self) -> Load:
        """How full it is now."""
        return Load(self._working, self._waiting, self._refused)

    async def _wait(self) -> None:
        if self._waiting >= self._queue:
            raise self._full()
        self._waiting += 1
        try:
            async with asyncio.timeout(self._patience):
                await self._free.acquire()
        except TimeoutError:
            raise self._full() from None
        finally:
            self._waiting -= 1

    def _full(self) -> Overloaded:
        self._refused += 1
        return Overloaded(seconds=1 + secrets.randbelow(LONGEST_RETRY_S))


class Admission:
    """The rooms of one app. A run enters by `run()`, and inside asks for `cpu()` and `model()` as it needs them.

    `search()` and `upload()` are for searches and uploads over HTTP, which are not part of a run.

    `cpu()` belongs around a step, outside of its timeout: waiting for a turn is not the step being slow. A run never
    holds a place of one room while it waits for the other, or rooms could wait for each other: no `model()` inside of
    `cpu()`.
    """

    def __init__(
        self,
        *,
        runs: int = 128,
        cpu: int = 0,
        models: int = 128,
        queue: int = 128,
        patience: float = 3.0,
        searches: tuple[int, int] = (8, 256),
        uploads: tuple[int, int] = (4, 32),
    ) -> None:
        """`cpu` = 0: twice the cores. Runs wait in `queue` places for at most `patience` seconds to be let in.

        `searches` and `uploads`: how many at work, and how many waiting.
        """
        inside = (runs + queue) * 8
        self._rooms = {
            "run": Room(runs, queue, patience),
            "cpu": Room(cpu or 2 * (os.cpu_count() or 1), inside, INSIDE_S),
            "model": Room(models, inside, INSIDE_S),
            "search": Room(*searches, patience),
            "upload": Room(*uploads, UPLOAD_PATIENCE_S),
        }

    @classmethod
    def of(cls, settings: Settings) -> Admission:
        """As the settings say."""
        return cls(
            runs=settings.answers_at_once,
            cpu=settings.cpu_at_once,
            models=settings.model_calls_at_once,
            queue=settings.answers_waiting,
            patience=settings.wait_ms / 1000,
            searches=(settings.searches_at_once, settings.searches_waiting),
            uploads=(settings.uploads_at_once, settings.uploads_waiting),
        )

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Around a whole run. Raises `Overloaded`, before any work was done."""
        async with self._rooms["run"].place():
            yield

    @asynccontextmanager
    async def cpu(self) -> AsyncIterator[None]:
        """Around what computes: searching, composing, checking. Raises `Overloaded`."""
        async with self._rooms["cpu"].place():
            yield

    @asynccontextmanager
    async def model(self) -> AsyncIterator[None]:
        """Around one call of a language model. Raises `Overloaded`."""
        async with self._rooms["model"].place():
            yield

    @asynccontextmanager
    async def search(self) -> AsyncIterator[None]:
        """Around a search that is not part of a run. Raises `Overloaded`, before any work was done."""
        async with self._rooms["search"].place():
            yield

    @asynccontextmanager
    async def upload(self) -> AsyncIterator[None]:
        """Around receiving and reading files. Raises `Overloaded`, before any byte was taken."""
        async with self._rooms["upload"].place():
            yield

    def loads(self) -> Mapping[str, Load]:
        """How full each room is now: run, cpu, model, search, upload."""
        return {name: room.load for name, room in self._rooms.items()}
