"""The pipeline of documents into the index: file → parser → passages → terms → one transaction.

Documents are collected into batches over all files; a batch is acknowledged (counted in the report and the progress)
when the database has it on disk. A file that was read to its end without a failure is recorded: the next ingest skips
the same bytes, and removes the documents that are no longer in the file. Vectors follow (ingestion/vectors.py).
"""

from __future__ import annotations

import asyncio
import copy
import uuid
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import islice

from dtrag.core.access.scope import EVERYTHING, Scope
from dtrag.core.documents import Draft, IndexedDocument, document_id
from dtrag.core.statements import stated
from dtrag.core.taxonomy.classification import Classification
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.core.text.analysis import Analyzer
from dtrag.core.text.personal_data_policy import OFF, PersonalDataPolicy
from dtrag.ingestion.analysis import analyse_documents, fingerprint
from dtrag.ingestion.classify import Classifier
from dtrag.ingestion.editions import Editions
from dtrag.ingestion.personal_data import reapplied
from dtrag.ingestion.source_reader import MAX_ORIGINAL_BYTES, Batch, SourceReader, Splitter
from dtrag.ingestion.sources import IngestReport, Progress, ReadSource, Source
from dtrag.ingestion.write_guard import WriteGuard
from dtrag.ports import FolderStore, IndexWriter, Parser, Stores

QUEUED_BATCHES = 2
"""Batches that may wait before each stage: reading and analysing run ahead of the writer by so much."""
REPORTED_IDS = 10_000
OnProgress = Callable[[Progress], None]


class Ingestion:
    """Reads sources into one index."""

    def __init__(
        self,
        writer: IndexWriter,
        parser: Parser,
        splitters: Sequence[Splitter] = (),
        analyzer: Analyzer = Analyzer(),
        *,
        folders: FolderStore,
        classifier: Classifier | None = None,
        max_passages: int,
        personal_data: PersonalDataPolicy = OFF,
        keeps_originals: bool = False,
    ):
        self._writer = writer
        self._keeps_originals = keeps_originals
        self._personal_data = personal_data
        self._parser = parser
        self._analyzer = analyzer
        self._splitters = splitters
        self._folders = folders
        self._classifier = classifier
        self._max_passages = max_passages

    def over(self, stores: Stores) -> Ingestion:
        """The same, writing to other stores."""
        other = copy.copy(self)
        other._writer, other._folders = stores.writer, stores.folders
        other._classifier = self._classifier.over(stores.placements) if self._classifier is not None else None
        return other

    async def run(
        self,
        sources: Sequence[Source],
        category: CategoryPath | None = None,
        on_progress: OnProgress | None = None,
        scope: Scope = EVERYTHING,
        *,
        work: str = "",
        effective_from: date | None = None,
        read_with: str = "",
        requested_at: datetime | None = None,
    ) -> IngestReport:
        """Read every source; a file that fails is reported, and the others are read.

        What reviewers decided about these documents since `requested_at` (None: the start) stays decided.

        `work` and `effective_from` are the name and date of editions that state none; `read_with`: see
        `IndexSettings.register`. Nothing outside of `scope` is written or overwritten. Raises `InvalidInput` for a
        limited scope without a category, and `Forbidden` for a category outside of the scope.
        """
        requested_at, report = requested_at or datetime.now(UTC), IngestReport(files=len(sources))
        guard = WriteGuard(self._writer, scope)
        await guard.admit(category)
        editions = Editions(self._writer, guard, name=work, effective_from=effective_from)
        reader = SourceReader(
            self._writer,
            self._parser,
            self._splitters,
            read_with=read_with,
            analyzer=self._analyzer,
            category=category,
            guard=guard,
            editions=editions,
            report=report,
            max_passages=self._max_passages,
            personal_data=self._personal_data,
            keeps_originals=self._keeps_originals,
        )
        await self._writer.recover()
        await _Run(self, reader, guard, report, on_progress).execute(sources)
        present = {uuid.UUID(each) for each in report.document_ids}
        present.update(*(read.document_ids for read in report.sources))  # of an earlier attempt, too
        await self._writer.keep_decisions(sorted(present), requested_at)
        if editions.unstated:
            report.notes.append(
                stated(
                    "documents_undated",
                    "{count} documents state no date: that of the index still counts. Change it with --effective.",
                    count=f"{editions.unstated:,}",
                )
            )
        if report.unstored_originals:
            text = (
                "{count} PDF files are not kept as originals: they are larger than {limit} MiB or contain several "
                "documents. Their texts are searched and shown as usual."
            )
            count, limit = f"{report.unstored_originals:,}", MAX_ORIGINAL_BYTES >> 20
            report.notes.append(stated("originals_unstored", text, count=count, limit=limit))
        if report.documents or report.removed:
            await self._writer.tidy()
        return report

    async def analysed(
        self, batch: Batch, report: IngestReport, works: dict[uuid.UUID, Classification]
    ) -> list[IndexedDocument]:
        """The documents of a batch with terms and, without a category of their own, a classified one.

        `works` holds the classified works of the run.
        """
        documents = await analyse_documents(batch.drafts, self._analyzer)
        await self._keep_decisions(batch)
        if self._classifier is not None:
            documents, placements = await self._classifier.prepare(documents, works)
            report.waiting += sum(not placement.accepted for placement in placements.values())
            report.placements.update(islice(placements.items(), REPORTED_IDS - len(report.placements)))
        return documents

    async def _keep_decisions(self, batch: Batch) -> None:
        """What people decided about a document that was undated belongs to the edition that replaces it."""
        dated = [draft for draft in batch.drafts if draft.edition is not None and draft.edition.work_id is not None]
        ids = {document_id(draft.source_uri): draft.document_id for draft in dated}
        undated = await self._writer.fingerprints(list(ids)) if ids else {}
        if undated:
            await self._folders.move_review_state({key: ids[key] for key in undated})

    async def write(
        self, batch: Batch, documents: Sequence[IndexedDocument], report: IngestReport, scope: Scope
    ) -> None:
        """Write the documents, and record the sources that are finished with them."""
        await self._writer.write(documents, scope)
        report.documents += len(documents)
        report.chunks += batch.chunks
        shown = documents[: REPORTED_IDS - len(report.document_ids)]
        report.document_ids.extend(str(document.document_id) for document in shown)
        for read in batch.finished:
            report.sources.append(read)
            if not (read.failed or read.unchanged):
                report.removed += await self._writer.finish_source(
                    read.source.source_id,
                    self._personal_data.masked_address(read.source.uri),
                    read.fingerprint,
                    read.id_halves,
                    scope,
                )


class _Run:
    """One run: reading, analysing and writing side by side, with short queues between them."""

    def __init__(
        self,
        ingestion: Ingestion,
        reader: SourceReader,
        guard: WriteGuard,
        report: IngestReport,
        on_progress: OnProgress | None,
    ) -> None:
        self._ingestion = ingestion
        self._reader = reader
        self._guard = guard
        self._report = report
        self._on_progress = on_progress
        self._progress = Progress(0, report.files, 0, 0, "")
        self._read: asyncio.Queue[Batch | None] = asyncio.Queue(QUEUED_BATCHES)
        self._analysed: asyncio.Queue[tuple[Batch, list[IndexedDocument]] | None] = asyncio.Queue(QUEUED_BATCHES)

    async def execute(self, sources: Sequence[Source]) -> None:
        """Read, analyse and write all sources. Raises the first error of a stage, and cancels the others."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for stage in (self._read_all(sources), self._analyse_all(), self._write_all()):
                    tasks.create_task(stage)
        except* Exception as group:  # noqa: BLE001 - the first cause is what the caller can act on
            raise group.exceptions[0] from None

    async def _read_all(self, sources: Sequence[Source]) -> None:
        async with aclosing(self._reader.batches(sources, self._source_read)) as batches:
            async for batch in batches:
                await self._read.put(batch)
        await self._read.put(None)

    async def _analyse_all(self) -> None:
        works: dict[uuid.UUID, Classification] = {}
        while (batch := await self._read.get()) is not None:
            await self._analysed.put((batch, await self._ingestion.analysed(batch, self._report, works)))
        await self._analysed.put(None)

    async def _write_all(self) -> None:
        while (work := await self._analysed.get()) is not None:
            batch, documents = work
            await self._ingestion.write(batch, documents, self._report, self._guard.scope)
            self._show(
                replace(
                    self._progress,
                    files=len(self._report.sources),
                    documents=self._report.documents,
                    chunks=self._report.chunks,
                    current=batch.finished[-1].source.name if batch.finished else self._progress.current,
                )
            )

    def _source_read(self, read: ReadSource) -> None:
        self._show(
            replace(
                self._progress,
                files_read=self._progress.files_read + 1,
                chunks_read=self._reader.chunks_read,
                current=read.source.name,
            )
        )

    def _show(self, progress: Progress) -> None:
        self._progress = progress
        if self._on_progress is not None:
            self._on_progress(progress)


BATCH_DOCUMENTS = 200


async def reindex(
    writer: IndexWriter,
    on_progress: Callable[[int], None] | None = None,
    analyzer: Analyzer = Analyzer(),
    personal_data: PersonalDataPolicy = OFF,
    *,
    keeps_originals: bool = False,
) -> int:
    """Rewrite all documents, in the order of their ids, with the same passages; returns how many.

    Personal data are marked or masked in them now, and originals deleted unless they are kept.
    """
    done = 0
    after: uuid.UUID | None = None
    while drafts := await writer.read_back(after, BATCH_DOCUMENTS):
        drafts = await asyncio.to_thread(lambda page: [reapplied(draft, personal_data) for draft in page], drafts)
        if not keeps_originals:
            drafts = [replace(draft, original=b"") for draft in drafts]
        marked = [replace(draft, fingerprint=_fingerprint(draft, analyzer), replaces=True) for draft in drafts]
        await writer.write(await analyse_documents(marked, analyzer))
        after = drafts[-1].document_id
        done += len(drafts)
        if on_progress is not None:
            on_progress(done)
    await writer.tidy()
    return done


def _fingerprint(draft: Draft, analyzer: Analyzer) -> bytes:
    return fingerprint(
        draft.passages.document,
        analyzer,
        edition=draft.edition,
        uri=draft.source_uri,
        personal_data=draft.personal_data,
    )
