"""One turn of a conversation over HTTP, the same for every chat route."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from fastapi import Request

from dtrag.app import App
from dtrag.core.access.api_key import Caller
from dtrag.core.access.scope import scope_rows
from dtrag.core.agent import Agent
from dtrag.core.chat import Message
from dtrag.core.conversation import conversation_id
from dtrag.core.documents import Answer
from dtrag.delivery.api.audited import add_answer, add_subjects
from dtrag.delivery.api.dependencies import app_of
from dtrag.delivery.api.permissions import caller_of, refuse_bypass
from dtrag.errors import InvalidInput, StorageFull
from dtrag.pipeline.execution import AnswerOptions
from dtrag.pipeline.run_context import Emit
from dtrag.pipeline.state import PipelineRequest, PipelineResponse
from dtrag.retrieval.request import MAX_QUERY

_LOG = logging.getLogger(__name__)
MOST_HISTORY = 20
"""Newest messages before the question that are used: a follow-up refers to the last few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTurn:
    """A question with its context. `conversation_id` is "" where the client keeps the conversation.

    `history_documents` are the known source documents of the answers in `history`.
    """

    question: str
    caller: Caller
    agent: Agent | None = None
    filters: Mapping[str, Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    history: Sequence[Message] = ()
    history_documents: tuple[str, ...] = ()
    conversation_id: str = ""


async def prepare_turn(
    request: Request,
    question: str,
    *,
    agent: Agent | None = None,
    filters: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    history: Sequence[Message] | None = None,
    conversation: str | None = None,
    stored: bool = True,
) -> ChatTurn:
    """The checked turn. `history` None: the stored messages of the conversation; of callers without a key none are.

    Raises `FilterBypass` and `InvalidInput`.
    """
    if not question.strip():
        raise InvalidInput("The question is empty.")
    if len(question) > MAX_QUERY:
        raise InvalidInput(f"The question has more than {MAX_QUERY:,} characters.")
    app, caller = app_of(request), caller_of(request)
    access = caller.access if agent is None else app.agents.access(agent, caller)
    await refuse_bypass(request, filters, caller, access)
    stored_id = conversation_id(conversation) if stored and not caller.keyless else ""
    documents: tuple[str, ...] = ()
    if history is None and caller.keyless:
        history = ()
    elif history is None:
        earlier = await app.conversations.last(stored_id, caller, scope=access) if conversation else []
        history = [message for turn in earlier for message in turn.messages()]
        documents = tuple(dict.fromkeys(str(document) for turn in earlier for document in turn.shown_documents()))
    return ChatTurn(
        question=question,
        caller=caller,
        agent=agent,
        filters=filters,
        options=options or {},
        history=tuple(history)[-MOST_HISTORY:],
        history_documents=documents,
        conversation_id=stored_id,
    )


async def answer_turn(app: App, turn: ChatTurn, emit: Emit | None = None) -> PipelineResponse:
    """The answer, stored in its conversation. Raises `DtragError`, of these `Overloaded` under load."""
    request = PipelineRequest(query=turn.question, options=turn.options)
    options = AnswerOptions(
        filters=turn.filters,
        history=turn.history,
        history_documents=turn.history_documents,
        emit=emit,
        owner=turn.caller.owner,
    )
    if turn.agent is None:
        answer = await app.answer(request, scope=turn.caller.access, **options)
    else:
        answer = await app.agents.execute(turn.agent, request, caller=turn.caller, **options)
    if turn.conversation_id and not answer.unfinished:
        retrieved = (passage.chunk_id.rpartition(":")[0] for passage in answer.retrieved_chunks)
        source_documents = (*retrieved, *turn.history_documents)
        try:
            add = partial(
                app.conversations.add,
                turn.conversation_id,
                turn.caller,
                turn.question,
                answer.text,
                source_documents,
                trace_id=answer.trace_id,
            )
            await app.traces.with_queued(lambda traces: add(traces=traces))
        except StorageFull as error:  # the answer is given; the next question has this turn not in its history
            _LOG.warning("a turn of a conversation is not stored", exc_info=error)
    return answer


def add_turn_subjects(request: Request, turn: ChatTurn, answer: Answer | None = None) -> None:
    """Add the agent and the cited documents to the subjects in the audit log line of the request."""
    if turn.agent is not None:
        add_subjects(request, [str(turn.agent.agent_id)])
    if answer is not None:
        add_answer(request, answer)


async def note_streamed_answer(request: Request, caller: Caller, answer: Answer) -> None:
    """Write an audit log line with the documents of a streamed answer: the line of its request was written before."""
    await app_of(request).audit.note(
        caller.name,
        f"{request.method} {request.url.path} answered",
        scope=scope_rows(caller.access),
        subjects=answer.audited_ids,
        decision="allowed",
        details={"trace_id": answer.trace_id, **answer.audited_details},
    )
