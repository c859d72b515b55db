"""Traces in the database, and feedback on answers: `TraceStore` over the tables traces and answer_feedback."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from datetime import datetime

from psycopg.types.json import Jsonb

from dtrag.adapters.postgres.database import Database
from dtrag.adapters.postgres.queries import queries
from dtrag.core.answer_feedback import AnswerFeedback
from dtrag.core.cases.case import FeedbackType
from dtrag.core.trace import Trace


class PostgresTraces:
    """The traces of one database."""

    def __init__(self, database: Database):
        self._database = database
        self._sql = queries("traces")

    async def add(self, traces: Sequence[Trace]) -> None:
        """Store the traces, all or none; existing ones stay unchanged."""
        values = {
            "trace_ids": [trace.trace_id for trace in traces],
            "times": [trace.created_at for trace in traces],
            "owners": [trace.owner for trace in traces],
            "traces": [Jsonb(trace.as_dict()) for trace in traces],
        }
        self._database.require_space()
        async with self._database.connection("owner") as connection:
            await connection.execute(self._sql["add_traces"], values)

    async def get(self, trace_id: uuid.UUID, since: datetime) -> Trace | None:
        """The trace, or None; also None when it is older than `since`."""
        async with self._database.connection("owner") as connection:
            cursor = await connection.execute(self._sql["trace"], {"trace_id": trace_id, "since": since})
            row = await cursor.fetchone()
        return Trace.from_dict(row["trace"]) if row else None

    async def newest(self, limit: int, owner: str | None, since: datetime, after: Trace | None) -> list[Trace]:
        """Traces not older than `since`, the newest first: of `owner` (None: of all), those that follow `after`."""
        values = {
            "limit": limit,
            "owner": owner,
            "since": since,
            "last_at": after.created_at if after else None,
            "last_id": after.trace_id if after else None,
        }
        async with self._database.connection("owner") as connection:
            rows = await (await connection.execute(self._sql["newest"], values)).fetchall()
        return [Trace.from_dict(row["trace"]) for row in rows]

    async def forget(self, before: datetime) -> int:
        """Delete what is older; returns the number of traces."""
        async with self._database.connection("owner") as connection:
            await connection.execute(self._sql["forget_feedback"], {"before": before})
            return (await connection.execute(self._sql["forget"], {"before": before})).rowcount

    async def put_feedback(self, feedback: AnswerFeedback) -> None:
        """Store the feedback; an earlier one of the same voter on the same answer is replaced."""
        values = {
            "trace_id": feedback.trace_id,
            "voter": feedback.voter,
            "feedback": feedback.feedback.value,
            "reason": feedback.reason,
            "given_at": feedback.given_at,
        }
        self._database.require_space()
        async with self._database.connection("owner") as connection:
            await connection.execute(self._sql["put_feedback"], values)

    async def feedback_by(self, voter: str, trace_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, AnswerFeedback]:
        """The voter's own feedback on these answers, by trace id."""
        if not trace_ids:
            return {}
        values = {"voter": voter, "trace_ids": list(trace_ids)}
        async with self._database.connection("owner") as connection:
            rows = await (await connection.execute(self._sql["feedback_by"], values)).fetchall()
        return {row["trace_id"]: AnswerFeedback(**{**row, "feedback": FeedbackType(row["feedback"])}) for row in rows}
