"""What the case memory returns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from dtrag.core.cases.case import Case, CaseLog, ScoredCases, SimilarityMethod
from dtrag.core.cases.statistics import CaseStatistics, CategoryCount
from dtrag.core.statements import stated
from dtrag.core.taxonomy.tree import Taxonomy

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
