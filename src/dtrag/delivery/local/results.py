"""Results of reading commands, and how they come back from the JSON in which a running service sends them.

Little is imported here: a command that a service answers must not load the engine.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from dtrag.core.documents import Answer, DocumentSummary, SearchMetrics, SearchResult
from dtrag.core.provisions import ProvisionCitation, RegulationSummary, ShownProvision

__all__ = ["Answered", "Citations", "Listing", "Passages", "Regulations", "Shown", "ShownProvision", "revived"]


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer; `empty` when it cites nothing and there is no document at all."""

    answer: Answer
    empty: bool


@dataclass(frozen=True, slots=True)
class Passages:
    """The results of a search; `empty` when there is no document at all."""

    results: list[SearchResult]
    metrics: SearchMetrics
    empty: bool


@dataclass(frozen=True, slots=True)
class Listing:
    """Some of the documents, and how many documents and chunks there are altogether."""

    documents: list[DocumentSummary]
    total: int
    chunks: int


@dataclass(frozen=True, slots=True)
class Shown:
    """One document with its text."""

    summary: DocumentSummary
    text: str


@dataclass(frozen=True, slots=True)
class Regulations:
    """The regulations; `empty` when there is no document at all."""

    regulations: list[RegulationSummary]
    empty: bool


@dataclass(frozen=True, slots=True)
class Citations:
    """What provisions cite."""

    citations: list[ProvisionCitation]


def revived(kind: Any, value: Any) -> Any:
    """A value of the annotation `kind` from what JSON made of it: dataclasses, lists, tuples, None and plain values."""
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        return kind(**{field.name: revived(hints[field.name], value[field.name]) for field in fields(kind)})
    arguments = get_args(kind)
    if get_origin(kind) in (Union, UnionType):
        inner = [argument for argument in arguments if argument is not NoneType]
        return revived(inner[0], value) if value is not None and len(inner) == 1 else value
    if get_origin(kind) is list:
        return [revived(arguments[0], item) for item in value]
    if get_origin(kind) is tuple and arguments[-1] is Ellipsis:
        return tuple(revived(arguments[0], item) for item in value)
    return tuple(value) if get_origin(kind) is tuple else value
