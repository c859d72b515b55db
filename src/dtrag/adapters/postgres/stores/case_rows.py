"""Cases, votes and interactions as rows of the database, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from dtrag.adapters import case_columns as columns
from dtrag.core.cases.case import Case, CaseLog, CitedPassage, FeedbackType, ReuseDecision
from dtrag.core.cases.index import CaseEntry
from dtrag.core.cases.votes import CountedVote


def case_values(case: Case) -> dict[str, object]:
    """The parameters of the statements that write a case."""
    return columns.case_columns(case) | {
        "category_path": list(case.category_path),
        **_passage_values(case.passages),
        "as_of": case.as_of,
        "answered_in": _listed(case.answered_in),
        "asked_in": _listed(case.asked_in),
        "metadata": Jsonb(dict(case.metadata)),
        "created_at": case.created_at,
        "updated_at": case.updated_at,
    }


def case_of(row: DictRow) -> Case:
    """The case of a row."""
    values = _plain(row) | {name: _nodes(row[name]) for name in ("answered_in", "asked_in")}
    del values["space"]
    return Case(**values | {"category_path": tuple(row["category_path"]), "vector": columns.vector_of(row)})


def _plain(row: DictRow) -> dict[str, Any]:
    """The columns by the names of the fields; the passages as one."""
    values = dict(row)
    del values["document_ids"]
    pairs = zip(values.pop("chunk_ids"), values.pop("content_hashes"), strict=True)
    return values | {"passages": tuple(CitedPassage(chunk_id, bytes(digest)) for chunk_id, digest in pairs)}


def entry_of(row: DictRow) -> CaseEntry:
    """The case of a row of `changes`, for the index."""
    return CaseEntry(
        row["case_id"],
        row["query"],
        row["query_hash"],
        tuple(row["category_path"]),
        row["node_id"],
        row["quality_score"],
        row["usage_count"],
        row["status"] == "active",
        columns.vector_of(row),
    )


def log_values(log: CaseLog) -> dict[str, object]:
    """The parameters of `put_log`."""
    return columns.log_columns(log) | {
        "logged_at": log.timestamp,
        "category_path": list(log.category_path),
        "suggested_case_ids": list(log.suggested_case_ids),
        "picked_case_ids": list(log.picked_case_ids),
        "case_ids": sorted(log.case_ids),
        **_passage_values(log.passages),
        "success": log.success,
        "as_of": log.as_of,
        "asked_in": _listed(log.asked_in),
        "details": Jsonb(dict(log.details)),
    }


def log_of(row: DictRow) -> CaseLog:
    """The interaction of a row."""
    values = _plain(row)
    del values["case_ids"]
    values["timestamp"] = values.pop("logged_at")
    values["asked_in"] = _nodes(row["asked_in"])
    values["feedback"] = FeedbackType(row["feedback"]) if row["feedback"] else None
    for name in ("category_path", "suggested_case_ids", "picked_case_ids"):
        values[name] = tuple(row[name])
    return CaseLog(**values)


def vote_values(counted: CountedVote) -> dict[str, object]:
    """The parameters of `put_vote`."""
    return columns.vote_values(counted, counted.vote.at)


def vote_of(row: DictRow) -> CountedVote:
    """The vote of a row."""
    return columns.vote_of(row, row["voted_at"])


def decision_values(decision: ReuseDecision) -> dict[str, object]:
    """The parameters of `put_decision`."""
    return columns.decision_values(decision, decision.at) | {"asked_in": _listed(decision.asked_in)}


def decision_of(row: DictRow) -> ReuseDecision:
    """The decision of a row."""
    return columns.decision_of(row, row["kind"], row["decided_at"], _nodes(row["asked_in"]))


def _listed(nodes: frozenset[int] | None) -> list[int] | None:
    return None if nodes is None else sorted(nodes)


def _nodes(value: Sequence[int] | None) -> frozenset[int] | None:
    return None if value is None else frozenset(value)


def _passage_values(passages: Sequence[CitedPassage]) -> dict[str, object]:
    return {
        "chunk_ids": [passage.chunk_id for passage in passages],
        "content_hashes": [passage.content_hash for passage in passages],
        "document_ids": sorted({passage.document_id for passage in passages}),
    }
