"""The shapes of `/review` and `/classify`, as OpenAPI shows them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from dtrag.core.taxonomy.classification import Classification
from dtrag.core.taxonomy.review import MAX_NOTE
from dtrag.governance.review import MAX_TEXT

_REQUEST = ConfigDict(extra="forbid", strict=True)


class ClassifyBody(BaseModel):
    """A text to be classified."""

    model_config = _REQUEST

    text: str = Field(max_length=MAX_TEXT, description="The text; its first 3,000 words count.")
    title: str = Field("", max_length=500, description="Its title, whose words count twice.")
    chunk_id: str | None = Field(None, max_length=200, description="Taken and given back, for who keeps track by it.")


class CandidateShape(BaseModel):
    """A category that a text might belong to."""

    path: list[str] = Field(description="The category, outermost name first.")
    confidence: float = Field(description="How sure, in [0, 1].")


class ClassifyResponse(BaseModel):
    """Where a text would belong, of what you may see."""

    canonical: list[str] = Field(description="The category, outermost name first; [] for none.")
    confidence: float = Field(description="How sure, in [0, 1].")
    candidates: list[CandidateShape] = Field(description="That category and the next best, the surest first.")
    reasons: list[str] = Field(description="Why, for people.")
    hitl: bool = Field(description="Whether ingest would have it wait for a person.")
    chunk_id: str | None = Field(description="As it was sent.")

    @classmethod
    def of(cls, found: Classification, chunk_id: str | None) -> ClassifyResponse:
        """The classification in the shape of the answer."""
        candidates = [
            CandidateShape(path=list(path), confidence=round(confidence, 4))
            for path, confidence in [
                (found.path, found.confidence),
                *((other.path, other.confidence) for other in found.alternatives),
            ]
            if path
        ]
        return cls(
            canonical=list(found.path),
            confidence=round(found.confidence, 4),
            candidates=candidates,
            reasons=list(found.reasons),
            hitl=not found.accepted,
            chunk_id=chunk_id,
        )


class NoteBody(BaseModel):
    """A decision."""

    model_config = _REQUEST

    note: str = Field("", max_length=MAX_NOTE, description="A word about it.")


class CorrectBody(NoteBody):
    """A decision for another category."""

    path: list[str] = Field(
        min_length=1, max_length=8, description="Where the document belongs.", examples=[["HR", "Leave"]]
    )


class ItemShape(BaseModel):
    """Something that waits for a person, or waited."""

    item_id: str = Field(description="Its id.")
    kind: Literal["classification", "answer"] = Field(description="What is to be decided.")
    document_id: str | None = Field(description="The document of a classification.")
    agent_id: str | None = Field(description="The agent of an answer.")
    title: str = Field(description="Title of the document.")
    confidence: float | None = Field(
        description="How sure it was, in [0, 1]; null for a classification that you see a part of the tree of only."
    )
    proposal: dict[str, Any] = Field(
        description="Of a classification: path, reasons, alternatives, disagreeing. Of an answer: question, text, "
        "document_ids and more."
    )
    status: Literal["waiting", "approved", "corrected", "skipped"] = Field(description="What became of it.")
    note: str = Field(description="A word of the person who decided.")
    created_at: str = Field(description="Since when, ISO 8601 in UTC.")
    decided_at: str | None = Field(description="When it was decided.")
    decided_by: str = Field(description="Who decided; empty while it waits.")


class ItemList(BaseModel):
    """A page of what waits, the least sure first."""

    items: list[ItemShape] = Field(description="The items of this page.")
    total: int = Field(description="How many wait in all.")
    limit: int = Field(description="The page's size as asked for.")
    offset: int = Field(description="Items before this page.")
