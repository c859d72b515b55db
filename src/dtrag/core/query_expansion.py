"""What a pack reads in a query: shown by an explained search and by traces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dtrag.core.response import response

MatchedBy = Literal["words", "synonym", "spelling"]


@dataclass(frozen=True, slots=True)
class ExpansionTerm:
    """An official word that the lexicon added to the query."""

    __pydantic_config__ = response("ExpansionTermShape")

    text: str
    """The official word."""
    weight: float
    """Its weight in the lexical search; the query's own words have 1."""


@dataclass(frozen=True, slots=True)
class QueryExpansion:
    """What one entry of the lexicon added to the query."""

    __pydantic_config__ = response("ExpansionShape")

    words: tuple[str, ...]
    """The words of the query, normalised, that the entry explains."""
    form: str
    """The everyday expression of the entry that they match."""
    field: str
    """The field of life that the entry belongs to; own: added by administrators."""
    # For the related words of a keyword, `field` is the kind of the keyword (procedure).
    matched_by: MatchedBy
    """Whether the very words matched, a synonym, or a corrected spelling."""
    official: tuple[ExpansionTerm, ...]
    """The added words, best first."""


@dataclass(frozen=True, slots=True)
class QueryEntity:
    """An entity in the query."""

    __pydantic_config__ = response("EntityShape")

    kind: str
    """section, procedure, requirement, benefit, deadline or hypernym."""
    text: str
    """Its text."""


@dataclass(frozen=True, slots=True)
class TopKChoice:
    """The number of results that was chosen for the query."""

    __pydantic_config__ = response("TopKShape")

    top_k: int
    """The number."""
    reason: str
    """The class of a question about regulations: simple, medium, complex or multi_part; else default."""
    reduced: bool = False
    """Whether it is half of the usual number, because the search took long."""


@dataclass(frozen=True, slots=True)
class QueryFacts:
    """What a pack found in a query, and added to it."""

    entities: tuple[QueryEntity, ...]
    expansions: tuple[QueryExpansion, ...]
