"""A part of a document's text with the passages in it, as a reader of a source sees it. Positions are code points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dtrag.core.documents import Scalar
from dtrag.core.page_starts import page_at


@dataclass(frozen=True, slots=True)
class PassageSpan:
    """Where a passage is in its document; `metadata` is its own (article, page)."""

    chunk_id: str
    ordinal: int
    start: int
    end: int
    breadcrumb: tuple[str, ...] = ()
    metadata: Mapping[str, Scalar] = field(default_factory=dict)

    @property
    def page(self) -> int | None:
        """The page of a PDF on which the passage begins; None for other documents."""
        return page_at(self.metadata)


@dataclass(frozen=True, slots=True)
class DocumentText:
    """`text` is that of the document from `start` to `end`; `passages` are those that overlap with it, in order."""

    document_id: str
    characters: int
    start: int
    end: int
    text: str
    passages: tuple[PassageSpan, ...]
