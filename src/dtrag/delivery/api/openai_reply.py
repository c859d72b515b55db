"""A reply to a conversation in a protocol of OpenAI, whole or as a stream: which agent answers, and when text is sent.

The protocols cannot replace text that was sent. A stream therefore sends the text after it was checked, and comments
that keep the connection open until then.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from fastapi import Request
from fastapi.sse import KEEPALIVE_COMMENT

from dtrag.core.agent import Agent
from dtrag.core.chat import Message, Usage
from dtrag.delivery.api import chat_turn
from dtrag.delivery.api.dependencies import app_of, service_of
from dtrag.delivery.api.permissions import caller_of
from dtrag.delivery.api.request_tasks import until_gone
from dtrag.delivery.api.sse import EventFeed, EventStream, failure_of
from dtrag.errors import NotFound
from dtrag.governance.agents import MAX_LIMIT
from dtrag.pipeline.run_context import Emit
from dtrag.pipeline.state import PipelineResponse

WHOLE_SCOPE = "dtrag"
"""The model that answers from the caller's whole scope."""
AGENT = "agent:"
"""Before the id or the name of an agent, in the name of a model."""
MAX_TITLE = 60
"""Characters of a title."""
_TASK = re.compile(r"\s*#+ *Task:")
_KEY = re.compile(r'"(title|tags|follow_ups|queries|text)"\s*:')
_SPEAKER = re.compile(r"^(USER|ASSISTANT):", re.MULTILINE)
_TITLE = re.compile(r"\s*Provide a concise, \S+ title for the conversation")
Whole_co = TypeVar("Whole_co", covariant=True)


class ReplyFormat(Protocol[Whole_co]):
    """How a protocol shows an answer."""

    def whole(self, answer: PipelineResponse) -> Whole_co:
        """The body of a reply without a stream."""

    def opening(self) -> Iterable[bytes]:
        """The first events of a stream, before there is an answer."""

    def events(self, answer: PipelineResponse) -> Iterable[bytes]:
        """The further events."""

    def failed(self, failure: Mapping[str, Any]) -> Iterable[bytes]:
        """The further events of a stream that has no answer; `failure` is the body of an error."""


async def reply(
    request: Request,
    model: str,
    messages: Sequence[Message],
    form: ReplyFormat[Whole_co],
    *,
    as_of: str | None,
    stream: bool,
) -> Whole_co | EventStream:
    """The reply to the last message. Raises `NotFound` for an unknown model, and what `prepare_turn` raises."""
    agent = await agent_of(request, model)
    *history, question = messages
    work: Any
    turn: chat_turn.ChatTurn | None = None
    own = answer_to(question.content)
    if own is not None:
        work = partial(_prepared, own)
    else:
        turn = await chat_turn.prepare_turn(
            request,
            question.content,
            agent=agent,
            options={} if as_of is None else {"as_of": as_of},
            history=history,
            stored=False,
        )
        work = partial(chat_turn.answer_turn, app_of(request), turn)
    if not stream:
        answer = await until_gone(request, service_of(request).in_flight, work())
        if turn is not None:
            chat_turn.add_turn_subjects(request, turn, answer)
        return form.whole(answer)
    if turn is not None:
        chat_turn.add_turn_subjects(request, turn)
    feed = EventFeed[PipelineResponse](service_of(request).in_flight, work)
    await feed.wait_for_first(request)
    return EventStream(_chunks(request, turn, form, feed), feed.close)


async def _prepared(answer: PipelineResponse, emit: Emit | None = None) -> PipelineResponse:
    return answer


async def _chunks(
    request: Request,
    turn: chat_turn.ChatTurn | None,
    form: ReplyFormat[object],
    feed: EventFeed[PipelineResponse],
) -> AsyncGenerator[bytes, None]:
    yield KEEPALIVE_COMMENT
    for chunk in form.opening():
        yield chunk
    async for run_event in feed.events():
        if run_event is None:
            yield KEEPALIVE_COMMENT
    failure = failure_of(feed)
    if failure is not None:
        for chunk in form.failed(failure):
            yield chunk
        return
    answer = feed.result()
    if turn is not None:
        await chat_turn.note_streamed_answer(request, turn.caller, answer)
    for chunk in form.events(answer):
        yield chunk


async def visible_agents(request: Request) -> list[Agent]:
    """The agents whose branches are within the caller's."""
    agents, _ = await app_of(request).agents.every(MAX_LIMIT, caller=caller_of(request))
    return agents


async def agent_of(request: Request, model: str) -> Agent | None:
    """The agent that the model names; None for the whole scope.

    Raises `NotFound`, and `InvalidInput` for a name that several agents have.
    """
    if model == WHOLE_SCOPE:
        return None
    if not model.startswith(AGENT):
        raise _no_model(model)
    try:
        return await app_of(request).agents.named(model.removeprefix(AGENT), caller=caller_of(request))
    except NotFound:
        raise _no_model(model) from None


def _no_model(model: str) -> NotFound:
    return NotFound(f"There is no model {model[:60]!r} that you may see. GET /v1/models lists the models.")


def pieces(text: str, size: int = 40) -> Sequence[str]:
    """The text in pieces of about `size` characters, split after spaces where possible."""
    parts: list[str] = []
    start = 0
    while start < len(text):
        end = text.find(" ", start + size)
        end = len(text) if end < 0 or end - start > 4 * size else end + 1
        parts.append(text[start:end])
        start = end
    return parts


def in_bold(text: str, marked: Sequence[Sequence[int]]) -> str:
    """The text with its marked spans, in order and disjoint, in bold."""
    parts, position = list[str](), 0
    for start, end in marked:
        parts += [text[position:start], "**", text[start:end], "**"]
        position = end
    return "".join((*parts, text[position:]))


def answer_to(prompt: str) -> PipelineResponse | None:
    """The answer to a prompt that Open WebUI (as a JSON object) or LibreChat sends for its own display: a title, tags
    or follow-up questions for a conversation, which is no question about documents. None for any other text.

    The title is the beginning of the first question. There are no tags, follow-up questions and completions: they would
    be invented. Of the search queries that are asked for, the last question is the only one.
    """
    if _TASK.match(prompt):
        instructions, mark, rest = prompt.partition("<chat_history>")
        key = _KEY.search(instructions)
        if not mark or key is None:
            return None
        _, *said = _SPEAKER.split(rest.rpartition("</chat_history>")[0])
        questions = [text.strip() for speaker, text in zip(said[::2], said[1::2], strict=True) if speaker == "USER"]
        values: dict[str, object] = {
            "title": _title(questions[0] if questions else ""),
            "queries": questions[-1:],
            "tags": [],
            "follow_ups": [],
            "text": "",
        }
        return _answer(prompt, json.dumps({key[1]: values[key[1]]}, ensure_ascii=False))
    if prompt.rstrip().endswith("||>Title:"):
        return _answer(prompt, _title(prompt.partition("||>Response:")[0].rpartition("||>")[2].partition(":")[2]))
    if _TITLE.match(prompt):
        return _answer(prompt, _title(prompt.partition("\nUser: ")[2].partition("\nAI: ")[0]))
    return None


def _title(question: str) -> str:
    line = " ".join(question.split()).strip('"')
    return line if len(line) <= MAX_TITLE else line[:MAX_TITLE].rpartition(" ")[0] + "…"


def _answer(prompt: str, text: str) -> PipelineResponse:
    """Nothing was searched: no citations, no confidence, and no trace has its id."""
    return PipelineResponse(
        question=prompt,
        text=text,
        citations=(),
        confidence=0.0,
        decision="abstain",
        stages={},
        trace_id=str(uuid.uuid4()),
        taxonomy_version="",
        latency=0.0,
        intent="",
        step_timings={},
        retrieved_chunks=[],
        usage=Usage(),
        baseline_confidence=0.0,
        tool_results=[],
    )
