"""What the two SQL stores of the case memory share: columns of the same form, figures, and statements that go together.

Times, lists and JSON differ between the databases; their own modules convert them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from dtrag.core.cases.case import (
    Case,
    CaseLog,
    DecisionCounts,
    DecisionKind,
    FeedbackType,
    QuestionVector,
    ReuseDecision,
    Vote,
)
from dtrag.core.cases.statistics import CaseStatistics, CategoryCount, VoterCount
from dtrag.core.cases.votes import CountedVote

Row = Any
"""A row of either database: values by column."""
FORGOTTEN = ("forget_support", "forget_confirmations")
"""Statements that delete what confirmed a case that becomes another one."""
STATISTICS = ("case_totals", "interactions", "voters", "most_used", "largest_categories", "methods")
"""Statements whose rows are the figures of a scope."""
_CASE = (
    "case_id",
    "query",
    "query_hash",
    "node_id",
    "content",
    "quality_score",
    "usage_count",
    "success_rate",
    "origin",
    "author",
    "upvotes",
    "downvotes",
    "status",
)
_LOG = (
    "log_id",
    "kind",
    "query",
    "query_hash",
    "node_id",
    "shown_case_id",
    "execution_time_ms",
    "similarity_method",
    "user_id",
)


def case_columns(case: Case) -> dict[str, object]:
    """The columns of a case that have one form in both databases."""
    return {name: getattr(case, name) for name in _CASE} | vector_values(case.vector)


def vector_values(vector: QuestionVector | None) -> dict[str, object]:
    """The columns of a vector."""
    return {"vector": vector and vector.values, "space": vector and vector.space}


def vector_of(row: Row) -> QuestionVector | None:
    """The vector of a row."""
    return None if row["vector"] is None or row["space"] is None else QuestionVector(row["space"], row["vector"])


def log_columns(log: CaseLog) -> dict[str, object]:
    """The columns of an interaction that have one form in both databases."""
    feedback = log.feedback.value if log.feedback else None
    return {name: getattr(log, name) for name in _LOG} | {"feedback": feedback}


def vote_values(counted: CountedVote, at: object) -> dict[str, object]:
    """The parameters of `put_vote`."""
    vote = counted.vote
    return {
        "case_id": vote.case_id,
        "voter": vote.voter,
        "log_id": vote.log_id,
        "feedback": vote.feedback.value,
        "success": vote.success,
        "moved": counted.moved,
        "voted_at": at,
    }


def vote_of(row: Row, at: datetime) -> CountedVote:
    """The vote of a row."""
    vote = Vote(
        log_id=row["log_id"],
        case_id=row["case_id"],
        feedback=FeedbackType(row["feedback"]),
        success=bool(row["success"]),
        voter=row["voter"],
        at=at,
    )
    return CountedVote(vote, row["moved"])


def decision_values(decision: ReuseDecision, at: object) -> dict[str, object]:
    """The parameters of `put_decision`."""
    return {
        "case_id": decision.case_id,
        "log_id": decision.log_id,
        "kind": decision.kind,
        "correct": decision.correct,
        "decided_at": at,
        "asker": decision.asker,
    }


def decision_of(row: Row, kind: DecisionKind, at: datetime, asked_in: frozenset[int] | None) -> ReuseDecision:
    """The decision of a row."""
    return ReuseDecision(
        case_id=row["case_id"],
        log_id=row["log_id"],
        kind=kind,
        correct=bool(row["correct"]),
        at=at,
        asker=row["asker"],
        asked_in=asked_in,
    )


def decision_counts(rows: Iterable[Row]) -> DecisionCounts:
    """The sums of rows with correct decisions and all decisions."""
    counts = [(row["correct"], row["total"]) for row in rows]
    correct, total = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0)
    return DecisionCounts(correct, total - correct)


def statistics_of(rows: Mapping[str, Sequence[Row]], path_of: Callable[[Any], tuple[str, ...]]) -> CaseStatistics:
    """The figures in the rows of `STATISTICS`; `path_of` reads the column of a category."""
    [totals], [interactions] = rows["case_totals"], rows["interactions"]
    return CaseStatistics(
        **dict(totals),
        **dict(interactions),
        voters=tuple(
            VoterCount(row["user_id"] or "", bool(row["answered"]), row["interactions"], row["successes"])
            for row in rows["voters"]
        ),
        most_used_case=next((row["case_id"] for row in rows["most_used"]), None),
        largest_categories=tuple(
            CategoryCount(path_of(row["category_path"]), row["node_id"], row["cases"])
            for row in rows["largest_categories"]
        ),
        similarity_method_usage={row["similarity_method"]: row["logs"] for row in rows["methods"]},
    )
