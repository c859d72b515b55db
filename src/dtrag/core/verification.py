"""Verified citations: whether what a text cites exists in a collection of regulations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

CitationStatus = Literal["exists", "missing", "title_mismatch", "repealed", "unclear"]
QuotationStatus = Literal["verbatim", "same_letters", "different", "unchecked"]


@dataclass(frozen=True, slots=True)
class VerifiedCitation:
    """A citation in a text: `text` is `[start:end]` of the text, in code points.

    `target` is the cited provision as the book names it (`교원인사규정 제8조제2항`), for a wrong name that of the
    nearest regulation; None if there is none. `range` are the existing numbers of what is missing (`제1조–제42조`).
    `title` is the title of the article in the book. `reason` explains every status except `exists`.
    """

    start: int
    end: int
    text: str
    status: CitationStatus
    target: str | None = None
    range: str | None = None
    title: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class VerifiedQuotation:
    """Words in quotation marks beside a citation: `text` is `[start:end]` of the text, in code points.

    `verbatim`: they are in the text of `target`, character by character. `same_letters`: only blanks, punctuation or
    the form of letters differ. `different`: they are not in it. `unchecked`: there is no text of what is cited to
    compare them with, and `target` is None.
    """

    start: int
    end: int
    text: str
    status: QuotationStatus
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Verification:
    """The citations of a text in its order, and their number by status; the words that it quotes from provisions.

    `document_ids` are the documents of the regulations that were read for it.
    """

    citations: tuple[VerifiedCitation, ...]
    counts: dict[str, int]
    document_ids: tuple[str, ...] = ()
    quotations: tuple[VerifiedQuotation, ...] = ()

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
        return cls(citations, counts, tuple(dict.fromkeys(document_ids)), tuple(quotations))

    @property
    def all_exist(self) -> bool:
        """Whether every citation exists; true for a text without citations."""
        return self.counts["exists"] == len(self.citations)
