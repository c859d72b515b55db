"""`/documents`: put files in, see what there is, take documents out."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import JSONResponse

from dtrag.delivery.api.dependencies import app_of, service_of
from dtrag.delivery.api.errors import error_body
from dtrag.delivery.api.permissions import caller_of, needs
from dtrag.delivery.api.schemas.common import DocumentList, DocumentShape, DocumentWithText, Total, UploadResponse
from dtrag.delivery.api.schemas.errors import failures
from dtrag.delivery.api.uploads import MAX_FILES, ingest_upload

router = APIRouter(tags=["documents"])

READ, WRITE = [Depends(needs("read"))], [Depends(needs("write"))]

SHOWN_ID = 60
MAX_LIMIT = 1_000
MAX_OFFSET = 1_000_000_000

_FORM: dict[str, Any] = {
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
                            "description": "The files; a file of the same name is replaced.",
                        },
                        "category": {
                            "type": "string",
                            "description": "Category of documents that name none themselves.",
                            "example": "HR/Leave",
                        },
                    },
                }
            }
        },
    }
}


@router.post(
    "/documents",
    status_code=201,
    response_model=UploadResponse,
    responses=failures(400, 403, 413, 415, 422, 503, 507),
    openapi_extra=_FORM,
    dependencies=WRITE,
)
async def upload(request: Request) -> Response:
    """Read the files into the index; they are searchable when the answer comes.

    201 if at least one file is in; 422 with the same body and a `detail` when every file failed.
    """
    result = await ingest_upload(request, service_of(request), caller_of(request))
    request.state.subjects = [document.document_id for document in result.documents]
    body = result.model_dump()
    if result.documents or not result.failed:
        return JSONResponse(body, 201)
    first = result.failed[0]
    several = f"None of the {len(result.failed)} files could be read; {first.file}" if result.failed[1:] else first.file
    return JSONResponse({**error_body(f"{several}: {first.reason}", "ParseFailed"), **body}, 422)


@router.get("/documents", responses=failures(422, 503), dependencies=READ)
async def documents(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="How many at most.")] = 100,
    offset: Annotated[int, Query(ge=0, le=MAX_OFFSET, description="How many to pass over.")] = 0,
) -> DocumentList:
    """The documents, the newest first."""
    app, access = app_of(request), caller_of(request).access
    found = await app.documents(limit, offset, scope=access)
    request.state.subjects = [document.document_id for document in found]
    total_documents, total_chunks = await app.counts(scope=access)
    return DocumentList(
        documents=[DocumentShape.model_validate(document) for document in found],
        total=Total(documents=total_documents, chunks=total_chunks),
        limit=limit,
        offset=offset,
    )


@router.get("/documents/{document_id:path}", responses=failures(404, 422, 503), dependencies=READ)
async def document(request: Request, document_id: str) -> DocumentWithText:
    """A document and its text."""
    request.state.subjects = [document_id[:SHOWN_ID]]
    summary, text = await app_of(request).document(document_id, scope=caller_of(request).access)
    return DocumentWithText(**DocumentShape.model_validate(summary).model_dump(), text=text)


@router.delete(
    "/documents/{document_id:path}", status_code=204, responses=failures(403, 404, 422, 503), dependencies=WRITE
)
async def delete(request: Request, document_id: str) -> Response:
    """Delete a document and everything made from it."""
    request.state.subjects = [document_id[:SHOWN_ID]]
    await app_of(request).delete_document(document_id, scope=caller_of(request).access)
    return Response(status_code=204)
