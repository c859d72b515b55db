"""`/documents/{document_id}/text`, `/passages` and `/who`: a source around a citation, and who can see it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from dtrag.core.document_text import DocumentText, PassageSpan
from dtrag.delivery.api.dependencies import app_of
from dtrag.delivery.api.permissions import ADMIN_WHOLE_TREE, READ, caller_of
from dtrag.delivery.api.routing import MAX_OFFSET, Offset, failures
from dtrag.governance.visibility import Visibility
from dtrag.retrieval.document_texts import MAX_CHARACTERS, MAX_PASSAGES

router = APIRouter(tags=["documents"])
SHOWN_ID = 60

_SPAN = f"in code points of the document's text; at most {MAX_CHARACTERS:,} after the start"


class PassageList(BaseModel):
    """A page of the passages of a document."""

    passages: list[PassageSpan] = Field(description="The passages of this page.")
    total: int = Field(description="Number of passages of the document.")
    limit: int = Field(description="The requested page size.")
    offset: int = Field(description="Passages before this page.")


@router.get("/documents/{document_id}/text", responses=failures(404, 422, 503), dependencies=READ)
async def text(
    request: Request,
    document_id: str,
    start: Annotated[int, Query(ge=0, le=MAX_OFFSET, description="Start of the part, in code points.")] = 0,
    end: Annotated[
        int | None, Query(ge=0, le=2 * MAX_OFFSET, description=f"End of the part (exclusive), {_SPAN}.")
    ] = None,
) -> DocumentText:
    """A part of a document's text, with the passages in it: the positions of citations refer to this text."""
    request.state.subjects = [document_id[:SHOWN_ID]]
    return await app_of(request).texts.part(document_id, start, end, scope=caller_of(request).access)


@router.get("/documents/{document_id}/passages", responses=failures(404, 422, 503), dependencies=READ)
async def passages(
    request: Request,
    document_id: str,
    limit: Annotated[int, Query(ge=1, le=MAX_PASSAGES, description="Maximum number of entries.")] = 100,
    offset: Offset = 0,
) -> PassageList:
    """The passages of a document in their order, with their positions and headings."""
    request.state.subjects = [document_id[:SHOWN_ID]]
    page, total = await app_of(request).texts.passages(document_id, limit, offset, scope=caller_of(request).access)
    return PassageList(passages=page, total=total, limit=limit, offset=offset)


@router.get("/documents/{document_id}/who", responses=failures(403, 404, 422, 503), dependencies=ADMIN_WHOLE_TREE)
async def who(request: Request, document_id: str) -> Visibility:
    """Who can see a document: the valid keys and the agents, each with the branch through which it sees it."""
    request.state.subjects = [document_id[:SHOWN_ID]]
    return await app_of(request).visibility.who(document_id)
