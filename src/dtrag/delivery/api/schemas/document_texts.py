"""Responses of `/documents/{document_id}/text`, `/passages` and `/who`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from dtrag.core.access.api_key import Role

_RESPONSE = ConfigDict(from_attributes=True)


class PassageSpanShape(BaseModel):
    """A passage without its text; positions are code points of the document's text."""

    model_config = _RESPONSE

    chunk_id: str = Field(description="Id of the passage: document id, colon, position.")
    ordinal: int = Field(description="Its position among the passages, from 0.")
    start: int = Field(description="Its start.")
    end: int = Field(description="Its end (exclusive).")
    breadcrumb: list[str] = Field(description="Headings above it, outermost first.")
    page: int | None = Field(description="Page of the PDF on which it begins; null if unknown.")
    metadata: dict[str, object] = Field(description="Its own metadata, such as article and article_title.")


class DocumentTextShape(BaseModel):
    """A part of a document's text."""

    model_config = _RESPONSE

    document_id: str = Field(description="The document.")
    characters: int = Field(description="Length of the whole text in code points.")
    start: int = Field(description="Start of this part, in code points.")
    end: int = Field(description="Its end (exclusive).")
    text: str = Field(description="The text of this part, verbatim.")
    passages: list[PassageSpanShape] = Field(description="The passages that overlap with it, in order.")


class PassageList(BaseModel):
    """A page of the passages of a document."""

    passages: list[PassageSpanShape] = Field(description="The passages of this page.")
    total: int = Field(description="Number of passages of the document.")
    limit: int = Field(description="The requested page size.")
    offset: int = Field(description="Passages before this page.")


class SightShape(BaseModel):
    """A key or an agent that sees the document."""

    model_config = _RESPONSE

    kind: Literal["key", "agent"] = Field(description="key or agent.")
    name: str = Field(description="Its name.")
    id: str = Field(description="Id of the agent; empty for keys.")
    role: Role | None = Field(description="Role of the key; null for agents.")
    branch: list[str] | None = Field(description="The branch through which it sees the document; null: the whole tree.")


class VisibilityShape(BaseModel):
    """Everybody who sees a document."""

    model_config = _RESPONSE

    document_id: str = Field(description="The document.")
    category: list[str] = Field(description="Its category, outermost name first; [] for none.")
    sights: list[SightShape] = Field(description="Keys and agents that see it: agents first, each group by name.")
    without_keys: bool = Field(
        description="Whether no key exists, so that every program on the service's machine sees it."
    )
