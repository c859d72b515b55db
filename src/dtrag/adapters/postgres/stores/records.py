"""Stores of what is recorded of questions: conversations, traces and evaluation runs; and approvals of tools."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from psycopg.rows import DictRow
from psycopg.types.json import Json, Jsonb

from dtrag.adapters.postgres.database import Store, columns, fetch, fetch_row
from dtrag.core.access.scope import Scope
from dtrag.core.answer_feedback import AnswerFeedback
from dtrag.core.cases.case import FeedbackType
from dtrag.core.conversation import Conversation, Turn
from dtrag.core.evaluation_run import EvaluationRun, Measure, RunSummary
from dtrag.core.response import plain
from dtrag.core.tool_approval import Approval
from dtrag.core.trace import Trace


class PostgresConversations(Store):
    """`ConversationStore` over the tables conversations and conversation_turns."""

    subject = "conversations"

    async def add(
        self, conversation_id: str, owner: str, turn: Turn, max_turns: int, traces: Sequence[Trace] = ()
    ) -> int:
        """See `ConversationStore`."""
        self._database.require_space()
        values = {**columns(turn), "conversation_id": conversation_id, "owner": owner, "at": turn.created_at}
        added = await self._row(
            "add_turn", values | {"document_ids": list(turn.document_ids), "max_turns": max_turns} | _columns_of(traces)
        )
        return added["turn"] if added else 0

    async def turns(self, conversation_id: str, owner: str, limit: int, since: datetime) -> list[Turn]:
        """See `ConversationStore`."""
        values = {"conversation_id": conversation_id, "owner": owner, "limit": limit, "since": since}
        return [_turn(stored) for stored in await self._rows("turns", values)]

    async def turn_of(self, trace_id: uuid.UUID, owner: str, since: datetime) -> Turn | None:
        """See `ConversationStore`."""
        stored = await self._row("turn_of", {"trace_id": trace_id, "owner": owner, "since": since})
        return _turn(stored) if stored else None

    async def get(self, conversation_id: str, owner: str, max_turns: int, since: datetime) -> Conversation | None:
        """See `ConversationStore`."""
        values = {"conversation_id": conversation_id, "owner": owner, "max_turns": max_turns, "since": since}
        stored = await self._row("conversation", values)
        return Conversation(**stored) if stored else None

    async def every(
        self, owner: str, max_turns: int, since: datetime, limit: int, offset: int, *, text: str = ""
    ) -> tuple[list[Conversation], int]:
        """See `ConversationStore`."""
        page_values = {"max_turns": max_turns, "limit": limit, "offset": offset}
        values = {"owner": owner, "since": since, "text": text} | page_values
        async with self._database.connection("owner") as connection:
            page = await fetch(connection, self._sql["conversations"], values)
            total = await fetch_row(connection, self._sql["conversation_count"], values)
        return [Conversation(**stored) for stored in page], total["total"] if total else 0

    async def rename(self, conversation_id: str, owner: str, title: str, since: datetime) -> bool:
        """See `ConversationStore`."""
        values = {"conversation_id": conversation_id, "owner": owner, "title": title, "since": since}
        return await self._row("rename", values) is not None

    async def delete(self, conversation_id: str, owner: str) -> bool:
        """See `ConversationStore`."""
        values = {"conversation_id": conversation_id, "owner": owner}
        return await self._row("delete_conversation", values) is not None

    async def forget(self, before: datetime) -> int:
        """See `ConversationStore`."""
        return await self._execute("forget", {"before": before})


def _turn(stored: DictRow) -> Turn:
    return Turn(stored.pop("turn"), **stored | {"document_ids": tuple(stored["document_ids"])})


class PostgresDocumentVisibility(Store):
    """`DocumentVisibility` by row-level security."""

    subject = "content"

    async def visible(self, document_ids: Collection[uuid.UUID], scope: Scope) -> frozenset[uuid.UUID]:
        """See `DocumentVisibility`."""
        return frozenset(stored["document_id"] for stored in await self._seen("visible", document_ids, scope))

    async def titles(self, document_ids: Collection[uuid.UUID], scope: Scope) -> dict[uuid.UUID, str]:
        """See `DocumentVisibility`."""
        seen = await self._seen("visible_titles", document_ids, scope)
        return {stored["document_id"]: stored["title"] for stored in seen}

    async def _seen(self, name: str, document_ids: Collection[uuid.UUID], scope: Scope) -> list[DictRow]:
        if not document_ids:
            return []
        return await self._database.read(scope, self._sql[name], {"document_ids": list(document_ids)})


def _columns_of(traces: Sequence[Trace]) -> dict[str, object]:
    return {
        "trace_ids": [trace.trace_id for trace in traces],
        "times": [trace.created_at for trace in traces],
        "owners": [trace.owner for trace in traces],
        "traces": [Jsonb(trace.as_dict()) for trace in traces],
    }


class PostgresTraces(Store):
    """`TraceStore` over the tables traces and answer_feedback."""

    subject = "traces"

    async def add(self, traces: Sequence[Trace]) -> None:
        """See `TraceStore`."""
        self._database.require_space()
        await self._execute("add_traces", _columns_of(traces))

    async def get(self, trace_id: uuid.UUID, since: datetime) -> Trace | None:
        """See `TraceStore`."""
        stored = await self._row("trace", {"trace_id": trace_id, "since": since})
        return Trace.from_dict(stored["trace"]) if stored else None

    async def newest(
        self, limit: int, owner: str | None, since: datetime, after: Trace | None, *, until: datetime | None = None
    ) -> list[Trace]:
        """See `TraceStore`."""
        last = {"last_at": after.created_at if after else None, "last_id": after.trace_id if after else None}
        values = {"limit": limit, "owner": owner, "since": since, "until": until, **last}
        return [Trace.from_dict(stored["trace"]) for stored in await self._rows("newest", values)]

    async def outcomes(self, limit: int, since: datetime) -> tuple[int, int]:
        """See `TraceStore`."""
        counted = await self._row("outcomes", {"limit": limit, "since": since})
        return (counted["traces"], counted["answered"]) if counted else (0, 0)

    async def forget(self, before: datetime) -> int:
        """See `TraceStore`."""
        async with self._database.connection("owner") as connection:
            await connection.execute(self._sql["forget_feedback"], {"before": before})
            return (await connection.execute(self._sql["forget"], {"before": before})).rowcount

    async def put_feedback(self, feedback: AnswerFeedback) -> None:
        """See `TraceStore`."""
        self._database.require_space()
        await self._execute("put_feedback", columns(feedback) | {"feedback": feedback.feedback.value})

    async def feedback_by(self, voter: str, trace_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, AnswerFeedback]:
        """See `TraceStore`."""
        if not trace_ids:
            return {}
        page = await self._rows("feedback_by", {"voter": voter, "trace_ids": list(trace_ids)})
        return {
            each["trace_id"]: AnswerFeedback(**each | {"feedback": FeedbackType(each["feedback"])}) for each in page
        }


class PostgresEvaluations(Store):
    """`EvaluationStore` over the table evaluations."""

    subject = "evaluations"

    async def add(self, run: EvaluationRun) -> None:
        """See `EvaluationStore`."""
        self._database.require_space()
        values = {"run_id": run.run_id, "created_at": run.created_at, "run": Json(plain(run.report()))}
        await self._execute("add", values)

    async def get(self, run_id: uuid.UUID) -> EvaluationRun | None:
        """See `EvaluationStore`."""
        stored = await self._row("get", {"run_id": run_id})
        return EvaluationRun.from_dict(stored["run"]) if stored else None

    async def newest(self, limit: int, after: EvaluationRun | None) -> list[RunSummary]:
        """See `EvaluationStore`."""
        last = {"last_at": after.created_at if after else None, "last_id": after.run_id if after else None}
        page = await self._rows("newest", {"limit": limit, **last})
        return [RunSummary(**stored | {"measures": _measures(stored["measures"])}) for stored in page]

    async def delete(self, run_id: uuid.UUID) -> bool:
        """See `EvaluationStore`."""
        return await self._execute("delete", {"run_id": run_id}) > 0


def _measures(stored: Mapping[str, Mapping[str, float] | None]) -> dict[str, Measure | None]:
    return {name: None if measure is None else Measure(**measure) for name, measure in stored.items()}


class PostgresApprovals(Store):
    """`ApprovalStore` over the table approved_tools. Only the owner's role can read it."""

    subject = "approvals"

    async def every(self) -> dict[str, Approval]:
        """See `ApprovalStore`."""
        page = await self._rows("approvals")
        return {each["tool"]: Approval(**each | {"fingerprint": bytes(each["fingerprint"])}) for each in page}

    async def put(self, approval: Approval) -> None:
        """See `ApprovalStore`."""
        await self._execute("approve", columns(approval))

    async def remove(self, tool: str) -> bool:
        """See `ApprovalStore`."""
        return await self._row("revoke", {"tool": tool}) is not None
