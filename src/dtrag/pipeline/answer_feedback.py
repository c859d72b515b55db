"""Feedback on answers: stored with the trace of the answer, whether the case memory is on or off."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal

from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.access.scope import scope_rows
from dtrag.core.answer_feedback import AnswerFeedback, feedback_type, reason_text
from dtrag.core.cases.case import FeedbackType
from dtrag.core.documents import uuid_or_none
from dtrag.errors import NotFound
from dtrag.memory.retention import CaseEffect, Retention
from dtrag.pipeline.recall import FLAG
from dtrag.pipeline.traces import Traces
from dtrag.ports import Recorder, TraceStore, unrecorded
from dtrag.settings import active_flags


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackOutcome:
    """What feedback did: it is `recorded` in any case; it also made a case, or counted as a vote on one.

    `changed`: it differs from what the caller said of this answer before. `note` says why there is no case.
    """

    trace_id: str
    feedback: FeedbackType
    changed: bool
    effect: Literal["recorded", "case_made", "case_voted"] = "recorded"
    case_id: str | None = None
    note: str = ""


class FeedbackOnAnswers:
    """Takes feedback on the answers of one app."""

    def __init__(
        self,
        traces: Traces,
        store: TraceStore,
        *,
        retention: Retention | None = None,
        record: Recorder = unrecorded,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
    ) -> None:
        self._traces = traces
        self._store = store
        self._retention = retention
        self._record = record
        self._now = now

    async def give(
        self,
        trace_id: str | uuid.UUID,
        *,
        rating: int | None = None,
        thumbs: str | None = None,
        reason: str | None = None,
        caller: Caller = LOCAL,
    ) -> FeedbackOutcome:
        """Store the caller's feedback on an answer to the caller's own question, by the id of its trace.

        A rating of 4 or 5 is a thumbs-up, 1 or 2 a thumbs-down, 3 neither. The feedback is durable when this returns;
        the same again changes nothing, another one replaces it. Raises `InvalidInput`, and `NotFound` for the unknown
        and for answers to others.
        """
        kind, text = feedback_type(rating, thumbs), reason_text(reason)
        identifier = await self._own(trace_id, caller)
        earlier = (await self.given([identifier], caller=caller)).get(identifier)
        changed = earlier is None or (earlier.feedback, earlier.reason) != (kind, text)
        if changed:
            given = AnswerFeedback(
                trace_id=identifier, voter=caller.owner, feedback=kind, reason=text, given_at=self._now()
            )
            await self._store.put_feedback(given)
        repeated = earlier is not None and earlier.feedback == kind
        done = await self._in_memory(identifier, kind, caller, repeated=repeated)
        outcome = FeedbackOutcome(
            trace_id=str(identifier),
            feedback=kind,
            changed=changed,
            effect=done.effect,
            case_id=done.case_id,
            note=done.note,
        )
        await self._record(
            caller.name,
            "chat.feedback",
            scope=scope_rows(caller.access),
            subjects=(outcome.trace_id, *([outcome.case_id] if outcome.case_id else ())),
            decision="done",
            details={"feedback": kind.value, "effect": outcome.effect, "changed": changed},
        )
        return outcome

    async def given(
        self, trace_ids: Collection[uuid.UUID], *, caller: Caller = LOCAL
    ) -> dict[uuid.UUID, AnswerFeedback]:
        """The caller's own feedback on these answers, by the ids of their traces; never that of others."""
        return await self._store.feedback_by(caller.owner, trace_ids)

    async def _in_memory(
        self, trace_id: uuid.UUID, kind: FeedbackType, caller: Caller, *, repeated: bool
    ) -> CaseEffect:
        """What the feedback does to the case memory, if it is on."""
        if self._retention is None or FLAG not in active_flags():
            return CaseEffect(note=_OFF)
        done = await self._retention.feedback(str(trace_id), kind, caller, repeated=repeated)
        return done if done is not None else CaseEffect(note=_NOT_REMEMBERED)

    async def _own(self, trace_id: str | uuid.UUID, caller: Caller) -> uuid.UUID:
        """The id, if it is that of an answer to this caller. Raises `NotFound`."""
        identifier = uuid_or_none(trace_id)
        if identifier is not None:
            try:
                if (await self._traces.get(identifier, caller=caller)).owner == caller.owner:
                    return identifier
            except NotFound:
                pass
        raise NotFound(
            f"There is no answer of yours with the trace id {str(trace_id)[:60]!r}. The trace_id is part of every "
            "answer; answers are rated by the key that asked, while their traces are kept (DTRAG_TRACES, "
            "DTRAG_TRACE_DAYS)."
        )


_NOT_REMEMBERED = "The answer was given without the case memory; the feedback is stored with the trace."
_OFF = "The case memory is off (CBR_ENABLED); the feedback is stored with the trace."
