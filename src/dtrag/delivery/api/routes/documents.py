"""`/documents`: list, show and delete documents; their texts around citations, and who can see them."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal, Self

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

from dtrag.core.access.scope import CONTENT_TYPES
from dtrag.core.document_changes import MAX_DOCUMENTS, DocumentsEffect, ManyDocuments
from dtrag.core.document_listing import MAX_TEXT, DocumentListing, DocumentText, PassageSpan, Sort, continuation
from dtrag.core.documents import DocumentSummary, DocumentWithText
from dtrag.core.originals import OriginalPages
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.delivery.api.dependencies import app_of
from dtrag.delivery.api.permissions import ADMIN_WHOLE_TREE, BROWSE, ORIGINALS, WRITE, caller_of, refuse_bypass
from dtrag.delivery.api.routing import MAX_OFFSET, JsonRoute, Offset, Page, StrictBody, failures
from dtrag.governance.originals import MAX_SPAN
from dtrag.governance.visibility import MAX_CHARACTERS, MAX_PASSAGES, Visibility

router = APIRouter(route_class=JsonRoute, tags=["documents"])


SHOWN_ID = 60
MAX_LIMIT = 1_000
MAX_CATEGORY = 1_000
MAX_TYPES = len(CONTENT_TYPES)
MAX_AFTER = 1_000


class Total(BaseModel):
    """The number of documents and passages."""

    documents: int = Field(description="Documents that you may see.")
    chunks: int = Field(description="Passages.")
    vectors_pending: int = Field(
        description="Passages of the category that wait for their vectors and are found by their words only."
    )


class DocumentList(BaseModel):
    """A page of the documents."""

    documents: list[DocumentSummary] = Field(description="The documents of this page.")
    total: Total = Field(description="The documents that match and that you may see, and their passages.")
    limit: int = Field(description="The requested page size.")
    offset: int = Field(description="Documents before this page, counted from `after`.")
    next: str | None = Field(description="The `after` of the next page; null at the end.")


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


@router.get("/documents", responses=failures(403, 422, 503), dependencies=BROWSE)
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


class ChangesBody(StrictBody):
    """A change of many documents."""

    action: Literal["move", "delete"] = Field(description="move or delete.")
    document_ids: list[Annotated[str, Field(max_length=SHOWN_ID)]] = Field(
        min_length=1, max_length=MAX_DOCUMENTS, description="The documents."
    )
    path: list[str] | None = Field(
        None, min_length=1, max_length=8, description="For move: their new category, outermost name first."
    )
    dry_run: bool = Field(False, description="true: nothing is changed; the response is what would be.")
    accept_widening: bool = Field(False, description="false: a move is refused when others would see more.")
    accept_lowering: bool = Field(False, description="false: a move is refused when documents get a lower grade.")
    state: str = Field(
        "", max_length=64, description="`state` of the dry run; 409 when it is another one by now. Empty: not compared."
    )

    @model_validator(mode="after")
    def _path_of_a_move(self) -> Self:
        if (self.action == "move") != (self.path is not None):
            raise ValueError("give path for move, and only for it")
        return self


@router.post("/documents/changes", responses=failures(400, 403, 409, 413, 415, 422, 503, 507), dependencies=WRITE)
async def change(request: Request, body: ChangesBody) -> DocumentsEffect:
    """Move or delete many documents, all of them or none; those that cannot be changed are listed with the reason."""
    app, caller = app_of(request), caller_of(request)
    selection = ManyDocuments.parse(body.document_ids, body.path)
    if body.dry_run:
        effect = await app.document_changes.preview(selection, caller=caller)
    else:
        effect = await app.document_changes.change(
            selection,
            accept_widening=body.accept_widening,
            accept_lowering=body.accept_lowering,
            state=body.state,
            caller=caller,
        )
    request.state.subjects = list(selection.document_ids)
    request.state.audited = {"dry_run": body.dry_run, "documents": effect.documents, "refused": len(effect.refused)}
    return effect


_SPAN = f"in code points of the document's text; at most {MAX_CHARACTERS:,} after the start"


class PassageList(Page):
    """A page of the passages of a document."""

    passages: list[PassageSpan] = Field(description="The passages of this page.")


@router.get("/documents/{document_id}/text", responses=failures(404, 422, 503), dependencies=BROWSE)
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
    app, caller = app_of(request), caller_of(request)
    part = await app.texts.part(document_id, start, end, scope=caller.access)
    return replace(part, original=part.original and app.originals.shown and caller.may("originals"))


@router.get("/documents/{document_id}/pages", responses=failures(403, 404, 422, 501, 503), dependencies=ORIGINALS)
async def pages(
    request: Request,
    document_id: str,
    start: Annotated[int, Query(ge=0, le=MAX_OFFSET, description="Start of a text, in code points.")] = 0,
    end: Annotated[
        int, Query(ge=0, le=2 * MAX_OFFSET, description=f"Its end (exclusive), at most {MAX_SPAN:,} after its start.")
    ] = 0,
) -> OriginalPages:
    """The number of pages of the original file of a document, and where on them a text of the document is."""
    request.state.subjects = [document_id[:SHOWN_ID]]
    return await app_of(request).originals.pages(document_id, start, end, scope=caller_of(request).access)


@router.get(
    "/documents/{document_id}/pages/{page}",
    responses=failures(403, 404, 422, 501, 503) | {200: {"content": {"image/png": {}}, "description": "The page."}},
    response_class=Response,
    dependencies=ORIGINALS,
)
async def page(
    request: Request,
    document_id: str,
    page: Annotated[int, Path(ge=1, le=MAX_OFFSET, description="Number of the page, from 1.")],
) -> Response:
    """A page of the original file of a document, as a picture."""
    request.state.subjects = [document_id[:SHOWN_ID]]
    picture = await app_of(request).originals.picture(document_id, page, scope=caller_of(request).access)
    return Response(picture, media_type="image/png")


@router.get("/documents/{document_id}/passages", responses=failures(404, 422, 503), dependencies=BROWSE)
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


@router.get("/documents/{document_id:path}", responses=failures(404, 422, 503), dependencies=BROWSE)
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
