"""Searches the lexical index: heads of the segments in memory, postings loaded on demand and cached.

The postings of a segment never change, so that a cached one is valid until its segment is merged. A new generation
lists the current segments, their deleted documents, and heads of a new edition, whose documents moved to other nodes.
Documents are numbers here; their texts never pass through this module.
"""

from __future__ import annotations

import asyncio
import math
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from dtrag.adapters.postgres.database import Connection, Database, fetch
from dtrag.adapters.postgres.lexical.rows import Correction, correction_of, cut_run, pages_of, segment_of
from dtrag.adapters.postgres.lexical.snapshot import Bools, DatedPassages, Generation, LiveSegment, View, generation_of
from dtrag.adapters.postgres.queries import filter_parameters, filtered, queries
from dtrag.core.access.scope import Scope, SearchFilters
from dtrag.core.ranking.bm25 import MOST_TERMS, LexicalQuery, LexicalStatistics
from dtrag.core.ranking.maxscore import Postings, ScoredPassages, best
from dtrag.core.ranking.segments import Segment, whole
from dtrag.ports import valid_day

CACHE_BYTES = 256 * 2**20
"""Bytes of cached postings; the least recently used are dropped first."""
INLINE_POSTINGS = 250_000
"""Up to so many postings (about 2 ms) are scored at once; more go to a thread, so that other requests need not wait."""
FREQUENCIES_KEPT = 100_000
"""Terms that a view remembers the frequencies of."""
Key = tuple[uuid.UUID, int]
_SearchedSegment = tuple[LiveSegment, Sequence[tuple[float, Postings]], Sequence[Postings]]
"""A segment with the weighted postings of the query's terms, and those of the terms that each candidate contains."""
_Mask = Callable[[NDArray[np.intp]], Bools]


class SegmentGone(Exception):
    """A merge removed a segment before its postings were read."""


class PostingReader:
    """Searches the segments of one database."""

    def __init__(self, database: Database, cache_bytes: int = CACHE_BYTES):
        self._database = database
        self._segments: dict[uuid.UUID, Segment] = {}
        self._editions: dict[uuid.UUID, int] = {}
        self._corrections: dict[uuid.UUID, Correction] = {}
        self._now = Generation((), LexicalStatistics(), {})
        self._viewing = asyncio.Lock()
        self._postings: LRUCache[Key, Postings] = LRUCache(cache_bytes, getsizeof=lambda postings: postings.nbytes)

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
        merged_away = self._segments.keys() - segments.keys()
        self._segments, self._editions, self._corrections = segments, editions, corrections
        dated = await (await connection.execute(sql["validity"], binary=True)).fetchall()
        self._now = await asyncio.to_thread(
            lambda: generation_of(list(segments.values()), list(corrections.values()), DatedPassages.of(dated))
        )
        for key in [key for key in self._postings if key[0] in merged_away] if merged_away else ():
            del self._postings[key]
        return self._now.statistics

    async def search(self, query: LexicalQuery, scope: Scope, filters: SearchFilters, limit: int) -> dict[str, float]:
        """Chunk id -> BM25, best first. Raises `SegmentGone` when a merge removed a segment."""
        base, ranked = self._now, query.ranked()
        if not ranked:
            return {}
        now, view = base.with_means(query.mean_lengths), await self._view(base, scope)
        lists = await self._lists(now, [*(term for term, _ in ranked), *(query.required - query.weights.keys())])
        documents = await self._documents(filters)
        searched: list[_SearchedSegment] = []
        for live in now.segments:
            lists_of = [(weight, lists.get((live.segment.segment_id, term))) for term, weight in ranked]
            terms = [(weight, postings) for weight, postings in lists_of if postings is not None]
            required = [lists.get((live.segment.segment_id, term)) for term in query.required]
            if terms and None not in required:
                searched.append((live, terms, [postings for postings in required if postings is not None]))
        work = sum(postings.count for _, terms, _ in searched for _, postings in terms)
        if work <= INLINE_POSTINGS:
            return _search(searched, view, documents, limit)
        return await asyncio.to_thread(_search, searched, view, documents, limit)

    async def scores(self, query: LexicalQuery, chunk_ids: Sequence[str], scope: Scope) -> dict[str, float]:
        """Chunk id -> BM25 of these passages as far as the scope reaches them. Raises `SegmentGone`."""
        base, ranked = self._now, query.ranked()
        now = base.with_means(query.mean_lengths)
        passages = [_parsed(chunk_id) for chunk_id in chunk_ids]
        hidden = (await self._view(base, scope)).hidden
        placed = [
            (live, *live.places(passages, scope, hidden[live.segment.segment_id])) for live in now.segments if passages
        ]
        lists = await self._lists(now, [term for term, _ in ranked]) if placed else {}
        scored: dict[str, float] = {}
        for live, which, numbers in placed:
            scores = np.zeros(len(numbers), np.float32)
            for term, weight in ranked:
                postings = lists.get((live.segment.segment_id, term))
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
        distinct = sorted(set(terms))
        frequencies = now.statistics.document_frequencies(distinct)
        rarest = sorted(zip([frequency or math.inf for frequency in frequencies], distinct, strict=True))
        counted_terms = sorted([term for _, term in rarest[:MOST_TERMS]])
        unknown = [term for term in counted_terms if term not in view.frequencies]
        lists = await self._lists(now, unknown)
        if len(view.frequencies) > FREQUENCIES_KEPT:
            view.frequencies.clear()
            return await self.statistics(terms, scope)
        for term in unknown:
            view.frequencies[term] = sum(
                postings.count_where(_visible(live.segment, view, None))
                for live in now.segments
                if (postings := lists.get((live.segment.segment_id, term))) is not None
            )
        counts = np.array([view.frequencies[term] for term in counted_terms], np.int64)
        return LexicalStatistics(np.array(counted_terms, np.int64), counts, view.passages, view.lengths)

    async def titled(self, numbers: NDArray[np.uint64], scope: Scope) -> dict[int, list[str]]:
        """Number of a title -> passages of the one document in scope that has it."""
        known_numbers = np.unique(numbers[numbers > 0])
        now = self._now
        all_hidden = (await self._view(now, scope)).hidden
        by_title: dict[int, list[list[str]]] = {}
        for live in now.segments if len(known_numbers) else ():
            rows = live.segment.titled(known_numbers)
            for row in rows[live.seen(scope, rows)].tolist():
                document = live.segment.documents[row]
                name = whole(document["document_id"])
                first, hidden = int(live.segment.first[row]), all_hidden[live.segment.segment_id]
                passages = [
                    f"{name}:{ordinal}"
                    for ordinal in range(int(document["chunks"]))
                    if hidden is None or not hidden[first + ordinal]
                ]
                if passages:
                    by_title.setdefault(int(document["title"]), []).append(passages)
        return {number: documents[0] for number, documents in by_title.items() if len(documents) == 1}

    async def passages(self, scope: Scope) -> int:
        """How many passages the scope reaches, at this generation."""
        now = self._now
        view = await self._view(now, scope)
        return now.statistics.chunks if view.whole else view.passages

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

    async def _lists(self, now: Generation, terms: Sequence[int]) -> dict[Key, Postings]:
        """Postings by (segment, term), from memory or from their pages."""
        postings_of: dict[Key, Postings] = {}
        missing: dict[Key, tuple[int, int]] = {}
        for live in now.segments:
            for term in terms:
                key = (live.segment.segment_id, term)
                cached = self._postings.get(key)
                if cached is not None:
                    postings_of[key] = cached
                elif (span := live.segment.span(term))[1] > span[0]:
                    missing[key] = span
        if missing:
            sizes = {live.segment.segment_id: len(live.segment) for live in now.segments}
            for key, run in (await self._load(missing)).items():
                postings_of[key] = Postings(run, sizes[key[0]])
                if postings_of[key].nbytes <= self._postings.maxsize:
                    self._postings[key] = postings_of[key]
        return postings_of

    async def _load(self, missing: Mapping[Key, tuple[int, int]]) -> dict[Key, NDArray[np.void]]:
        page_keys = {(key[0], page) for key, span in missing.items() for page in pages_of(span)}
        order = sorted(page_keys)
        values = {"segment_ids": [segment for segment, _ in order], "pages": [page for _, page in order]}
        async with self._database.connection("search") as connection:
            cursor = await connection.execute(queries("search")["pages"], values, binary=True)
            rows = await cursor.fetchall()
        pages = {(row["segment_id"], row["page"]): row["postings"] for row in rows}
        if len(pages) < len(page_keys):
            raise SegmentGone
        return {key: cut_run(span, [pages[key[0], page] for page in pages_of(span)]) for key, span in missing.items()}

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
    for live, terms, required in searched:
        floor = float(np.partition(all_scores, -limit)[-limit]) if len(all_scores) >= limit else 0.0
        bounded = (live.whole, live.stretch)
        visible = _containing(required, _visible(live.segment, view, documents))
        part = best(terms, live.damped, limit, visible, floor, bounded=bounded)
        parts.append((live, part))
        all_scores = np.concatenate([all_scores, part.scores])
    cut = float(np.partition(all_scores, -limit)[-limit]) if len(all_scores) > limit else 0.0
    rows = [row for live, part in parts for row in _named(live.segment, part, cut)]
    rows.sort()
    return {f"{document}:{ordinal}": -score for score, document, ordinal in rows[:limit]}


def _named(segment: Segment, part: ScoredPassages, cut: float) -> list[tuple[float, str, int]]:
    """(-score, document id, ordinal) of what is not below `cut`: sorts into the order of results."""
    above = np.flatnonzero(part.scores >= cut)
    numbers = part.numbers[above]
    rows = segment.document_of[numbers]
    ordinals = (numbers - segment.first[rows]).tolist()
    names = _names(segment.documents["document_id"][rows])
    return list(zip((-part.scores[above]).tolist(), names, ordinals, strict=True))


def _names(ids: NDArray[np.uint64]) -> list[str]:
    """Ids as strings. Formatted together: `uuid.UUID` takes three times as long for each."""
    digits = ids.astype(">u8").tobytes().hex()
    parts = (digits[start : start + 32] for start in range(0, len(digits), 32))
    return [f"{part[:8]}-{part[8:12]}-{part[12:16]}-{part[16:20]}-{part[20:]}" for part in parts]


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


def _visible(segment: Segment, view: View, documents: NDArray[np.uint64] | None) -> _Mask | None:
    """Which passages count: of documents that exist, are in scope and pass the filters."""
    seen, hidden = view.seen[segment.segment_id], view.hidden[segment.segment_id]
    if seen is None and hidden is None and documents is None:
        return None

    def visible(numbers: NDArray[np.intp]) -> Bools:
        rows = segment.document_of[numbers]
        counted = np.ones(len(rows), bool) if seen is None else seen[rows]
        if hidden is not None:
            counted = counted & ~hidden[numbers]
        if documents is not None:
            # Of the documents that were met only: of all of them it would take as long as all else together.
            met, places = np.unique(rows, return_inverse=True)
            counted &= _among(segment.documents["document_id"][met], documents)[places]
        return counted

    return visible


def _among(ids: NDArray[np.uint64], known: NDArray[np.uint64]) -> Bools:
    """Which of the ids (rows of two halves) are in `known`, whose upper halves ascend."""
    if not len(known):
        return np.zeros(len(ids), bool)
    places = np.minimum(np.searchsorted(known[:, 0], ids[:, 0]), len(known) - 1)
    equal: Bools = (known[places] == ids).all(axis=1)
    return equal


def _parsed(chunk_id: str) -> tuple[uuid.UUID, int]:
    document, _, ordinal = chunk_id.rpartition(":")
    return uuid.UUID(document), int(ordinal)
