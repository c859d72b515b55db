"""What the case memory returns beside cases and interactions themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, TypeVar

from dtrag.core.cases.case import Case, CaseLog, ScoredCases, SimilarityMethod
from dtrag.core.cases.reuse_verdict import Code
from dtrag.core.cases.statistics import CaseStatistics, CategoryCount, Readiness
from dtrag.core.response import Moment, extended, response
from dtrag.core.statements import Statements, stated
from dtrag.core.taxonomy.tree import Taxonomy

InCategory = TypeVar("InCategory", Case, CaseLog, CategoryCount)


@dataclass(frozen=True, slots=True)
class Suggestions:
    """Suggested cases. `log_id` is what feedback names; None when the interaction could not be stored."""

    log_id: str | None
    cases: ScoredCases
    method: SimilarityMethod
    milliseconds: float
    notes: Statements = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedCase(Case):
    """A new case."""

    __pydantic_config__ = response("AddedCase")

    notes: tuple[str, ...]
    """Remarks, such as that its category is not in the tree."""
    note_statements: Statements
    """The notes with codes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedCase(Case):
    """A case of a list."""

    __pydantic_config__ = response("ListedCaseShape")

    stale: bool
    """Whether a cited passage changed or is gone, so that the case is not reused."""
    stale_passages: tuple[str, ...]
    """Those passages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCase(ListedCase):
    """A case, and what speaks for and against showing it for the same question in your scope."""

    __pydantic_config__ = response("CaseShape")

    reuse: Code | Literal["archived", "stale"]
    """reused if it may be shown, else the rule by which it is not."""
    supporters: int
    """Voters whose last vote on it is for it, without its author; all callers without a key are one."""
    supported_at: Moment | None
    """The last vote for it, ISO 8601 in UTC."""
    right: int
    """How often an answer to the same question agreed with it, or a vote when it was shown."""
    wrong: int
    """How often one disagreed."""


@dataclass(frozen=True, slots=True)
class CasePage:
    """A page of cases, by id."""

    __pydantic_config__ = response("CaseList")

    cases: tuple[ListedCase, ...]
    """The cases of this page."""
    limit: int
    """The requested page size."""
    next: str | None
    """Pass it as `after` for the next page; null at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedCase(Case):
    """A case with its author."""

    __pydantic_config__ = response("ExportedCase")

    author: str = ""
    """Id of the key that caused it; empty without keys."""


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

    cases: tuple[ExportedCase, ...]
    """The cases, by id."""
    interactions: tuple[CaseLog, ...]
    """The interactions, newest first."""
    metadata: TrainingMetadata
    """What this export contains."""
    statistics: CaseStatistics
    """Figures."""


@dataclass(frozen=True, slots=True)
class CaseExport:
    """The training data of your scope."""

    __pydantic_config__ = response("ExportResponse")

    training_data: TrainingData
    """The data."""
    ready_for_neural_selector: bool
    """Whether there are enough good interactions."""

    @classmethod
    def of(cls, cases: Sequence[Case], logs: Sequence[CaseLog], limit: int, statistics: CaseStatistics) -> CaseExport:
        """At most `limit` of the cases and of the interactions; complete if there are no more of them."""
        chosen = tuple(extended(ExportedCase, case) for case in cases[:limit])
        complete = max(len(cases), len(logs)) <= limit
        metadata = TrainingMetadata(datetime.now(UTC), len(chosen), len(logs[:limit]), complete)
        data = TrainingData(chosen, tuple(logs[:limit]), metadata, statistics)
        return cls(data, Readiness.of(statistics).ready)


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
