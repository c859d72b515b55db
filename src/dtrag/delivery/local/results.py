"""Results of reading commands, and their conversion from the JSON that a running service sends.

Imports are kept few: a command that the service answers must not load the engine.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from dtrag.core.documents import Answer, DocumentSummary, SearchMetrics, SearchResult
from dtrag.core.lexicon_entry import LexiconEntry
from dtrag.core.provisions import ProvisionCitation, RegulationSummary, ShownProvision
from dtrag.core.regulation_changes import RegulationDiff, StaleCitation
from dtrag.core.statements import CodedText, rows_of, statement_of
from dtrag.core.verification import Verification

__all__ = [
    "AnswerResult",
    "CitationList",
    "DocumentPage",
    "DocumentResult",
    "ReadingResult",
    "RegulationDifferences",
    "RegulationList",
    "SearchResults",
    "ShownProvision",
    "StaleCitations",
    "Verification",
    "document_ids",
    "from_json",
    "to_json",
]


@dataclass(frozen=True, slots=True)
class AnswerResult:
    """An answer; `empty` when the index has no documents."""

    answer: Answer
    empty: bool


@dataclass(frozen=True, slots=True)
class SearchResults:
    """The results of a search; `empty` when the index has no documents."""

    results: list[SearchResult]
    metrics: SearchMetrics
    empty: bool


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """A page of documents, the total numbers of matching documents and chunks, and the `after` of the next page.

    `vectors_pending`: chunks of the branch that wait for their vectors.
    """

    documents: list[DocumentSummary]
    total: int
    chunks: int
    next: str | None = None
    vectors_pending: int = 0


@dataclass(frozen=True, slots=True)
class DocumentResult:
    """One document with its text."""

    summary: DocumentSummary
    text: str


@dataclass(frozen=True, slots=True)
class RegulationList:
    """The regulations; `empty` when the index has no documents."""

    regulations: list[RegulationSummary]
    empty: bool


@dataclass(frozen=True, slots=True)
class CitationList:
    """Citations of provisions."""

    citations: list[ProvisionCitation]


@dataclass(frozen=True, slots=True)
class RegulationDifferences:
    """What changed in regulations."""

    differences: list[RegulationDiff]


@dataclass(frozen=True, slots=True)
class StaleCitations:
    """Citations that are older than what they cite."""

    citations: list[StaleCitation]


@dataclass(frozen=True, slots=True)
class OwnEntries:
    """The own entries of the lexicon."""

    entries: list[LexiconEntry]


ReadingResult = (
    AnswerResult
    | SearchResults
    | DocumentPage
    | DocumentResult
    | RegulationList
    | ShownProvision
    | CitationList
    | Verification
    | RegulationDifferences
    | StaleCitations
    | OwnEntries
)


def document_ids(result: ReadingResult) -> list[str]:
    """Ids of the documents in the result, without duplicates, for the audit log."""
    match result:
        case AnswerResult():
            ids = [citation.document_id for citation in result.answer.citations]
        case SearchResults():
            ids = [passage.chunk_id.rpartition(":")[0] for passage in result.results]
        case DocumentPage():
            ids = [document.document_id for document in result.documents]
        case DocumentResult():
            ids = [result.summary.document_id]
        case RegulationList():
            ids = [regulation.document_id for regulation in result.regulations]
        case ShownProvision():
            ids = [result.document_id]
        case Verification():
            ids = list(result.document_ids)
        case RegulationDifferences():
            ids = [key for each in result.differences for key in each.document_ids]
        case CitationList() | StaleCitations() | OwnEntries():
            ids = []
    return list(dict.fromkeys(ids))


def to_json(value: Any) -> Any:
    """What `from_json` makes the value of again: dataclasses by their fields, texts with their statements."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, CodedText):
        return {"text": str(value), "statements": rows_of([value])}
    return [to_json(item) for item in value] if isinstance(value, (list, tuple)) else value


def from_json(kind: Any, value: Any) -> Any:
    """The value of type `kind` whose JSON is `value`: dataclasses, lists, tuples, None and plain values."""
    if kind is str and isinstance(value, dict):
        return CodedText(value["text"], tuple(map(statement_of, value["statements"])))
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        return kind(**{field.name: from_json(hints[field.name], value[field.name]) for field in fields(kind)})
    arguments = get_args(kind)
    if get_origin(kind) in (Union, UnionType):
        inner = [argument for argument in arguments if argument is not NoneType]
        return from_json(inner[0], value) if value is not None and len(inner) == 1 else value
    if get_origin(kind) is list:
        return [from_json(arguments[0], item) for item in value]
    if get_origin(kind) is tuple and arguments[-1] is Ellipsis:
        return tuple(from_json(arguments[0], item) for item in value)
    return tuple(value) if get_origin(kind) is tuple else value
