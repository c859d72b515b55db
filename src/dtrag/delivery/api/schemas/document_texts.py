"""The response of `/documents/{document_id}/passages`."""

from __future__ import annotations

from pydantic import BaseModel, Field

from dtrag.core.document_text import PassageSpan


class PassageList(BaseModel):
    """A page of the passages of a document."""

    passages: list[PassageSpan] = Field(description="The passages of this page.")
    total: int = Field(description="Number of passages of the document.")
    limit: int = Field(description="The requested page size.")
    offset: int = Field(description="Passages before this page.")
