"""Body and response of `POST /search/neural`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field, WithJsonSchema

from dtrag.core.cases.requests import MAX_QUERY
from dtrag.delivery.api.schemas.search import RequestBody, Text
from dtrag.memory.neural_selector import MAX_HITS, MODES, CaseHit, CaseSearch


class NeuralRequest(RequestBody):
    """A search for past cases."""

    query: Text = Field(
        json_schema_extra={"maxLength": MAX_QUERY}, description="A question.", examples=["parental leave"]
    )
    limit: int = Field(
        default=10, json_schema_extra={"minimum": 1, "maximum": MAX_HITS}, description="Maximum number of cases."
    )
    category_path: list[Text] | None = Field(default=None, description="Only cases of exactly this category.")
    mode: Annotated[Text, WithJsonSchema({"type": "string", "enum": list(MODES)})] = Field(
        default="hybrid", description="hybrid (meaning and words, 7 to 3), neural (meaning) or bm25 (words)."
    )


class NeuralHit(BaseModel):
    """A case with its scores."""

    case_id: str = Field(description="The case.")
    query: str = Field(description='Its question; "" where questions are stored without text.')
    category_path: list[str] = Field(description="Its category.")
    content: str = Field(description="Its content.")
    score: float = Field(description="The score that orders the hits, in [0, 1] within this response.")
    vector_score: float | None = Field(description="Cosine of the questions; null where meaning did not count.")
    bm25_score: float | None = Field(description="BM25 as a share of the best hit; null where words did not count.")
    quality_score: float = Field(description="Its quality by votes, in [0, 1].")
    usage_count: int = Field(description="Number of votes on it.")

    @classmethod
    def of(cls, hit: CaseHit) -> NeuralHit:
        """The hit for JSON."""
        case = hit.case
        return cls(
            case_id=case.case_id,
            query=case.query,
            category_path=list(case.category_path),
            content=case.content,
            score=round(hit.score, 6),
            vector_score=hit.vector_score,
            bm25_score=None if hit.bm25_score is None else round(hit.bm25_score, 6),
            quality_score=case.quality_score,
            usage_count=case.usage_count,
        )


class NeuralResponse(BaseModel):
    """The cases, best first."""

    hits: list[NeuralHit] = Field(description="The cases.")
    mode: str = Field(description="hybrid, neural, bm25, or bm25_fallback where meaning could not count.")
    reason: str = Field(description='Why it could not; "" otherwise.')
    latency: float = Field(description="Seconds.")
    total_count: int = Field(description="Number of hits.")

    @classmethod
    def of(cls, search: CaseSearch) -> NeuralResponse:
        """The search for JSON."""
        hits = [NeuralHit.of(hit) for hit in search.hits]
        return cls(hits=hits, mode=search.mode, reason=search.reason, latency=search.seconds, total_count=len(hits))
