"""What a pack reads in a query: shown by an explained search and by traces."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExpansionTerm:
    """A word that was added to a query; `weight` is relative to the query's own words, which have 1."""

    text: str
    weight: float


@dataclass(frozen=True, slots=True)
class QueryExpansion:
    """The words that one entry of a lexicon, or the meaning of one keyword, added to a query, best first.

    `words` are the words of the query, normalised, that the entry explains, and `form` is the spoken form of the entry
    that they match: by its very `words`, by a `synonym`, or after the `spelling` was corrected (`matched_by`). `field`
    is the field of life that the entry belongs to; `own` for entries that administrators have added, and the kind of
    the keyword (`procedure`) for its related words.
    """

    words: tuple[str, ...]
    form: str
    field: str
    matched_by: str
    official: tuple[ExpansionTerm, ...]


@dataclass(frozen=True, slots=True)
class QueryEntity:
    """An entity in a query: its kind (`section`, `procedure` …) and its text."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class TopKChoice:
    """The number of passages that was chosen for a query.

    `reason` is the class of the question (`simple`, `medium`, `complex`, `multi_part`), `default` where no pack
    chooses, or `requested`. `reduced`: fewer than for that class, because the search took too long.
    """

    top_k: int
    reason: str
    reduced: bool = False


@dataclass(frozen=True, slots=True)
class QueryFacts:
    """What a pack found in a query, and added to it."""

    entities: tuple[QueryEntity, ...]
    expansions: tuple[QueryExpansion, ...]
