"""Bodies and responses of `/review` and `/classify`."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, model_validator

from dtrag.core.taxonomy.classification import Classification
from dtrag.core.taxonomy.review import MAX_NOTE
from dtrag.delivery.api.schemas.base import StrictBody
from dtrag.governance.review import MAX_TEXT
from dtrag.governance.review_answers import HASH_PATTERN, MAX_CHUNK_ID, MAX_PASSAGES

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
            reasons=list(result.reasons),
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


class ItemShape(BaseModel):
    """A pending or decided item of the review queue."""

    item_id: str = Field(description="Its id.")
    kind: Literal["classification", "answer"] = Field(description="What has to be decided.")
    document_id: str | None = Field(description="The document of a classification.")
    agent_id: str | None = Field(description="The agent of an answer.")
    title: str = Field(description="Title of the document.")
    confidence: float | None = Field(
        description="Confidence in [0, 1]; null for a classification if you may see only a part of the tree."
    )
    proposal: dict[str, object] = Field(
        description="Of a classification: path, reasons, reason_statements, alternatives, disagreeing. Of an answer: "
        "question, text, decision, reasons, reason_statements, document_ids, as_of, trace_id, for administrators "
        "feedback (why its reader found it wrong), and for a single item passages (chunk_id, label, text, "
        "cited, content_hash) and chosen (chunk_ids of a decision)."
    )
    status: Literal["waiting", "approved", "corrected", "skipped"] = Field(description="The state of the item.")
    note: str = Field(
        description="The reviewer's comment; that on an answer is shown to administrators and its author."
    )
    created_at: str = Field(description="When it was queued, ISO 8601 in UTC.")
    decided_at: str | None = Field(description="When it was decided; null while pending.")
    decided_by: str = Field(description="Who decided; empty while pending.")


class ItemList(BaseModel):
    """A page of pending items, least confident first."""

    items: list[ItemShape] = Field(description="The items of this page.")
    total: int = Field(description="Number of all pending items.")
    limit: int = Field(description="The requested page size.")
    offset: int = Field(description="Items before this page.")
