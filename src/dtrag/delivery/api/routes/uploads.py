"""`POST /documents`: index uploaded files, which are in a private folder until then."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import tempfile
import unicodedata
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser

from dtrag.core.access.api_key import Caller
from dtrag.core.job import Job
from dtrag.core.statements import Statement, stated
from dtrag.core.taxonomy.classification import Classification
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.delivery.api.dependencies import Service, service_of
from dtrag.delivery.api.errors import error_body
from dtrag.delivery.api.permissions import WRITE, caller_of
from dtrag.delivery.api.request_tasks import until_done
from dtrag.delivery.api.routes.jobs import QueuedJob
from dtrag.delivery.api.routing import NoteStatements, ReasonStatements, failures, media_type
from dtrag.errors import DatabaseUnavailable, InvalidInput
from dtrag.ingestion.sources import IngestReport, Source

router = APIRouter(tags=["documents"])
MAX_FILES = 100
MAX_FIELDS = 10
MAX_FIELD_BYTES = 64 << 10
MAX_NAME = 255
_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["files"],
                    "properties": {
                        "files": {
                            "type": "array",
                            "items": {"type": "string", "format": "binary"},
                            "minItems": 1,
                            "maxItems": MAX_FILES,
                            "description": "The files; a file of the same name replaces the earlier one.",
                        },
                        "category": {
                            "type": "string",
                            "description": "Category of documents that state none themselves.",
                            "example": "HR/Leave",
                        },
                        "work": {
                            "type": "string",
                            "description": "The regulation that the files are editions of, if they do not name one.",
                            "example": "학칙",
                        },
                        "effective": {
                            "type": "string",
                            "format": "date",
                            "description": "Effective date of regulations that state none.",
                            "example": "2024-03-01",
                        },
                    },
                }
            }
        },
    }
}


_TEXT_FIELDS = {"category": "HR/Leave", "work": "학칙", "effective": "2024-03-01"}
"""Form fields besides the files, each with an example."""
SAME_NAME = stated("upload_same_name", "Another file of this upload has the same name.")


class PlacementShape(BaseModel):
    """Where an upload put a document, and why."""

    taxonomy_path: list[str] = Field(
        description="The category, outermost name first; with `hitl` the proposed one, [] for none."
    )
    confidence: float = Field(description="Confidence in [0, 1]; 1 where a document or a person names the category.")
    hitl: bool = Field(description="Whether it waits for a human review; until then it has no category.")
    reasons: list[str] = Field(description="Reasons for the reader.")
    reason_statements: tuple[Statement, ...] = Field(description="The reasons with codes.")

    @classmethod
    def of(cls, result: Classification) -> PlacementShape:
        """The shape of a classification."""
        return cls(
            taxonomy_path=list(result.path),
            confidence=round(result.confidence, 4),
            hitl=not result.accepted,
            reasons=list(map(str, result.reasons)),
            reason_statements=result.reasons,
        )


class UploadedDocument(BaseModel):
    """An indexed, searchable document."""

    document_id: str = Field(description="Its id.")
    file: str = Field(description="Its file.")
    unchanged: bool = Field(description="Whether the same file was indexed before.")
    placement: PlacementShape | None = Field(
        description="Its category; null if it is unchanged, and while there are no categories."
    )


class FailedFile(BaseModel):
    """A file that could not be read completely."""

    file: str = Field(description="Its name.")
    reason: str = Field(description="The reason.")
    reason_statements: ReasonStatements

    @classmethod
    def of(cls, file: str, reason: Statement) -> FailedFile:
        """The file with its reason."""
        return cls(file=file, reason=str(reason), reason_statements=(reason,))


class UploadCounts(BaseModel):
    """Counts of an upload."""

    documents: int = Field(description="New or changed documents.")
    chunks: int = Field(description="Their passages.")
    unchanged: int = Field(description="Files or documents that were indexed before.")
    removed: int = Field(
        description="Documents of an earlier file of the same name that the new file no longer contains."
    )
    failed: int = Field(description="Files that failed.")


class UploadResponse(BaseModel):
    """The result of an upload; everything in `documents` is searchable."""

    documents: list[UploadedDocument] = Field(description="At most 1,000 for each file.")
    counts: UploadCounts = Field(description="Counts of all files and documents.")
    failed: list[FailedFile] = Field(description="Files that could not be read, with reasons.")
    notes: list[str] = Field(description="Notes for the reader.")
    note_statements: NoteStatements


@router.post(
    "/documents",
    status_code=201,
    response_model=UploadResponse,
    responses={
        202: {"model": QueuedJob, "description": "With `wait=false`: the files are stored."},
        **failures(400, 403, 409, 413, 415, 422, 503, 507),
    },
    openapi_extra=_FORM,
    dependencies=WRITE,
)
async def upload(
    request: Request,
    wait: Annotated[
        bool, Query(description="false: respond when the files are stored; a job indexes them, see GET /jobs.")
    ] = True,
) -> Response:
    """Index the files; they are searchable when the response is sent.

    201 if at least one file was indexed; 422 with the same body and a `detail` if every file failed.
    """
    if not wait:
        job = await queue_upload(request, service_of(request), caller_of(request))
        request.state.subjects = [str(job.job_id)]
        return JSONResponse(QueuedJob.of(job).model_dump(), 202)
    result = await ingest_upload(request, service_of(request), caller_of(request))
    request.state.subjects = [document.document_id for document in result.documents]
    body = result.model_dump()
    if result.documents or not result.failed:
        return JSONResponse(body, 201)
    first = result.failed[0]
    files = f"None of the {len(result.failed)} files could be read; {first.file}" if result.failed[1:] else first.file
    return JSONResponse({**error_body(f"{files}: {first.reason}", "ParseFailed"), **body}, 422)


def display_name(file_name: str) -> str:
    """A safe name for an uploaded file: its last part, NFC, without control characters, at most 255 characters.

    It is displayed and determines the format; on disk the file has another name.
    """
    last = unicodedata.normalize("NFC", file_name).replace("\\", "/").rpartition("/")[2]
    name = "".join(c for c in last if unicodedata.category(c)[0] != "C").strip()
    if not name.strip("."):
        return "unnamed"
    if len(name) > MAX_NAME:
        stem, dot, suffix = name.rpartition(".")
        ending = dot + suffix if stem and len(suffix) <= 10 else ""
        name = name[: MAX_NAME - len(ending)] + ending
    return name


async def ingest_upload(request: Request, service: Service, caller: Caller) -> UploadResponse:
    """Read the form, index its files and return the response. Complete files are indexed even if the client leaves.

    Raises `InvalidInput` and `HTTPException` for an invalid form, `Forbidden` for a category outside the caller's
    branches, and `Overloaded` when too many uploads are waiting.
    """
    async with _upload(request, service, caller) as (sources, refused, fields):
        await service.app.require_no_queued(sources, caller)
        work = service.app.ingest_sources(
            sources,
            fields.get("category"),
            scope=caller.access,
            work=fields.get("work", ""),
            effective=fields.get("effective"),
        )
        report = await until_done(service.in_flight, work)
    return _response(report, sources, refused)


async def queue_upload(request: Request, service: Service, caller: Caller) -> Job:
    """Read the form and store its files with the job that indexes them. Raises what `ingest_upload` raises.

    Two files of one name are refused, since no report could mention it.
    """
    async with _upload(request, service, caller) as (sources, refused, fields):
        if refused:
            raise InvalidInput(SAME_NAME)
        work = service.app.queue_upload(
            sources,
            fields.get("category"),
            caller=caller,
            work=fields.get("work", ""),
            effective=fields.get("effective"),
        )
        return await until_done(service.in_flight, work)


@asynccontextmanager
async def _upload(
    request: Request, service: Service, caller: Caller
) -> AsyncIterator[tuple[list[Source], list[FailedFile], dict[str, str]]]:
    """The files of the form on disk while the block runs, those refused for their names, and the other fields."""
    if media_type(request)[0] != "multipart/form-data":
        raise HTTPException(415, "Send the files as multipart/form-data, in parts named files")
    async with service.app.run.admission.upload():
        try:
            folder = Path(await asyncio.to_thread(tempfile.mkdtemp, dir=service.uploads))
        except OSError as error:
            raise DatabaseUnavailable(
                f"Nothing was read: no file can be written to the data folder ({error.strerror}). Make its disk "
                "writable, then send the files again."
            ) from error
        try:
            parts, fields = _read_form(await _received(request, folder))
            prefix = _address_prefix(fields.get("category")) if caller.access.grants else ""
            yield *_sources(parts, prefix), fields
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


class _FileOnDisk(UploadFile):
    """A file of a form, written to `path`."""

    def __init__(self, path: Path, filename: str | None) -> None:
        super().__init__(path.open("xb"), size=0, filename=filename)
        self.path = path

    async def seek(self, offset: int) -> None:
        """Called by the parser when the file is complete. It is read by its path, so its descriptor is closed."""
        await self.close()


class _FormOnDisk(MultiPartParser):
    """The framework's parser, writing files into our folder; an incomplete form is an error."""

    def __init__(self, request: Request, folder: Path) -> None:
        super().__init__(
            request.headers,
            request.stream(),
            max_files=MAX_FILES,
            max_fields=MAX_FIELDS,
            max_part_size=MAX_FIELD_BYTES,
        )
        self._folder = folder
        self._ended = False

    def on_headers_finished(self) -> None:
        """A part begins. The framework would keep the start of a file in memory, and the rest in the shared /tmp."""
        super().on_headers_finished()
        part = self._current_part
        if part.file is not None:
            in_memory = self._files_to_close_on_error.pop()
            in_memory.close()
            part.file = _FileOnDisk(self._folder / f"{self._current_files:04}", part.file.filename)
            self._files_to_close_on_error.append(part.file.file)  # type: ignore[arg-type]

    def on_end(self) -> None:
        """The last boundary was read."""
        self._ended = True

    async def parse(self) -> FormData:
        """The form. Raises `MultiPartException`."""
        form = await super().parse()
        if not self._ended:
            for file in self._files_to_close_on_error:
                file.close()
            raise MultiPartException("The form ends before its last boundary")
        return form


async def _received(request: Request, folder: Path) -> FormData:
    """The form of the request, its files complete in the folder. Raises `HTTPException`, `ClientDisconnect`."""
    try:
        return await _FormOnDisk(request, folder).parse()
    except MultiPartException as error:
        raise HTTPException(400, error.message) from error


def _read_form(form: FormData) -> tuple[list[_FileOnDisk], dict[str, str]]:
    """The file parts (without the empty one that a browser sends if no file was chosen), and the other fields."""
    unknown = sorted(set(form.keys()) - {"files", *_TEXT_FIELDS})
    if unknown:
        raise InvalidInput(
            f"There is no form field {unknown[0][:60]!r}; the fields are files, {', '.join(_TEXT_FIELDS)}."
        )
    values = form.getlist("files")
    parts = [value for value in values if isinstance(value, _FileOnDisk)]
    if len(parts) < len(values):
        raise InvalidInput("A part named files has no file name, so it is not a file.")
    parts = [part for part in parts if part.filename or part.size]
    if not parts:
        raise InvalidInput("The form has no file; send one or more parts named files.")
    fields: dict[str, str] = {}
    for name, example in _TEXT_FIELDS.items():
        texts = form.getlist(name)
        if len(texts) > 1 or any(isinstance(value, UploadFile) for value in texts):
            raise InvalidInput(f"The field {name} is one string, such as {example}.")
        if texts and (text := str(texts[0]).strip()):
            fields[name] = text
    return parts, fields


def _sources(parts: Sequence[_FileOnDisk], prefix: str) -> tuple[list[Source], list[FailedFile]]:
    """The files to index, and those with the name of an earlier file of the form."""
    sources: dict[str, Source] = {}
    refused: list[FailedFile] = []
    for part in parts:
        name = display_name(part.filename or "")
        if name in sources:
            refused.append(FailedFile.of(name, SAME_NAME))
            continue
        sources[name] = Source(part.path, name, f"upload:{prefix}{quote(name)}")
    return list(sources.values()), refused


def _address_prefix(category: str | None) -> str:
    """A prefix that separates the uploads of callers with a scope by category: `hr/leave/`.

    The name alone would reveal whether another caller has uploaded a file of that name, and would replace it.
    """
    if category is None:
        return ""
    return "".join(f"{quote(key, safe='')}/" for key in CategoryPath.parse(category).key)


def _response(report: IngestReport, sources: Sequence[Source], refused: Sequence[FailedFile]) -> UploadResponse:
    names = {str(source.path): source.name for source in sources}
    failed = [FailedFile.of(names.get(path, "unnamed"), reason) for path, reason in report.failed]
    failed.extend(refused)
    documents = [
        UploadedDocument(
            document_id=str(document_id),
            file=read.source.name,
            unchanged=read.unchanged,
            placement=PlacementShape.of(placement)
            if (placement := report.placements.get(document_id)) is not None
            else None,
        )
        for read in report.sources
        for document_id in read.document_ids
    ]
    counts = UploadCounts(
        documents=report.documents,
        chunks=report.chunks,
        unchanged=report.unchanged,
        removed=report.removed,
        failed=len(failed),
    )
    return UploadResponse(
        documents=documents,
        counts=counts,
        failed=failed,
        notes=list(map(str, report.notes)),
        note_statements=tuple(report.notes),
    )


class UploadFolder:
    """A private folder for the files of uploads while they are indexed, on the disk of the database, until `close`.

    The service locks its folder; the lock ends with the process. The next start removes folders without a lock.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def open(cls, data_dir: Path) -> UploadFolder:
        """A new folder in `<data_dir>/uploads`; folders there that no running service has locked are removed."""
        parent = data_dir / "uploads"
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(parent):  # a new folder is not locked at first
            for entry in parent.iterdir():
                _remove_unless_locked(entry)
            path = Path(tempfile.mkdtemp(prefix="service-", dir=parent))
            descriptor = os.open(path, os.O_RDONLY)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        return cls(path, descriptor)

    def close(self) -> None:
        """Remove the folder and release its lock."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._descriptor)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _remove_unless_locked(entry: Path) -> None:
    if entry.is_symlink() or not entry.is_dir():
        entry.unlink(missing_ok=True)
        return
    descriptor = os.open(entry, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    else:
        shutil.rmtree(entry, ignore_errors=True)
    finally:
        os.close(descriptor)
