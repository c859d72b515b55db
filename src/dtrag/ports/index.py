"""Ports of documents: parsing files, writing the index, searching it, and following renamed files."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dtrag.core.access.scope import EVERYTHING, NO_FILTERS, Scope, SearchFilters
from dtrag.core.answers.sentence_vectors import SentenceVectors
from dtrag.core.document_listing import WHOLE_LIST, DocumentListing, DocumentText, PassageSpan
from dtrag.core.documents import DocumentSummary, Draft, IndexedDocument, ParsedDocument, SearchResult, Vector
from dtrag.core.editions import Edition, WorkBeginning
from dtrag.core.ranking.bm25 import LexicalQuery, LexicalStatistics
from dtrag.core.statements import Statement
from dtrag.core.taxonomy.tree import CategoryPath, Taxonomy
from dtrag.errors import IndexMismatch


@dataclass(frozen=True, slots=True)
class IndexSnapshot:
    """State of the index at one generation.

    `settings` holds the stored settings by name (`generation`, `vectors`, `analyzer`, `spaces`, `calibration`);
    `statistics` are those of all passages, whatever their scope. `waiting` are the categories of documents with
    passages that wait for their vectors, `imagined` those of passages with imagined questions.
    """

    settings: Mapping[str, Any]
    statistics: LexicalStatistics
    taxonomy: Taxonomy
    waiting: frozenset[int] = frozenset()
    imagined: frozenset[int] = frozenset()

    @property
    def generation(self) -> int:
        """Number that grows with every committed write of documents, categories or settings."""
        return int(self.settings["generation"])

    @property
    def version(self) -> tuple[int, int]:
        """The generation, and the number of the last change of the vectors: results depend on both."""
        return self.generation, int(self.settings.get("vectors", 0))

    def awaits_vectors(self, scope: Scope, language: str, space: str) -> bool:
        """Whether a passage in scope may wait for its vector, for questions in this language and space.

        All do while another model is recorded for the language: its vectors are not compared.
        """
        if self.settings.get("spaces", {}).get(language, space) != space:
            return True
        return bool(self.waiting if scope.nodes is None else self.waiting & scope.nodes)

    def has_imagined(self, scope: Scope) -> bool:
        """Whether a passage in scope has imagined questions."""
        return bool(self.imagined if scope.nodes is None else self.imagined & scope.nodes)


class IndexChanged(Exception):
    """The index was written after the snapshot that a read is based on."""


def check_identity(settings: Mapping[str, Any], analyzer: str) -> None:
    """Raise `IndexMismatch` when the index with these settings was built with another analyzer."""
    built_with = settings.get("analyzer", analyzer)
    if built_with != analyzer:
        raise IndexMismatch(stored=built_with, configured=analyzer)


def valid_day(scope: Scope) -> date:
    """The day whose editions a read returns: that of the scope, else today by the clock of this machine."""
    return scope.as_of or datetime.now().date()


class Index(Protocol):
    """Reads of the index. Every read takes the caller's scope and returns nothing from outside it.

    Of editions of regulations, all reads but `chunk_ids` and `document` return what is valid on `valid_day(scope)`.

    A chunk id is `DOCUMENT_ID:ORDINAL`. All methods raise `DatabaseUnavailable` when the store cannot be reached.
    """

    @property
    def latest(self) -> IndexSnapshot | None:
        """The snapshot that was read last, without a look whether there is a newer one; None before the first."""

    async def snapshot(self) -> IndexSnapshot:
        """Settings, term statistics and active taxonomy of one generation: that of the last committed write."""

    async def lexical(self, query: LexicalQuery, scope: Scope, filters: SearchFilters, limit: int) -> dict[str, float]:
        """Chunk id -> BM25 score (> 0) of the `limit` best passages with a term and all required ones, best first."""

    async def strict(self, query: str, scope: Scope, filters: SearchFilters, limit: int) -> dict[str, float]:
        """Chunk id -> ts_rank_cd of the `limit` best passages that contain every word of the query, best first."""

    async def strict_note(self, scope: Scope) -> Statement | None:
        """Why results of `strict` may be incomplete at the moment; "" when they are complete."""

    async def vectors(
        self, query: Vector, space: str, scope: Scope, filters: SearchFilters, limit: int
    ) -> dict[str, float]:
        """Chunk id -> cosine similarity of the `limit` nearest passages, nearest first. `query` has shape (dim,).

        Only vectors of `space` are compared: those of the model with this id.
        """

    async def chunk_ids(self, document_id: uuid.UUID, scope: Scope) -> list[str]:
        """Passages of a document in their order; empty when the document does not exist or is out of scope."""

    async def lexical_scores(self, query: LexicalQuery, chunk_ids: Sequence[str], scope: Scope) -> dict[str, float]:
        """Chunk id -> BM25 score of exactly these passages; 0.0 without a query term, absent when out of scope."""

    async def statistics(self, terms: Collection[int], scope: Scope) -> LexicalStatistics:
        """BM25 statistics of these terms over the passages in scope; passages outside it do not contribute."""

    async def preceding(self, chunk_ids: Sequence[str], scope: Scope, limit: int) -> dict[str, list[tuple[int, str]]]:
        """Chunk id -> start and text of those of the `limit` passages before it that are under its headings.

        The nearest first.

        Absent when there are none or the passage is out of scope.
        """

    async def sentence_vectors(self, passages: Sequence[SearchResult], space: str, scope: Scope) -> SentenceVectors:
        """The stored vectors of sentences of these texts by the model with the id `space`.

        Absent when out of scope, when the text is another one by now, or while there are none.
        """

    async def titled(self, numbers: NDArray[np.uint64], scope: Scope) -> dict[int, list[str]]:
        """Title number (core/text/passage_title_mentions.py) -> chunk ids of the document with that title.

        Titles that no document in scope has, or several have, are absent.
        """

    async def holds_kind(self, kind: str, scope: Scope) -> bool:
        """Whether a document in scope has this `metadata["kind"]`."""

    async def work_beginnings(self, scope: Scope) -> list[WorkBeginning]:
        """Where the editions of each work in scope begin, whatever the day of the scope."""

    async def vector_scores(
        self, query: Vector, space: str, chunk_ids: Sequence[str], scope: Scope
    ) -> dict[str, float]:
        """Chunk id -> cosine similarity of exactly these passages; absent when out of scope or without one."""

    async def imagined(
        self, query: Vector, space: str, scope: Scope, filters: SearchFilters, limit: int
    ) -> dict[str, float]:
        """Chunk id -> cosine of the `limit` nearest imagined questions; of the nearest one of each passage, nearest
        first."""

    async def imagined_scores(
        self, query: Vector, space: str, chunk_ids: Sequence[str], scope: Scope
    ) -> dict[str, float]:
        """Chunk id -> cosine of the nearest imagined question of exactly these passages.

        Absent when out of scope or without one.
        """

    async def imagined_by_words(
        self, terms: Sequence[tuple[int, float]], scope: Scope, filters: SearchFilters, limit: int
    ) -> dict[str, float]:
        """Chunk id -> the highest sum of the weights of the `terms` that one imagined question of it contains, best
        first, of `limit` passages."""

    async def imagined_questions(self, chunk_ids: Sequence[str], scope: Scope) -> dict[str, list[str]]:
        """Chunk id -> the imagined questions of these passages, in scope. They are never text of the documents."""

    def filter_clause(self, filters: SearchFilters, scope: Scope) -> tuple[str, dict[str, object]]:
        """Condition for filters and scope, and its parameters; values are never part of the text."""

    async def fetch(
        self,
        chunk_ids: Sequence[str],
        scope: Scope,
        taxonomy: Taxonomy,
        filters: SearchFilters = NO_FILTERS,
        *,
        version: tuple[int, int] | None = None,
    ) -> dict[str, SearchResult]:
        """Chunk id -> passage, without scores.

        Scope and filters are applied to the current state of the document, which may have changed since the search:
        passages that no longer pass are absent. Raises `IndexChanged` if `version` (that of a snapshot) is no longer
        the index's once the passages are read.
        """


class DocumentIndex(Index, Protocol):
    """An index that also lists its documents and shows their texts."""

    async def documents(
        self, scope: Scope, taxonomy: Taxonomy, *, limit: int, offset: int = 0, listing: DocumentListing = WHOLE_LIST
    ) -> list[DocumentSummary]:
        """A page of the documents in scope that the listing has, in its order."""

    async def document(
        self, document_id: uuid.UUID, scope: Scope, taxonomy: Taxonomy
    ) -> tuple[DocumentSummary, str] | None:
        """A document in scope with its text, or None."""

    async def document_text(self, document_id: uuid.UUID, start: int, end: int, scope: Scope) -> DocumentText | None:
        """The text of a document in scope from `start` to `end` in code points, with the passages there, or None.

        Text and passages are of the same version of the document.
        """

    async def passage_spans(
        self, document_id: uuid.UUID, limit: int, offset: int, scope: Scope
    ) -> tuple[list[PassageSpan], int] | None:
        """A page of the passages of a document in scope, in order, and their total number, or None."""

    async def sample(self, limit: int, seed: int, scope: Scope) -> list[str]:
        """Chunk ids of up to `limit` passages in scope, in a random order that the seed decides."""

    async def counts(self, scope: Scope, listing: DocumentListing = WHOLE_LIST) -> tuple[int, int]:
        """Numbers of documents and of passages in scope that the listing has, wherever it begins."""

    async def forget_deleted(self) -> None:
        """Remove what the files still contain of documents that the segments of the index contain no more."""

    async def close(self) -> None:
        """Stop work in the background."""


@dataclass(frozen=True, slots=True)
class StoredWork:
    """A regulation over time in one category: its id, its code and folded name, and the source of its newest edition.

    `editions` maps documents to their dates.
    """

    work_id: uuid.UUID
    work: tuple[str, str]
    node_id: int
    source_id: uuid.UUID
    editions: Mapping[uuid.UUID, date]


class IndexWriter(Protocol):
    """Writes of the index. All methods raise `DatabaseUnavailable`; those that add data raise `StorageFull`."""

    async def fingerprints(self, document_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, bytes]:
        """Document id -> fingerprint, for the documents that exist."""

    async def write(self, documents: Sequence[IndexedDocument], scope: Scope = EVERYTHING) -> None:
        """Insert or replace each document as a whole; durable and searchable when this returns.

        Raises `Forbidden` when a document with the same id exists outside of `scope`.
        """

    async def editions_of(self, source_id: uuid.UUID) -> dict[str, Edition]:
        """Address -> newest edition that the source contained, for its documents with a date."""

    async def contains_others(self, source_id: uuid.UUID) -> bool:
        """Whether the source contains an edition whose document belongs to another source, which was read later."""

    async def source_fingerprint(self, source_id: uuid.UUID) -> bytes | None:
        """Fingerprint of a source that was read to its end, or None."""

    async def keep_decisions(self, document_ids: Sequence[uuid.UUID], since: datetime) -> int:
        """Move documents to where reviewers have put them since then; returns how many."""

    async def successor(self, node_id: int) -> int:
        """The node, or for a deleted one that which took its documents."""

    async def documents_of(self, source_id: uuid.UUID, most: int) -> list[uuid.UUID]:
        """The first `most` documents of a source, ordered by id."""

    async def reaches_out(self, source_id: uuid.UUID, scope: Scope) -> bool:
        """Whether a document of this source lies outside of the scope."""

    async def finish_source(
        self, source_id: uuid.UUID, uri: str, fingerprint: bytes, current: Sequence[int], scope: Scope = EVERYTHING
    ) -> int:
        """Record that a source was read to its end, and delete its documents in scope that are not in `current`.

        `current` holds the upper 64 bits of the ids of its documents. Superseded editions of regulations stay. Returns
        the number of deleted documents. An edition that another source contains goes to that one, which is read again.
        """

    async def drop_source(self, source_id: uuid.UUID, scope: Scope, current: Sequence[int] = ()) -> list[uuid.UUID]:
        """Delete the documents of a source in scope that are not in `current`, but for superseded editions.

        The work of a deleted edition ends: earlier editions do not become valid again. Returns the deleted documents.
        An edition that another source contains goes to that one, which is read again.
        """

    async def works(self, works: Collection[tuple[str, str]]) -> list[StoredWork]:
        """The works with dated editions that have one of these codes and folded names."""

    async def delete(self, document_id: uuid.UUID, scope: Scope, *, ends: bool = False) -> bool:
        """Delete a document; False when it does not exist or is out of scope.

        The edition before a deleted one is valid again, unless `ends`.
        """

    async def read_back(self, after: uuid.UUID | None, limit: int) -> list[Draft]:
        """The next `limit` documents as they were written, ordered by id, after the id `after` (None: the first)."""

    async def recover(self) -> int:
        """Make the batches that a crashed writer committed but did not index searchable; returns their number."""

    async def tidy(self) -> None:
        """Merge and vacuum after many writes, so that searching stays fast."""

    async def forget_deleted(self) -> None:
        """Remove documents that were deleted more than an hour ago from the segments of the index and their files."""

    async def ensure_paths(self, paths: Collection[CategoryPath]) -> Taxonomy:
        """The active taxonomy, after adding those of the paths that it lacked."""


class IndexSettings(Protocol):
    """What the index was built with, its calibration, the own entries of the lexicon, and changed settings.

    All methods raise `DatabaseUnavailable`.
    """

    async def register(self, analyzer: str) -> str:
        """Record the analyzer, when none is recorded. Raises `IndexMismatch` when another one is.

        Returns what an earlier release added to the fingerprints of sources: the id of its embedder, or "".
        """

    async def forget(self) -> None:
        """Delete everything that was computed from the documents, which stay, to be indexed again."""

    async def rebuilt(self) -> None:
        """Record that every document has been indexed again after `forget`."""

    async def store_calibration(self, value: Mapping[str, Any]) -> None:
        """Replace the calibration of the confidence."""

    async def forget_calibration(self) -> bool:
        """Return to the shipped weights; whether there was a calibration."""

    async def stored(self, name: str) -> Any:
        """The value of a setting; None when it is not stored."""

    async def replace(self, name: str, value: Mapping[str, Any], previous: Mapping[str, Any] | None) -> bool:
        """Replace a setting, such as the own entries of the lexicon; False, without a change, when what is stored is
        not `previous`."""


class Parser(Protocol):
    """Parses files of the supported formats, in a process with limited memory and time."""

    def knows(self, name: str) -> bool:
        """Whether the format of a file with this name is supported."""

    def parse(self, path: Path, name: str) -> AsyncGenerator[ParsedDocument, None]:
        """Yields the documents in the file at `path`; `name` is its display name and decides the format.

        Raises `ParseFailed` with a reason that users understand, possibly after some documents were yielded.
        """

    async def close(self) -> None:
        """Stop the process."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file with indexed documents, or with editions whose documents belong to another file.

    `fingerprint` is b"" when the file was not read to its end.
    """

    source_id: uuid.UUID
    uri: str
    fingerprint: bytes
    documents: int


class FolderStore(Protocol):
    """Indexed files by address, and what has to follow a renamed file."""

    async def files_below(self, prefix: str) -> list[StoredFile]:
        """Files with documents whose addresses start with `prefix`, ordered by address."""

    async def drafts_of(self, source_id: uuid.UUID, after: uuid.UUID | None, limit: int) -> list[Draft]:
        """The next `limit` documents of a file as they were written, ordered by id, after the id `after`."""

    async def copy_vectors(self, moved: Mapping[uuid.UUID, uuid.UUID]) -> None:
        """Copy the vectors of the passages of old documents to those of new ones, which have the same passages."""

    async def move_review_state(self, moved: Mapping[uuid.UUID, uuid.UUID]) -> None:
        """Transfer decisions, placements and review items from old document ids to new ones."""

    async def retained_below(self, prefix: str) -> list[uuid.UUID]:
        """Superseded editions from files with such addresses that do not contain them any more."""
