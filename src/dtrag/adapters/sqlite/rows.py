"""Cases, votes and interactions as rows of the SQLite file, and back."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import TypeVar, get_args

from dtrag.adapters import case_columns as columns
from dtrag.core.cases.case import (
    Case,
    CaseLog,
    CitedPassage,
    DecisionKind,
    FeedbackType,
    LogKind,
    Origin,
    ReuseDecision,
    Status,
)
from dtrag.core.cases.index import CaseEntry
from dtrag.core.cases.votes import CountedVote

T = TypeVar("T")
Row = sqlite3.Row
_ORIGINS: tuple[Origin, ...] = get_args(Origin)
_STATUSES: tuple[Status, ...] = get_args(Status)
_LOG_KINDS: tuple[LogKind, ...] = get_args(LogKind)
_DECISION_KINDS: tuple[DecisionKind, ...] = get_args(DecisionKind)


def case_values(case: Case) -> dict[str, object]:
    """The parameters of the statements that write a case."""
    return columns.case_columns(case) | {
        "category_path": _json(case.category_path),
        "metadata": _json(case.metadata),
        "created_at": time_text(case.created_at),
        "updated_at": time_text(case.updated_at),
        "passages": _passages_json(case.passages),
        "as_of": case.as_of.isoformat() if case.as_of else None,
        "answered_in": _nodes_json(case.answered_in),
        "asked_in": _nodes_json(case.asked_in),
    }


def case_of(row: Row) -> Case:
    """The case of a row."""
    return Case(
        case_id=row["case_id"],
        query=row["query"],
        category_path=path_of(row["category_path"]),
        content=row["content"],
        created_at=_when(row["created_at"]),
        updated_at=_when(row["updated_at"]),
        quality_score=row["quality_score"],
        usage_count=row["usage_count"],
        success_rate=row["success_rate"],
        metadata=json.loads(row["metadata"] or "{}"),
        query_hash=bytes(row["query_hash"]),
        node_id=row["node_id"],
        passages=passages_of(row["passages"]),
        origin=_known(_ORIGINS, row["origin"]),
        author=row["author"],
        as_of=_day(row["as_of"]),
        answered_in=nodes_of(row["answered_in"]),
        asked_in=nodes_of(row["asked_in"]),
        upvotes=row["upvotes"],
        downvotes=row["downvotes"],
        status=_known(_STATUSES, row["status"]),
        vector=columns.vector_of(row),
    )


def entry_of(row: Row) -> CaseEntry:
    """The case of a row of `changes`, for the index."""
    return CaseEntry(
        row["case_id"],
        row["query"],
        bytes(row["query_hash"]),
        path_of(row["category_path"]),
        row["node_id"],
        row["quality_score"],
        row["usage_count"],
        row["status"] == "active",
        columns.vector_of(row),
        frozenset(passage.document_id for passage in passages_of(row["passages"])),
        nodes_of(row["asked_in"]),
    )


def log_values(log: CaseLog) -> dict[str, object]:
    """The parameters of `put_log`."""
    return columns.log_columns(log) | {
        "timestamp": time_text(log.timestamp),
        "category_path": _json(log.category_path),
        "suggested_case_ids": _json(log.suggested_case_ids),
        "picked_case_ids": _json(log.picked_case_ids),
        "success_flag": log.success,
        "passages": _passages_json(log.passages),
        "as_of": log.as_of.isoformat() if log.as_of else None,
        "asked_in": _nodes_json(log.asked_in),
        "details": _json(log.details),
    }


def log_of(row: Row) -> CaseLog:
    """The interaction of a row."""
    return CaseLog(
        log_id=row["log_id"],
        timestamp=_when(row["timestamp"]),
        query=row["query"],
        query_hash=bytes(row["query_hash"]),
        category_path=path_of(row["category_path"]),
        node_id=row["node_id"],
        suggested_case_ids=path_of(row["suggested_case_ids"]),
        picked_case_ids=path_of(row["picked_case_ids"]),
        success=None if row["success_flag"] is None else bool(row["success_flag"]),
        feedback=FeedbackType(row["feedback"]) if row["feedback"] else None,
        execution_time_ms=row["execution_time_ms"] or 0.0,
        similarity_method=row["similarity_method"] or "",
        user_id=row["user_id"] or "",
        kind=_known(_LOG_KINDS, row["kind"]),
        passages=passages_of(row["passages"]),
        shown_case_id=row["shown_case_id"],
        as_of=_day(row["as_of"]),
        asked_in=nodes_of(row["asked_in"]),
        details=json.loads(row["details"] or "{}"),
    )


def vote_values(counted: CountedVote) -> dict[str, object]:
    """The parameters of `put_vote`."""
    return columns.vote_values(counted, time_text(counted.vote.at))


def vote_of(row: Row) -> CountedVote:
    """The vote of a row."""
    return columns.vote_of(row, _when(row["voted_at"]))


def decision_values(decision: ReuseDecision) -> dict[str, object]:
    """The parameters of `put_decision`."""
    return columns.decision_values(decision, time_text(decision.at)) | {"asked_in": _nodes_json(decision.asked_in)}


def decision_of(row: Row) -> ReuseDecision:
    """The decision of a row."""
    kind, at = _known(_DECISION_KINDS, row["kind"]), _when(row["decided_at"])
    return columns.decision_of(row, kind, at, nodes_of(row["asked_in"]))


def path_of(value: str | None) -> tuple[str, ...]:
    """A list of names or ids from its JSON; one name where another program has stored it plainly."""
    if not value:
        return ()
    try:
        names = json.loads(value)
    except ValueError:
        return (value,)
    return tuple(str(name) for name in names) if isinstance(names, list) else (str(names),)


def passages_of(value: str | None) -> tuple[CitedPassage, ...]:
    """Cited passages from their JSON: pairs of an id and a hash in hexadecimal digits."""
    return tuple(CitedPassage(chunk_id, bytes.fromhex(digest)) for chunk_id, digest in json.loads(value or "[]"))


def nodes_of(value: str | None) -> frozenset[int] | None:
    """Nodes from their JSON; None for no list."""
    return None if value is None else frozenset(json.loads(value))


def _nodes_json(nodes: frozenset[int] | None) -> str | None:
    return None if nodes is None else _json(sorted(nodes))


def _passages_json(passages: Sequence[CitedPassage]) -> str:
    return _json([[passage.chunk_id, passage.content_hash.hex()] for passage in passages])


def _json(value: object) -> str:
    plain = dict(value) if isinstance(value, Mapping) else value
    return json.dumps(plain, ensure_ascii=False)


def _known(values: Sequence[T], value: object) -> T:
    """The value, or the first one for a value that another program has written."""
    return next((each for each in values if each == value), values[0])


def time_text(value: datetime) -> str:
    """Of one length, so that their order as text is that of the times."""
    return value.astimezone(UTC).isoformat(timespec="microseconds")


def _when(value: str) -> datetime:
    parsed = datetime.fromisoformat(value)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _day(value: str | None) -> date | None:
    return date.fromisoformat(value) if value else None
