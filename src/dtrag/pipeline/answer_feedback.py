"""Feedback on answers: stored with the trace of the answer, whether the case memory is on or off."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Awaitable, Callable, Collection
from dataclasses import asdict, dataclass
from typing import Literal, Protocol

from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.access.scope import scope_rows
from dtrag.core.answer_feedback import RATING_OF_THUMBS, AnswerFeedback, feedback_type, reason_text
from dtrag.core.cases.case import CaseLog, CitedPassage, FeedbackType
from dtrag.core.documents import uuid_or_none
from dtrag.core.editions import parse_date
from dtrag.core.response import response
from dtrag.core.trace import Trace
from dtrag.errors import NotFound
from dtrag.pipeline.recall import FLAG
from dtrag.pipeline.traces import Traces
from dtrag.ports import Recorder, TraceStore, unrecorded
from dtrag.ports.cases import AnswersRetained, CaseEffect
from dtrag.settings import active_flags


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackOutcome:
    """What the feedback did."""

    __pydantic_config__ = response()

    trace_id: str
    """The answer's trace."""
    feedback: FeedbackType
    """thumbs_up, thumbs_down or ignored."""
    changed: bool
    """Whether it differs from your earlier feedback on this answer."""
    effect: Literal["recorded", "case_made", "case_voted"] = "recorded"
    """recorded, case_made or case_voted."""
    case_id: str | None = None
    """The case that was made or voted on; null if none."""
    note: str = ""
    """Why there is no case; empty if there is one."""


class TextOf(Protocol):
    """Finds a text of an answer by its trace, for a caller who may see it; "" without one."""

    async def __call__(self, trace_id: str, *, caller: Caller) -> str: ...


async def no_text(trace_id: str, *, caller: Caller) -> str:
    """No text is known."""
    return ""


async def _no_offer(log: CaseLog, caller: Caller) -> None:
    """Answers are not offered for review."""


class FeedbackOnAnswers:
    """Takes feedback on the answers of one app.

    `question_of` finds the question of an answer that the case memory does not hold. `on_thumbs_down` gets the
    interaction of an answer that a caller found wrong, `on_rating` every new rating, from 1 to 5.
    """

    def __init__(
        self,
        traces: Traces,
        store: TraceStore,
        *,
        retention: AnswersRetained | None = None,
        question_of: TextOf = no_text,
        record: Recorder = unrecorded,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
    ) -> None:
        self._traces = traces
        self._store = store
        self._retention = retention
        self._question_of = question_of
        self.on_thumbs_down: Callable[[CaseLog, Caller], Awaitable[None]] = _no_offer
        self.on_rating: Callable[[int], None] = lambda rating: None
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
        trace = await self._own(trace_id, caller)
        identifier = trace.trace_id
        earlier = (await self.given([identifier], caller=caller)).get(identifier)
        changed = earlier is None or (earlier.feedback, earlier.reason) != (kind, text)
        if changed:
            feedback = AnswerFeedback(
                trace_id=identifier, voter=caller.owner, feedback=kind, reason=text, given_at=self._now()
            )
            await self._store.put_feedback(feedback)
            self.on_rating(rating or RATING_OF_THUMBS[kind])
        log = await self._remembered(trace, caller)
        if kind is FeedbackType.THUMBS_DOWN and (earlier is None or earlier.feedback is not kind):
            await self.on_thumbs_down(log or await self._interaction_of(trace, caller), caller)
        done = await self._in_memory(log, kind, caller)
        outcome = FeedbackOutcome(trace_id=str(identifier), feedback=kind, changed=changed, **asdict(done))
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

    @property
    def _remembers(self) -> AnswersRetained | None:
        """The case memory, if it is on."""
        return self._retention if FLAG in active_flags() else None

    async def _remembered(self, trace: Trace, caller: Caller) -> CaseLog | None:
        """The interaction that the case memory holds."""
        memory = self._remembers
        return await memory.interaction(str(trace.trace_id), caller) if memory is not None else None

    async def _interaction_of(self, trace: Trace, caller: Caller) -> CaseLog:
        """The interaction as the trace has it, with the question of the conversation."""
        question = await self._question_of(str(trace.trace_id), caller=caller)
        return CaseLog(
            log_id=str(trace.trace_id),
            timestamp=trace.created_at,
            query=question or trace.question,
            user_id=caller.owner,
            kind="answer",
            passages=tuple(CitedPassage(chunk_id, b"") for chunk_id in trace.cited),
            as_of=parse_date("as_of", trace.as_of or None),
            details={"decision": trace.decision, "confidence": trace.confidence},
        )

    async def _in_memory(self, log: CaseLog | None, kind: FeedbackType, caller: Caller) -> CaseEffect:
        """What the feedback does to the case memory, if it is on."""
        memory = self._remembers
        if memory is None:
            return CaseEffect(note=_OFF)
        return await memory.feedback(log, kind, caller) if log is not None else CaseEffect(note=_NOT_REMEMBERED)

    async def _own(self, trace_id: str | uuid.UUID, caller: Caller) -> Trace:
        """The trace, if it is that of an answer to this caller. Raises `NotFound`."""
        identifier = uuid_or_none(trace_id)
        if identifier is not None:
            try:
                trace = await self._traces.get(identifier, caller=caller)
                if trace.owner == caller.owner:
                    return trace
            except NotFound:
                pass
        raise NotFound(
            f"There is no answer of yours with the trace id {str(trace_id)[:60]!r}. The trace_id is part of every "
            "answer; answers are rated by the key that asked, while their traces are kept."
        )


_NOT_REMEMBERED = "The answer was given without the case memory; the feedback is stored with the trace."
_OFF = "The case memory is off (CBR_ENABLED); the feedback is stored with the trace."
