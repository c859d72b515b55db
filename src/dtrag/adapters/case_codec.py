"""Cases, votes, interactions and decisions as rows of the two SQL stores, and back, by the types of their fields.

A field is a column of its name. Lists, nodes, JSON, times and passages have other forms in each database: a store gives
its own to its `CaseCodec`.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from dtrag.core.cases.case import (
    Case,
    CaseLog,
    CitedPassage,
    DecisionCounts,
    FeedbackType,
    QuestionVector,
    ReuseDecision,
    Vote,
)
from dtrag.core.cases.index import CaseEntry
from dtrag.core.cases.statistics import CaseStatistics, CategoryCount, VoterCount
from dtrag.core.cases.votes import CountedVote

T = TypeVar("T")
Row = Any
"""A row of either database: values by column."""
NAMES, PASSAGES, NODES = tuple[str, ...], tuple[CitedPassage, ...], frozenset[int] | None
"""Types of fields whose form differs between the databases, beside mappings, times and days."""
FORGOTTEN = ("forget_support", "forget_confirmations")
"""Statements that delete what confirmed a case that becomes another one."""
STATISTICS = ("case_totals", "interactions", "voters", "most_used", "largest_categories", "methods")
"""Statements whose rows are the figures of a scope."""


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class ColumnForm:
    """How values of one type are stored. With `spread` they have several columns: `write` gives them by name, and
    `read` takes the row."""

    write: Callable[[Any], Any] = _same
    read: Callable[[Any], Any] = _same
    spread: bool = False


def vector_values(vector: QuestionVector | None) -> dict[str, object]:
    """The columns of a vector."""
    return {"vector": vector and vector.values, "space": vector and vector.space}


def vector_of(row: Row) -> QuestionVector | None:
    """The vector of a row."""
    return None if row["vector"] is None or row["space"] is None else QuestionVector(row["space"], row["vector"])


_FORMS: Mapping[object, ColumnForm] = {
    str: ColumnForm(read=lambda value: value or ""),
    float: ColumnForm(read=lambda value: value or 0.0),
    bytes: ColumnForm(read=bytes),
    bool: ColumnForm(read=bool),
    bool | None: ColumnForm(read=lambda value: None if value is None else bool(value)),
    FeedbackType: ColumnForm(lambda feedback: feedback.value, FeedbackType),
    FeedbackType | None: ColumnForm(
        lambda feedback: feedback and feedback.value, lambda value: FeedbackType(value) if value else None
    ),
    QuestionVector | None: ColumnForm(vector_values, vector_of, spread=True),
}
_COLUMNS = {(Vote, "at"): "voted_at", (ReuseDecision, "at"): "decided_at"}
_Fields = tuple[tuple[str, str, ColumnForm], ...]


class CaseCodec:
    """The rows of one database: `forms` by type, and the `columns` that have another name than their field."""

    def __init__(self, forms: Mapping[object, ColumnForm], columns: Mapping[tuple[type, str], str]) -> None:
        self._forms = {**_FORMS, **forms}
        self._columns = {**_COLUMNS, **columns}
        self._fields: Callable[[Any], _Fields] = functools.cache(self._fields_of)

    def _fields_of(self, kind: type) -> _Fields:
        """Name, column and form of each field."""
        hints = get_type_hints(kind).items()
        return tuple((name, self._columns.get((kind, name), name), self._form(hint)) for name, hint in hints)

    def _form(self, hint: Any) -> ColumnForm:
        if get_origin(hint) is Literal:  # the first one for a value that another program has written
            known = get_args(hint)
            return ColumnForm(read=lambda value: value if value in known else known[0])
        return self._forms.get(hint, ColumnForm())

    def values(self, record: Case | CaseLog | Vote | ReuseDecision) -> dict[str, object]:
        """The parameters of the statements that write it."""
        values: dict[str, object] = {}
        for name, column, form in self._fields(type(record)):
            value = getattr(record, name)
            if form.spread:
                values.update(form.write(value))
            else:
                values[column] = value if form.write is _same else form.write(value)
        return values

    def of(self, kind: type[T], row: Row) -> T:
        """The value of a row."""
        values = {}
        for name, column, form in self._fields(kind):
            stored = row if form.spread else row[column]
            values[name] = stored if form.read is _same else form.read(stored)
        return kind(**values)

    def entry_of(
        self, row: Row, document_ids: frozenset[uuid.UUID] = frozenset(), asked_in: frozenset[int] | None = None
    ) -> CaseEntry:
        """The case of a row of `changes`, for the index."""
        return CaseEntry(
            row["case_id"],
            row["query"],
            bytes(row["query_hash"]),
            self._forms[NAMES].read(row["category_path"]),
            row["node_id"],
            row["quality_score"],
            row["usage_count"],
            row["status"] == "active",
            vector_of(row),
            document_ids,
            asked_in,
        )

    def log_values(self, log: CaseLog) -> dict[str, object]:
        """The parameters of `put_log`."""
        return self.values(log) | {"case_ids": sorted(log.case_ids)}

    def vote_values(self, counted: CountedVote) -> dict[str, object]:
        """The parameters of `put_vote`."""
        return self.values(counted.vote) | {"moved": counted.moved}

    def vote_of(self, row: Row) -> CountedVote:
        """The vote of a row."""
        return CountedVote(self.of(Vote, row), row["moved"])

    def statistics_of(self, rows: Mapping[str, Sequence[Row]]) -> CaseStatistics:
        """The figures in the rows of `STATISTICS`."""
        [totals], [interactions] = rows["case_totals"], rows["interactions"]
        path_of = self._forms[NAMES].read
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


def decision_counts(rows: Iterable[Row]) -> DecisionCounts:
    """The sums of rows with correct decisions and all decisions."""
    counts = [(row["correct"], row["total"]) for row in rows]
    correct, total = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0)
    return DecisionCounts(correct, total - correct)
