"""`/review`: what ingest and agents were not sure of; `/classify`: where a text would belong."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from dtrag.core.taxonomy.review import Item
from dtrag.delivery.api.dependencies import app_of
from dtrag.delivery.api.json_body import JsonRoute
from dtrag.delivery.api.permissions import caller_of, needs
from dtrag.delivery.api.schemas.errors import failures
from dtrag.delivery.api.schemas.review import (
    ClassifyBody,
    ClassifyResponse,
    CorrectBody,
    ItemList,
    ItemShape,
    NoteBody,
)
from dtrag.governance.review import MAX_LIMIT

router = APIRouter(tags=["review"])
posting = APIRouter(route_class=JsonRoute, tags=["review"])

READ, WRITE = [Depends(needs("read"))], [Depends(needs("write"))]
_DECIDED = failures(400, 403, 404, 409, 413, 415, 422, 503)


@router.get("/review", responses=failures(403, 422, 503), dependencies=WRITE)
async def waiting(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="How many at most.")] = 100,
    offset: Annotated[int, Query(ge=0, le=1_000_000_000, description="How many to pass over.")] = 0,
) -> ItemList:
    """What waits for a person, the least sure first, of what you may see."""
    found, total = await app_of(request).review.waiting(limit, offset, caller=caller_of(request))
    return ItemList(items=[_shape(item) for item in found], total=total, limit=limit, offset=offset)


@router.get("/review/{item_id}", responses=failures(403, 404, 422, 503), dependencies=WRITE)
async def item(request: Request, item_id: str) -> ItemShape:
    """One item, waiting or decided."""
    return _answered(request, await app_of(request).review.get(item_id, caller=caller_of(request)))


@posting.post("/review/{item_id}/approve", responses=_DECIDED, dependencies=WRITE)
async def approve(request: Request, item_id: str, body: NoteBody) -> ItemShape:
    """As proposed: the document goes there, and others are classified by it."""
    return _answered(request, await app_of(request).review.approve(item_id, body.note, caller=caller_of(request)))


@posting.post("/review/{item_id}/correct", responses=_DECIDED, dependencies=WRITE)
async def correct(request: Request, item_id: str, body: CorrectBody) -> ItemShape:
    """Into another category: the document goes there, and others are classified by it."""
    review = app_of(request).review
    return _answered(request, await review.correct(item_id, body.path, body.note, caller=caller_of(request)))


@posting.post("/review/{item_id}/skip", responses=_DECIDED, dependencies=WRITE)
async def skip(request: Request, item_id: str, body: NoteBody) -> ItemShape:
    """Out of the queue; the document stays where it is."""
    return _answered(request, await app_of(request).review.skip(item_id, body.note, caller=caller_of(request)))


@posting.post("/classify", responses=failures(400, 403, 413, 415, 422, 503), dependencies=READ)
async def classify(request: Request, body: ClassifyBody) -> ClassifyResponse:
    """Where a text would belong, of what you may see; nothing is written."""
    found = await app_of(request).review.classify(body.text, body.title, caller=caller_of(request))
    return ClassifyResponse.of(found, body.chunk_id)


def _answered(request: Request, about: Item) -> ItemShape:
    request.state.subjects = [str(about.item_id), *([str(about.document_id)] if about.document_id else [])]
    return _shape(about)


def _shape(about: Item) -> ItemShape:
    return ItemShape.model_validate(about.as_dict())


router.include_router(posting)
