"""Reads files into batches of documents that are ready to be analysed."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Protocol

from dtrag.core.documents import ChunkedDocument, Draft, ParsedDocument, document_id
from dtrag.core.statements import Statement, stated, statement_of
from dtrag.core.taxonomy.tree import UNCLASSIFIED, CategoryPath
from dtrag.core.text.analysis import Analyzer, clean
from dtrag.core.text.personal_data_policy import PersonalDataPolicy
from dtrag.errors import DtragError, InvalidInput, ParseFailed, SourceUnavailable
from dtrag.ingestion import chunking
from dtrag.ingestion.analysis import cleaned, fingerprint
from dtrag.ingestion.chunking import CHUNKER, PDF_READER
from dtrag.ingestion.editions import Editions
from dtrag.ingestion.personal_data import applied
from dtrag.ingestion.sources import SHOWN_DOCUMENTS, IngestReport, ReadSource, Source, content_digest
from dtrag.ingestion.write_guard import WriteGuard
from dtrag.ports import IndexWriter, Parser

BATCH_CHUNKS = 512
"""Chunks per batch, about: large enough that the flush to disk is a small share, small enough for steady progress."""
LONG_DOCUMENT = 100_000
"""Characters from which a document is cut in a thread: it takes about 30 ms."""
MOST_NEW_CATEGORIES = 1_000
"""That one file may create: each changes the tree, which takes longer the larger it is (1,000 take 6 s)."""
MAX_ORIGINAL_BYTES = 32 << 20
"""Of a file that is stored with its document; a batch is written when it holds so much of them."""
SHOWN_REFUSALS = 5
"""Documents of one file with an impossible category that the report names."""


class Splitter(Protocol):
    """Cuts the documents that it recognises; None for the others. `most`: passages of each, at most."""

    def __call__(self, document: ParsedDocument, /, *, most: int) -> Iterable[ChunkedDocument] | None: ...


@dataclass(slots=True)
class Batch:
    """Documents to write together. The last documents of the `finished` sources are in it or in an earlier one."""

    drafts: list[Draft] = field(default_factory=list)
    finished: list[ReadSource] = field(default_factory=list)

    @property
    def chunks(self) -> int:
        """Passages of all documents."""
        return sum(len(draft.passages.chunks) for draft in self.drafts)


class SourceReader:
    """Reads the sources of one run. `report` gets the failures and what is unchanged.

    `read_with`: see `IndexSettings.register`.
    """

    def __init__(
        self,
        writer: IndexWriter,
        parser: Parser,
        splitters: Sequence[Splitter],
        *,
        read_with: str,
        analyzer: Analyzer,
        category: CategoryPath | None,
        guard: WriteGuard,
        editions: Editions,
        report: IngestReport,
        max_passages: int,
        personal_data: PersonalDataPolicy,
        keeps_originals: bool,
    ) -> None:
        self._writer = writer
        self._keeps_originals = keeps_originals
        self._original = b""
        self._batch_bytes = 0
        self._personal_data = personal_data
        self._max_passages = max_passages
        self._parser = parser
        self._splitters = splitters
        self._read_with = read_with
        self._analyzer = analyzer
        self._category = category
        self._guard = guard
        self._editions = editions
        self._report = report
        self._batch = Batch()
        self._batch_chunks = 0
        self._new_categories = 0
        self.chunks_read = 0

    async def batches(
        self, sources: Sequence[Source], on_read: Callable[[ReadSource], None]
    ) -> AsyncGenerator[Batch, None]:
        """The documents of the sources, in order. `on_read` is called after each source."""
        self._taxonomy = await self._writer.ensure_paths([self._category] if self._category else [])
        for source in sources:
            read = ReadSource(source)
            self._new_categories = 0
            async with aclosing(self._read(read)) as batches:
                async for batch in batches:
                    yield batch
            self._batch.finished.append(read)
            on_read(read)
        if self._batch.drafts or self._batch.finished:
            yield await self._take()

    async def _read(self, read: ReadSource) -> AsyncGenerator[Batch, None]:
        """The batches that fill up while a source is read. A failure ends the source and is reported."""
        source, refusals = read.source, list[str]()
        try:
            await self._guard.check_source(source.source_id)
            if source.fetch is not None:
                await source.fetch()
            read.fingerprint = await asyncio.to_thread(self._source_fingerprint, source)
            if await self._writer.source_fingerprint(source.source_id) == read.fingerprint:
                self._report.unchanged += 1
                read.unchanged = True
                read.document_ids = await self._writer.documents_of(source.source_id, SHOWN_DOCUMENTS)
                return
            self._original = await asyncio.to_thread(self._original_of, source)
            async with aclosing(self._parser.parse(source.path, source.name)) as documents:
                async for document in documents:
                    await asyncio.sleep(0)  # reading ahead must not hold up the writer
                    await self._add(document, read, refusals)
                    if (
                        self._batch_chunks >= BATCH_CHUNKS
                        or len(self._batch.drafts) >= BATCH_CHUNKS
                        or self._batch_bytes >= MAX_ORIGINAL_BYTES
                    ):
                        yield await self._take()
            if refusals:
                raise InvalidInput(_summary(refusals))
        except (ParseFailed, InvalidInput, SourceUnavailable, OSError) as error:
            read.failed = True
            reason = statement_of(error) if isinstance(error, DtragError) else _unreadable(error)
            self._report.failed.append((source.shown, reason))
        finally:
            if source.fetch is not None:
                source.path.unlink(missing_ok=True)

    async def _add(self, document: ParsedDocument, read: ReadSource, refusals: list[str]) -> None:
        """Put a document into the batch; a pack may make several of it. Raises `InvalidInput` for a whole file."""
        try:
            parts = await self._passages(document)
        except InvalidInput as error:
            if not document.part:
                raise
            refusals.append(f"{document.title}: {error}")
            return
        original = self._original if len(parts) == 1 else b""
        self._report.unstored_originals += self._keeps_originals and not original and is_pdf(read.source.name)
        for passages in parts:
            try:
                draft = await self._draft(read.source, passages, original)
            except InvalidInput as error:
                refusals.append(f"{document.title}: {error}")
                continue
            read.add(draft.document_id)
            self._report.count_structure(passages)
            if draft.edition is not None and draft.edition.effective_from is not None:
                self._report.effective[draft.edition.effective_from] += 1
            self._batch.drafts.append(draft)
            self._batch_chunks += len(passages.chunks)
            self._batch_bytes += len(original)
            self.chunks_read += len(passages.chunks)

    async def _passages(self, document: ParsedDocument) -> list[ChunkedDocument]:
        """The document cut into passages; a long one in a thread, since seconds of work would hold up the service.

        Raises `InvalidInput` for too many of them.
        """
        if len(document.text) < LONG_DOCUMENT:
            return self._split(document)
        return await asyncio.to_thread(self._split, document)

    def _split(self, document: ParsedDocument) -> list[ChunkedDocument]:
        parts: list[ChunkedDocument] = []
        passages = 0
        for part in self._cut(cleaned(document)):
            parts.append(applied(part, self._personal_data))
            passages += len(part.chunks)
            if passages > self._max_passages:
                text = "its text makes more than {limit} passages; split the file, or raise the setting max_passages"
                raise InvalidInput(stated("document_passages", text, limit=f"{self._max_passages:,}"))
        return parts

    def _cut(self, document: ParsedDocument) -> Iterator[ChunkedDocument]:
        most = self._max_passages + 1
        for splitter in self._splitters:
            recognised = splitter(document, most=most)
            if recognised is not None:
                yield from recognised
                return
        yield chunking.split(document, most=most)

    async def _draft(self, source: Source, passages: ChunkedDocument, file: bytes) -> Draft:
        """The document with its id, address and category. Raises `InvalidInput` for an impossible category."""
        document, node = passages.document, UNCLASSIFIED
        path = source.category or self._category
        if document.category_path and source.category is None:
            path = CategoryPath.parse(document.category_path)
        if path is not None:
            node = await self._node(path)
            document = replace(document, category_path=path.names)
        original = f"{source.uri}#{document.part}" if document.part else source.uri
        uri = self._personal_data.masked_address(original)
        edition = await self._editions.completed(passages.edition, source.source_id, uri)
        draft = Draft(
            document_id(original),
            ChunkedDocument(document, passages.chunks),
            source.source_id,
            uri,
            node,
            fingerprint(
                document,
                self._analyzer,
                edition=edition,
                uri=uri,
                personal_data=self._personal_data.id,
                original=file,
            ),
            source_path=self._personal_data.masked_address(clean(source.source_path)),
            edition=edition,
            personal_data=self._personal_data.id,
            original=file,
        )
        return await self._editions.joined(draft, self._taxonomy)

    async def _node(self, path: CategoryPath) -> int:
        """The node of a category, created when it is missing. Raises `InvalidInput` for one outside the scope."""
        self._guard.check(path, self._taxonomy)
        node = self._taxonomy.find(path)
        if node is None:
            if self._new_categories >= MOST_NEW_CATEGORIES:
                text = "{path} would be one category too many: a file creates at most {limit}; correct category_path"
                raise InvalidInput(stated("categories_new", text, path=path, limit=f"{MOST_NEW_CATEGORIES:,}"))
            before = len(self._taxonomy.nodes)
            self._taxonomy = await self._writer.ensure_paths([path])
            self._new_categories += len(self._taxonomy.nodes) - before
            node = self._taxonomy.find(path)
        if node is None:
            return UNCLASSIFIED
        self._guard.include(node)
        return node

    async def _take(self) -> Batch:
        """The batch so far, without documents that the index has and without a second document of one id."""
        distinct = {draft.document_id: draft for draft in self._batch.drafts}
        stored = await self._writer.fingerprints(list(distinct))
        drafts = [
            replace(draft, replaces=True) if key in stored else draft
            for key, draft in distinct.items()
            if stored.get(key) != draft.fingerprint
        ]
        self._report.unchanged += len(distinct) - len(drafts)
        batch = Batch(drafts, self._batch.finished)
        self._batch, self._batch_chunks, self._batch_bytes = Batch(), 0, 0
        return batch

    def _source_fingerprint(self, source: Source) -> bytes:
        """The digest of the content, then one of what it is read with: renamed files are found by the first part."""
        versions = (
            self._analyzer.id,
            PDF_READER if is_pdf(source.name) else CHUNKER,
            self._read_with,
            str(self._category),
            self._editions.id,
            *filter(None, [self._personal_data.id]),
            *(["originals"] if self._keeps_originals and is_pdf(source.name) else []),
        )
        read_with = hashlib.blake2b("\n".join(versions).encode(), digest_size=16)
        return content_digest(source.path) + read_with.digest()

    def _original_of(self, source: Source) -> bytes:
        """The bytes of a PDF to be stored with its document; b"" for none."""
        if not (self._keeps_originals and is_pdf(source.name)) or source.path.stat().st_size > MAX_ORIGINAL_BYTES:
            return b""
        return source.path.read_bytes()


def is_pdf(name: str) -> bool:
    """Whether a file of this name is a PDF."""
    return name.lower().endswith(".pdf")


def _summary(refusals: Sequence[str]) -> Statement:
    more = "; …" if len(refusals) > SHOWN_REFUSALS else ""
    reasons = f"{'; '.join(refusals[:SHOWN_REFUSALS])}{more}"
    return stated(
        "documents_refused", "{count} of its documents: {reasons}", count=f"{len(refusals):,}", reasons=reasons
    )


def _unreadable(error: OSError) -> Statement:
    if not error.strerror:
        return Statement("", str(error))
    return stated("file_read_failed", "{reason}.", reason=error.strerror)
