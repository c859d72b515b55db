"""Makes the vectors of passages after their words are indexed: the newest documents first, in small batches;
then those of imagined questions, and in a service those of the sentences that answers quote.

What waits is what the index has no vector for, so that nothing is lost when the process ends. In a service that is a
job (jobs/queue.py): one process at a time makes vectors, and another one continues when it ends.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Protocol

import numpy as np

from dtrag import embedding_service
from dtrag.concurrency import DaemonThreads
from dtrag.core.access.scope import EVERYTHING, Scope
from dtrag.core.answers.sentence_vectors import pack, quotable_spans
from dtrag.core.documents import Vector
from dtrag.errors import EmbedderFailed
from dtrag.ingestion.analysis import embedded_text
from dtrag.ports import Embedder, VectorStore, VectorTurns, WaitingBatch, WaitingPassage, model_for

VECTORS = "vectors"
"""The kind of the job that makes vectors."""
BATCH = 64
"""Passages of one transaction: .4 to 1.3 s of a processor, which is what a stop or a kill loses at most."""
SENTENCES_OF = 16
"""Passages whose sentences are embedded for one transaction: about as long, and new passages take precedence."""
EMBEDDED_AT_ONCE = 8
"""Passages of one call in a service: it can stop between them."""
BACKGROUND_NICE = 5
"""Priority of the thread of a service: a question gets about three times its share. Lower, and the interpreter's lock
could be held by a thread that is not scheduled."""
LOOK_EVERY_S = 2.0
"""Seconds after which a command looks whether another process, which makes vectors, has ended."""
OnVectors = Callable[[int, int], None]
"""Takes the number of passages whose vectors were made, and of those that wait."""


@dataclass(frozen=True, slots=True)
class Filled:
    """What a call made: vectors, passages that still wait, and whether a running service makes theirs."""

    made: int = 0
    pending: int = 0
    served: bool = False


class Embed(Protocol):
    """`embed_passages` or `embed_questions` of `embedding_service`."""

    def __call__(self, texts: Sequence[str], *, embedder: Embedder) -> Vector:
        """One vector for each text."""


async def _always() -> bool:
    """Texts may be sent to the embedder."""
    return True


class VectorFiller:
    """Makes the missing vectors of one index. `turns` says which process makes them; None: this one.

    `admitted()`: whether all texts of the tree may be sent to the embedder now; while they may not, no vector is made.
    """

    def __init__(
        self,
        store: VectorStore,
        embedder: Embedder | None,
        turns: VectorTurns | None = None,
        admitted: Callable[[], Awaitable[bool]] = _always,
    ) -> None:
        self._admitted = admitted
        self._store = store
        self._embedder = embedder
        self._turns = turns
        self._thread = DaemonThreads(1, "fill-vectors")
        self._assigned = False

    async def fill(self, on_progress: OnVectors | None = None, *, sentences: bool = False) -> Filled:
        """Make what is missing, unless a service of this index does; waits for another process that does.

        Vectors of sentences only make answers quicker: without `sentences`, they are left to a service.
        A cancelled call has stored all batches but the last one. Raises what the embedder and the database raise.
        """
        while self._embedder is not None:
            pending = await self._store.pending(EVERYTHING)
            if self._turns is None:
                return Filled(await self.make(self._store, on_progress, sentences=sentences))
            if await self._turns.served():
                return Filled(0, pending, served=pending > 0)
            async with self._turns.take() as store:
                if store is not None:
                    return Filled(await self.make(store, on_progress, sentences=sentences))
            await asyncio.sleep(LOOK_EVERY_S)
        return Filled()

    async def make(
        self,
        store: VectorStore,
        on_progress: OnVectors | None = None,
        *,
        sentences: bool = True,
        background: bool = False,
    ) -> int:
        """Make what is missing and put it into `store`; returns the number of vectors of passages."""
        made, pending = 0, await store.pending(EVERYTHING)
        at_once = EMBEDDED_AT_ONCE if background else BATCH
        async for stored in self._batches(store, at_once, sentences=sentences, background=background):
            made += stored
            if on_progress is not None:
                on_progress(made, max(0, pending - made))
        return made

    async def due(self) -> bool:
        """Whether a vector may be missing: at first always, since the models may be others than before."""
        if not await self._admitted():
            return False
        if not self._assigned:
            return True
        store = self._store
        return bool(await store.waiting(1) or await store.waiting_questions(1) or await store.waiting_sentences(1))

    async def pending(self, scope: Scope) -> int:
        """How many passages in scope wait for a vector; none without an embedder."""
        return await self._store.pending(scope) if self._embedder is not None else 0

    async def _batches(
        self, store: VectorStore, at_once: int, *, sentences: bool, background: bool
    ) -> AsyncIterator[int]:
        """Make batch after batch; the number of vectors of each."""
        if not await self._admitted():
            return
        await self._assign(store, await store.languages())
        self._assigned = True
        previous: WaitingBatch | None = None
        embed = partial(self._embedded, at_once=at_once, background=background)
        while await self._admitted():
            if batch := await store.waiting(BATCH):
                if batch.unassigned:
                    await self._assign(store, batch.unassigned)
                    continue
                if batch == previous:  # other processes are changing these documents
                    await asyncio.sleep(1)
                previous = batch
                made = await embed(
                    [passage.language for passage in batch.passages],
                    [embedded_text(each.title, each.breadcrumb, each.text) for each in batch.passages],
                    embedding_service.embed_passages,
                )
                yield await store.put(batch, made)
            elif imagined := await store.waiting_questions(BATCH):
                if imagined.unassigned:
                    await self._assign(store, imagined.unassigned)
                    continue
                questions = imagined.questions
                made = await embed(
                    [question.language for question in questions],
                    [question.text for question in questions],
                    embedding_service.embed_questions,
                )
                await store.put_questions(imagined, made)
                yield 0
            elif sentences and (batch := await store.waiting_sentences(SENTENCES_OF)):
                if batch == previous:
                    await asyncio.sleep(1)
                previous = batch
                await store.put_sentences(batch, await _packed(batch.passages, embed))
                yield 0
            else:
                return

    async def _assign(self, store: VectorStore, languages: frozenset[str]) -> None:
        await store.assign({code: model_for(self._embedder, code) for code in languages})

    async def _embedded(
        self, languages: Sequence[str], texts: Sequence[str], embed: Embed, *, at_once: int, background: bool
    ) -> list[Vector | None]:
        """The vector of each text by the model of its language; None without one."""
        vectors: list[Vector | None] = [None] * len(texts)
        rows: dict[str, list[int]] = {}
        for row, code in enumerate(languages):
            rows.setdefault(code, []).append(row)
        for code, all_rows in rows.items():
            model = model_for(self._embedder, code)
            if model is None:
                continue
            for first in range(0, len(all_rows), at_once):
                part = all_rows[first : first + at_once]
                chosen = [texts[row] for row in part]
                if background:
                    made = await self._thread.run(_yielding, embed, chosen, model)
                else:
                    made = await asyncio.to_thread(embed, chosen, embedder=model)
                if not np.isfinite(made).all():
                    raise EmbedderFailed(name=model.id, reason="one of its vectors has a number that is not finite.")
                for row, vector in zip(part, made, strict=True):
                    vectors[row] = vector
        return vectors


async def _packed(
    passages: Sequence[WaitingPassage], embed: Callable[..., Awaitable[list[Vector | None]]]
) -> list[bytes]:
    """The vectors of the sentences of each passage."""
    spans = await asyncio.to_thread(lambda: [quotable_spans(passage.text) for passage in passages])
    sentences = [
        (each.language, each.text[slice(*span)]) for each, own in zip(passages, spans, strict=True) for span in own
    ]
    vectors = iter(await embed(*zip(*sentences, strict=True), embedding_service.embed_passages) if sentences else ())
    return [pack(own, [each for each in islice(vectors, len(own)) if each is not None]) for own in spans]


def _yielding(embed: Embed, texts: Sequence[str], model: Embedder) -> Vector:
    """The vectors, made with a lower priority than what answers questions; threads of the model inherit it."""
    if sys.platform == "linux":  # elsewhere a thread has no priority of its own
        thread = threading.get_native_id()
        lowered = max(BACKGROUND_NICE, os.getpriority(os.PRIO_PROCESS, thread))
        os.setpriority(os.PRIO_PROCESS, thread, lowered)
    return embed(texts, embedder=model)
