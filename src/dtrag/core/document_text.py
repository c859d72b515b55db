"""A part of a document's text with the passages in it, as a reader of a source sees it. Positions are code points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dtrag.core.documents import Scalar
from dtrag.core.page_starts import page_at
from dtrag.core.response import response


@dataclass(frozen=True, slots=True)
class PassageSpan:
    """A passage without its text; positions are code points of the document's text."""

    __pydantic_config__ = response("PassageSpanShape")

    chunk_id: str
    """Id of the passage: document id, colon, position."""
    ordinal: int
    """Its position among the passages, from 0."""
    start: int
    """Its start."""
    end: int
    """Its end (exclusive)."""
    breadcrumb: tuple[str, ...] = ()
    """Headings above it, outermost first."""
    page: int | None = field(init=False, default=None)
    """Page of the PDF on which it begins; null if unknown."""
    metadata: Mapping[str, Scalar] = field(default_factory=dict)
    """Its own metadata, such as article and article_title."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "page", page_at(self.metadata))


@dataclass(frozen=True, slots=True)
class DocumentText:
    """A part of a document's text."""

    __pydantic_config__ = response("DocumentTextShape")

    document_id: str
    """The document."""
    characters: int
    """Length of the whole text in code points."""
    start: int
    """Start of this part, in code points."""
    end: int
    """Its end (exclusive)."""
    text: str
    """The text of this part, verbatim."""
    passages: tuple[PassageSpan, ...]
    """The passages that overlap with it, in order."""
