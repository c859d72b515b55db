"""Learns which way of answering pays: fusion weights, and how a language model composes. Off by default.

Flags: `soft_q_bandit` chooses by what was learned; `experience_replay` keeps the experiences and learns from random
batches of them. While neither is on, a share of the answers may explore (`dtrag cbr bandit --explore 5`), so that
core/cases/bandit.py can tell whether switching it on would help.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime

from cachetools import LRUCache

from dtrag.batch_writer import BatchWriter
from dtrag.core.cases.bandit import (
    ACTIONS,
    ActionValues,
    Experience,
    OfflineEvaluation,
    Values,
    WayToAnswer,
    evaluate,
    exploring,
    reward_of,
)
from dtrag.errors import DtragError, InvalidInput
from dtrag.ports import LearningStore

MOST_EXPERIENCES = 10_000
BATCH = 32
LEAST_EXPERIENCES = 100
"""Stored experiences below which nothing is replayed."""
EXPLORATION_S = 5.0
"""How long the share of exploring answers is cached, in seconds."""
MOST_ASKERS = 10_000
MOST_WAITING = 2_000
WRITE_S = 0.2
_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class _Learned:
    values: ActionValues = field(default_factory=ActionValues)
    loaded: bool = False
    added: int = 0


class WeightLearning:
    """The learner of one app. `random_numbers` draws actions; `monotonic` is the clock of the cached share."""

    def __init__(
        self,
        store: LearningStore,
        random_numbers: random.Random | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._random = random_numbers or random.Random()  # nosec B311  # noqa: S311 - no secret
        self._monotonic = monotonic
        self._share, self._share_until = 0.0, float("-inf")
        self._learned = _Learned()
        self._loading = asyncio.Lock()
        self._latest: LRUCache[str, str] = LRUCache(MOST_ASKERS)
        self._replays: set[asyncio.Task[None]] = set()
        self._writer: BatchWriter[tuple[Experience, str | None]] = BatchWriter(
            "experiences", self._write, batch_size=BATCH, delay=WRITE_S, log=_LOG
        )

    async def way_to_answer(
        self, complexity: str, intent: str, asker: str, flags: Collection[str]
    ) -> WayToAnswer | None:
        """The choice for a question, or None when nothing is to be chosen or learned. Never raises."""
        try:
            if "soft_q_bandit" in flags:
                await self._load(flags)
                return WayToAnswer(complexity, intent, asker, self._by_values)
            share = await self._exploration() if "cbr_enabled" in flags else 0.0
            if share <= 0.0 and "experience_replay" not in flags:
                return None
            return WayToAnswer(complexity, intent, asker, lambda state: self._by_exploring(share))
        except DtragError as error:
            _LOG.warning("nothing is learned from this answer: %s", error)
            return None

    def finished(
        self, way: WayToAnswer, answer_id: str, confidence: float, seconds: float, flags: Collection[str]
    ) -> None:
        """Note what the answer earned; returns at once. Nothing is noted when the search made no choice."""
        if way.state is None:
            return
        experience = Experience(
            experience_id=answer_id,
            at=datetime.now(UTC),
            state=way.state,
            action=way.number,
            propensity=way.propensity,
            reward=reward_of(confidence, seconds),
            explored=way.explored,
        )
        before = self._latest.get(way.asker) if way.asker else None
        if way.asker:
            self._latest[way.asker] = answer_id
        if "soft_q_bandit" in flags and "experience_replay" not in flags:
            self._learned.values.learn(experience)
        if len(self._writer) >= MOST_WAITING:
            self._writer.drop_oldest()
        self._writer.add((experience, before))
        self._learned.added += 1
        if {"soft_q_bandit", "experience_replay"} <= set(flags) and self._learned.added % BATCH == 0:
            task = asyncio.create_task(self._replay(), name="dtrag-experience-replay")
            self._replays.add(task)
            task.add_done_callback(self._replays.discard)

    async def explore(self, percent: float) -> None:
        """Let so many percent of the answers explore. Raises `InvalidInput` outside of [0, 100]."""
        if not 0.0 <= percent <= 100.0:
            raise InvalidInput("--explore takes a percentage from 0 to 100, such as 5; 0 switches it off.")
        await self._store.explore(percent / 100.0)
        self._share_until = float("-inf")

    async def exploration(self) -> float:
        """The share of answers that explore, in [0, 1]."""
        return await self._store.exploration()

    async def evaluation(self) -> OfflineEvaluation:
        """What the learned policy would have earned, from all stored experiences."""
        await self._writer.flush()
        return await asyncio.to_thread(evaluate, await self._store.experiences())

    async def close(self) -> None:
        """Write what is queued, and end the work in the background."""
        for task in list(self._replays):
            task.cancel()
        await asyncio.gather(*self._replays, return_exceptions=True)
        await self._writer.stop()
        try:
            await self._writer.flush()
        except DtragError as error:
            _LOG.warning("experiences are lost: %s", error)

    def _by_values(self, state: int) -> tuple[int, float, bool]:
        return (*self._drawn(self._learned.values.probabilities(state)), False)

    def _by_exploring(self, share: float) -> tuple[int, float, bool]:
        explores = self._random.random() < share
        number, _ = self._drawn(exploring(1.0 if explores else 0.0))
        return number, float(exploring(share)[number]), explores

    def _drawn(self, probabilities: Values) -> tuple[int, float]:
        number = self._random.choices(range(len(ACTIONS)), weights=[float(each) for each in probabilities])[0]
        return number, float(probabilities[number])

    async def _exploration(self) -> float:
        if self._monotonic() >= self._share_until:
            self._share = await self._store.exploration()
            self._share_until = self._monotonic() + EXPLORATION_S
        return self._share

    async def _load(self, flags: Collection[str]) -> None:
        """What earlier experiences teach, once, if they are kept."""
        if "experience_replay" not in flags:
            return
        async with self._loading:
            if self._learned.loaded:
                return
            experiences = await self._store.experiences()
            if len(experiences) >= LEAST_EXPERIENCES:
                self._learned.values = await asyncio.to_thread(ActionValues.learned, experiences)
            self._learned.loaded = True

    async def _replay(self) -> None:
        """Learn from a random batch of the stored experiences."""
        try:
            await self._writer.flush()
            experiences = await self._store.experiences()
        except DtragError as error:
            _LOG.warning("no experience is replayed: %s", error)
            return
        if len(experiences) >= LEAST_EXPERIENCES:
            for experience in self._random.sample(experiences, BATCH):
                self._learned.values.learn(experience)

    async def _write(self, batch: list[tuple[Experience, str | None]]) -> None:
        await self._store.add([experience for experience, _ in batch], MOST_EXPERIENCES)
        for experience, before in batch:
            if before is not None:
                await self._store.follow(before, experience.state)
