"""Uploads as jobs: their files are in the database until they are read."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from dtrag.core.access.api_key import Caller
from dtrag.core.job import NewJob
from dtrag.core.taxonomy.tree import CategoryPath, Taxonomy
from dtrag.errors import ParseFailed
from dtrag.ingestion.sources import Ingest, IngestReport, Source
from dtrag.jobs.queue import Running
from dtrag.ports import JobStore

INGEST = "ingest"
SHOWN_DOCUMENTS = 1_000


class Uploads:
    """The kind of job that reads uploaded files.

    `place_of` gives the present path of a category: of a node, if it had one when the upload was made.
    """

    def __init__(
        self,
        store: JobStore,
        ingest: Ingest,
        place_of: Callable[[Sequence[str], int | None], Awaitable[Sequence[str]]],
    ) -> None:
        self._store = store
        self._ingest = ingest
        self._place_of = place_of

    async def run(self, running: Running) -> None:
        """Index the files. Raises `ParseFailed` when none could be read."""
        job, place = running.job, running.job.input["category"]
        folder = Path(await asyncio.to_thread(tempfile.mkdtemp, dir=running.folder))
        try:
            sources = []
            for number, file in enumerate(job.input["files"]):
                path = folder / f"{number:04}"
                await self._store.fetch_file(job.job_id, number, path)
                sources.append(Source(path, file["name"], file["uri"]))
            running.progress(0, len(sources))
            report = await self._ingest(
                sources,
                None if place is None else await self._place_of(place["path"], place["node_id"]),
                lambda now: running.progress(now.files, now.files_total),
                scope=running.caller.access,
                work=job.input["work"],
                effective=job.input["effective"],
                lease=job.lease,
                requested_at=job.created_at,
            )
        finally:
            shutil.rmtree(folder, ignore_errors=True)  # not in a thread: a second cancellation would not wait for it
        running.progress(len(sources), len(sources))
        running.result = _result(report, sources)
        if len(report.failed) == len(sources):
            file, reason = running.result["failed"][0].values()
            raise ParseFailed(f"{file}: {reason}")


def upload_job(
    caller: Caller,
    sources: Sequence[Source],
    category: CategoryPath | None,
    taxonomy: Taxonomy,
    *,
    work: str,
    effective: str | None,
) -> NewJob:
    """The job that indexes the files for the caller."""
    return NewJob(
        kind=INGEST,
        input={
            "files": [{"name": source.name, "uri": source.uri} for source in sources],
            "category": category and {"path": list(category.names), "node_id": taxonomy.find(category)},
            "work": work,
            "effective": effective,
        },
        maker=caller.key_id,
        maker_name=caller.name,
        lock_keys=[source.uri for source in sources],
    )


def _result(report: IngestReport, sources: Sequence[Source]) -> dict[str, Any]:
    """The report without paths of this machine and without categories, which may leave the scope of the maker."""
    names = {str(source.path): source.name for source in sources}
    ids = [str(document_id) for read in report.sources for document_id in read.document_ids]
    return {
        "document_ids": ids[:SHOWN_DOCUMENTS],
        "counts": {
            "documents": report.documents,
            "chunks": report.chunks,
            "unchanged": report.unchanged,
            "removed": report.removed,
            "failed": len(report.failed),
        },
        "failed": [{"file": names.get(path, "unnamed"), "reason": str(reason)} for path, reason in report.failed],
        "notes": list(map(str, report.notes)),
    }
