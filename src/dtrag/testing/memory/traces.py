"""Traces of runs and feedback on their answers, in memory: `TraceStore`."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from datetime import datetime

from dtrag.core.answer_feedback import AnswerFeedback
from dtrag.core.trace import Trace
from dtrag.testing.memory.state import MemoryState


class MemoryTraces:
    """The traces of one state."""

    def __init__(self, state: MemoryState):
        self._traces = state.traces
        self._feedback = state.answer_feedback

    async def add(self, traces: Sequence[Trace]) -> None:
        """Store the traces as a database would give them back; existing ones stay as they are."""
        for trace in traces:
            self._traces.setdefault(trace.trace_id, Trace.from_dict(trace.as_dict()))

    async def get(self, trace_id: uuid.UUID, since: datetime) -> Trace | None:
        """The trace, or None; also None when it is older than `since`."""
        trace = self._traces.get(trace_id)
        return trace if trace is not None and trace.created_at >= since else None

    async def newest(self, limit: int, owner: str | None, since: datetime, after: Trace | None) -> list[Trace]:
        """Traces not older than `since`, the newest first: of `owner` (None: of all), those that follow `after`."""
        matching = [
            trace
            for trace in self._traces.values()
            if trace.created_at >= since
            and (owner is None or trace.owner == owner)
            and (after is None or _position(trace) < _position(after))
        ]
        return sorted(matching, key=_position, reverse=True)[:limit]

    async def forget(self, before: datetime) -> int:
        """Delete older ones; returns how many."""
        old = [key for key, trace in self._traces.items() if trace.created_at < before]
        for key in old:
            del self._traces[key]
        for voted in [voted for voted, feedback in self._feedback.items() if feedback.given_at < before]:
            del self._feedback[voted]
        return len(old)

    async def put_feedback(self, feedback: AnswerFeedback) -> None:
        """Store the feedback in place of an earlier one of the same voter."""
        self._feedback[feedback.trace_id, feedback.voter] = feedback

    async def feedback_by(self, voter: str, trace_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, AnswerFeedback]:
        """The voter's own feedback on these answers, by trace id."""
        return {key: self._feedback[key, voter] for key in trace_ids if (key, voter) in self._feedback}


def _position(trace: Trace) -> tuple[datetime, uuid.UUID]:
    return trace.created_at, trace.trace_id
