"""What the case memory returns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

from dtrag.core.cases.case import Case, CaseLog, ScoredCases, SimilarityMethod
from dtrag.core.cases.statistics import CaseStatistics, CategoryCount, Readiness
from dtrag.core.statements import stated
from dtrag.core.taxonomy.tree import Taxonomy

Row = dict[str, Any]
"""A plain value, for JSON of the HTTP service, the command line and exports."""
InCategory = TypeVar("InCategory", Case, CaseLog, CategoryCount)


@dataclass(frozen=True, slots=True)
class Suggestions:
    """Suggested cases. `log_id` is what feedback names; None when the interaction could not be stored."""

    log_id: str | None
    cases: ScoredCases
    method: SimilarityMethod
    milliseconds: float
    notes: tuple[str, ...] = ()


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


def notes_on(case: Case) -> tuple[str, ...]:
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


def case_row(case: Case) -> Row:
    """A case, without its author and vector."""
    return {
        "case_id": case.case_id,
        "query": case.query,
        "category_path": list(case.category_path),
        "content": case.content,
        "quality_score": case.quality_score,
        "metadata": dict(case.metadata),
        "usage_count": case.usage_count,
        "success_rate": case.success_rate,
        "upvotes": case.upvotes,
        "downvotes": case.downvotes,
        "origin": case.origin,
        "status": case.status,
        "passages": [passage.chunk_id for passage in case.passages],
        "as_of": case.as_of.isoformat() if case.as_of else None,
        "created_at": case.created_at.isoformat(),
        "updated_at": case.updated_at.isoformat(),
    }


def listed_row(listed: ListedCase) -> Row:
    """A case of a list."""
    return {**case_row(listed.case), "stale": bool(listed.stale), "stale_passages": list(listed.stale)}


def log_row(log: CaseLog) -> Row:
    """An interaction."""
    return {
        "log_id": log.log_id,
        "kind": log.kind,
        "timestamp": log.timestamp.isoformat(),
        "query": log.query,
        "category_path": list(log.category_path),
        "suggested_case_ids": list(log.suggested_case_ids),
        "picked_case_ids": list(log.picked_case_ids),
        "success_flag": log.success,
        "feedback": log.feedback.value if log.feedback else None,
        "execution_time_ms": log.execution_time_ms,
        "similarity_method": log.similarity_method,
        "user_id": log.user_id,
    }


def statistics_row(statistics: CaseStatistics) -> Row:
    """Figures."""
    return {
        "total_cases": statistics.total_cases,
        "archived_cases": statistics.archived_cases,
        "total_interactions": statistics.total_interactions,
        "successful_interactions": statistics.successful_interactions,
        "success_rate": round(statistics.success_rate, 6),
        "average_response_time_ms": round(statistics.average_response_time_ms, 3),
        "average_quality_score": round(statistics.average_quality_score, 6),
        "total_usage_count": statistics.total_usage_count,
        "most_used_case": statistics.most_used_case,
        "category_distribution": dict(statistics.category_distribution),
        "similarity_method_usage": dict(statistics.similarity_method_usage),
    }


def training_data(export: CaseExport, exported_at: str) -> Row:
    """An export."""
    return {
        "training_data": {
            "cases": [{**case_row(case), "author": case.author} for case in export.cases],
            "interactions": [log_row(log) for log in export.interactions],
            "metadata": {
                "exported_at": exported_at,
                "case_count": len(export.cases),
                "interaction_count": len(export.interactions),
                "complete": export.complete,
            },
            "statistics": statistics_row(export.statistics),
        },
        "ready_for_neural_selector": Readiness.of(export.statistics).ready,
    }
