"""Verified citations: whether what a text cites exists in a collection of regulations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, get_args

from dtrag.core.response import INTERNAL, response

CitationStatus = Literal["exists", "missing", "title_mismatch", "repealed", "unclear"]
QuotationStatus = Literal["verbatim", "same_letters", "different", "unchecked"]


@dataclass(frozen=True, slots=True)
class VerifiedCitation:
    """A citation with its status."""

    __pydantic_config__ = response("VerifiedCitationShape")

    start: int
    """Start of the citation, in code points of the text."""
    end: int
    """End of the citation (exclusive)."""
    text: str
    """The citation, verbatim."""
    status: CitationStatus
    """exists; missing: does not exist, or you may not see it; title_mismatch: the number exists with another title, or
    a regulation with a similar name; repealed: deleted; unclear: cannot be decided, such as an article of a law."""
    target: str | None = None
    """The provision that is meant, as the book names it (교원인사규정 제8조제2항); for a wrong name of the nearest
    regulation."""
    range: str | None = None
    """The numbers that exist, of what is missing: 제1조–제42조."""
    title: str | None = None
    """The title of the article in the collection."""
    reason: str = ""
    """Why the status is not exists; empty otherwise."""


@dataclass(frozen=True, slots=True)
class VerifiedQuotation:
    """Words in quotation marks, compared with the provision that is cited beside them."""

    __pydantic_config__ = response("VerifiedQuotationShape")

    start: int
    """Start of the words, in code points of the text; without the quotation marks."""
    end: int
    """End of the words (exclusive)."""
    text: str
    """The words, verbatim."""
    status: QuotationStatus
    """verbatim: they are in the text of the target, character by character; same_letters: only blanks, punctuation or
    the form of letters differ; different: they are not in it; unchecked: there is no text to compare them with."""
    target: str | None = None
    """The provision with whose text they were compared; null if unchecked."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The citations and quotations of a text in its order."""

    __pydantic_config__ = response("VerificationResponse")

    citations: tuple[VerifiedCitation, ...]
    """The citations."""
    counts: dict[str, int]
    """Number of citations by status, for all five statuses."""
    quotations: tuple[VerifiedQuotation, ...] = ()
    """The words that it quotes beside citations."""
    # The documents of the regulations that were read for it.
    document_ids: tuple[str, ...] = field(default=(), metadata=INTERNAL)

    @classmethod
    def of(
        cls,
        citations: Iterable[VerifiedCitation],
        document_ids: Iterable[str],
        quotations: Iterable[VerifiedQuotation] = (),
    ) -> Verification:
        """With the counts of all statuses."""
        citations = tuple(citations)
        numbers = Counter(citation.status for citation in citations)
        counts = {status: numbers[status] for status in get_args(CitationStatus)}
        return cls(citations, counts, tuple(quotations), tuple(dict.fromkeys(document_ids)))

    @property
    def all_exist(self) -> bool:
        """Whether every citation exists; true for a text without citations."""
        return self.counts["exists"] == len(self.citations)
