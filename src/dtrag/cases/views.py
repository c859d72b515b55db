"""Cases, interactions and figures as they are shown: by the HTTP service, the command line and in exports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import date, datetime
from typing import Any, Self, TypeVar

from dtrag.core.cases.case import Case, CaseLog, FeedbackType, LogKind, Origin, ScoredCases, SimilarityMethod, Status
from dtrag.core.cases.statistics import CaseStatistics, CategoryCount, Readiness
from dtrag.core.response import Moment, response
from dtrag.core.statements import Statement, Statements, stated
from dtrag.core.taxonomy.tree import Taxonomy


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseView:
    """A case."""

    __pydantic_config__ = response("CaseShape")

    case_id: str
    """Its id."""
    query: str
    """The question; empty where questions are stored without text."""
    category_path: tuple[str, ...]
    """The category, outermost name first."""
    content: str
    """What it says; of a case made from an answer the labels of its citations."""
    quality_score: float
    """Quality in [0, 1]."""
    metadata: Mapping[str, Any]
    """Its metadata."""
    usage_count: int
    """Number of votes on it; suggesting does not count."""
    success_rate: float
    """Share of the votes that reported success."""
    upvotes: int
    """Votes thumbs_up and selected."""
    downvotes: int
    """Votes thumbs_down."""
    origin: Origin
    """How it came to be."""
    status: Status
    """An archived case is never suggested."""
    passages: tuple[str, ...]
    """Ids of the passages that it cites."""
    as_of: date | None
    """The day of the question; null: today's texts."""
    created_at: Moment
    """ISO 8601 in UTC."""
    updated_at: Moment
    """ISO 8601 in UTC."""

    @classmethod
    def of(cls, case: Case, **more: Any) -> Self:
        """The case without its author and vector; `more` are the fields of a subclass."""
        same = {declared.name: getattr(case, declared.name) for declared in fields(CaseView)}
        return cls(**{**same, "passages": tuple(passage.chunk_id for passage in case.passages)}, **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCaseView(CaseView):
    """A new case."""

    __pydantic_config__ = response("AddedCase")

    notes: tuple[str, ...]
    """Remarks, such as that its category is not in the tree."""
    note_statements: tuple[Statement, ...]
    """The notes with codes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedCaseView(CaseView):
    """A case of a list."""

    __pydantic_config__ = response("ListedCaseShape")

    stale: bool
    """Whether a cited passage changed or is gone, so that the case is not reused."""
    stale_passages: tuple[str, ...]
    """Those passages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedCaseView(CaseView):
    """A case with its author."""

    __pydantic_config__ = response("ExportedCase")

    author: str
    """Id of the key that caused it; empty without keys."""


@dataclass(frozen=True, slots=True)
class InteractionView:
    """An interaction: a request for suggestions, or an answered question."""

    __pydantic_config__ = response("LogShape")

    log_id: str
    """Its id; of an answer the id of its trace."""
    kind: LogKind
    """What it was."""
    timestamp: Moment
    """ISO 8601 in UTC."""
    query: str
    """The question; empty where questions are stored without text."""
    category_path: tuple[str, ...]
    """The category of the request."""
    suggested_case_ids: tuple[str, ...]
    """The suggested cases."""
    picked_case_ids: tuple[str, ...]
    """Those of them that were picked."""
    success_flag: bool | None
    """The success that was reported; null without feedback."""
    feedback: FeedbackType | None
    """The last vote; null without one."""
    execution_time_ms: float
    """Time of the suggestion in milliseconds."""
    similarity_method: str
    """The similarity; empty for an answer."""
    user_id: str
    """Id of the key; empty without keys."""

    @classmethod
    def of(cls, log: CaseLog) -> InteractionView:
        """The interaction without what only the memory uses."""
        return cls(
            log.log_id,
            log.kind,
            log.timestamp,
            log.query,
            log.category_path,
            log.suggested_case_ids,
            log.picked_case_ids,
            log.success,
            log.feedback,
            log.execution_time_ms,
            log.similarity_method,
            log.user_id,
        )


@dataclass(frozen=True, slots=True)
class StatisticsView:
    """Figures over the cases and interactions in your scope."""

    __pydantic_config__ = response("StatisticsShape")

    total_cases: int
    """Active cases."""
    archived_cases: int
    """Archived cases."""
    total_interactions: int
    """Suggestions and answers, with and without feedback."""
    successful_interactions: int
    """Interactions that ended with success."""
    success_rate: float
    """Their share of those with feedback, in [0, 1]."""
    average_response_time_ms: float
    """Mean time of a suggestion in milliseconds."""
    average_quality_score: float
    """Mean quality of the cases."""
    total_usage_count: int
    """Sum of the votes."""
    most_used_case: str | None
    """The case with the most votes."""
    category_distribution: Mapping[str, int]
    """Cases of the ten largest categories."""
    similarity_method_usage: Mapping[str, int]
    """Interactions by similarity."""

    @classmethod
    def of(cls, statistics: CaseStatistics) -> StatisticsView:
        """The figures, with shares of six digits."""
        shown = {declared.name: getattr(statistics, declared.name) for declared in fields(cls)}
        digits = {"success_rate": 6, "average_response_time_ms": 3, "average_quality_score": 6}
        return cls(**shown | {name: round(shown[name], number) for name, number in digits.items()})


@dataclass(frozen=True, slots=True)
class ReadinessView:
    """Whether there are enough good interactions for the neural selector."""

    __pydantic_config__ = response("ReadinessShape")

    total_interactions: int
    """Interactions with feedback that count: of suggestions to one key at most 250."""
    sufficient_data: bool
    """Whether there are at least 1,000."""
    data_quality_score: float
    """The success rate."""
    ready_for_training: bool
    """Whether there are enough, and at least .70 successful."""

    @classmethod
    def of(cls, readiness: Readiness) -> ReadinessView:
        """The view of a readiness."""
        return cls(readiness.interactions, readiness.sufficient, readiness.success_rate, readiness.ready)


@dataclass(frozen=True, slots=True)
class TrainingMetadata:
    """What the export contains."""

    __pydantic_config__ = response()

    exported_at: Moment
    """ISO 8601 in UTC."""
    case_count: int
    """Number of cases."""
    interaction_count: int
    """Number of interactions."""
    complete: bool
    """Whether nothing was left out by the limit."""


@dataclass(frozen=True, slots=True)
class TrainingData:
    """Cases and interactions."""

    __pydantic_config__ = response()

    cases: tuple[ExportedCaseView, ...]
    """The cases, by id."""
    interactions: tuple[InteractionView, ...]
    """The interactions, newest first."""
    metadata: TrainingMetadata
    """What this export contains."""
    statistics: StatisticsView
    """Figures."""


@dataclass(frozen=True, slots=True)
class ExportView:
    """The training data of your scope."""

    __pydantic_config__ = response("ExportResponse")

    training_data: TrainingData
    """The data."""
    ready_for_neural_selector: bool
    """Whether there are enough good interactions."""

    @classmethod
    def of(cls, export: CaseExport, at: datetime) -> ExportView:
        """An export that was made at this time."""
        metadata = TrainingMetadata(at, len(export.cases), len(export.interactions), export.complete)
        data = TrainingData(
            tuple(ExportedCaseView.of(case, author=case.author) for case in export.cases),
            tuple(map(InteractionView.of, export.interactions)),
            metadata,
            StatisticsView.of(export.statistics),
        )
        return cls(data, Readiness.of(export.statistics).ready)


def listed_case(listed: ListedCase) -> ListedCaseView:
    """A case of a list."""
    return ListedCaseView.of(listed.case, stale=bool(listed.stale), stale_passages=listed.stale)


InCategory = TypeVar("InCategory", Case, CaseLog, CategoryCount)


@dataclass(frozen=True, slots=True)
class Suggestions:
    """Suggested cases. `log_id` is what feedback names; None when the interaction could not be stored."""

    log_id: str | None
    cases: ScoredCases
    method: SimilarityMethod
    milliseconds: float
    notes: Statements = ()


@dataclass(frozen=True, slots=True)
class ListedCase:
    """A case of a list; `stale` are the passages that it cites and that changed, or are gone."""

    case: Case
    stale: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CasePage:
    """A page of cases by id; `next` continues the list, None at its end."""

    cases: tuple[ListedCase, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class CaseExport:
    """Cases and interactions as training data; `complete`: nothing was left out by the limit."""

    cases: tuple[Case, ...]
    interactions: tuple[CaseLog, ...]
    statistics: CaseStatistics
    complete: bool


def notes_on(case: Case) -> Statements:
    """What to know about a new case."""
    if case.node_id is not None:
        return ()
    path = "/".join(case.category_path)
    return (
        stated(
            "case_outside_tree",
            "The category {category} is not in the tree: only callers of the whole tree see the case, and it stays so "
            "when the category is added. Give the case a category of the tree.",
            category=path,
        ),
    )


def shown(stored: InCategory, taxonomy: Taxonomy) -> InCategory:
    """The case, interaction or count with the current path of its category.

    The path as it was written may name a category that the caller does not see, from which it was moved since.
    """
    if stored.node_id is None or stored.node_id not in taxonomy.nodes:
        return stored
    return replace(stored, category_path=taxonomy.path(stored.node_id))


def shown_statistics(statistics: CaseStatistics, taxonomy: Taxonomy) -> CaseStatistics:
    """The figures with the current paths of categories."""
    categories = tuple(shown(category, taxonomy) for category in statistics.largest_categories)
    return replace(statistics, largest_categories=categories)
