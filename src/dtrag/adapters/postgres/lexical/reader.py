"""Searches the lexical index: heads of the segments in memory; postings in mapped files, or in memory as well.

The postings of a segment never change, so that a table of them is valid until its segment is merged. A new generation
lists the current segments, their deleted documents, and heads of a new edition, whose documents moved to other nodes.
A search waits for tables that are missing, or is refused: it never leaves out a segment. Documents are numbers here;
their texts never pass through this module.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
import psycopg
from numpy.typing import NDArray

from dtrag.adapters.postgres.database import Connection, Database, fetch
from dtrag.adapters.postgres.lexical import posting_files
from dtrag.adapters.postgres.lexical.rows import Correction, correction_of, names_of, segment_of
from dtrag.adapters.postgres.lexical.snapshot import Bools, DatedPassages, Generation, LiveSegment, View, generation_of
from dtrag.adapters.postgres.queries import filter_parameters, filtered, queries
from dtrag.core.access.scope import Scope, SearchFilters
from dtrag.core.ranking.bm25 import MOST_TERMS, LexicalQuery, LexicalStatistics
from dtrag.core.ranking.maxscore import Postings, ScoredPassages, best, stretch
from dtrag.core.ranking.posting_table import PostingTable
from dtrag.core.ranking.segments import Segment, whole
from dtrag.errors import DtragError, Overloaded, StorageFull
from dtrag.ports import valid_day

_LOG = logging.getLogger(__name__)

MEMORY_BYTES = 256 * 2**20
"""Bytes of postings of large segments that a process keeps in memory when no files can be written."""
INLINE_POSTINGS = 500_000
"""Up to so many postings (about 2 ms) are scored at once; more go to a thread, so that other requests need not wait."""
WAIT_S = 10.0
"""Seconds for which a search waits for postings that are being read: those of about 300,000 passages."""
RETRY_S = 30.0
"""Seconds for which searches are refused at once when there was no space for the postings."""
FREQUENCIES_KEPT = 100_000
"""Terms that a view remembers the frequencies of."""
_Mask = Callable[[NDArray[np.intp]], Bools]


class SegmentGone(Exception):
    """A merge removed a segment of the generation that a search began with."""


@dataclass(frozen=True, slots=True)
class _SegmentLists:
    """Postings of one segment, parallel to the terms of a query; an impact is at most `stretch` times their bound."""

    postings: Sequence[Postings | None]
    stretch: float


@dataclass(frozen=True, slots=True)
class _SearchedSegment:
    """A segment with the weighted postings of the query's terms; each candidate is in all of the `required` ones."""

    live: LiveSegment
    terms: Sequence[tuple[float, Postings]]
    required: Sequence[Postings]
    stretch: float


class PostingReader:
    """Searches the segments of one database."""

    def __init__(self, database: Database, memory_bytes: int = MEMORY_BYTES):
        self._database = database
        self._memory_bytes = memory_bytes
        self._segments: dict[uuid.UUID, Segment] = {}
        self._editions: dict[uuid.UUID, int] = {}
        self._corrections: dict[uuid.UUID, Correction] = {}
        self._now = Generation((), LexicalStatistics(), {})
        self._viewing = asyncio.Lock()
        self._tables: dict[uuid.UUID, PostingTable] = {}
        self._mapped: set[uuid.UUID] = set()
        self._making: asyncio.Task[Exception | None] | None = None
        self._retry_at = 0.0

    async def refresh(self, connection: Connection) -> LexicalStatistics:
        """Load what changed, in a transaction with one snapshot; returns the statistics."""
        sql = queries("search")
        rows = await fetch(connection, sql["segment_editions"])
        editions = {row["segment_id"]: row["edition"] for row in rows}
        rows = await fetch(connection, sql["correction_ids"])
        correction_ids = {row["correction_id"] for row in rows}
        segments = {key: head for key, head in self._segments.items() if editions.get(key) == self._editions[key]}
        corrections = {key: row for key, row in self._corrections.items() if key in correction_ids}
        values: dict[str, object] = {"segment_ids": sorted(editions.keys() - segments.keys())}
        for row in await (await connection.execute(sql["segments"], values, binary=True)).fetchall():
            segments[row["segment_id"]] = segment_of(row)
        values = {"correction_ids": sorted(correction_ids - corrections.keys())}
        for row in await (await connection.execute(sql["corrections"], values, binary=True)).fetchall():
            corrections[row["correction_id"]] = correction_of(row)
        self._segments, self._editions, self._corrections = segments, editions, corrections
        [row] = await (await connection.execute(sql["validity"], binary=True)).fetchall()
        spans, dated = bytes(row["spans"] or b""), self._now.editions
        now = await asyncio.to_thread(
            lambda: generation_of(
                list(segments.values()),
                list(corrections.values()),
                dated if dated.spans == spans else DatedPassages.of(spans),
            )
        )
        self._tables = {
            live.segment.segment_id: table
            for live in now.segments
            if (table := self._tables.get(live.segment.segment_id)) is not None and not table.lacks(live.alive)
        }
        self._mapped &= self._tables.keys()
        await self._open_files(now)
        for segment in self._missing():
            if len(segment) < posting_files.SMALLEST:
                self._tables[segment.segment_id] = await posting_files.read_table(connection, segment)
        if self._missing():
            self._make()
        self._now = now
        return now.statistics

    async def close(self) -> None:
        """End the making of tables; a file that is half written is removed later."""
        if self._making is not None:
            self._making.cancel()
            await asyncio.wait({self._making})

    def forget_files(self, names: Collection[str]) -> None:
        """Use these files no more: the next search makes them again."""
        for key in [key for key in self._mapped if posting_files.name_of(key) in names]:
            self._mapped.remove(key)
            del self._tables[key]

    def _missing(self) -> list[Segment]:
        """The segments whose postings are not known, the smallest first."""
        return sorted([segment for key, segment in self._segments.items() if key not in self._tables], key=len)

    async def _open_files(self, now: Generation) -> None:
        """Map the files that are there, also in the place of tables in memory.

        Not those that lack a document which lives: they were made before the database was put back to an earlier state.
        """
        files = self._database.files
        unmapped = [live for live in now.segments if live.segment.segment_id not in self._mapped]
        if files is None or not unmapped:
            return
        tables = await asyncio.to_thread(lambda: [posting_files.open_table(files, live.segment) for live in unmapped])
        for live, table in zip(unmapped, tables, strict=True):
            if table is not None and not table.lacks(live.alive):
                self._use(live.segment, table)

    def _use(self, segment: Segment, mapped: PostingTable) -> None:
        self._tables[segment.segment_id] = mapped
        self._mapped.add(segment.segment_id)

    def _make(self) -> asyncio.Task[Exception | None]:
        if self._making is None or (self._making.done() and time.monotonic() > self._retry_at):
            self._making = asyncio.create_task(self._make_tables(), name="postings")
        return self._making

    async def _make_tables(self) -> Exception | None:
        """Read the missing postings, and write their files; the error that prevented it, which searches report."""
        try:
            async with self._database.own_connection("search") as connection:
                while missing := self._missing():
                    async with posting_files.alone(connection, missing[0]):
                        await self._make_table(connection, missing[0])
        except StorageFull as error:
            self._retry_at = time.monotonic() + RETRY_S
            return error
        except (psycopg.Error, DtragError) as error:
            _LOG.warning("the postings could not be read", exc_info=True)
            return error
        return None

    async def _make_table(self, connection: Connection, segment: Segment) -> None:
        files, key = self._database.files, segment.segment_id
        await self._open_files(self._now)  # another process may have written it meanwhile
        if key in self._tables:
            return
        table = await posting_files.read_table(connection, segment)
        if len(segment) >= posting_files.SMALLEST:
            if files is not None:
                await asyncio.to_thread(posting_files.write_table, files, segment, table)
                if (mapped := await asyncio.to_thread(posting_files.open_table, files, segment)) is not None:
                    self._use(segment, mapped)
            in_memory = [table, *(other for name, other in self._tables.items() if name not in self._mapped)]
            if key not in self._mapped and sum(other.nbytes for other in in_memory) > self._memory_bytes:
                raise StorageFull(
                    "The index of words cannot be searched: its files cannot be written, and it is larger than "
                    "index_cache_mb. Free some space on the disk of the data folder, or raise that setting."
                )
        self._tables.setdefault(key, table)

    async def search(self, query: LexicalQuery, scope: Scope, filters: SearchFilters, limit: int) -> dict[str, float]:
        """Chunk id -> BM25, best first. Raises `SegmentGone` when a merge removed a segment."""
        base, ranked = self._now, query.ranked()
        if not ranked:
            return {}
        now, view = base.with_means(query.mean_lengths), await self._view(base, scope)
        terms = [*(term for term, _ in ranked), *sorted(query.required - query.weights.keys())]
        required = [terms.index(term) for term in query.required]
        documents = await self._documents(filters)
        searched: list[_SearchedSegment] = []
        for live, lists in zip(now.segments, await self._lists(now, terms), strict=True):
            pairs = zip(ranked, lists.postings, strict=False)  # the required terms follow those that have a weight
            weighted = [(weight, postings) for (_, weight), postings in pairs if postings is not None]
            needed = [lists.postings[place] for place in required]
            if weighted and None not in needed:
                containing = [postings for postings in needed if postings is not None]
                searched.append(_SearchedSegment(live, weighted, containing, lists.stretch))
        if sum(postings.count for part in searched for _, postings in part.terms) <= INLINE_POSTINGS:
            return _search(searched, view, documents, limit)
        return await asyncio.to_thread(_search, searched, view, documents, limit)

    async def scores(self, query: LexicalQuery, chunk_ids: Sequence[str], scope: Scope) -> dict[str, float]:
        """Chunk id -> BM25 of these passages as far as the scope reaches them. Raises `SegmentGone`."""
        base, ranked = self._now, query.ranked()
        now = base.with_means(query.mean_lengths)
        passages = [parsed(chunk_id) for chunk_id in chunk_ids]
        visible = (await self._view(base, scope)).visible
        scored: dict[str, float] = {}
        if not passages:
            return scored
        for live, lists in zip(now.segments, await self._lists(now, [term for term, _ in ranked]), strict=True):
            which, numbers = live.places(passages, visible[live.segment.segment_id])
            scores = np.zeros(len(numbers), np.float32)
            for (_, weight), postings in zip(ranked, lists.postings, strict=True):
                if postings is not None:
                    scores += np.float32(weight) * postings.at(numbers, live.damped)
            scored.update((chunk_ids[place], score) for place, score in zip(which, scores.tolist(), strict=True))
        return scored

    async def statistics(self, terms: Collection[int], scope: Scope) -> LexicalStatistics:
        """The BM25 statistics of the passages in scope, for these terms. Raises `SegmentGone`.

        Counted in scope and nowhere else, frequencies and mean lengths alike: with those of the whole index a score
        would reveal documents that the caller may not see.
        """
        now = self._now
        view = await self._view(now, scope)
        if view.whole:
            return now.statistics
        counted_terms = sorted(set(terms))
        if len(counted_terms) > MOST_TERMS:
            frequencies = now.statistics.document_frequencies(counted_terms)
            rarest = sorted(zip([frequency or math.inf for frequency in frequencies], counted_terms, strict=True))
            counted_terms = sorted([term for _, term in rarest[:MOST_TERMS]])
        unknown = [term for term in counted_terms if term not in view.frequencies]
        lists = await self._lists(now, unknown)
        if len(view.frequencies) > FREQUENCIES_KEPT:
            view.frequencies.clear()
            return await self.statistics(terms, scope)
        masks = [view.visible[live.segment.segment_id] for live in now.segments]
        for place, term in enumerate(unknown):
            view.frequencies[term] = sum(
                postings.count_where(mask)
                for mask, part in zip(masks, lists, strict=True)
                if (postings := part.postings[place]) is not None
            )
        counts = np.array([view.frequencies[term] for term in counted_terms], np.int64)
        return LexicalStatistics(np.array(counted_terms, np.int64), counts, view.passages, view.lengths)

    async def titled(self, numbers: NDArray[np.uint64], scope: Scope) -> dict[int, list[str]]:
        """Number of a title -> passages of the one document in scope that has it."""
        known_numbers = numbers[numbers > 0]
        now = self._now
        view = await self._view(now, scope)
        by_title: dict[int, list[list[str]]] = {}
        for live in now.segments if len(known_numbers) else ():
            visible = view.visible[live.segment.segment_id]
            for row in live.segment.titled(known_numbers).tolist():
                document = live.segment.documents[row]
                name = whole(document["document_id"])
                first = int(live.segment.first[row])
                passages = [
                    f"{name}:{ordinal}"
                    for ordinal in range(int(document["chunks"]))
                    if visible is None or visible[first + ordinal]
                ]
                if passages:
                    by_title.setdefault(int(document["title"]), []).append(passages)
        return {number: documents[0] for number, documents in by_title.items() if len(documents) == 1}

    async def passages(self, scope: Scope) -> int:
        """How many passages the scope reaches, at this generation."""
        now = self._now
        view = await self._view(now, scope)
        return now.statistics.chunks if view.whole else view.passages

    async def seen(self, scope: Scope, filters: SearchFilters) -> tuple[Generation, View, NDArray[np.uint64] | None]:
        """The generation, the scope's view of it, and the documents that the filters let through (None: all)."""
        now = self._now
        return now, await self._view(now, scope), await self._documents(filters)

    def hides(self, scope: Scope) -> bool:
        """Whether an edition is not valid on the day of the scope, in the scope or outside it."""
        return self._now.editions.period(valid_day(scope)) is not None

    @property
    def editions(self) -> DatedPassages:
        """The validity of the passages of dated editions."""
        return self._now.editions

    async def _view(self, now: Generation, scope: Scope) -> View:
        """The generation as the scope sees it, on its day; built in a thread, once for all that wait for it."""
        key = now.view_key(scope)
        if key not in now.views:
            async with self._viewing:
                if key not in now.views:
                    now.views[key] = await asyncio.to_thread(View.of, now, scope, key[1])
        return now.views[key]

    async def _lists(self, now: Generation, terms: Sequence[int]) -> list[_SegmentLists]:
        """The postings of the terms in each segment. Raises `Overloaded` when they take long to read."""
        deadline = time.monotonic() + WAIT_S
        while missing := {live.segment.segment_id for live in now.segments} - self._tables.keys():
            if not missing <= self._segments.keys():
                raise SegmentGone
            making = self._make()
            await asyncio.wait({making}, timeout=deadline - time.monotonic())
            if not making.done():
                raise Overloaded(
                    "The index of words is being read, because files of it were missing. Try again in a few seconds."
                )
            if (failure := making.result()) is not None:
                raise failure
        ids = np.array(terms, np.int32)
        tables = [(live.segment, self._tables[live.segment.segment_id]) for live in now.segments]
        return [_SegmentLists(table.lists(head, ids), stretch(table.means, now.means)) for head, table in tables]

    async def _documents(self, filters: SearchFilters) -> NDArray[np.uint64] | None:
        """Ascending upper halves with the lower halves of the documents that the filters let through; None: all."""
        parameters = filter_parameters(Scope.everything(), filters)
        if not parameters:
            return None
        cache = self._now.documents_with  # of this generation, whatever comes while the query runs
        if filters not in cache:
            statement = filtered(queries("search")["documents_with"], parameters)
            async with self._database.connection("search") as connection:
                row = await (await connection.execute(statement, parameters, binary=True)).fetchone()
            ids = np.frombuffer(row["ids"] if row else b"", ">u8").astype(np.uint64).reshape(-1, 2)
            cache[filters] = ids[np.argsort(ids[:, 0])]
        return cache[filters]


def _search(
    searched: Sequence[_SearchedSegment],
    view: View,
    documents: NDArray[np.uint64] | None,
    limit: int,
) -> dict[str, float]:
    """The best of all segments; each is only searched for what can still be among them."""
    parts: list[tuple[LiveSegment, ScoredPassages]] = []
    all_scores = np.empty(0, np.float32)
    for part in searched:
        floor = float(np.partition(all_scores, -limit)[-limit]) if len(all_scores) >= limit else 0.0
        live = part.live
        visible = _containing(part.required, visible_mask(live.segment, view, documents))
        scored = best(part.terms, live.damped, limit, visible, floor, stretch=part.stretch)
        parts.append((live, scored))
        all_scores = np.concatenate([all_scores, scored.scores])
    cut = float(np.partition(all_scores, -limit)[-limit]) if len(all_scores) > limit else 0.0
    ids, ordinals, scores = [], [], []
    for live, scored in parts:
        above = scored.scores >= cut
        numbers = scored.numbers[above]
        rows = live.segment.document_of[numbers]
        ids.append(live.segment.documents["document_id"][rows])
        ordinals += (numbers - live.segment.first[rows]).tolist()
        scores += (-scored.scores[above]).tolist()
    names = names_of(np.concatenate([np.empty((0, 2), np.uint64), *ids]))
    best_rows = sorted(zip(scores, names, ordinals, strict=True))[:limit]
    return {f"{document}:{ordinal}": -score for score, document, ordinal in best_rows}


def _containing(required: Sequence[Postings], visible: _Mask | None) -> _Mask | None:
    """The mask, narrowed to passages that contain each of the terms."""
    if not required:
        return visible

    def containing(numbers: NDArray[np.intp]) -> Bools:
        mask = np.ones(len(numbers), bool)
        for postings in required:
            mask &= postings.contain(numbers)
        if visible is not None:
            mask[mask] = visible(numbers[mask])
        return mask

    return containing


def visible_mask(segment: Segment, view: View, documents: NDArray[np.uint64] | None) -> _Mask | None:
    """Which passages count: of documents that exist, are in scope and pass the filters."""
    mask = view.visible[segment.segment_id]
    if documents is None:
        return None if mask is None else mask.__getitem__

    def visible(numbers: NDArray[np.intp]) -> Bools:
        counted = np.ones(len(numbers), bool) if mask is None else mask[numbers]
        # Of the documents that were met only: of all of them it would take as long as all else together.
        met, places = np.unique(segment.document_of[numbers], return_inverse=True)
        return counted & _among(segment.documents["document_id"][met], documents)[places]

    return visible


def _among(ids: NDArray[np.uint64], known: NDArray[np.uint64]) -> Bools:
    """Which of the ids (rows of two halves) are in `known`, whose upper halves ascend."""
    if not len(known):
        return np.zeros(len(ids), bool)
    places = np.minimum(np.searchsorted(known[:, 0], ids[:, 0]), len(known) - 1)
    equal: Bools = (known[places] == ids).all(axis=1)
    return equal


def parsed(chunk_id: str) -> tuple[uuid.UUID, int]:
    document, _, ordinal = chunk_id.rpartition(":")
    return uuid.UUID(document), int(ordinal)
