"""Documents in lists and alone, and the results of uploads."""

from __future__ import annotations

from pydantic import BaseModel, Field

from dtrag.core.documents import DocumentSummary
from dtrag.core.statements import Statement, all_statements, statements_of
from dtrag.core.taxonomy.classification import Classification
from dtrag.delivery.api.routing import NoteStatements, ReasonStatements


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


class PlacementShape(BaseModel):
    """Where an upload put a document, and why."""

    taxonomy_path: list[str] = Field(
        description="The category, outermost name first; with `hitl` the proposed one, [] for none."
    )
    confidence: float = Field(description="Confidence in [0, 1]; 1 where a document or a person names the category.")
    hitl: bool = Field(description="Whether it waits for a human review; until then it has no category.")
    reasons: list[str] = Field(description="Reasons for the reader.")
    reason_statements: tuple[Statement, ...] = Field(description="The reasons with codes.")

    @classmethod
    def of(cls, result: Classification) -> PlacementShape:
        """The shape of a classification."""
        return cls(
            taxonomy_path=list(result.path),
            confidence=round(result.confidence, 4),
            hitl=not result.accepted,
            reasons=list(result.reasons),
            reason_statements=all_statements(result.reasons),
        )


class UploadedDocument(BaseModel):
    """An indexed, searchable document."""

    document_id: str = Field(description="Its id.")
    file: str = Field(description="Its file.")
    unchanged: bool = Field(description="Whether the same file was indexed before.")
    placement: PlacementShape | None = Field(
        description="Its category; null if it is unchanged, and while there are no categories."
    )


class FailedFile(BaseModel):
    """A file that could not be read completely."""

    file: str = Field(description="Its name.")
    reason: str = Field(description="The reason.")
    reason_statements: ReasonStatements

    @classmethod
    def of(cls, file: str, reason: str) -> FailedFile:
        """The file with its reason."""
        return cls(file=file, reason=reason, reason_statements=statements_of(reason))


class UploadCounts(BaseModel):
    """Counts of an upload."""

    documents: int = Field(description="New or changed documents.")
    chunks: int = Field(description="Their passages.")
    unchanged: int = Field(description="Files or documents that were indexed before.")
    removed: int = Field(
        description="Documents of an earlier file of the same name that the new file no longer contains."
    )
    failed: int = Field(description="Files that failed.")


class UploadResponse(BaseModel):
    """The result of an upload; everything in `documents` is searchable."""

    documents: list[UploadedDocument] = Field(description="At most 1,000 for each file.")
    counts: UploadCounts = Field(description="Counts of all files and documents.")
    failed: list[FailedFile] = Field(description="Files that could not be read, with reasons.")
    notes: list[str] = Field(description="Notes for the reader.")
    note_statements: NoteStatements
