"""What the case memory returns."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dtrag.core.cases.case import Case, CaseLog, CaseStatistics, ScoredCases, SimilarityMethod
from dtrag.core.taxonomy.tree import Taxonomy


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


def shown(case: Case, taxonomy: Taxonomy) -> Case:
    """The case with the current path of its category."""
    if case.node_id is None or case.node_id not in taxonomy.nodes:
        return case
    return replace(case, category_path=taxonomy.path(case.node_id))
