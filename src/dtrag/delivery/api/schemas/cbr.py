"""Bodies and responses of `/cbr`. The shapes are those of the acceptance documents, with a few additions."""

from __future__ import annotations

from typing import Literal

from pydantic import AliasChoices, BaseModel, Field

from dtrag.cases.case_input import MAX_PASSAGES
from dtrag.cases.views import Suggestions
from dtrag.core.cases.case import DEFAULT_QUALITY, CaseLog
from dtrag.core.cases.evidence import CollectionEvidence
from dtrag.core.cases.requests import MAX_CONTENT, MAX_ID, MAX_K, MAX_QUERY, CaseSuggestion
from dtrag.core.cases.statistics import CaseStatistics, Readiness
from dtrag.core.taxonomy.tree import MAX_DEPTH
from dtrag.delivery.api.routing import NoteStatements, StrictBody
from dtrag.delivery.api.schemas.search import JsonObject, Text

TARGET_MS = 200.0
"""Longest mean time of a suggestion (AC-ORCH-004)."""
Method = Literal["cosine", "euclidean", "jaccard", "semantic"]
Feedback = Literal["thumbs_up", "thumbs_down", "selected", "ignored"]
_CATEGORY = "The category, outermost name first."
_QUALITY = "Quality in [0, 1]."


class SuggestBody(StrictBody):
    """A question to which similar cases are wanted."""

    query: Text = Field(min_length=1, max_length=MAX_QUERY, description="The question.")
    category_path: list[Text] | None = Field(
        None, max_length=MAX_DEPTH, description=f"{_CATEGORY} Only cases of exactly this category are suggested."
    )
    k: int = Field(5, ge=1, le=MAX_K, description="Maximum number of cases.")
    similarity_method: Method = Field(
        "semantic",
        description="semantic compares meaning and words where the case and the question have vectors of one embedder, "
        "else words; cosine and jaccard compare words, euclidean their counts.",
    )
    include_metadata: bool = Field(True, description="Whether the response contains the metadata of the cases.")
    min_quality_score: float = Field(0.0, ge=0, le=1, description="Cases of a lower quality are left out.")
    include_subcategories: bool = Field(False, description="Whether the branch below category_path counts, too.")


class SuggestResponse(BaseModel):
    """The most similar cases, best first."""

    suggestions: list[CaseSuggestion] = Field(description="The cases.")
    execution_time_ms: float = Field(description="Time of the comparison in milliseconds.")
    query: str = Field(description="The question.")
    k_requested: int = Field(description="The requested number of cases.")
    k_returned: int = Field(description="The number of cases of this response.")
    log_id: str | None = Field(
        description="Id of this interaction, for POST /cbr/feedback; null when the disk was too full to store it."
    )
    similarity_method: Method = Field(description="The similarity that was used.")
    notes: list[str] = Field(description="Remarks for the reader, such as why words were compared instead.")
    note_statements: NoteStatements

    @classmethod
    def of(cls, body: SuggestBody, suggestions: Suggestions) -> SuggestResponse:
        """The response for these suggestions."""
        rows = [
            CaseSuggestion.of(case, score, suggestions.method, include_metadata=body.include_metadata)
            for case, score in suggestions.cases
        ]
        return cls(
            suggestions=rows,
            execution_time_ms=suggestions.milliseconds,
            query=body.query,
            k_requested=body.k,
            k_returned=len(rows),
            log_id=suggestions.log_id,
            similarity_method=suggestions.method.value,
            notes=list(map(str, suggestions.notes)),
            note_statements=suggestions.notes,
        )


class FeedbackBody(StrictBody):
    """What a person did with a suggested case."""

    log_id: Text = Field(max_length=MAX_ID, description="The log_id of the response that suggested the case.")
    case_id: Text = Field(max_length=MAX_ID, description="The case.")
    feedback: Feedback = Field(
        validation_alias=AliasChoices("feedback", "feedback_type"),
        description="thumbs_up and selected raise the quality by .1, thumbs_down lowers it.",
    )
    success: bool | None = Field(
        None, description="Whether the case helped; counted in the success rate. Default: it is no thumbs_down."
    )


class FeedbackResponse(BaseModel):
    """The case after the vote."""

    status: Literal["success"] = Field(description="success.")
    log_id: str = Field(description="The interaction.")
    case_id: str = Field(description="The case.")
    feedback: Feedback = Field(description="The vote.")
    quality_score: float = Field(description=_QUALITY)
    usage_count: int = Field(description="Number of votes on the case.")
    success_rate: float = Field(description="Share of the votes that reported success.")
    message: str = Field(description="A confirmation.")


class CaseBody(StrictBody):
    """A new case."""

    query: Text = Field(max_length=MAX_QUERY, description="The question.", examples=["How long is parental leave?"])
    category_path: list[Text] = Field(
        max_length=MAX_DEPTH,
        description=f"{_CATEGORY} Restricted keys: one of their own categories.",
        examples=[["HR", "Leave"]],
    )
    content: Text = Field(max_length=MAX_CONTENT, description="What is shown with the case; never part of an answer.")
    quality_score: float = Field(DEFAULT_QUALITY, ge=0, le=1, description=_QUALITY)
    metadata: JsonObject = Field(default_factory=dict, description="Anything that helps to recognise the case.")
    case_id: Text | None = Field(None, max_length=MAX_ID, description="Its id; only for keys without a scope.")
    passages: list[Text] = Field(
        default_factory=list,
        max_length=MAX_PASSAGES,
        description="Ids of passages that answer the question (chunk_id of a search result).",
    )
    as_of: Text | None = Field(
        None, json_schema_extra={"format": "date"}, description="The day of the question; null: today's texts."
    )


class CaseChangeBody(StrictBody):
    """Fields of a case to replace; null leaves a field unchanged."""

    query: Text | None = Field(None, max_length=MAX_QUERY, description="The question.")
    category_path: list[Text] | None = Field(None, max_length=MAX_DEPTH, description=_CATEGORY)
    content: Text | None = Field(None, max_length=MAX_CONTENT, description="What is shown with the case.")
    quality_score: float | None = Field(None, ge=0, le=1, description=_QUALITY)
    metadata: JsonObject | None = Field(None, description="The metadata, all of them.")
    passages: list[Text] | None = Field(None, max_length=MAX_PASSAGES, description="Ids of all cited passages.")
    status: Literal["active", "archived"] | None = Field(None, description="An archived case is never suggested.")


class QualityBody(StrictBody):
    """A new quality of a case."""

    quality_score: float = Field(ge=0, le=1, description=_QUALITY)


class ChangedCase(BaseModel):
    """A change that was made."""

    status: Literal["success"] = Field(description="success.")
    case_id: str = Field(description="The case.")
    message: str = Field(description="A confirmation.")
    updated_fields: list[str] = Field(description="The names of the replaced fields.")
    updated_at: str = Field(description="ISO 8601 in UTC.")


class ChangedQuality(BaseModel):
    """A changed quality."""

    status: Literal["success"] = Field(description="success.")
    case_id: str = Field(description="The case.")
    quality_score: float = Field(description="The quality now.")
    previous_quality_score: float = Field(description="The quality before.")
    message: str = Field(description="A confirmation.")
    updated_at: str = Field(description="ISO 8601 in UTC.")


class DeletedCase(BaseModel):
    """A deleted case."""

    status: Literal["success"] = Field(description="success.")
    case_id: str = Field(description="The case.")
    message: str = Field(description="A confirmation.")
    deleted_at: str = Field(description="ISO 8601 in UTC.")


class PerformanceShape(BaseModel):
    """The speed of suggestions."""

    target_response_time_ms: float = Field(description="The goal.")
    current_avg_response_time_ms: float = Field(description="The mean time.")
    meets_target: bool = Field(description="Whether the mean time is within the goal.")


class StatsResponse(BaseModel):
    """The state of the case memory."""

    cbr_system_stats: CaseStatistics = Field(description="Figures.")
    performance: PerformanceShape = Field(description="Speed.")
    neural_selector_readiness: Readiness = Field(description="Training data.")
    reuse: CollectionEvidence = Field(description="Evidence about reuse.")
    timestamp: str = Field(description="ISO 8601 in UTC.")

    @classmethod
    def of(cls, statistics: CaseStatistics, evidence: CollectionEvidence, timestamp: str) -> StatsResponse:
        """The response for these figures."""
        mean = statistics.average_response_time_ms
        return cls(
            cbr_system_stats=statistics,
            performance=PerformanceShape(
                target_response_time_ms=TARGET_MS, current_avg_response_time_ms=mean, meets_target=mean <= TARGET_MS
            ),
            neural_selector_readiness=Readiness.of(statistics),
            reuse=evidence,
            timestamp=timestamp,
        )


class LogReadiness(BaseModel):
    """Whether there are enough good interactions for the neural selector."""

    sufficient_data: bool = Field(description="Whether there are at least 1,000 interactions.")
    training_ready: bool = Field(description="Whether at least 700 of them were successful.")


class LogList(BaseModel):
    """The newest interactions, newest first."""

    logs: list[CaseLog] = Field(description="The interactions.")
    total_count: int = Field(description="Number of interactions of this response.")
    neural_selector_readiness: LogReadiness = Field(description="Training data.")
