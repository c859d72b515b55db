"""`/documents`: upload files, list, show and delete documents."""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser

from dtrag.core.access.api_key import Caller
from dtrag.core.access.scope import CONTENT_TYPES
from dtrag.core.document_listing import MAX_TEXT, DocumentListing, Sort, continuation
from dtrag.core.documents import DocumentWithText
from dtrag.core.statements import all_statements, stated
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.delivery.api.dependencies import Service, app_of, service_of
from dtrag.delivery.api.errors import error_body
from dtrag.delivery.api.filter_policy import refuse_bypass
from dtrag.delivery.api.permissions import READ, WRITE, caller_of
from dtrag.delivery.api.request_tasks import until_done
from dtrag.delivery.api.routing import MAX_OFFSET, failures, media_type
from dtrag.delivery.api.schemas.documents import (
    DocumentList,
    FailedFile,
    PlacementShape,
    Total,
    UploadCounts,
    UploadedDocument,
    UploadResponse,
)
from dtrag.errors import DatabaseUnavailable, InvalidInput
from dtrag.ingestion.sources import IngestReport, Source

MAX_FILES = 100
MAX_FIELDS = 10
MAX_FIELD_BYTES = 64 << 10
MAX_NAME = 255
router = APIRouter(tags=["documents"])


SHOWN_ID = 60
MAX_LIMIT = 1_000
MAX_CATEGORY = 1_000
MAX_TYPES = len(CONTENT_TYPES)
MAX_AFTER = 1_000

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


@router.post(
    "/documents",
    status_code=201,
    response_model=UploadResponse,
    responses=failures(400, 403, 413, 415, 422, 503, 507),
    openapi_extra=_FORM,
    dependencies=WRITE,
)
async def upload(request: Request) -> Response:
    """Index the files; they are searchable when the response is sent.

    201 if at least one file was indexed; 422 with the same body and a `detail` if every file failed.
    """
    result = await ingest_upload(request, service_of(request), caller_of(request))
    request.state.subjects = [document.document_id for document in result.documents]
    body = result.model_dump()
    if result.documents or not result.failed:
        return JSONResponse(body, 201)
    first = result.failed[0]
    files = f"None of the {len(result.failed)} files could be read; {first.file}" if result.failed[1:] else first.file
    return JSONResponse({**error_body(f"{files}: {first.reason}", "ParseFailed"), **body}, 422)


class ListQuery(BaseModel):
    """Which documents a list has, and in which order."""

    model_config = ConfigDict(extra="forbid")

    q: str = Field("", max_length=MAX_TEXT, description="Text in the title or in the path of the file, in any case.")
    category: str = Field("", max_length=MAX_CATEGORY, description="Only this branch, such as HR/Leave.")
    type: list[str] = Field(
        [], max_length=MAX_TYPES, description="Only these content types, such as application/pdf; may be repeated."
    )
    sort: Sort = Field("newest", description="newest, oldest, title, largest or smallest (in characters).")
    after: str = Field(
        "", max_length=MAX_AFTER, description="The `next` of the page before; with the same other fields."
    )
    limit: int = Field(100, ge=1, le=MAX_LIMIT, description="Maximum number of entries.")
    offset: int = Field(0, ge=0, le=MAX_OFFSET, description="Number of entries to skip.")


@router.get("/documents", responses=failures(403, 422, 503), dependencies=READ)
async def documents(request: Request, query: Annotated[ListQuery, Query()]) -> DocumentList:
    """The documents, the newest first unless `sort` says otherwise."""
    app, caller = app_of(request), caller_of(request)
    category = CategoryPath.parse(query.category).names if query.category else None
    if category:
        await refuse_bypass(request, {"taxonomy_paths": [list(category)]}, caller)
    listing = DocumentListing.parse(query.q, query.type, query.sort, query.after)
    page = await app.documents(query.limit, query.offset, category=category, listing=listing, scope=caller.access)
    request.state.subjects = [document.document_id for document in page]
    total_documents, total_chunks = await app.counts(category=category, listing=listing, scope=caller.access)
    return DocumentList(
        documents=page,
        total=Total(
            documents=total_documents,
            chunks=total_chunks,
            vectors_pending=await app.pending_vectors(category=category, scope=caller.access),
        ),
        limit=query.limit,
        offset=query.offset,
        next=continuation(page[-1], query.sort) if len(page) == query.limit else None,
    )


@router.get("/documents/{document_id:path}", responses=failures(404, 422, 503), dependencies=READ)
async def document(
    request: Request,
    document_id: str,
    text: Annotated[
        bool, Query(description="Whether the response has the whole text; without it `text` is null.")
    ] = True,
) -> DocumentWithText:
    """A document and its text."""
    request.state.subjects = [document_id[:SHOWN_ID]]
    summary, whole = await app_of(request).document(document_id, scope=caller_of(request).access)
    return DocumentWithText.of(summary, whole if text else None)


@router.delete(
    "/documents/{document_id:path}", status_code=204, responses=failures(403, 404, 422, 503), dependencies=WRITE
)
async def delete(request: Request, document_id: str) -> Response:
    """Delete a document with everything derived from it."""
    request.state.subjects = [document_id[:SHOWN_ID]]
    await app_of(request).delete_document(document_id, scope=caller_of(request).access)
    return Response(status_code=204)


def display_name(file_name: str) -> str:
    """A safe name for an uploaded file: its last part, NFC, without control characters, at most 255 characters.

    It is displayed and determines the format; on disk the file has another name.
    """
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", file_name))[-1]
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
            category = fields.get("category")
            prefix = _address_prefix(category) if caller.access.grants else ""
            sources, refused = _sources(parts, prefix)
            work = service.app.ingest_sources(
                sources,
                category,
                scope=caller.access,
                work=fields.get("work", ""),
                effective=fields.get("effective"),
            )
            report = await until_done(service.in_flight, work)
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    return _response(report, sources, refused)


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
        notes=report.notes,
        note_statements=all_statements(report.notes),
    )
