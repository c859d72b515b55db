"""`/review`: uncertain classifications and answers that wait for a human; `/classify`: the category of a text."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

from dtrag.core.taxonomy.review import Item
from dtrag.delivery.api.dependencies import app_of
from dtrag.delivery.api.json_body import JsonRoute
from dtrag.delivery.api.permissions import READ, WRITE, caller_of
from dtrag.delivery.api.schemas.base import Offset
from dtrag.delivery.api.schemas.errors import failures
from dtrag.delivery.api.schemas.review import (
    ChunkId,
    ClassifyBody,
    ClassifyResponse,
    CorrectBody,
    ItemList,
    ItemShape,
    NoteBody,
    ReviewApproveBody,
)
from dtrag.governance.review import MAX_LIMIT
from dtrag.governance.review_answers import MAX_PASSAGES

router = APIRouter(tags=["review"])
posting = APIRouter(route_class=JsonRoute, tags=["review"])

_DECISION_ERRORS = failures(400, 403, 404, 409, 413, 415, 422, 503, 507)


@router.get("/review", responses=failures(403, 422, 503), dependencies=WRITE)
async def waiting(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Maximum number of entries.")] = 100,
    offset: Offset = 0,
) -> ItemList:
    """The pending items that you may see, least confident first."""
    page, total = await app_of(request).review.waiting(limit, offset, caller=caller_of(request))
    return ItemList(items=[_shape(item) for item in page], total=total, limit=limit, offset=offset)


@router.get("/review/{item_id}", responses=failures(403, 404, 422, 503), dependencies=WRITE)
async def item(
    request: Request,
    item_id: str,
    passage: Annotated[
        list[ChunkId] | None,
        Query(max_length=MAX_PASSAGES, description="For an answer: further passages to show, by chunk_id."),
    ] = None,
) -> ItemShape:
    """One item, pending or decided."""
    found = await app_of(request).review.get(item_id, passages=passage or (), caller=caller_of(request))
    return _item_response(request, found)


@posting.post("/review/{item_id}/approve", responses=_DECISION_ERRORS, dependencies=WRITE)
async def approve(request: Request, item_id: str, body: ReviewApproveBody) -> ItemShape:
    """Accept the proposal: a document moves to its category and becomes an example for classification.

    A 409 when the item is decided already, or a passage has another text than that of its content_hash.
    """
    approved = await app_of(request).review.approve(
        item_id, body.note, content_hashes=body.content_hashes, caller=caller_of(request)
    )
    return _item_response(request, approved)


@posting.post("/review/{item_id}/correct", responses=_DECISION_ERRORS, dependencies=WRITE)
async def correct(request: Request, item_id: str, body: CorrectBody) -> ItemShape:
    """Choose another category for a document, or the passages that answer the question of an answer.

    A document moves there and becomes an example for classification. No word of a correction enters an answer.
    """
    corrected = await app_of(request).review.correct(
        item_id,
        body.path,
        body.note,
        passages=body.passages or (),
        content_hashes=body.content_hashes,
        caller=caller_of(request),
    )
    return _item_response(request, corrected)


@posting.post("/review/{item_id}/skip", responses=_DECISION_ERRORS, dependencies=WRITE)
async def skip(request: Request, item_id: str, body: NoteBody) -> ItemShape:
    """Remove the item from the queue; the document keeps its category."""
    return _item_response(request, await app_of(request).review.skip(item_id, body.note, caller=caller_of(request)))


@posting.post("/classify", responses=failures(400, 403, 413, 415, 422, 503), dependencies=READ)
async def classify(request: Request, body: ClassifyBody) -> ClassifyResponse:
    """The category of a text, among those visible to you; nothing is stored."""
    classification = await app_of(request).review.classify(body.text, body.title, caller=caller_of(request))
    return ClassifyResponse.of(classification, body.chunk_id)


def _item_response(request: Request, item: Item) -> ItemShape:
    request.state.subjects = [str(item.item_id), *([str(item.document_id)] if item.document_id else [])]
    return _shape(item)


def _shape(item: Item) -> ItemShape:
    return ItemShape.model_validate(item.as_dict())


router.include_router(posting)
