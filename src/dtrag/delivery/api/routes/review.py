"""`/review`: uncertain classifications and answers that wait for a human; `/classify`: the category of a text."""

from __future__ import annotations

from typing import Annotated, Self

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field, model_validator

from dtrag.core.taxonomy.classification import Classification
from dtrag.core.taxonomy.review import MAX_NOTE, ReviewItem
from dtrag.delivery.api.dependencies import app_of
from dtrag.delivery.api.permissions import READ, WRITE, caller_of
from dtrag.delivery.api.routing import JsonRoute, Offset, Page, StrictBody, failures
from dtrag.governance.review import MAX_LIMIT, MAX_TEXT
from dtrag.governance.review_answers import HASH_PATTERN, MAX_CHUNK_ID, MAX_PASSAGES

router = APIRouter(route_class=JsonRoute, tags=["review"])

_DECISION_ERRORS = failures(400, 403, 404, 409, 413, 415, 422, 503, 507)


ChunkId = Annotated[str, Field(max_length=MAX_CHUNK_ID)]
ContentHash = Annotated[str, Field(pattern=HASH_PATTERN)]


class ClassifyBody(StrictBody):
    """A text to be classified."""

    text: str = Field(max_length=MAX_TEXT, description="The text; its first 3,000 words are used.")
    title: str = Field("", max_length=500, description="Its title; its words have double weight.")
    chunk_id: str | None = Field(None, max_length=200, description="Returned unchanged in the response.")


class CandidateShape(BaseModel):
    """A candidate category."""

    path: list[str] = Field(description="The category, outermost name first.")
    confidence: float = Field(description="Confidence in [0, 1].")


class ClassifyResponse(BaseModel):
    """The category of a text, among the categories visible to you."""

    canonical: list[str] = Field(description="The category, outermost name first; [] for none.")
    confidence: float = Field(description="Confidence in [0, 1].")
    candidates: list[CandidateShape] = Field(description="That category and the next best, most confident first.")
    reasons: list[str] = Field(description="Reasons for the reader.")
    hitl: bool = Field(description="Whether ingestion would queue it for a human review.")
    chunk_id: str | None = Field(description="As it was sent.")

    @classmethod
    def of(cls, result: Classification, chunk_id: str | None) -> ClassifyResponse:
        """The response for a classification."""
        candidates = [
            CandidateShape(path=list(path), confidence=round(confidence, 4))
            for path, confidence in [
                (result.path, result.confidence),
                *((other.path, other.confidence) for other in result.alternatives),
            ]
            if path
        ]
        return cls(
            canonical=list(result.path),
            confidence=round(result.confidence, 4),
            candidates=candidates,
            reasons=list(map(str, result.reasons)),
            hitl=not result.accepted,
            chunk_id=chunk_id,
        )


class NoteBody(StrictBody):
    """A decision."""

    note: str = Field("", max_length=MAX_NOTE, description="A comment.")


class ReviewApproveBody(NoteBody):
    """The acceptance of a proposal."""

    content_hashes: dict[ChunkId, ContentHash] | None = Field(
        None,
        max_length=MAX_PASSAGES * 2,
        description="For an answer: the content_hash of each passage as you read it, by chunk_id. The decision is "
        "refused with 409 when it would store a passage with another text.",
        examples=[{"0b1f0a5e-6f0c-5b8e-9d3c-2f8a7c5d1e90:3": "9f86d081884c7d659a2feaa0c55ad015"}],
    )


class CorrectBody(ReviewApproveBody):
    """A decision for a different category of a document, or for the passages that answer the question of an answer."""

    path: list[str] | None = Field(
        None,
        min_length=1,
        max_length=8,
        description="The category of the document. Of an answer, with `passages`: publishes its question to all who "
        "see this category and the passages.",
        examples=[["HR", "Leave"]],
    )
    passages: list[ChunkId] | None = Field(
        None,
        min_length=1,
        max_length=MAX_PASSAGES,
        description="For an answer: the chunk_ids of the passages that answer its question.",
        examples=[["0b1f0a5e-6f0c-5b8e-9d3c-2f8a7c5d1e90:3"]],
    )

    @model_validator(mode="after")
    def _one_at_least(self) -> Self:
        if self.path is None and self.passages is None:
            raise ValueError("give path, for a document, or passages, for an answer")
        return self


class ItemList(Page):
    """A page of pending items, least confident first."""

    items: list[ReviewItem] = Field(description="The items of this page.")


@router.get("/review", responses=failures(403, 422, 503), dependencies=WRITE)
async def waiting(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Maximum number of entries.")] = 100,
    offset: Offset = 0,
) -> ItemList:
    """The pending items that you may see, least confident first."""
    page, total = await app_of(request).review.waiting(limit, offset, caller=caller_of(request))
    return ItemList(items=page, total=total, limit=limit, offset=offset)


@router.get("/review/{item_id}", responses=failures(403, 404, 422, 503), dependencies=WRITE)
async def item(
    request: Request,
    item_id: str,
    passage: Annotated[
        list[ChunkId] | None,
        Query(max_length=MAX_PASSAGES, description="For an answer: further passages to show, by chunk_id."),
    ] = None,
) -> ReviewItem:
    """One item, pending or decided."""
    review_item = await app_of(request).review.get(item_id, passages=passage or (), caller=caller_of(request))
    return _item_response(request, review_item)


@router.post("/review/{item_id}/approve", responses=_DECISION_ERRORS, dependencies=WRITE)
async def approve(request: Request, item_id: str, body: ReviewApproveBody) -> ReviewItem:
    """Accept the proposal: a document moves to its category and becomes an example for classification.

    A 409 when the item is decided already, or a passage has another text than that of its content_hash.
    """
    approved = await app_of(request).review.approve(
        item_id, body.note, content_hashes=body.content_hashes, caller=caller_of(request)
    )
    return _item_response(request, approved)


@router.post("/review/{item_id}/correct", responses=_DECISION_ERRORS, dependencies=WRITE)
async def correct(request: Request, item_id: str, body: CorrectBody) -> ReviewItem:
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


@router.post("/review/{item_id}/skip", responses=_DECISION_ERRORS, dependencies=WRITE)
async def skip(request: Request, item_id: str, body: NoteBody) -> ReviewItem:
    """Remove the item from the queue; the document keeps its category."""
    return _item_response(request, await app_of(request).review.skip(item_id, body.note, caller=caller_of(request)))


@router.post("/classify", responses=failures(400, 403, 413, 415, 422, 503), dependencies=READ)
async def classify(request: Request, body: ClassifyBody) -> ClassifyResponse:
    """The category of a text, among those visible to you; nothing is stored."""
    classification = await app_of(request).review.classify(body.text, body.title, caller=caller_of(request))
    return ClassifyResponse.of(classification, body.chunk_id)


def _item_response(request: Request, item: ReviewItem) -> ReviewItem:
    request.state.subjects = [str(item.item_id), *([str(item.document_id)] if item.document_id else [])]
    return item
