"""Port of the store of traces, and of feedback on their answers."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from dtrag.core.answer_feedback import AnswerFeedback
from dtrag.core.trace import Trace


class TraceStore(Protocol):
    """Traces of pipeline runs, and feedback on their answers.

    All methods raise `DatabaseUnavailable`; those that add data raise `StorageFull`.
    """

    async def add(self, traces: Sequence[Trace]) -> None:
        """Store all traces, or none; traces with known ids are ignored."""

    async def get(self, trace_id: uuid.UUID, since: datetime) -> Trace | None:
        """The trace; None when unknown or older than `since`."""

    async def newest(self, limit: int, owner: str | None, since: datetime, after: Trace | None) -> list[Trace]:
        """The next `limit` traces not older than `since` that follow `after`, newest first.

        `owner` restricts to the owner's (None: all); `after` None starts with the newest.
        """

    async def forget(self, before: datetime) -> int:
        """Delete all traces and feedback older than `before`; returns the number of traces."""

    async def put_feedback(self, feedback: AnswerFeedback) -> None:
        """Store the feedback durably; an earlier one of the same voter on the same answer is replaced.

        The trace need not be stored.
        """

    async def feedback_by(self, voter: str, trace_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, AnswerFeedback]:
        """The voter's own feedback on these answers, by trace id; answers without it are left out."""
