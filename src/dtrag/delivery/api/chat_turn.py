"""One turn of a conversation over HTTP: who asks what, of whom, after what; the same for every chat route."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi import Request

from dtrag.app import App
from dtrag.core.access.api_key import Caller
from dtrag.core.access.scope import scope_rows
from dtrag.core.agent import Agent
from dtrag.core.chat import Message
from dtrag.core.conversation import conversation_id
from dtrag.delivery.api.dependencies import app_of
from dtrag.delivery.api.filter_policy import refuse_bypass
from dtrag.delivery.api.middleware.audit import add_subjects
from dtrag.delivery.api.permissions import caller_of
from dtrag.errors import InvalidInput, StorageFull
from dtrag.pipeline.run import Emit
from dtrag.pipeline.state import PipelineRequest, PipelineResponse
from dtrag.retrieval.request import MAX_QUERY

_LOG = logging.getLogger(__name__)
MOST_HISTORY = 20
"""Messages before the question that are looked at, the newest ones: what a follow-up rests on lies in the last few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A question with all that it is asked with. `conversation_id` is "" where the client keeps the conversation.

    `history_documents` are those that the answers in `history` rest on, as far as the service knows.
    """

    question: str
    caller: Caller
    agent: Agent | None = None
    filters: Mapping[str, Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    history: Sequence[Message] = ()
    history_documents: tuple[str, ...] = ()
    conversation_id: str = ""


@dataclass(frozen=True, slots=True)
class Given:
    """What a turn got. `hitl_required`: the agent is so little sure of it that a person has to look at it, too."""

    response: PipelineResponse
    hitl_required: bool = False

    @property
    def document_ids(self) -> list[str]:
        """The documents that the answer cites."""
        return list(dict.fromkeys(citation.document_id for citation in self.response.citations))


async def turn_of(
    request: Request,
    question: str,
    *,
    agent: Agent | None = None,
    filters: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    history: Sequence[Message] | None = None,
    conversation: str | None = None,
    kept: bool = True,
) -> Turn:
    """The turn, once it is known to be allowed. `history` None: what the service keeps of the conversation.

    Raises `FilterBypass` and `InvalidInput`.
    """
    if not question.strip():
        raise InvalidInput("The question is empty.")
    if len(question) > MAX_QUERY:
        raise InvalidInput(f"The question has more than {MAX_QUERY:,} characters.")
    app, caller = app_of(request), caller_of(request)
    access = caller.access if agent is None else app.agents.access(agent, caller)
    await refuse_bypass(request, filters, caller, access)
    talk = conversation_id(conversation) if kept else ""
    documents: tuple[str, ...] = ()
    if history is None:
        last = await app.conversations.last(talk, caller, scope=access) if conversation else []
        history = [message for turn in last for message in turn.messages()]
        documents = tuple(dict.fromkeys(str(found) for turn in last for found in turn.shown_documents()))
    return Turn(
        question=question,
        caller=caller,
        agent=agent,
        filters=filters,
        options=options or {},
        history=tuple(history)[-MOST_HISTORY:],
        history_documents=documents,
        conversation_id=talk,
    )


async def answered(app: App, turn: Turn, emit: Emit | None = None) -> Given:
    """The answer, kept in its conversation. Raises `DtragError`, `Overloaded` when there is too much to do."""
    asked = PipelineRequest(query=turn.question, options=turn.options)
    if turn.agent is None:
        response = await app.pipeline.execute(
            asked,
            scope=turn.caller.access,
            filters=turn.filters,
            history=turn.history,
            history_documents=turn.history_documents,
            emit=emit,
            owner=turn.caller.owner,
        )
        given = Given(response)
    else:
        response, hitl_required = await app.agents.execute(
            turn.agent,
            asked,
            filters=turn.filters,
            history=turn.history,
            history_documents=turn.history_documents,
            emit=emit,
            owner=turn.caller.owner,
            caller=turn.caller,
        )
        given = Given(response, hitl_required)
    if turn.conversation_id and not response.unfinished:  # what was not answered is nothing to remember
        found = (chunk["chunk_id"].rpartition(":")[0] for chunk in response.retrieved_chunks)
        rests_on = (*found, *turn.history_documents)
        try:
            await app.conversations.add(turn.conversation_id, turn.caller, turn.question, response.answer, rests_on)
        except StorageFull as error:  # answers go on; the next question does without this turn
            _LOG.warning("a turn of a conversation is not kept", exc_info=error)
    return given


def name_subjects(request: Request, turn: Turn, given: Given | None = None) -> None:
    """Remember for the audit log which agent and which documents the answer is about."""
    if turn.agent is not None:
        add_subjects(request, [str(turn.agent.agent_id)])
    if given is not None:
        add_subjects(request, given.document_ids)


async def note_streamed(request: Request, turn: Turn, given: Given) -> None:
    """A line of the audit log about the documents of a streamed answer: the line of its request was written before."""
    await app_of(request).audit.note(
        turn.caller.name,
        f"{request.method} {request.url.path} answered",
        scope=scope_rows(turn.caller.access),
        subjects=given.document_ids,
        decision="allowed",
        details={"trace_id": given.response.trace_id},
    )
