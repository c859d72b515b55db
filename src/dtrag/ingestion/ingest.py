"""The way of a document into the index: file → parser → passages → terms and vectors → one transaction.

Documents are collected into batches over all files; a batch is acknowledged (counted in the report and the progress)
when the database has it on disk. A file that was read to its end without a failure is remembered, so that the same
bytes are skipped next time and documents that have left it are removed.
"""

from __future__ import annotations

import asyncio
import hashlib
import unicodedata
import uuid
from array import array
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dtrag.core.access.scope import EVERYTHING, Scope
from dtrag.core.documents import ChunkedDocument, Draft, IndexedDocument, ParsedDocument, document_id
from dtrag.core.taxonomy.tree import UNCLASSIFIED, CategoryPath, Taxonomy
from dtrag.core.text.analysis import Analyzer, clean
from dtrag.errors import InvalidInput, ParseFailed
from dtrag.ingestion import chunking
from dtrag.ingestion.analysis import cleaned, fingerprint, index
from dtrag.ingestion.chunking import CHUNKER
from dtrag.ingestion.classify import Classifier
from dtrag.ingestion.write_guard import Fence
from dtrag.ports import Embedder, IndexWriter, Parser

BATCH_CHUNKS = 512
"""Chunks per batch, about: large enough that the flush to disk is a small share, small enough for steady progress."""
QUEUED_BATCHES = 2
SHOWN_DOCUMENTS = 1_000
"""Ids that are remembered of one file, to be shown."""
LONG_DOCUMENT = 100_000
"""Characters from which a document is cut in a thread: that takes about 30 ms then."""
SHOWN_REFUSALS = 5
"""Documents of one file with a category that cannot be that are named in the report."""

CONTENT_BYTES = 32
"""Of a source's fingerprint, the first: they depend on the content of the file only."""

Splitter = Callable[[ParsedDocument], Iterable[ChunkedDocument] | None]


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
    """What an ingest did. `failed` holds (path, reason) of what could not be read; everything else is in the index.

    `waiting` of them are in the review queue. `structure` counts what a pack recognised: `{"article": 5039}`.
    `skipped` holds (path, reason) of files in folders that are of no known kind. With `prune`, `renamed` holds
    (old, new) paths, and `pruned` the paths of files that were gone; `removed` counts their documents, too.
    """

    documents: int = 0
    chunks: int = 0
    unchanged: int = 0
    removed: int = 0
    files: int = 0
    waiting: int = 0
    seconds: float = 0.0
    failed: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    renamed: list[tuple[str, str]] = field(default_factory=list)
    pruned: list[str] = field(default_factory=list)
    document_ids: list[str] = field(default_factory=list)
    structure: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Source:
    """A file to read: where it lies, and the name and address under which its documents are known.

    After the run `document_ids` holds the ids of its documents (the first 1,000), and `unchanged` tells that the same
    bytes were there already. `kept` holds the upper 64 bits of all ids: 8 bytes a document of a file of any size.
    `source_path` is the path below the ingested folder, with slashes; the name of a file that was named itself.
    """

    path: Path
    name: str
    uri: str
    document_ids: list[uuid.UUID] = field(default_factory=list)
    kept: array[int] = field(default_factory=lambda: array("Q"))
    fingerprint: bytes = b""
    failed: bool = False
    unchanged: bool = False
    source_path: str = ""
    source_id: uuid.UUID = field(init=False)

    def __post_init__(self) -> None:
        self.source_id = document_id(self.uri)

    @classmethod
    def of(cls, path: Path, folder: Path | None = None) -> Source:
        """A file on this machine, found in `folder` or named itself."""
        name = unicodedata.normalize("NFC", path.name)
        below = name if folder is None else unicodedata.normalize("NFC", path.relative_to(folder).as_posix())
        # Before the address escapes it: there a decomposed letter would stay another one.
        uri = Path(unicodedata.normalize("NFC", str(path.resolve()))).as_uri()
        return cls(path, name, uri, source_path=below)


@dataclass(slots=True)
class _Batch:
    drafts: list[Draft] = field(default_factory=list)
    finished: list[Source] = field(default_factory=list)
    chunks: int = 0


class Ingestion:
    """Reads sources into one index."""

    def __init__(
        self,
        writer: IndexWriter,
        parser: Parser,
        embedder: Embedder | None,
        splitters: Sequence[Splitter] = (),
        analyzer: Analyzer = Analyzer(),
        *,
        classifier: Classifier | None = None,
    ):
        self._writer = writer
        self._parser = parser
        self._embedder = embedder
        self._analyzer = analyzer
        self._splitters = splitters
        self._classifier = classifier

    async def run(
        self,
        sources: Sequence[Source],
        category: CategoryPath | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        scope: Scope = EVERYTHING,
    ) -> IngestReport:
        """Read every source; a file that fails is reported and the rest goes on.

        Nothing outside of `scope` is written or overwritten. Raises `InvalidInput` when it is not everything and there
        is no category, and `Forbidden` when that lies outside.
        """
        report = IngestReport(files=len(sources))
        fence = Fence(self._writer, scope)
        await fence.admit(category)
        read: asyncio.Queue[_Batch | None] = asyncio.Queue(QUEUED_BATCHES)
        analysed: asyncio.Queue[tuple[_Batch, list[IndexedDocument]] | None] = asyncio.Queue(QUEUED_BATCHES)
        await self._writer.recover()
        progress = Progress(0, len(sources), 0, 0, "")

        def tell(**changes: Any) -> None:
            nonlocal progress
            progress = replace(progress, **changes)
            if on_progress is not None:
                on_progress(progress)

        def was_read(source: Source, chunks: int) -> None:
            tell(files_read=progress.files_read + 1, chunks_read=chunks, current=source.name)

        async def reading() -> None:
            async with aclosing(self._batches(sources, category, report, fence, was_read)) as produced:
                async for batch in produced:
                    await read.put(batch)
            await read.put(None)

        async def analysing() -> None:
            while (batch := await read.get()) is not None:
                documents = await index(batch.drafts, self._embedder, self._analyzer)
                if self._classifier is not None:
                    documents, waiting = await self._classifier.prepare(documents)
                    report.waiting += waiting
                await analysed.put((batch, documents))
            await analysed.put(None)

        async def writing() -> None:
            done = 0
            while (work := await analysed.get()) is not None:
                batch, documents = work
                await self._write(batch, documents, report, fence.scope)
                done += len(batch.finished)
                current = batch.finished[-1].name if batch.finished else progress.current
                tell(files=done, documents=report.documents, chunks=report.chunks, current=current)

        try:
            async with asyncio.TaskGroup() as tasks:
                for stage in (reading(), analysing(), writing()):
                    tasks.create_task(stage)
        except* Exception as group:  # noqa: BLE001 - the first cause is what the caller can act on
            raise group.exceptions[0] from None
        if report.documents or report.removed:
            await self._writer.tidy()
        return report

    async def _write(
        self, batch: _Batch, documents: Sequence[IndexedDocument], report: IngestReport, scope: Scope
    ) -> None:
        await self._writer.write(documents, scope)
        report.documents += len(documents)
        report.chunks += batch.chunks
        report.document_ids.extend(
            str(document.document_id) for document in documents[: 10_000 - len(report.document_ids)]
        )
        for source in batch.finished:
            if not (source.failed or source.unchanged):
                report.removed += await self._writer.finish_source(
                    source.source_id, source.uri, source.fingerprint, source.kept, scope
                )

    async def _batches(
        self,
        sources: Sequence[Source],
        category: CategoryPath | None,
        report: IngestReport,
        fence: Fence,
        was_read: Callable[[Source, int], None],
    ) -> AsyncGenerator[_Batch, None]:
        """`was_read` is called after each file, with the number of passages of all files so far."""
        batch = _Batch()
        chunks_read = 0
        taxonomy = await self._writer.ensure_paths([category] if category else [])
        for source in sources:
            try:
                await fence.check_source(source.source_id)
                source.fingerprint = await asyncio.to_thread(self._source_fingerprint, source.path, category)
                if await self._writer.source_fingerprint(source.source_id) == source.fingerprint:
                    report.unchanged += 1
                    source.unchanged = True
                    source.document_ids = await self._writer.documents_of(source.source_id, SHOWN_DOCUMENTS)
                else:
                    refused: list[str] = []
                    async with aclosing(self._parser.parse(source.path, source.name)) as parsed:
                        async for document in parsed:
                            await asyncio.sleep(0)  # what was read ahead must not hold up the writer
                            for passages in await self._passages(document):
                                try:
                                    draft, taxonomy = await self._draft(source, passages, category, taxonomy, fence)
                                except InvalidInput as error:
                                    refused.append(f"{document.title}: {error}")
                                    continue
                                _count(report, passages)
                                batch.drafts.append(draft)
                                batch.chunks += len(passages.chunks)
                                chunks_read += len(passages.chunks)
                            if batch.chunks >= BATCH_CHUNKS or len(batch.drafts) >= BATCH_CHUNKS:
                                yield await self._changed(batch, report)
                                batch = _Batch()
                    if refused:
                        raise InvalidInput(_summary(refused))
            except (ParseFailed, InvalidInput, OSError) as error:
                source.failed = True
                reason = f"{error.strerror}." if isinstance(error, OSError) and error.strerror else str(error)
                report.failed.append((str(source.path), reason))
            batch.finished.append(source)
            was_read(source, chunks_read)
        if batch.drafts or batch.finished:
            yield await self._changed(batch, report)

    async def _passages(self, document: ParsedDocument) -> Iterable[ChunkedDocument]:
        """The document's passages; a long document is cut in a thread, for seconds of it would hold up the service."""
        if len(document.text) < LONG_DOCUMENT:
            return self._split(document)
        return await asyncio.to_thread(list, self._split(document))

    def _split(self, document: ParsedDocument) -> Iterator[ChunkedDocument]:
        document = cleaned(document)
        for splitter in self._splitters:
            found = splitter(document)
            if found is not None:
                yield from found
                return
        yield chunking.split(document)

    async def _draft(
        self,
        source: Source,
        passages: ChunkedDocument,
        category: CategoryPath | None,
        taxonomy: Taxonomy,
        fence: Fence,
    ) -> tuple[Draft, Taxonomy]:
        document = passages.document
        path = CategoryPath.parse(document.category_path) if document.category_path else category
        if path is None:
            node = UNCLASSIFIED
        else:
            fence.check(path, taxonomy)
            found = taxonomy.find(path)
            if found is None:
                taxonomy = await self._writer.ensure_paths([path])
                found = taxonomy.find(path)
            node = found if found is not None else UNCLASSIFIED
            fence.made(node)
            document = replace(document, category_path=path.names)
        uri = f"{source.uri}#{document.part}" if document.part else source.uri
        draft = Draft(
            document_id(uri),
            ChunkedDocument(document, passages.chunks),
            source.source_id,
            uri,
            node,
            fingerprint(document, self._embedder, self._analyzer),
            source_path=clean(source.source_path),
        )
        source.kept.append(draft.document_id.int >> 64)
        if len(source.document_ids) < SHOWN_DOCUMENTS:
            source.document_ids.append(draft.document_id)
        return draft, taxonomy

    async def _changed(self, batch: _Batch, report: IngestReport) -> _Batch:
        """The batch without the documents that are there already, and without a second document of the same id."""
        distinct = {draft.document_id: draft for draft in batch.drafts}
        there = await self._writer.fingerprints(list(distinct))
        drafts = [
            replace(draft, replaces=key in there)
            for key, draft in distinct.items()
            if there.get(key) != draft.fingerprint
        ]
        report.unchanged += len(distinct) - len(drafts)
        return _Batch(drafts, batch.finished, sum(len(draft.passages.chunks) for draft in drafts))

    def _source_fingerprint(self, path: Path, category: CategoryPath | None) -> bytes:
        """The digest of the content, then one of what it is read with: a renamed file is known by the first part."""
        versions = (self._analyzer.id, CHUNKER, self._embedder.id if self._embedder else "", str(category))
        read_with = hashlib.blake2b("\n".join(versions).encode(), digest_size=16)
        return content_digest(path) + read_with.digest()


def content_digest(path: Path) -> bytes:
    """`CONTENT_BYTES` bytes that stand for the bytes of a file. Blocking."""
    digest = hashlib.blake2b(digest_size=CONTENT_BYTES)
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.digest()


def _summary(refused: Sequence[str]) -> str:
    more = "; …" if len(refused) > SHOWN_REFUSALS else ""
    return f"{len(refused):,} documents of it: {'; '.join(refused[:SHOWN_REFUSALS])}{more}"


def _count(report: IngestReport, passages: ChunkedDocument) -> None:
    kind = passages.document.metadata.get("kind")
    if kind:
        report.structure[str(kind)] += 1
    for chunk in passages.chunks:
        if chunk.metadata.get("kind") and chunk.metadata.get("piece", 1) == 1:
            report.structure[str(chunk.metadata["kind"])] += 1
