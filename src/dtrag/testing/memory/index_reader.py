"""Reading the in-memory index: every passage in scope is scored, by the same formulas as in PostgreSQL."""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from dtrag.core.access.addresses import shown_address
from dtrag.core.access.scope import EVERYTHING, NO_FILTERS, Scope, SearchFilters
from dtrag.core.document_listing import WHOLE_LIST, DocumentListing, Position, sort_title
from dtrag.core.document_text import DocumentText, PassageSpan
from dtrag.core.documents import DocumentSummary, IndexedChunk, SearchResult, Vector
from dtrag.core.editions import WorkBeginning, days
from dtrag.core.ranking.bm25 import LexicalQuery, LexicalStatistics, bm25_weight
from dtrag.core.ranking.segments import FREQUENCY_UNIT, quantised
from dtrag.core.taxonomy.tree import Taxonomy
from dtrag.core.text.analysis import terms
from dtrag.core.text.passage_title_mentions import title_key, title_number
from dtrag.ports import IndexSnapshot
from dtrag.testing.memory.state import ImaginedText, MemoryState, StoredDocument


@dataclass(frozen=True, slots=True)
class _Passage:
    """A passage with its document."""

    stored: StoredDocument
    indexed: IndexedChunk

    @property
    def chunk_id(self) -> str:
        return f"{self.stored.written.document_id}:{self.indexed.chunk.ordinal}"

    def frequencies(self) -> dict[int, float]:
        """Occurrences by term, as an index rounds them."""
        counts = quantised(self.indexed.frequencies) * FREQUENCY_UNIT
        return dict(zip(self.indexed.term_ids.tolist(), counts.tolist(), strict=True))


class MemoryIndex:
    """The search side of one state. Exact: nothing is approximated."""

    def __init__(self, state: MemoryState):
        self._state = state
        self._snapshot: IndexSnapshot | None = None

    async def snapshot(self) -> IndexSnapshot:
        """Settings, term statistics and the active taxonomy."""
        known = self._snapshot
        if known is None or known.settings != self._state.settings:
            statistics = _statistics(self._passages(EVERYTHING))
            waiting = frozenset(self._state.documents[key].node_id for key in self._state.waiting)
            imagined = frozenset(self._state.documents[key].node_id for key, _ in self._state.imagined)
            known = IndexSnapshot(dict(self._state.settings), statistics, self._state.taxonomy, waiting, imagined)
            self._snapshot = known
        return known

    async def lexical(self, query: LexicalQuery, scope: Scope, filters: SearchFilters, limit: int) -> dict[str, float]:
        """Chunk id -> BM25 of the best passages with at least one term of the query, best first."""
        passages = [
            passage for passage in self._passages(scope, filters) if query.required <= passage.frequencies().keys()
        ]
        scores = {passage.chunk_id: _bm25(query, passage) for passage in passages}
        return _best({key: score for key, score in scores.items() if score > 0}, limit)

    async def lexical_scores(self, query: LexicalQuery, chunk_ids: Sequence[str], scope: Scope) -> dict[str, float]:
        """Chunk id -> BM25 of these passages, if they are in scope; 0.0 without a term of the query."""
        return {passage.chunk_id: _bm25(query, passage) for passage in self._of(chunk_ids, scope)}

    async def strict(self, query: str, scope: Scope, filters: SearchFilters, limit: int) -> dict[str, float]:
        """Chunk id -> density of the query's words in the passages that hold every one of them."""
        words = set(terms(query))
        scores = {}
        for passage in self._passages(scope, filters) if words else ():
            counts = Counter(terms(passage.indexed.chunk.text))
            if words <= counts.keys():
                matches = sum(counts[word] for word in words)
                scores[passage.chunk_id] = matches / (counts.total() + 1)
        return _best(scores, limit)

    async def strict_note(self, scope: Scope) -> str:
        """Results of `strict` are always complete: ""."""
        return ""

    async def vectors(
        self, query: Vector, space: str, scope: Scope, filters: SearchFilters, limit: int
    ) -> dict[str, float]:
        """Chunk id -> cosine of the nearest passages, nearest first."""
        return _best(self._cosines(query, space, self._passages(scope, filters)), limit)

    async def vector_scores(
        self, query: Vector, space: str, chunk_ids: Sequence[str], scope: Scope
    ) -> dict[str, float]:
        """Chunk id -> cosine of these passages, if they are in scope and have a vector of the space."""
        return self._cosines(query, space, self._of(chunk_ids, scope))

    async def imagined(
        self, query: Vector, space: str, scope: Scope, filters: SearchFilters, limit: int
    ) -> dict[str, float]:
        """Chunk id -> cosine of the nearest of its imagined questions, of the `limit` nearest ones."""
        cosines = [
            (float(vector @ query), passage.chunk_id)
            for passage in self._passages(scope, filters)
            for model, vector in self._imagined(passage).vectors.values()
            if model == space
        ]
        nearest: dict[str, float] = {}
        for cosine, key in sorted(cosines, key=lambda each: (-each[0], each[1]))[:limit]:
            nearest.setdefault(key, cosine)
        return nearest

    async def imagined_scores(
        self, query: Vector, space: str, chunk_ids: Sequence[str], scope: Scope
    ) -> dict[str, float]:
        """Chunk id -> cosine of the nearest imagined question of these passages, if they are in scope."""
        scores: dict[str, float] = {}
        for passage in self._of(chunk_ids, scope):
            cosines = [
                float(vector @ query) for model, vector in self._imagined(passage).vectors.values() if model == space
            ]
            if cosines:
                scores[passage.chunk_id] = max(cosines)
        return scores

    async def imagined_by_words(
        self, terms: Sequence[tuple[int, float]], scope: Scope, filters: SearchFilters, limit: int
    ) -> dict[str, float]:
        """Chunk id -> the highest sum of weights of the terms that one imagined question of it contains."""
        scores = {
            passage.chunk_id: max(
                (
                    sum(weight for term, weight in terms if term in question.terms)
                    for question in self._imagined(passage).questions
                ),
                default=0.0,
            )
            for passage in self._passages(scope, filters)
        }
        return _best({key: score for key, score in scores.items() if score > 0}, limit)

    async def imagined_questions(self, chunk_ids: Sequence[str], scope: Scope) -> dict[str, list[str]]:
        """Chunk id -> the imagined questions of these passages, in scope."""
        return {
            passage.chunk_id: [question.text for question in imagined.questions]
            for passage in self._of(chunk_ids, scope)
            if (imagined := self._imagined(passage)).questions
        }

    def _imagined(self, passage: _Passage) -> ImaginedText:
        text = passage.indexed.chunk.text
        key = passage.stored.written.document_id, hashlib.sha256(text.encode()).digest()
        return self._state.imagined.get(key) or ImaginedText(text, (), "", datetime.now(UTC))

    async def statistics(self, terms: Collection[int], scope: Scope) -> LexicalStatistics:
        """What BM25 needs of the passages in scope, and of no others."""
        return _statistics(self._passages(scope))

    async def titled(self, numbers: Sequence[int], scope: Scope) -> dict[int, list[str]]:
        """Number of a title -> passages of the only document in scope that has it."""
        documents: dict[int, list[list[str]]] = {}
        for stored in self._state.seen(scope):
            number = title_number(title_key(stored.written.document.title))
            if number and number in numbers and (passages := _valid_chunk_ids(stored, scope)):
                documents.setdefault(number, []).append(passages)
        return {number: same[0] for number, same in documents.items() if len(same) == 1}

    async def holds_kind(self, kind: str, scope: Scope) -> bool:
        """Whether a document in scope has this `metadata["kind"]`."""
        return any(stored.written.document.metadata.get("kind") == kind for stored in self._state.seen(scope))

    async def work_beginnings(self, scope: Scope) -> list[WorkBeginning]:
        """Where the editions of each work in scope begin."""
        oldest: dict[tuple[uuid.UUID | None, int], tuple[date, str]] = {}
        for stored in self._state.seen(scope):
            edition = stored.written.edition
            if edition is not None and edition.work_id is not None and edition.effective_from is not None:
                parts = stored.validity.passages if stored.validity is not None else ()
                first_day = min([edition.effective_from, *(part.start for part in parts)])
                begins = first_day, stored.written.document.title
                work = edition.work_id, stored.node_id
                oldest[work] = min(begins, oldest.get(work, begins))
        return [WorkBeginning(title, day) for day, title in oldest.values()]

    async def chunk_ids(self, document_id: uuid.UUID, scope: Scope) -> list[str]:
        """The passages of a document in scope, in order; none of an inaccessible or unknown document."""
        stored = self._state.documents.get(document_id)
        return _chunk_ids(stored) if stored is not None and stored.in_scope(scope) else []

    def filter_clause(self, filters: SearchFilters, scope: Scope) -> tuple[str, dict[str, object]]:
        """The condition for filters and scope, and its parameters; the text never holds a value."""
        values: dict[str, object] = {
            "nodes": None if scope.nodes is None else sorted(scope.nodes),
            "content_types": None if filters.content_types is None else list(filters.content_types),
            "date_from": filters.date_from,
            "date_to": filters.date_to,
            "metadata": None if filters.metadata is None else dict(filters.metadata),
        }
        parameters = {name: value for name, value in values.items() if value is not None}
        return " ".join(f"and matches(:{name})" for name in parameters), parameters

    async def fetch(
        self, chunk_ids: Sequence[str], scope: Scope, taxonomy: Taxonomy, filters: SearchFilters = NO_FILTERS
    ) -> dict[str, SearchResult]:
        """The passages with these ids that the scope may see and the filters admit, without scores."""
        return {
            passage.chunk_id: _result(passage, taxonomy, scope)
            for passage in self._of(chunk_ids, scope)
            if _admits(filters, passage.stored)
        }

    async def preceding(self, chunk_ids: Sequence[str], scope: Scope, limit: int) -> dict[str, list[tuple[int, str]]]:
        """Chunk id -> start and text of the passages before it in its document, the nearest first."""
        before = {}
        for passage in self._of(chunk_ids, scope):
            last = passage.indexed.chunk.ordinal
            headings = passage.indexed.chunk.breadcrumb
            written = (indexed.chunk for indexed in passage.stored.written.chunks)
            chunks = [chunk for chunk in written if chunk.breadcrumb == headings]
            near = [
                chunk
                for chunk in chunks
                if last - limit <= chunk.ordinal < last and passage.stored.holds_valid(chunk.ordinal, scope)
            ]
            if near:
                before[passage.chunk_id] = [(chunk.start, chunk.text) for chunk in reversed(near)]
        return before

    async def documents(
        self, scope: Scope, taxonomy: Taxonomy, *, limit: int, offset: int = 0, listing: DocumentListing = WHOLE_LIST
    ) -> list[DocumentSummary]:
        """A page of the documents in scope that the listing has, in its order."""
        descends = listing.sort in {"newest", "largest"}
        rows = sorted(self._listed(scope, listing), key=lambda stored: stored.written.document_id)
        if listing.sort in {"oldest", "smallest"}:
            rows.reverse()
        rows.sort(key=lambda stored: _sort_key(stored, listing), reverse=descends)
        if listing.after is not None:
            rows = [stored for stored in rows if _is_behind(stored, listing, listing.after)]
        return [_summary(stored, taxonomy, scope) for stored in rows[offset : offset + limit]]

    async def counts(self, scope: Scope, listing: DocumentListing = WHOLE_LIST) -> tuple[int, int]:
        """Numbers of documents and chunks in scope that the listing has."""
        rows = self._listed(scope, listing)
        return len(rows), sum(stored.valid_passages(scope) for stored in rows)

    def _listed(self, scope: Scope, listing: DocumentListing) -> list[StoredDocument]:
        rows = []
        for stored in self._state.seen(scope):
            written, document = stored.written, stored.written.document
            if stored.is_listed(scope) and listing.admits(
                document.title, written.source_uri, written.source_path, document.content_type
            ):
                rows.append(stored)
        return rows

    async def document(
        self, document_id: uuid.UUID, scope: Scope, taxonomy: Taxonomy
    ) -> tuple[DocumentSummary, str] | None:
        """A document in scope with its text, or None."""
        stored = self._state.documents.get(document_id)
        if stored is None or not stored.in_scope(scope):
            return None
        return _summary(stored, taxonomy, scope), stored.written.document.text

    async def document_text(self, document_id: uuid.UUID, start: int, end: int, scope: Scope) -> DocumentText | None:
        """Part of a document in scope with its passages, or None."""
        stored = self._state.documents.get(document_id)
        if stored is None or not stored.in_scope(scope):
            return None
        text = stored.written.document.text
        first = min(start, len(text))
        spans = tuple(span for span in _spans(stored) if span.start < end and span.end > start)
        return DocumentText(str(document_id), len(text), first, min(end, len(text)), text[start:end], spans)

    async def passage_spans(
        self, document_id: uuid.UUID, limit: int, offset: int, scope: Scope
    ) -> tuple[list[PassageSpan], int] | None:
        """A page of the passages of a document in scope, and their number, or None."""
        stored = self._state.documents.get(document_id)
        if stored is None or not stored.in_scope(scope):
            return None
        spans = _spans(stored)
        return spans[offset : offset + limit], len(spans)

    async def close(self) -> None:
        """Nothing runs in the background."""

    def _passages(self, scope: Scope, filters: SearchFilters = NO_FILTERS) -> Iterator[_Passage]:
        for stored in self._state.seen(scope):
            if _admits(filters, stored):
                for indexed in stored.written.chunks:
                    if stored.holds_valid(indexed.chunk.ordinal, scope):
                        yield _Passage(stored, indexed)

    def _cosines(self, query: Vector, space: str, passages: Iterable[_Passage]) -> dict[str, float]:
        cosines = {}
        for passage in passages:
            vectors = self._state.vectors.get(passage.stored.written.document_id, {})
            model, vector = vectors.get(passage.indexed.chunk.ordinal, ("", query))
            if model == space:
                cosines[passage.chunk_id] = float(vector @ query)
        return cosines

    def _of(self, chunk_ids: Sequence[str], scope: Scope) -> Iterator[_Passage]:
        for chunk_id in chunk_ids:
            document, _, ordinal = chunk_id.rpartition(":")
            stored = self._state.documents.get(uuid.UUID(document))
            if stored is None or not stored.in_scope(scope):
                continue
            yield from (
                _Passage(stored, indexed)
                for indexed in stored.written.chunks
                if indexed.chunk.ordinal == int(ordinal) and stored.holds_valid(int(ordinal), scope)
            )


def _admits(filters: SearchFilters, stored: StoredDocument) -> bool:
    document = stored.written.document
    return filters.admits(document.content_type, stored.processed_at, document.metadata)


def _best(scores: Mapping[str, float], limit: int) -> dict[str, float]:
    return dict(sorted(scores.items(), key=_rank)[:limit])


def _rank(pair: tuple[str, float]) -> tuple[float, str, int]:
    document, _, ordinal = pair[0].rpartition(":")
    return -pair[1], document, int(ordinal)


def _bm25(query: LexicalQuery, passage: _Passage) -> float:
    frequencies = passage.frequencies()
    mean = query.mean_lengths.get(passage.indexed.language, 1.0)
    return sum(
        weight * bm25_weight(frequencies[term], passage.indexed.length, mean)
        for term, weight in query.ranked()
        if term in frequencies
    )


def _statistics(passages: Iterable[_Passage]) -> LexicalStatistics:
    counts: Counter[int] = Counter()
    lengths: dict[str, tuple[int, int]] = {}
    chunks = 0
    for passage in passages:
        chunks += 1
        counts.update(passage.indexed.term_ids.tolist())
        number, total = lengths.get(passage.indexed.language, (0, 0))
        lengths[passage.indexed.language] = number + 1, total + passage.indexed.length
    term_ids = sorted(counts)
    frequencies = np.array([counts[term] for term in term_ids], np.int64)
    return LexicalStatistics(np.array(term_ids, np.int64), frequencies, chunks, lengths)


def _chunk_ids(stored: StoredDocument) -> list[str]:
    return [f"{stored.written.document_id}:{indexed.chunk.ordinal}" for indexed in stored.written.chunks]


def _valid_chunk_ids(stored: StoredDocument, scope: Scope) -> list[str]:
    ordinals = [indexed.chunk.ordinal for indexed in stored.written.chunks]
    return [f"{stored.written.document_id}:{ordinal}" for ordinal in ordinals if stored.holds_valid(ordinal, scope)]


def _address(stored: StoredDocument, scope: Scope) -> str:
    return shown_address(stored.written.source_uri, stored.written.source_path, server_paths=scope.server_paths)


def _spans(stored: StoredDocument) -> list[PassageSpan]:
    return [
        PassageSpan(
            f"{stored.written.document_id}:{chunk.ordinal}",
            chunk.ordinal,
            chunk.start,
            chunk.end,
            tuple(chunk.breadcrumb),
            chunk.metadata,
        )
        for chunk in (indexed.chunk for indexed in stored.written.chunks)
    ]


def _result(passage: _Passage, taxonomy: Taxonomy, scope: Scope) -> SearchResult:
    stored, chunk = passage.stored, passage.indexed.chunk
    part = stored.validity.of(chunk.ordinal) if stored.validity is not None else None
    document = stored.written.document
    return SearchResult(
        chunk_id=passage.chunk_id,
        text=chunk.text,
        title=document.title,
        source_url=_address(stored, scope),
        taxonomy_path=list(taxonomy.path(stored.node_id)),
        metadata={
            **document.metadata,
            **chunk.metadata,
            **(days(part.start, part.end) if part is not None else {}),
            "document_id": str(stored.written.document_id),
            "content_type": document.content_type,
            "language": stored.written.language,
            "processed_at": stored.processed_at.isoformat(),
        },
        breadcrumb=tuple(chunk.breadcrumb),
        start=chunk.start,
        end=chunk.end,
    )


def _sort_key(stored: StoredDocument, listing: DocumentListing) -> Any:
    if listing.sort == "title":
        return sort_title(stored.written.document.title)
    return stored.processed_at if listing.sort in {"newest", "oldest"} else len(stored.written.document.text)


def _is_behind(stored: StoredDocument, listing: DocumentListing, after: Position) -> bool:
    key, document_id = _sort_key(stored, listing), stored.written.document_id
    descends = listing.sort in {"newest", "largest"}
    if key != after.key:
        return bool(key < after.key if descends else key > after.key)
    return document_id > after.document_id if descends or listing.sort == "title" else document_id < after.document_id


def _summary(stored: StoredDocument, taxonomy: Taxonomy, scope: Scope) -> DocumentSummary:
    document = stored.written.document
    return DocumentSummary(
        document_id=str(stored.written.document_id),
        title=document.title,
        source_url=_address(stored, scope),
        content_type=document.content_type,
        taxonomy_path=taxonomy.path(stored.node_id),
        language=stored.written.language,
        chunks=len(stored.written.chunks),
        characters=len(document.text),
        metadata={**document.metadata, **(days(stored.validity.start, stored.validity.end) if stored.validity else {})},
        processed_at=stored.processed_at.isoformat(),
    )
