"""Shapes of requests and responses over HTTP, as OpenAPI shows them; docs/reference/http.md explains them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from dtrag.delivery.api.schemas.search import Filters
from dtrag.retrieval.request import MAX_QUERY

_REQUEST = ConfigDict(extra="forbid", strict=True)
_RESPONSE = ConfigDict(from_attributes=True)
_SPAN = "in code points of the document's text"


class ExplanationShape(BaseModel):
    """Why a passage stands where it stands; ranks count from 1, null where it is not in that list."""

    model_config = _RESPONSE

    bm25: float = Field(description="The lexical score as a sum; bm25_score is its share of the highest possible.")
    bm25_score: float = Field(description="Lexical score, as a share of the highest the query could reach.")
    cosine: float | None = Field(description="Cosine with the query; null without a vector.")
    fused: float | None = Field(description="Score after fusing both lists; null for what is in neither.")
    rerank: float | None = Field(description="Score of the reranker; null when it did not read this one.")
    lexical_rank: int | None = Field(description="Place among the candidates of the lexical leg.")
    vector_rank: int | None = Field(description="Place among the candidates of the vector leg.")
    fused_rank: int | None = Field(description="Place after fusing.")
    terms: list[str] = Field(description="Words of the query that the passage holds.")


class AbsenceShape(BaseModel):
    """Why a document that was asked about is not among the results."""

    model_config = _RESPONSE

    document_id: str = Field(description="The document, as it was asked about.")
    reason: str = Field(description="Why, for people; the same for one that is not there and one you may not see.")
    chunk_id: str | None = Field(description="Its best passage, if there is one.")
    explanation: ExplanationShape | None = Field(description="The scores and ranks of that passage.")


class Passage(BaseModel):
    """A passage that was found; scores lie in [0, 1]."""

    model_config = _RESPONSE

    chunk_id: str = Field(description="Id of the passage: document id, colon, position.")
    text: str = Field(description="The passage, verbatim.")
    title: str = Field(description="Title of its document.")
    source_url: str = Field(description="Where the document came from.")
    taxonomy_path: list[str] = Field(description="Category of the document, outermost name first; [] for none.")
    bm25_score: float = Field(description="Lexical score, as a share of the highest the query could reach.")
    vector_score: float = Field(description="Cosine with the query; 0 without vectors.")
    hybrid_score: float = Field(description="What orders this list.")
    rerank_score: float = Field(description="Score of the reranker; 0 when none ran.")
    metadata: dict[str, Any] = Field(
        description="Facts about document and passage, such as document_id, content_type, language, article."
    )
    breadcrumb: list[str] = Field(description="Headings above the passage, outermost first.")
    start: int = Field(description=f"Where the passage begins, {_SPAN}.")
    end: int = Field(description=f"Where the passage ends (exclusive), {_SPAN}.")
    highlights: list[tuple[int, int]] = Field(
        description="Spans [start, end) in code points of `text` that hold words of the query; in order, disjoint."
    )
    explanation: ExplanationShape | None = Field(description="Why it stands where it stands; null unless asked for.")


class Metrics(BaseModel):
    """How a search went; times in seconds."""

    model_config = _RESPONSE

    mode: str = Field(description="The mode that ran.")
    total_time: float = Field(description="From query to results.")
    bm25_time: float = Field(description="The lexical leg.")
    vector_time: float = Field(description="The vector leg, embedding included.")
    embedding_time: float = Field(description="Embedding the query.")
    fusion_time: float = Field(description="Fusing the two legs.")
    rerank_time: float = Field(description="Reranking; 0 when none ran.")
    fetch_time: float = Field(description="Fetching the passages.")
    bm25_candidates: int = Field(description="Passages the lexical leg proposed.")
    vector_candidates: int = Field(description="Passages the vector leg proposed.")
    final_results: int = Field(description="Passages in the answer.")
    diversity_ratio: float = Field(description="Share of distinct documents among the first ten results.")
    cache_hit: bool = Field(description="Whether it came from a cache.")
    degraded: list[str] = Field(description="Stages that failed and were done without.")
    notes: list[str] = Field(description="What a reader should know, in words.")
    correlation_id: str = Field(description="As in X-Correlation-ID: the work of the caller that this is part of.")
    absent: list[AbsenceShape] = Field(description="The explain_documents that are not among the results, and why.")


class HitSource(BaseModel):
    """The document of a hit."""

    url: str = Field(description="Where it came from.")
    title: str = Field(description="Its title.")


class HitMetadata(BaseModel):
    """Where the document of a hit hangs."""

    canonical_path: list[str] = Field(description="Its category, outermost name first; [] for none.")


class Hit(BaseModel):
    """A passage in short, for programs that need no text; `results` has the same passages in full."""

    chunk_id: str = Field(description="Id of the passage.")
    score: float = Field(description="What orders the list: rerank_score where there is one, else hybrid_score.")
    source: HitSource = Field(description="Its document.")
    metadata: HitMetadata = Field(description="Where its document hangs.")

    @classmethod
    def of(cls, passage: Passage) -> Hit:
        """The passage in short."""
        return cls(
            chunk_id=passage.chunk_id,
            score=passage.rerank_score or passage.hybrid_score,
            source=HitSource(url=passage.source_url, title=passage.title),
            metadata=HitMetadata(canonical_path=passage.taxonomy_path),
        )


class SearchResponse(BaseModel):
    """Passages, best first, and how the search went."""

    results: list[Passage] = Field(description="The passages, best first.")
    metrics: Metrics = Field(description="How the search went.")
    hits: list[Hit] = Field(description="The same passages in short.")
    total_count: int = Field(description="How many there are in this answer.")
    latency: float = Field(description="Seconds from query to results, as metrics.total_time.")


class SearchFailure(BaseModel):
    """A search of a batch that failed; the others did not."""

    detail: str = Field(description="One sentence: what happened, and what to do.")
    type: str = Field(description="The kind of failure, for programs.")
    status: int = Field(description="The HTTP status that the search would have had on its own.")


class BatchResponse(BaseModel):
    """What became of each search, in the order of the request."""

    answers: list[SearchResponse | SearchFailure] = Field(
        description="For each search what POST /search answers, or its failure."
    )


class AskRequest(BaseModel):
    """A question to the documents."""

    model_config = _REQUEST

    question: str = Field(
        max_length=MAX_QUERY, description="The question.", examples=["How many days of parental leave are there?"]
    )
    filters: Filters = None


class CitationShape(BaseModel):
    """Where a sentence of the answer stands."""

    model_config = _RESPONSE

    number: int = Field(description="The n of [n] in the answer.")
    label: str = Field(description="What people cite: regulation and article, or title and heading.")
    chunk_id: str = Field(description="The passage.")
    document_id: str = Field(description="Its document.")
    source_url: str = Field(description="Where the document came from.")
    quote: str = Field(description="The quoted characters, verbatim.")
    start: int = Field(description=f"Where the quotation begins, {_SPAN}.")
    end: int = Field(description=f"Where it ends (exclusive), {_SPAN}.")
    display: str = Field(
        "", description='The quotation with hidden characters made visible ("<U+202E>"); empty when it has none.'
    )


class AskResponse(BaseModel):
    """The answer with what proves it; or that the documents do not answer."""

    model_config = _RESPONSE

    question: str = Field(description="The question as it was asked.")
    text: str = Field(description="The answer, with [n] where a citation belongs.")
    citations: list[CitationShape] = Field(description="One for each [n].")
    confidence: float = Field(description="How sure, in [0, 1].")
    decision: str = Field(description="answer, review (on weak evidence), or abstain: the documents do not answer.")
    reason: str = Field(description="How the confidence was reached.")
    stages: dict[str, float] = Field(description="Milliseconds of each stage.")
    degraded: list[str] = Field(description="Stages that failed and were done without.")
    notes: list[str] = Field(description="What a reader should know, in words.")
    model: str | None = Field(description="The language model that wrote the answer; null for quotations.")
    cost: float = Field(description="What its language models cost, in won.")
    trace_id: str = Field(description="How the answer came about: GET /traces/{id}.")
    unfinished: bool = Field(
        description="Whether the question was not answered in time: nothing is known about what the documents say."
    )


class DocumentShape(BaseModel):
    """A document as lists show it."""

    model_config = _RESPONSE

    document_id: str = Field(description="Its id, stable for one source.")
    title: str = Field(description="Its title.")
    source_url: str = Field(description="Where it came from; upload:<name> for uploads.")
    content_type: str = Field(description="Media type of its file.")
    taxonomy_path: list[str] = Field(description="Its category, outermost name first; [] for none.")
    language: str = Field(description="ISO 639-1 code of its language.")
    chunks: int = Field(description="Passages it was cut into.")
    characters: int = Field(description="Length of its text in code points.")
    metadata: dict[str, Any] = Field(description="Facts that its file states.")
    processed_at: str = Field(description="When it was indexed, ISO 8601 in UTC.")


class DocumentWithText(DocumentShape):
    """A document and its text."""

    text: str = Field(description="The whole text; spans of passages and citations refer to it.")


class Total(BaseModel):
    """What the index holds."""

    documents: int = Field(description="Documents that you may see.")
    chunks: int = Field(description="Passages.")


class DocumentList(BaseModel):
    """A page of the documents, the newest first."""

    documents: list[DocumentShape] = Field(description="The documents of this page.")
    total: Total = Field(description="What you may see of the index.")
    limit: int = Field(description="The page's size as asked for.")
    offset: int = Field(description="Documents before this page.")


class UploadedDocument(BaseModel):
    """A document that is in the index and searchable."""

    document_id: str = Field(description="Its id.")
    file: str = Field(description="The file it came from.")
    unchanged: bool = Field(description="Whether the file was there already, byte for byte.")


class FailedFile(BaseModel):
    """A file that could not be read (completely)."""

    file: str = Field(description="Its name.")
    reason: str = Field(description="Why, for people.")


class UploadCounts(BaseModel):
    """What an upload did."""

    documents: int = Field(description="Documents written, new or changed.")
    chunks: int = Field(description="Their passages.")
    unchanged: int = Field(description="Files or documents that were there already.")
    removed: int = Field(description="Documents that a file of the same name held before, and no longer holds.")
    failed: int = Field(description="Files that failed.")


class UploadResponse(BaseModel):
    """What became of the uploaded files, everything in `documents` being searchable."""

    documents: list[UploadedDocument] = Field(description="At most 1,000 for each file.")
    counts: UploadCounts = Field(description="All of them, counted.")
    failed: list[FailedFile] = Field(description="Files that could not be read, with the reason.")
    notes: list[str] = Field(description="What a reader should know, in words.")


class ErrorShape(BaseModel):
    """The body of every failure."""

    detail: str = Field(description="One sentence: what happened, and what to do.", examples=["The question is empty."])
    type: str = Field(description="The kind of failure, for programs.", examples=["InvalidInput"])
    request_id: str | None = Field(description="Id of the request, as in X-Request-ID and in the log.")


class Alive(BaseModel):
    """The process answers."""

    status: Literal["alive"] = Field(description="Always alive.")


class Ready(BaseModel):
    """The service can do its work."""

    status: Literal["ready"] = Field(description="Always ready; otherwise the status is 503.")


class Check(BaseModel):
    """One part of the service."""

    status: Literal["healthy", "degraded", "unhealthy"] = Field(description="How it is.")
    reason: str = Field(description="Why it is not healthy, or a word about it.")


class Status(BaseModel):
    """How the service is, for whoever sends no key."""

    status: Literal["healthy", "degraded", "unhealthy"] = Field(description="The worst of what matters.")
    features: dict[str, str] = Field(description="What there is of each work item in this version.")


class Health(BaseModel):
    """How the service and its parts are. The HTTP status is 200 whatever they are."""

    status: Literal["healthy", "degraded", "unhealthy"] = Field(description="The worst of what matters.")
    service: str = Field(description="dtrag.")
    version: str = Field(description="Its version.")
    features: dict[str, str] = Field(description="What there is of each work item in this version.")
    performance: dict[str, str] = Field(description="The targets that the service is built to.")
    checks: dict[str, Check] = Field(
        description="database, index, filter, embedder and, where one is configured, language model."
    )
