"""Bodies and responses of `/regulations`; the fields are those of `dtrag regulations … --json`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from dtrag.core.documents import SearchResult
from dtrag.core.provisions import ShownProvision
from dtrag.core.verification import CitationStatus, QuotationStatus
from dtrag.delivery.api.schemas.base import StrictBody
from dtrag.delivery.api.schemas.search import AsOf, Text
from dtrag.packs.regulation_ko.verification.check import MAX_TEXT
from dtrag.retrieval.request import MAX_QUERY, MAX_TOP_K

_RESPONSE = ConfigDict(from_attributes=True)


class RegulationSearchBody(StrictBody):
    """A search for articles."""

    query: str = Field(
        max_length=MAX_QUERY, description="Words or a question; a blank query has no results.", examples=["휴학 기간"]
    )
    top_k: int | None = Field(
        None,
        ge=1,
        le=MAX_TOP_K,
        description="Maximum number of articles; without it 5 to 20, by the form of the question.",
    )
    as_of: AsOf = None


class RegulationSearchResponse(BaseModel):
    """The best articles, each once."""

    results: list[SearchResult] = Field(
        description="The best passage of each article, best first; its metadata has regulation, article, code, kind."
    )


class VerificationBody(StrictBody):
    """A text whose citations are verified."""

    text: Text = Field(
        max_length=MAX_TEXT, description="Any text that cites regulations.", examples=["학칙 제21조에 따라 수여한다."]
    )
    regulation: Text | None = Field(
        None, max_length=500, description="Name or code of the regulation of references before any name."
    )
    as_of: AsOf = None


class VerifiedCitationShape(BaseModel):
    """A citation with its status."""

    model_config = _RESPONSE

    start: int = Field(description="Start of the citation, in code points of the text.")
    end: int = Field(description="End of the citation (exclusive).")
    text: str = Field(description="The citation, verbatim.")
    status: CitationStatus = Field(
        description="exists; missing: does not exist, or you may not see it; title_mismatch: the number exists with "
        "another title, or a regulation with a similar name; repealed: deleted; unclear: cannot be decided, such as "
        "an article of a law."
    )
    target: str | None = Field(description="The provision that is meant; for a wrong name of the nearest regulation.")
    range: str | None = Field(description="The numbers that exist, of what is missing: 제1조–제42조.")
    title: str | None = Field(description="The title of the article in the collection.")
    reason: str = Field(description="Why the status is not exists; empty otherwise.")


class VerifiedQuotationShape(BaseModel):
    """Words in quotation marks, compared with the provision that is cited beside them."""

    model_config = _RESPONSE

    start: int = Field(description="Start of the words, in code points of the text; without the quotation marks.")
    end: int = Field(description="End of the words (exclusive).")
    text: str = Field(description="The words, verbatim.")
    status: QuotationStatus = Field(
        description="verbatim: they are in the text of the target, character by character; same_letters: only blanks, "
        "punctuation or the form of letters differ; different: they are not in it; unchecked: there is no text to "
        "compare them with."
    )
    target: str | None = Field(description="The provision with whose text they were compared; null if unchecked.")


class VerificationResponse(BaseModel):
    """The citations and quotations of a text in its order."""

    model_config = _RESPONSE

    citations: list[VerifiedCitationShape] = Field(description="The citations.")
    counts: dict[str, int] = Field(description="Number of citations by status, for all five statuses.")
    quotations: list[VerifiedQuotationShape] = Field(description="The words that it quotes beside citations.")


class RegulationShape(BaseModel):
    """A regulation without its text."""

    model_config = _RESPONSE

    name: str = Field(description="Its name.")
    code: str = Field(description="Its code in the book; empty without one.")
    document_id: str = Field(description="Its document.")
    articles: int = Field(description="Number of its articles.")
    appendices: int = Field(description="Number of its appendices.")
    addenda: int = Field(description="Number of its addenda.")


class RegulationPage(BaseModel):
    """A page of the regulations, by name."""

    regulations: list[RegulationShape] = Field(description="The regulations of this page.")
    total: int = Field(description="Number of regulations that you may see.")
    limit: int = Field(description="The requested page size.")
    offset: int = Field(description="Regulations before this page.")


class OutlinedProvisionShape(BaseModel):
    """A provision in the outline of its regulation."""

    model_config = _RESPONSE

    kind: str = Field(description="article, appendix or addendum.")
    label: str = Field(description="제15조의2, 별표 1 or 부칙.")
    title: str = Field(description="Its title; empty without one.")
    headings: list[str] = Field(description="Headings above it, outermost first, such as 제1장 총칙.")
    start: int = Field(description="Its start, in code points of the document's text.")
    end: int = Field(description="Its end (exclusive).")
    chunk_id: str = Field(description="Its first passage; empty for a deleted provision.")
    deleted: bool = Field(description="Whether only the mark of the deleted provision remains.")


class EditionDaysShape(BaseModel):
    """An edition of a regulation."""

    model_config = _RESPONSE

    document_id: str = Field(description="Its document.")
    effective_from: str | None = Field(description="The first day on which it is valid as a whole.")
    superseded_from: str | None = Field(description="The day on which the next edition replaces it; null for none.")


class OutlineShape(BaseModel):
    """The outline of a regulation."""

    model_config = _RESPONSE

    name: str = Field(description="Its name.")
    code: str = Field(description="Its code in the book; empty without one.")
    document_id: str = Field(description="The document of the edition that is shown.")
    provisions: list[OutlinedProvisionShape] = Field(description="Its provisions, in the order of the text.")
    editions: list[EditionDaysShape] = Field(description="Its dated editions that you may see, the oldest first.")


class ProvisionCitationShape(BaseModel):
    """A citation in a provision."""

    model_config = _RESPONSE

    source: str = Field(description="The provision that cites, such as 학칙 제21조.")
    start: int = Field(description="Start of the citation, in code points of the text of the source.")
    end: int = Field(description="End of the citation (exclusive).")
    text: str = Field(description="The citation, verbatim.")
    kind: str = Field(
        description="internal, other-regulation, appendix, addendum, external-law, repealed or missing; provisions "
        "that you may not see are missing."
    )
    targets: list[str] = Field(description="The cited provisions; [] for missing ones and external laws.")
    paragraph: int | None = Field(description="The first cited paragraph (항).")
    item: int | None = Field(description="The first cited item (호).")


class CitationsResponse(BaseModel):
    """A page of the citations of one regulation or of all, in the order of the text."""

    citations: list[ProvisionCitationShape] = Field(description="The citations of this page.")
    total: int = Field(description="Number of citations of all pages.")
    limit: int = Field(description="The requested page size.")
    offset: int = Field(description="Citations before this page.")


class AmendmentShape(BaseModel):
    """One amendment mark of a provision."""

    model_config = _RESPONSE

    kind: str = Field(description="As written, without blanks: 개정, 신설, 삭제, 전문개정, 제목개정, 이동.")
    date: str | None = Field(description="Its date (YYYY-MM-DD); null without one.")
    paragraph: int | None = Field(description="The amended paragraph (항); null for the whole provision.")


class ProvisionShape(BaseModel):
    """An article, appendix or addendum with its whole text."""

    model_config = _RESPONSE

    name: str = Field(description="Its name in citations, such as 학칙 제21조.")
    regulation: str = Field(description="Its regulation.")
    code: str = Field(description="The code of the regulation; empty without one.")
    article: str = Field(description="Its label, such as 제21조, 별표 1 or 부칙.")
    title: str = Field(description="Its title; empty without one.")
    kind: str = Field(description="article, appendix or addendum.")
    text: str = Field(description="The text without the heading; several addenda with a blank line between them.")
    document_id: str = Field(description="The document of the regulation.")
    source_url: str = Field(description="Source address of the document.")
    taxonomy_path: list[str] = Field(description="Category of the document, outermost name first; [] for none.")
    spans: list[tuple[int, int]] = Field(description="Its spans [start, end) in code points of the document's text.")
    citations: list[ProvisionCitationShape] = Field(description="What it cites.")

    amendments: list[AmendmentShape] = Field(description="Its amendment marks, in the order of the text.")
    deleted: bool = Field(description="Whether it was deleted: the text is what remains, such as 삭제 <2020. 1. 1.>.")
    repealed: bool = Field(description="Whether the whole regulation is marked as abolished (폐지).")
    effective_dates: list[str] = Field(
        description="Of addenda: the dates (YYYY-MM-DD) on which they make the regulation effective; else []."
    )
    effective_date: str | None = Field(
        description="The newest date on which the regulation became effective; null if its text has none."
    )
    effective_from: str | None = Field(description="First day of this text; null without dates.")
    superseded_from: str | None = Field(description="The day on which another text replaces it; null if none does.")
    editions: list[str] = Field(description="Dates of all editions of the regulation in the index.")
    names: list[str] = Field(description="The provisions that it cites, each once.")
    named_by: list[str] = Field(description="The provisions of the same regulation that cite it.")

    @classmethod
    def of(cls, shown: ShownProvision) -> ProvisionShape:
        """The response for a provision."""
        return cls.model_validate(shown)


class ProvisionChangeShape(BaseModel):
    """A provision that differs."""

    model_config = _RESPONSE

    label: str = Field(description="Such as 제21조, 별표 1 or 부칙.")
    title: str = Field(description="Its title; empty without one.")
    change: Literal["amended", "added", "deleted"] = Field(description="What happened to it.")
    before: str = Field(description="The earlier text; empty if added.")
    after: str = Field(description="The later text; empty if deleted.")
    before_spans: list[tuple[int, int]] = Field(description="Changed parts of `before`, in code points.")
    after_spans: list[tuple[int, int]] = Field(description="Changed parts of `after`, in code points.")


class DifferenceResponse(BaseModel):
    """What changed in a regulation between two days."""

    model_config = _RESPONSE

    regulation: str = Field(description="Its name.")
    before: str = Field(description="The first day.")
    after: str = Field(description="The second day.")
    changes: list[ProvisionChangeShape] = Field(description="The provisions that differ.")
    unchanged: int = Field(description="Number of the other provisions.")
    document_ids: list[str] = Field(description="The editions that were compared.")


class StaleCitationShape(BaseModel):
    """A citation that is older than what it cites."""

    model_config = _RESPONSE

    source: str = Field(description="The provision that cites.")
    source_amended: str | None = Field(description="Day of its last amendment; null if unknown.")
    target: str = Field(description="The cited provision.")
    target_amended: str | None = Field(description="Day of its last amendment or repeal; null if unknown.")
    change: Literal["amended", "repealed"] = Field(description="What happened to the target.")
    text: str = Field(description="The citation, verbatim.")


class StaleResponse(BaseModel):
    """A page of the citations that are older than what they cite."""

    stale: list[StaleCitationShape] = Field(description="The citations of this page.")
    total: int = Field(description="Number of such citations.")
    limit: int = Field(description="The requested page size.")
    offset: int = Field(description="Citations before this page.")
