"""Files to read, what reading each of them gave, and the report of an ingest."""

from __future__ import annotations

import functools
import hashlib
import unicodedata
import uuid
from array import array
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from pathlib import Path
from typing import Protocol

from dtrag.core.access.scope import Viewer
from dtrag.core.documents import ChunkedDocument, document_id
from dtrag.core.job import Lease
from dtrag.core.statements import Statement
from dtrag.core.taxonomy.classification import Classification
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.ingestion.exclusion import Excluded

SHOWN_DOCUMENTS = 1_000
"""Ids of the documents of one file that a report can show."""
CONTENT_BYTES = 32
"""The first bytes of a source's fingerprint: they depend on the content of the file only."""


@dataclass(frozen=True)
class Source:
    """A file to read, and the name and address of its documents.

    `source_path` is the path below the ingested folder, with slashes; for a file that was named itself, its name.
    `fetch` writes a file that is elsewhere to `path`, which is deleted after it was read. `category` is where all its
    documents belong, whatever they state themselves.
    """

    path: Path
    name: str
    uri: str
    source_path: str = ""
    fetch: Callable[[], Awaitable[None]] | None = None
    category: CategoryPath | None = None

    @property
    def shown(self) -> str:
        """What people know it by: its path, or its address elsewhere."""
        return str(self.path) if self.fetch is None else self.uri

    @functools.cached_property
    def source_id(self) -> uuid.UUID:
        """Derived from the address."""
        return document_id(self.uri)

    @classmethod
    def of(cls, path: Path, folder: Path | None = None) -> Source:
        """A file on this machine, found in `folder` or named itself."""
        name = unicodedata.normalize("NFC", path.name)
        below = name if folder is None else unicodedata.normalize("NFC", path.relative_to(folder).as_posix())
        # Normalised before it is escaped: an escaped decomposed letter would differ from the composed one.
        uri = Path(unicodedata.normalize("NFC", str(path.resolve()))).as_uri()
        return cls(path, name, uri, source_path=below)


@dataclass(slots=True)
class ReadSource:
    """What reading a source gave. `unchanged`: the index has the same bytes, read with the same analyzer and embedder.

    `document_ids` holds the ids of its first 1,000 documents, `id_halves` the upper 64 bits of all of them: 8 bytes a
    document, whatever the size of the file.
    """

    source: Source
    fingerprint: bytes = b""
    failed: bool = False
    unchanged: bool = False
    document_ids: list[uuid.UUID] = field(default_factory=list)
    id_halves: array[int] = field(default_factory=lambda: array("Q"))

    def add(self, identifier: uuid.UUID) -> None:
        """Remember the id of a document."""
        self.id_halves.append(identifier.int >> 64)
        if len(self.document_ids) < SHOWN_DOCUMENTS:
            self.document_ids.append(identifier)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an ingest is. `files`, `documents` and `chunks` are durable; `files_read` and `chunks_read` are ahead."""

    files: int
    files_total: int
    documents: int
    chunks: int
    current: str
    files_read: int = 0
    chunks_read: int = 0


@dataclass(slots=True)
class IngestReport:
    """What an ingest did. `failed` holds (path, reason) of files that could not be read; the rest is in the index.

    `waiting` counts documents in the review queue, `unstored_originals` PDF files that were not stored, as they are too
    large or contain several documents. `placements` holds why documents are in their categories.
    `structure` counts what a pack recognised: `{"article": 5039}`. `effective` counts the editions by their dates.
    `skipped` holds (path, reason) of files of unknown formats in folders, `excluded` what patterns left out of
    them. With `prune`, `renamed` holds (old, new) paths, and `pruned` the paths of deleted and excluded files,
    whose documents `removed` includes.
    """

    documents: int = 0
    chunks: int = 0
    unchanged: int = 0
    removed: int = 0
    files: int = 0
    waiting: int = 0
    unstored_originals: int = 0
    seconds: float = 0.0
    failed: list[tuple[str, Statement]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    excluded: list[Excluded] = field(default_factory=list)
    renamed: list[tuple[str, str]] = field(default_factory=list)
    pruned: list[str] = field(default_factory=list)
    document_ids: list[str] = field(default_factory=list)
    placements: dict[uuid.UUID, Classification] = field(default_factory=dict, repr=False)
    structure: Counter[str] = field(default_factory=Counter)
    effective: Counter[date] = field(default_factory=Counter)
    notes: list[Statement] = field(default_factory=list)
    sources: list[ReadSource] = field(default_factory=list, repr=False)

    def add(self, other: IngestReport) -> None:
        """Add what another ingest did."""
        for declared in fields(self):
            mine, more = getattr(self, declared.name), getattr(other, declared.name)
            if isinstance(mine, list):
                mine += more
            elif isinstance(mine, dict):
                mine.update(more)
            else:
                setattr(self, declared.name, mine + more)

    def note_editions(self, today: date) -> None:
        """Note the editions that searches do not return yet."""
        later = [day for day in self.effective.elements() if day > today]
        if later:
            text = (
                f"{len(later):,} of the regulations take effect later, the first on {min(later)}: until then searches "
                "return their earlier editions, if there are any."
            )
            self.notes.append(Statement("", text))

    def count_structure(self, document: ChunkedDocument) -> None:
        """Count the kinds of the document and of its passages; of a passage in pieces the first one."""
        kind = document.document.metadata.get("kind")
        if kind:
            self.structure[str(kind)] += 1
        for chunk in document.chunks:
            if chunk.metadata.get("kind") and chunk.metadata.get("piece", 1) == 1:
                self.structure[str(chunk.metadata["kind"])] += 1


class Ingest(Protocol):
    """`App.ingest_sources`."""

    async def __call__(
        self,
        sources: Sequence[Source],
        category: Sequence[str] | str | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        *,
        scope: Viewer | None = None,
        work: str = "",
        effective: str | None = None,
        lease: Lease | None = None,
        requested_at: datetime | None = None,
    ) -> IngestReport: ...


def content_digest(path: Path) -> bytes:
    """A digest of a file's bytes, `CONTENT_BYTES` long. Blocking."""
    digest = hashlib.blake2b(digest_size=CONTENT_BYTES)
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.digest()
