"""What a lexicon added to a query: shown by an explained search."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExpansionTerm:
    """An official word that was added to a query; `weight` is relative to the query's own words, which have 1."""

    text: str
    weight: float


@dataclass(frozen=True, slots=True)
class QueryExpansion:
    """The official words that one entry of a lexicon added to a query, best first.

    `words` are the words of the query, normalised, that the entry explains, and `form` is the spoken form of the entry
    that they match: by its very `words`, by a `synonym`, or after the `spelling` was corrected (`matched_by`). `field`
    is the field of life that the entry belongs to; `own` for entries that administrators have added.
    """

    words: tuple[str, ...]
    form: str
    field: str
    matched_by: str
    official: tuple[ExpansionTerm, ...]
