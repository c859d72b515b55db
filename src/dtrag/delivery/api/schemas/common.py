"""Searches and answers over HTTP, as OpenAPI shows them; docs/reference/http.md explains them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from dtrag.delivery.api.schemas.base import StrictBody
from dtrag.delivery.api.schemas.search import AsOf, Filters
from dtrag.delivery.api.schemas.statements import NOTE_STATEMENTS, REASON_STATEMENTS, StatementShape
from dtrag.retrieval.request import MAX_QUERY

_RESPONSE = ConfigDict(from_attributes=True)
_SPAN = "in code points of the document's text"


class ExplanationShape(BaseModel):
    """The scores and ranks of a passage; ranks count from 1 and are null outside of that list."""

    model_config = _RESPONSE

    bm25: float = Field(description="The BM25 sum; bm25_score is its share of the highest possible value.")
    bm25_score: float = Field(description="Lexical score, as a share of the highest possible for the query.")
    cosine: float | None = Field(description="Cosine with the query; null without a vector.")
    fused: float | None = Field(description="Score after fusion; null if in neither list.")
    rerank: float | None = Field(description="Reranker score; null if not reranked.")
    lexical_rank: int | None = Field(description="Rank among the lexical candidates.")
    vector_rank: int | None = Field(description="Rank among the vector candidates.")
    fused_rank: int | None = Field(description="Rank after fusion.")
    terms: list[str] = Field(description="Query terms in the passage.")
    expansions: list[str] = Field(description="Words of the passage that the lexicon added to the query.")
    imagined: float | None = Field(
        description="Similarity of the query and its nearest imagined question; null if not found by one."
    )
    imagined_questions: list[str] = Field(
        description="Its imagined questions, if it was found by one: derived, never text of the document."
    )


class AbsenceShape(BaseModel):
    """Why a requested document is not among the results."""

    model_config = _RESPONSE

    document_id: str = Field(description="The requested document.")
    reason: str = Field(description="The reason; the same for unknown and inaccessible documents.")
    reason_statements: list[StatementShape] = Field(description=REASON_STATEMENTS)
    chunk_id: str | None = Field(description="Its best passage, if any.")
    explanation: ExplanationShape | None = Field(description="The scores and ranks of that passage.")


class Passage(BaseModel):
    """A result passage; scores are in [0, 1]."""

    model_config = _RESPONSE

    chunk_id: str = Field(description="Id of the passage: document id, colon, position.")
    text: str = Field(description="The passage, verbatim.")
    title: str = Field(description="Title of its document.")
    source_url: str = Field(description="Source address of the document.")
    taxonomy_path: list[str] = Field(description="Category of the document, outermost name first; [] for none.")
    bm25_score: float = Field(description="Lexical score, as a share of the highest possible for the query.")
    vector_score: float = Field(description="Cosine with the query; 0 without vectors.")
    hybrid_score: float = Field(description="The score by which the results are ordered.")
    rerank_score: float = Field(description="Reranker score; 0 without reranking.")
    metadata: dict[str, object] = Field(
        description="Metadata of document and passage, such as document_id, content_type, language, article."
    )
    breadcrumb: list[str] = Field(description="Headings above the passage, outermost first.")
    start: int = Field(description=f"Start of the passage, {_SPAN}.")
    end: int = Field(description=f"End of the passage (exclusive), {_SPAN}.")
    highlights: list[tuple[int, int]] = Field(
        description="Spans [start, end) of query terms in `text`, in code points; ordered and disjoint."
    )
    explanation: ExplanationShape | None = Field(description="Its scores and ranks; null unless requested.")


class ExpansionTermShape(BaseModel):
    """An official word that the lexicon added to the query."""

    model_config = _RESPONSE

    text: str = Field(description="The official word.")
    weight: float = Field(description="Its weight in the lexical search; the query's own words have 1.")


class ExpansionShape(BaseModel):
    """What one entry of the lexicon added to the query."""

    model_config = _RESPONSE

    words: list[str] = Field(description="The words of the query, normalised, that the entry explains.")
    form: str = Field(description="The everyday expression of the entry that they match.")
    field: str = Field(description="The field of life that the entry belongs to; own: added by administrators.")
    matched_by: Literal["words", "synonym", "spelling"] = Field(
        description="Whether the very words matched, a synonym, or a corrected spelling."
    )
    official: list[ExpansionTermShape] = Field(description="The added words, best first.")


class EntityShape(BaseModel):
    """An entity in the query."""

    model_config = _RESPONSE

    kind: str = Field(description="section, procedure, requirement, benefit, deadline or hypernym.")
    text: str = Field(description="Its text.")


class TopKShape(BaseModel):
    """The number of results that was chosen for the query."""

    model_config = _RESPONSE

    top_k: int = Field(description="The number.")
    reason: str = Field(
        description="The class of a question about regulations: simple, medium, complex or multi_part; else default."
    )
    reduced: bool = Field(description="Whether it is half of the usual number, because the search took long.")


class Metrics(BaseModel):
    """Times (in seconds) and counts of a search."""

    model_config = _RESPONSE

    mode: str = Field(description="The search mode.")
    total_time: float = Field(description="Total time.")
    bm25_time: float = Field(description="Lexical retrieval.")
    vector_time: float = Field(description="Vector retrieval, including the embedding.")
    embedding_time: float = Field(description="Embedding of the query.")
    fusion_time: float = Field(description="Fusion of both lists.")
    rerank_time: float = Field(description="Reranking; 0 without it.")
    fetch_time: float = Field(description="Fetching of the passages.")
    bm25_candidates: int = Field(description="Lexical candidates.")
    vector_candidates: int = Field(description="Vector candidates.")
    final_results: int = Field(description="Number of results.")
    diversity_ratio: float = Field(description="Share of distinct documents among the first ten results.")
    cache_hit: bool = Field(description="Whether the results came from the cache.")
    degraded: list[str] = Field(description="Stages that failed and were left out.")
    notes: list[str] = Field(description="Notes for the reader.")
    note_statements: list[StatementShape] = Field(description=NOTE_STATEMENTS)
    correlation_id: str = Field(description="The X-Correlation-ID of the request.")
    absent: list[AbsenceShape] = Field(
        description="The explain_documents that are not among the results, with reasons."
    )
    expansions: list[ExpansionShape] = Field(
        description="What the lexicon added to the query; [] unless explain is set and the search uses the lexicon."
    )
    entities: list[EntityShape] = Field(
        description="What a question about regulations names; [] unless explain is set."
    )
    top_k: TopKShape | None = Field(description="The chosen number of results; null for a requested one.")
    vectors_pending: bool = Field(
        description="Whether passages in your scope may wait for their vectors and were found by their words only."
    )
    imagined_candidates: int = Field(description="Passages found by their imagined questions.")


class HitSource(BaseModel):
    """The document of a hit."""

    url: str = Field(description="Its source address.")
    title: str = Field(description="Its title.")


class HitMetadata(BaseModel):
    """The category of a hit."""

    canonical_path: list[str] = Field(description="Its category, outermost name first; [] for none.")


class Hit(BaseModel):
    """The short form of a result, without text; `results` has the same passages in full."""

    chunk_id: str = Field(description="Id of the passage.")
    score: float = Field(description="The ordering score: rerank_score if there is one, else hybrid_score.")
    source: HitSource = Field(description="Its document.")
    metadata: HitMetadata = Field(description="The category of its document.")

    @classmethod
    def of(cls, passage: Passage) -> Hit:
        """The short form of a passage."""
        return cls(
            chunk_id=passage.chunk_id,
            score=passage.rerank_score or passage.hybrid_score,
            source=HitSource(url=passage.source_url, title=passage.title),
            metadata=HitMetadata(canonical_path=passage.taxonomy_path),
        )


class SearchResponse(BaseModel):
    """The results of a search, best first, with its metrics."""

    results: list[Passage] = Field(description="The passages, best first.")
    metrics: Metrics = Field(description="Times and counts.")
    hits: list[Hit] = Field(description="The same passages in short form.")
    total_count: int = Field(description="Number of results in this response.")
    latency: float = Field(description="The same as metrics.total_time.")


class SearchFailure(BaseModel):
    """A failed search of a batch."""

    detail: str = Field(description="One sentence: what happened, and what to do.")
    type: str = Field(description="The error type, for programs.")
    status: int = Field(description="The HTTP status of the same search on its own.")


class BatchResponse(BaseModel):
    """The outcome of each search, in the order of the request."""

    answers: list[SearchResponse | SearchFailure] = Field(
        description="For each search the response of POST /search, or its error."
    )


class AskRequest(StrictBody):
    """A question to the documents."""

    question: str = Field(
        max_length=MAX_QUERY, description="The question.", examples=["How many days of parental leave are there?"]
    )
    filters: Filters = None
    as_of: AsOf = None


DISPLAY = (
    "The quotation as the answer shows it: each sentence, item or row on one line, without marks of amendments, with "
    'hidden characters made visible ("<U+202E>").'
)
CONTEXT = "Header and unit of a quoted table row, or the lead-in of a list item, in the order of the document."

HIGHLIGHTS = (
    "Spans [start, end) inside the quotation of the words that answer (number, date, name, limit, what is allowed), in "
    "code points of the document's text."
)
MARKED = (
    "Spans [start, end) inside the quotation of the sentence that answers, where the quotation is a longer provision, "
    "in code points of the document's text."
)
ANSWER_CONFIDENCE = (
    "The probability that the quotations are the answer, in [0, 1]: it decides between answer and review. Null for the "
    "answer of a language model, for a provision that the question names, and without an answer."
)
MARKED_IN_ANSWER = (
    "Spans [start, end) of the answer, in code points, with the sentences that answer, where provisions are quoted."
)
PAGE = "Page of the PDF on which the quotation begins; null for other formats, or if it is unknown."


class ContextShape(BaseModel):
    """Text that a quotation needs to be understood."""

    model_config = _RESPONSE

    kind: Literal["header", "unit", "lead_in"] = Field(
        description="header of a table, unit of its values, or lead_in of a list or table."
    )
    text: str = Field(description="The text, verbatim.")
    start: int = Field(description=f"Its start, {_SPAN}.")
    end: int = Field(description=f"Its end (exclusive), {_SPAN}.")


class CitationShape(BaseModel):
    """The source of a sentence of the answer."""

    model_config = _RESPONSE

    number: int = Field(description="The n of [n] in the answer.")
    label: str = Field(description="Citation label: regulation and article, or title and heading.")
    chunk_id: str = Field(description="The passage.")
    document_id: str = Field(description="Its document.")
    source_url: str = Field(description="Source address of the document.")
    quote: str = Field(description="The quoted text, verbatim.")
    start: int = Field(description=f"Start of the quotation, {_SPAN}.")
    end: int = Field(description=f"End of the quotation (exclusive), {_SPAN}.")
    display: str = Field(description=DISPLAY)
    context: list[ContextShape] = Field(description=CONTEXT)
    highlights: list[tuple[int, int]] = Field(description=HIGHLIGHTS)
    marked: list[tuple[int, int]] = Field(description=MARKED)
    page: int | None = Field(description=PAGE)


class CaseVotesShape(BaseModel):
    """Votes on a case."""

    model_config = _RESPONSE

    up: int = Field(description="Votes for it.")
    down: int = Field(description="Votes against it.")


class EarlierQuestionShape(BaseModel):
    """An earlier question with a confirmed answer."""

    model_config = _RESPONSE

    case_id: str = Field(description="The case.")
    question: str = Field(description="The earlier question; empty where questions are stored without text.")
    date: str = Field(description="The day of the earlier answer.")
    votes: CaseVotesShape = Field(description="What people said of it.")


AnsweredBefore = Annotated[
    EarlierQuestionShape | None,
    Field(
        description="A verified case with the same question, whose passages the answer cites, too; null if there is "
        "none, or the case memory is off."
    ),
]
Offered = Annotated[
    list[EarlierQuestionShape],
    Field(
        description="Up to three similar questions with a confirmed answer from passages that you may see and that are "
        "unchanged, most similar first; empty while the case memory is off. The answer does not depend on them."
    ),
]


def answered_before(case: object | None) -> EarlierQuestionShape | None:
    """The `AnsweredBefore` of an answer as JSON."""
    return None if case is None else EarlierQuestionShape.model_validate(case)


class NearestHeadingShape(BaseModel):
    """The heading of a passage that is near to the question without answering it."""

    model_config = _RESPONSE

    label: str = Field(description="Regulation and article, or title and heading.")
    chunk_id: str = Field(description="The passage.")
    document_id: str = Field(description="Its document.")
    start: int = Field(description=f"Start of the passage, {_SPAN}.")
    end: int = Field(description=f"End of the passage (exclusive), {_SPAN}.")


class DeclinedShape(BaseModel):
    """What was searched for a question that the documents do not answer; all of it is what you may see."""

    model_config = _RESPONSE

    searched: int = Field(description="Passages that were searched.")
    unknown_words: list[str] = Field(description="Words of the question that occur in none of them; at most five.")
    nearest: list[NearestHeadingShape] = Field(description="Headings of the best passages; at most three.")


Declined = Annotated[
    DeclinedShape | None,
    Field(
        description="What was searched when the decision is abstain; null otherwise, for a greeting, and for a "
        "question that names a provision which does not exist."
    ),
]


class AskResponse(BaseModel):
    """The answer with its citations, or that the documents do not answer."""

    model_config = _RESPONSE

    question: str = Field(description="The question.")
    text: str = Field(description="The answer, with [n] where a citation belongs.")
    marked: list[tuple[int, int]] = Field(description=MARKED_IN_ANSWER)
    citations: list[CitationShape] = Field(description="One for each [n].")
    confidence: float = Field(description="The probability that the documents answer this, in [0, 1].")
    answer_confidence: float | None = Field(description=ANSWER_CONFIDENCE)
    decision: str = Field(description="answer, review (on weak evidence), or abstain: the documents do not answer.")
    reason: str = Field(description="How the confidence was reached.")
    reason_statements: list[StatementShape] = Field(description=REASON_STATEMENTS)
    stages: dict[str, float] = Field(description="Duration of each stage in milliseconds.")
    degraded: list[str] = Field(description="Stages that failed and were left out.")
    notes: list[str] = Field(description="Notes for the reader.")
    note_statements: list[StatementShape] = Field(description=NOTE_STATEMENTS)
    model: str | None = Field(description="The language model that wrote the answer; null for quotations.")
    cost: float = Field(description="Cost of its language model calls, in won.")
    trace_id: str = Field(description="The id of its trace: GET /traces/{id}.")
    unfinished: bool = Field(
        description="Whether the time limit was reached: it is unknown whether the documents answer the question."
    )
    answered_before: AnsweredBefore = None
    offered: Offered = []
    declined: Declined = None


class ErrorShape(BaseModel):
    """The body of every error response."""

    detail: str = Field(description="One sentence: what happened, and what to do.", examples=["The question is empty."])
    type: str = Field(description="The error type, for programs.", examples=["InvalidInput"])
    request_id: str | None = Field(description="The id of the request, as in X-Request-ID and in the log.")
    detail_statements: list[StatementShape] = Field(
        default=[], description="The detail with its code; absent for one of which only the text is known."
    )
