"""Searches vectors in blocks, which mapped files hold; the newest are read from the database and kept in memory.

A row counts while its passage is one of the present generation of the lexical index, in scope, valid and not filtered
out: a document that was deleted, replaced or moved is treated as its words are. Without files that can be written, and
until they are complete, the caller searches the database.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from dtrag.adapters.postgres.database import Connection, Database, fetch
from dtrag.adapters.postgres.lexical.reader import PostingReader, parsed, visible_mask
from dtrag.adapters.postgres.lexical.rows import names_of
from dtrag.adapters.postgres.lexical.snapshot import Generation, View, by_size
from dtrag.adapters.postgres.queries import queries
from dtrag.adapters.postgres.search_files import SearchFiles
from dtrag.adapters.postgres.stores.vectors import EMPTIED
from dtrag.adapters.postgres.vector_blocks import (
    PREFIX,
    START,
    Centres,
    Position,
    SpaceRows,
    VectorBlock,
    centres_of,
    named,
    position_values,
    to_merge,
)
from dtrag.core.access.scope import EVERYTHING, NO_FILTERS, Scope, SearchFilters
from dtrag.core.documents import Vector
from dtrag.core.ranking.nearest import Direction, Rows, nearest
from dtrag.core.ranking.segments import halves, packed, whole
from dtrag.errors import DtragError

READ_AT_ONCE = 4_096
"""Vectors that a search reads from the database itself; more are read in the background."""
WRITTEN_FROM = 2_048
"""Vectors of a file, at least: so many are kept in memory, by each process."""
FILLED_AT_ONCE = 16_384
"""Vectors of a statement in the background: 14 MB."""
VISIBLE_BYTES = 64 * 2**20
"""Rows that scopes and filters let through, kept for the next search with the same ones: 8 bytes each."""
MOST_IN_MEMORY = 65_536
"""Vectors that a process keeps in memory while the disk refuses files; with more, the database is searched: 54 MB."""
RETRY_S = 30.0
"""Seconds after which reading the vectors is tried again when it failed or no file could be written."""
INLINE_ROWS = 300_000
"""Up to so many rows (about 2 ms) are scanned at once; more go to a thread, so that other requests need not wait."""
_LOG = logging.getLogger(__name__)
_VisibleKey = tuple[object, SearchFilters, int]


@dataclass(frozen=True, eq=False)
class _Placed:
    """The parts of each space at one generation: which of their rows belong to which segment, and to which passages."""

    blocks: tuple[VectorBlock, ...]
    generation: Generation
    parts: Mapping[int, Sequence[SpaceRows]]
    places: Mapping[SpaceRows, Mapping[uuid.UUID, tuple[Rows, Rows]]]
    visible: LRUCache[_VisibleKey, list[Rows | None]] = field(
        default_factory=lambda: by_size(VISIBLE_BYTES, _visible_bytes)
    )

    @classmethod
    def of(cls, blocks: Sequence[VectorBlock], generation: Generation) -> _Placed:
        """Of several rows for one passage the newest counts, whatever its space."""
        centres = centres_of(blocks)
        ordered = [
            (space, part.centred(centres[space]) if space in centres else part)
            for block in blocks
            for space, part in block.parts.items()
        ]
        places: dict[SpaceRows, dict[uuid.UUID, tuple[Rows, Rows]]] = {part: {} for _, part in ordered}
        segments = [live.segment for live in generation.segments]
        for _, part in ordered:
            part.forget(segment.segment_id for segment in segments)
        for segment in segments:
            newest = np.full(len(segment), -1, np.int32)
            located = [part.places(segment) for _, part in ordered]
            for number, (_, passages) in enumerate(located):
                newest[passages] = number
            for number, ((_, part), (rows, passages)) in enumerate(zip(ordered, located, strict=True)):
                valid = newest[passages] == number
                places[part][segment.segment_id] = (rows, passages) if valid.all() else (rows[valid], passages[valid])
        spaces: dict[int, list[SpaceRows]] = {}
        for space, part in ordered:
            spaces.setdefault(space, []).append(part)
        return cls(tuple(blocks), generation, spaces, places)


class VectorReader:
    """The vectors of one database. `refresh` loads what is new; searches return None until everything is there."""

    def __init__(self, database: Database, postings: PostingReader) -> None:
        self._database = database
        self._postings = postings
        self._epoch = -1
        self._spaces: dict[str, int] = {}
        self._change = 0
        self._blocks: list[VectorBlock] = []
        self._newest: list[VectorBlock] = []
        self._complete = self._missed = False
        self._retry_at = 0.0
        self._placed: _Placed | None = None
        self._placing = asyncio.Lock()
        self._storing: asyncio.Task[None] | None = None

    async def refresh(self, connection: Connection, settings: Mapping[str, Any]) -> None:
        """Load what is new, in a transaction with one snapshot, of which these are the settings."""
        files = self._database.files
        if files is None:
            return
        self._spaces = {row["id"]: row["space"] for row in await fetch(connection, queries("vectors")["spaces"])}
        epoch, change = int(settings.get(EMPTIED, 0)), int(settings.get("vectors", 0))
        self._change = change
        if epoch != self._epoch:
            blocks = await asyncio.to_thread(_opened, files, epoch, change)
            self._epoch, self._blocks, self._newest = epoch, blocks, []
        if self._storing is not None and not self._complete:
            self._missed = True
            return
        read = await _read(connection, self._end(), change, READ_AT_ONCE, centres_of([*self._blocks, *self._newest]))
        if read is not None:
            self._newest.append(read)
            if self._storing is None and len(self._newest) > 1:
                self._newest = [await asyncio.to_thread(VectorBlock.merged, self._newest)]
        in_memory = sum(map(len, self._newest))
        self._complete = (read is None or len(read) < READ_AT_ONCE) and in_memory <= MOST_IN_MEMORY
        if self._storing is None and (in_memory >= WRITTEN_FROM or not self._complete):
            self._storing = asyncio.create_task(self._store(files, filling=not self._complete), name="vector-files")

    async def search(
        self, query: Vector, space: str, scope: Scope, filters: SearchFilters, limit: int
    ) -> dict[str, float] | None:
        """Chunk id -> cosine of the nearest passages, nearest first. None: search the database."""
        candidates = await self._candidates(space, scope, filters)
        if candidates is None:
            return None
        parts, all_rows = candidates
        direction = Direction.of(query.astype(np.float16))
        searched = [(part.vectors, rows) for part, rows in zip(parts, all_rows, strict=True)]
        if sum(map(len, (vectors for vectors, _ in searched))) <= INLINE_ROWS:
            scored = nearest(searched, direction, limit)
        else:
            scored = await asyncio.to_thread(nearest, searched, direction, limit)
        ranked: list[tuple[float, str, int]] = []
        for part, (rows, scores) in zip(parts, scored, strict=True):
            names = names_of(part.documents[:, rows].T)
            ranked += zip((-scores).tolist(), names, part.ordinals[rows].tolist(), strict=True)
        ranked.sort()
        return {f"{document}:{ordinal}": -score for score, document, ordinal in ranked[:limit]}

    async def scores(
        self, query: Vector, space: str, chunk_ids: Sequence[str], scope: Scope
    ) -> dict[str, float] | None:
        """Chunk id -> cosine of those of these passages that are in scope. None: search the database."""
        candidates = await self._candidates(space, scope, NO_FILTERS)
        if candidates is None:
            return None
        direction, passages = Direction.of(query.astype(np.float16)), [parsed(chunk_id) for chunk_id in chunk_ids]
        documents = np.array([halves(document) for document, _ in passages], np.uint64).reshape(-1, 2)
        ordinals = np.array([ordinal for _, ordinal in passages], np.int32)
        scores: dict[str, float] = {}
        for part, visible in zip(*candidates, strict=True):
            which, rows = part.rows_of(documents, ordinals)
            if visible is not None:
                counted = np.isin(rows, visible)
                which, rows = which[counted], rows[counted]
            cosines = part.vectors.cosines(direction, rows, np.float64).tolist()
            scores.update((chunk_ids[place], score) for place, score in zip(which.tolist(), cosines, strict=True))
        return scores

    async def forget_deleted(self) -> None:
        """Remove the vectors of deleted documents from the files, where no segment contains the documents any more."""
        files, blocks = self._database.files, list(self._blocks)
        generation, _, _ = await self._postings.seen(EVERYTHING, NO_FILTERS)
        segments = [live.segment for live in generation.segments]

        def worn(block: VectorBlock) -> bool:
            return not all(part.all_belong(segments) for part in block.parts.values())

        for block in blocks:
            if files is not None and await asyncio.to_thread(worn, block):
                await self._swept(files, block)

    def forget_files(self) -> None:
        """Find nothing until the next `refresh`."""
        self._epoch, self._blocks, self._newest, self._complete = -1, [], [], False
        if self._storing is not None:
            self._storing.cancel()
            self._storing = None

    async def close(self) -> None:
        """Stop the background work."""
        if self._storing is not None:
            self._storing.cancel()
            await asyncio.gather(self._storing, return_exceptions=True)

    async def _candidates(
        self, space: str, scope: Scope, filters: SearchFilters
    ) -> tuple[Sequence[SpaceRows], list[Rows | None]] | None:
        """The parts of the space, and the rows of each that count (None: all); None while they are incomplete."""
        if not self._complete:
            self._try_again()
            return None
        generation, view, documents = await self._postings.seen(scope, filters)
        placed = await self._present(generation)
        number = self._spaces.get(space, -1)
        key = (generation.view_key(scope), filters, number)
        parts = placed.parts.get(number, [])
        if key not in placed.visible:

            def visible() -> list[Rows | None]:
                return [_rows(part, placed, view, documents) for part in parts]

            placed.visible[key] = await asyncio.to_thread(visible)
        return parts, placed.visible[key]

    def _try_again(self) -> None:
        files = self._database.files
        if files is not None and self._epoch >= 0 and self._storing is None and time.monotonic() > self._retry_at:
            self._storing = asyncio.create_task(self._store(files, filling=True), name="vector-files")

    async def _present(self, generation: Generation) -> _Placed:
        """The blocks of now, at this generation."""
        async with self._placing:
            blocks = [*self._blocks, *self._newest]
            placed = self._placed
            if placed is None or placed.generation is not generation or list(placed.blocks) != blocks:
                placed = self._placed = await asyncio.to_thread(_Placed.of, blocks, generation)
        return placed

    def _end(self) -> Position:
        last = [*self._blocks, *self._newest][-1:]
        return last[0].upto if last else START

    async def _store(self, files: SearchFiles, *, filling: bool) -> None:
        """Write the blocks in memory and merge as the sizes allow; `filling`: read all that no file has as well."""
        epoch, blocks, newest = self._epoch, list(self._blocks), list(self._newest)
        count = len(newest)
        try:
            while True:
                if newest:
                    written = await asyncio.to_thread(_written, files, epoch, newest)
                    if written is None:
                        return  # tried again later
                    blocks.append(written)
                while (last := to_merge([len(block) for block in blocks])) and (
                    merged := await asyncio.to_thread(_written, files, epoch, blocks[-last:])
                ):
                    blocks[-last:] = [merged]
                if not filling:
                    break
                self._missed = False
                async with self._database.own_connection("search") as connection:
                    end = blocks[-1].upto if blocks else START
                    read = await _read(connection, end, self._change, FILLED_AT_ONCE, centres_of(blocks))
                newest = [] if read is None else [read]
                if not self._missed and sum(map(len, newest)) < WRITTEN_FROM:
                    break
            if epoch == self._epoch:
                self._blocks = blocks
                self._newest = newest if filling else self._newest[count:]
                self._complete = self._complete or filling
        except DtragError as error:
            _LOG.warning("vectors are read from the database for now: %s", error)
        finally:
            self._storing, self._retry_at = None, time.monotonic() + RETRY_S

    async def _swept(self, files: SearchFiles, block: VectorBlock) -> None:
        """Rewrite the file of a block without what the database, which may be newer than the segments, has no more."""
        epoch = self._epoch
        own = np.vstack([block.arrays["documents"], block.arrays["origins"]]).T
        documents = [whole(row) for row in np.unique(own[:, :2], axis=0)]
        async with self._database.connection("search") as connection:
            values = {"document_ids": documents}
            cursor = await connection.execute(queries("search")["origins"], values, binary=True)
            row = await cursor.fetchone()
        present = np.frombuffer(row["ids"] if row else b"", ">u8").astype(np.uint64).reshape(-1, 4)
        rows = np.flatnonzero(np.isin(packed(own), packed(present)))
        if len(rows) == len(block):
            return
        written = await asyncio.to_thread(_written, files, epoch, [block.only(rows)])
        if written is not None and epoch == self._epoch:
            self._blocks = [written if other is block else other for other in self._blocks]


async def _read(
    connection: Connection, after: Position, until: int, limit: int, centres: Centres
) -> VectorBlock | None:
    """The next vectors in the database, until a change, at most `limit`; None when there are none."""
    values = {**position_values(after), "until": until, "limit": limit}
    cursor = await connection.execute(queries("search")["vectors_after"], values, binary=True)
    row = await cursor.fetchone()
    records = bytes(row["records"]) if row else b""
    return await asyncio.to_thread(VectorBlock.of_records, after, records, centres) if records else None


def _opened(files: SearchFiles, epoch: int, change: int) -> list[VectorBlock]:
    """The blocks that files have, without a gap from the first one on; other files of vectors are removed.

    A file of a later change than that of the database is of another history: of a copy that was put back.
    """
    names = {name: parts for name in files.names() if name.startswith(PREFIX) and (parts := named(name))}
    next_ones: dict[Position, list[tuple[Position, str]]] = {}
    for name, (of_epoch, after, upto) in names.items():
        if of_epoch == epoch and int.from_bytes(upto[:8]) <= change:
            next_ones.setdefault(after, []).append((upto, name))
    blocks: list[VectorBlock] = []
    end, used = START, set[str]()
    while longest := max(next_ones.get(end, []), default=None):
        next_ones[end].remove(longest)
        mapped = files.open(longest[1])
        if mapped is not None and longest[0] > end:
            blocks.append(VectorBlock.of_file(end, longest[0], mapped))
            end, used = longest[0], used | {longest[1]}
    files.remove(names.keys() - used)
    return blocks


def _written(files: SearchFiles, epoch: int, blocks: Sequence[VectorBlock]) -> VectorBlock | None:
    """The blocks as one, from its file; None if that could not be written. Their own files are removed."""
    block = blocks[0] if len(blocks) == 1 else VectorBlock.merged(blocks)
    name = block.name(epoch)
    files.write(name, block.arrays, block.facts)
    mapped = files.open(name)
    if mapped is None:
        return None
    files.remove({other.name(epoch) for other in blocks} - {name})
    return VectorBlock.of_file(block.after, block.upto, mapped)


def _visible_bytes(visible: Sequence[Rows | None]) -> int:
    return sum(rows.nbytes for rows in visible if rows is not None)


def _rows(part: SpaceRows, placed: _Placed, view: View, documents: NDArray[np.uint64] | None) -> Rows | None:
    """The rows of a part that count, ascending; None: all."""
    visible = [np.empty(0, np.intp)]
    for live in placed.generation.segments:
        rows, passages = placed.places[part][live.segment.segment_id]
        mask = visible_mask(live.segment, view, documents)
        visible.append(rows if mask is None else rows[mask(passages)])
    together = np.concatenate(visible)
    return None if len(together) == len(part.ordinals) else np.sort(together)
