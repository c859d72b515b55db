"""`POST /chat/run` and `/chat/stream`: questions in conversations, answered as one response or as events.

`POST /chat/feedback`: what the caller thinks of an answer.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, cast, get_args

from fastapi import APIRouter, Request, Response
from fastapi.sse import KEEPALIVE_COMMENT
from pydantic import BaseModel, Field, TypeAdapter, WithJsonSchema

from dtrag.core.answer_feedback import MAX_REASON
from dtrag.core.chat import Message, Role
from dtrag.core.conversation import MAX_ID
from dtrag.core.documents import Citation, Declined, EarlierQuestion
from dtrag.core.response import extended, response
from dtrag.delivery.api.audited import add_subjects
from dtrag.delivery.api.chat_turn import (
    ChatTurn,
    add_turn_subjects,
    answer_turn,
    note_streamed_answer,
    prepare_turn,
)
from dtrag.delivery.api.dependencies import app_of, service_of
from dtrag.delivery.api.permissions import BROWSE, READ, caller_of
from dtrag.delivery.api.request_tasks import until_gone
from dtrag.delivery.api.routing import (
    AsOf,
    Filters,
    JsonObject,
    JsonRoute,
    NoteStatements,
    ReasonStatements,
    RequestBody,
    StrictBody,
    Text,
    failures,
)
from dtrag.delivery.api.sse import EVENT_STREAM, EventFeed, EventStream, event, failure_of
from dtrag.errors import InvalidInput
from dtrag.pipeline.answer.citations import quoted_passage
from dtrag.pipeline.answer_feedback import FeedbackOutcome
from dtrag.pipeline.execution import MAX_TOP_K
from dtrag.pipeline.state import PipelineResponse
from dtrag.retrieval.request import MAX_QUERY

MAX_MESSAGES = 200
MAX_CONTENT = 4 * MAX_QUERY
"""Maximum characters of one message of a conversation kept by the client."""
MAX_AGENT_ID = 64


class ChatMessage(StrictBody):
    """One message of a conversation kept by the client."""

    role: Annotated[Text, WithJsonSchema({"type": "string", "enum": list(get_args(Role))})] = Field(
        description="user or assistant; system messages are ignored, as the service has its own instructions."
    )
    content: Text = Field(json_schema_extra={"maxLength": MAX_CONTENT}, description="The text.")


class ChatContext(StrictBody):
    """The scope and options of the answer."""

    taxonomy_paths: list[list[str]] | None = Field(
        None, description="Branches to answer from; the same as filters.taxonomy_paths."
    )
    filters: Filters = None
    agent_id: Text | None = Field(
        default=None,
        json_schema_extra={"maxLength": MAX_AGENT_ID},
        description="The agent that answers, instead of the whole scope.",
    )
    top_k: int | None = Field(
        default=None,
        json_schema_extra={"minimum": 1, "maximum": MAX_TOP_K},
        description="Passages to retrieve; ignored for an agent, whose manifest says it.",
    )
    as_of: AsOf = None
    debate: bool | None = Field(None, description="false: no debate, even if debates are enabled.")


class ChatRequest(RequestBody):
    """A question, as `message` or as the last of `messages`; limits are checked when it is answered."""

    message: Text | None = Field(
        default=None,
        json_schema_extra={"maxLength": MAX_QUERY},
        description="The question.",
        examples=["How many days of leave are there?"],
    )
    messages: list[ChatMessage] | None = Field(
        default=None,
        json_schema_extra={"minItems": 1, "maxItems": MAX_MESSAGES},
        description="Instead of message: a conversation that the client keeps, the question last.",
    )
    conversation_id: Text | None = Field(
        default=None,
        json_schema_extra={"maxLength": MAX_ID},
        description="The conversation to continue, or an id for a new one; null: a new one, see the response.",
    )
    agent_id: Text | None = Field(
        default=None,
        json_schema_extra={"maxLength": MAX_AGENT_ID},
        description="The agent that answers, instead of the whole scope.",
    )
    context: ChatContext | None = Field(default=None, description="The scope and options of the answer.")

    def question(self) -> str:
        """The question from `message` or `messages`. Raises `InvalidInput`."""
        if (self.message is None) == (self.messages is None):
            raise InvalidInput("Send the question once: as message, or as the last of messages.")
        if self.messages is None:
            return self.message or ""
        if not 1 <= len(self.messages) <= MAX_MESSAGES:
            raise InvalidInput(f"messages holds 1 to {MAX_MESSAGES} messages, the question last.")
        for number, message in enumerate(self.messages, start=1):
            if message.role not in get_args(Role):
                raise InvalidInput(f"The role of message {number} must be one of {', '.join(get_args(Role))}.")
            if len(message.content) > MAX_CONTENT:
                raise InvalidInput(f"Message {number} has more than {MAX_CONTENT:,} characters.")
        if self.messages[-1].role != "user":
            raise InvalidInput("The last of messages must be the user's question.")
        return self.messages[-1].content

    def history(self) -> list[Message] | None:
        """The messages before the question without system messages; None if the service stores the conversation."""
        if self.messages is None:
            return None
        earlier = (message for message in self.messages[:-1] if message.role != "system")
        return [Message(cast("Role", message.role), message.content) for message in earlier]

    def filters(self) -> JsonObject | None:
        """The filters with `taxonomy_paths`. Raises `InvalidInput` if both are set."""
        if self.context is None or self.context.taxonomy_paths is None:
            return None if self.context is None else self.context.filters
        if self.context.filters and "taxonomy_paths" in self.context.filters:
            raise InvalidInput("taxonomy_paths and filters.taxonomy_paths are the same filter: set only one of them.")
        return {**(self.context.filters or {}), "taxonomy_paths": self.context.taxonomy_paths}

    def options(self) -> JsonObject:
        """Options of the pipeline."""
        if self.context is None:
            return {}
        return {
            name: value for name, value in self.context if name in {"top_k", "debate", "as_of"} and value is not None
        }

    def agent(self) -> str | None:
        """The agent's id from `agent_id` or `context`. Raises `InvalidInput` if they differ."""
        inner = self.context.agent_id if self.context else None
        if self.agent_id and inner and self.agent_id != inner:
            raise InvalidInput("agent_id and context.agent_id differ: set only one of them.")
        return self.agent_id or inner


@dataclass(frozen=True, slots=True)
class SourceShape(Citation):
    """A source of the answer."""

    __pydantic_config__ = response()

    source_url: str = field(metadata={"serialization_alias": "url"})
    """Where the document came from."""
    title: str = ""
    """Title of the document."""
    date: str = ""
    """When the document was indexed."""
    version: str = ""
    """Version stated in the document; empty if none."""


def sources(citations: Iterable[Citation]) -> list[SourceShape]:
    """The citations as the chat routes return them."""
    return [extended(SourceShape, citation) for citation in citations]


class ToolRun(BaseModel):
    """A tool that was executed for the answer."""

    tool: str = Field(description="Its name.")
    success: bool = Field(description="Whether it succeeded.")
    error: str | None = Field(description="The error message; null on success.")
    elapsed: float = Field(description="Duration in seconds.")


class ChatMetadata(BaseModel):
    """How the answer was produced."""

    intent: str = Field(description="question, explanation, search or general.")
    step_timings: dict[str, float] = Field(description="Duration of each executed step, in seconds.")
    taxonomy_version: str = Field(description="The version of the searched tree, as visible to you.")
    decision: str = Field(description="answer, review (on weak evidence: check the sources) or abstain.")
    unfinished: bool = Field(
        description="Whether the time limit was reached: it is unknown whether the documents answer the question."
    )
    reason: str = Field(description="How the confidence was reached.")
    reason_statements: ReasonStatements
    degraded: tuple[str, ...] = Field(description="Parts that failed and were left out; llm for the language model.")
    notes: tuple[str, ...] = Field(description="Notes for the reader.")
    note_statements: NoteStatements
    model: str | None = Field(description="The language model that wrote the answer; null for quotations.")
    tokens: int = Field(description="Input and output tokens of language models.")
    cost: float = Field(description="Cost in won; 0 without a model and for a model without a known price.")
    latency: float = Field(description="Seconds from question to answer.")
    trace_id: str = Field(description="The id of the run's trace.")
    baseline_confidence: float = Field(
        description="The uncalibrated baseline: the best score, halved for a single source."
    )
    debated: bool = Field(description="Whether two agents debated the answer.")
    tools: list[ToolRun] = Field(description="The executed tools.")
    agent_id: str | None = Field(description="The agent that answered; null if none.")
    hitl_required: bool = Field(
        description="Whether the answer also waits for a human review, as the agent or DTRAG_REVIEW_BELOW requires."
    )

    @classmethod
    def of(cls, turn: ChatTurn, answer: PipelineResponse) -> ChatMetadata:
        """How the answer to a turn was produced."""
        return cls(
            **_same(cls, answer),
            tokens=answer.usage.tokens,
            debated=answer.debate is not None,
            tools=[ToolRun.model_validate(result) for result in answer.tool_results],
            agent_id=str(turn.agent.agent_id) if turn.agent else None,
        )


AnsweredBefore = Annotated[
    EarlierQuestion | None,
    Field(
        description="A verified case with the same question, whose passages the answer cites, too; null if there is "
        "none, or the case memory is off."
    ),
]


class QuotedPassage(BaseModel):
    """The passage that an answer quotes."""

    text: str = Field(description="All of it as an answer shows text, with each [n] after what it quotes.")
    marked: tuple[tuple[int, int], ...] = Field(
        description="Spans [start, end) of `text`, in code points, with the sentences that answer."
    )

    @classmethod
    def of(cls, answer: PipelineResponse) -> QuotedPassage | None:
        """The passage of an answer that quotes a part of one passage, and says nothing else."""
        passage = quoted_passage(answer.text, answer.citations, answer.retrieved_chunks)
        return None if passage is None or answer.model else cls(text=passage[0], marked=passage[1])


class ChatResponse(BaseModel):
    """The answer with its sources, or that the documents do not answer."""

    response: str = Field(description="The answer, with [n] where a source belongs.")
    answer: str = Field(description="The same text.")
    marked: tuple[tuple[int, int], ...] = Field(
        description="Spans [start, end) of the answer, in code points, with the sentences that answer, where "
        "provisions are quoted."
    )
    passage: QuotedPassage | None = Field(
        description="The whole passage, where the answer quotes a part of one passage and says nothing else; null for "
        "every other answer."
    )
    conversation_id: str = Field(description="The conversation; send it with the next question.")
    sources: list[SourceShape] = Field(description="One for each [n].")
    confidence: float = Field(description="The probability that the documents answer this, in [0, 1].")
    answer_confidence: float | None = Field(
        description="The probability that the quotations are the answer, in [0, 1]: it decides between answer and "
        "review. Null for the answer of a language model, for a provision that the question names, and without an "
        "answer."
    )
    answered_before: AnsweredBefore = None
    offered: tuple[EarlierQuestion, ...] = Field(
        default=(),
        description="Up to three similar questions with a confirmed answer from passages that you may see and that are "
        "unchanged, most similar first; empty while the case memory is off. The answer does not depend on them.",
    )
    declined: Declined | None = Field(
        default=None,
        description="What was searched when the decision is abstain; null otherwise, for a greeting, and for a "
        "question that names a provision which does not exist.",
    )
    metadata: ChatMetadata = Field(description="Intent, times, decision, costs and notes.")

    @classmethod
    def of(cls, turn: ChatTurn, answer: PipelineResponse) -> ChatResponse:
        """The response to a turn."""
        return cls(
            **_same(cls, answer) | {"sources": sources(answer.citations)},
            response=answer.text,
            passage=QuotedPassage.of(answer),
            conversation_id=turn.conversation_id,
            metadata=ChatMetadata.of(turn, answer),
        )


def _same(kind: type[BaseModel], answer: PipelineResponse) -> dict[str, Any]:
    """The fields of the model that the answer has under the same name."""
    return {name: getattr(answer, name) for name in kind.model_fields if hasattr(answer, name)}


_SOURCES = TypeAdapter(list[SourceShape])
router = APIRouter(route_class=JsonRoute, tags=["chat"])
_FAILURES = failures(400, 403, 404, 413, 415, 422, 503)
_EVENTS = """Server-sent events: `step` when a step ends, `token` for pieces of the text as a model writes them,
`replace` when the text so far is not the answer, `answered_before` and `offered` with earlier questions, `citations`,
and finally one `done` with the body of /chat/run, or one `error` with that of an error response."""


class AnswerFeedbackBody(RequestBody):
    """Feedback on an answer: `rating` or `thumbs`; limits are checked when it is stored."""

    trace_id: Text = Field(description="The trace_id of the answer.", examples=["8f14e45f-ceea-467f-a8d4-3f1b2c6d7e80"])
    rating: Annotated[
        int | None,
        Field(json_schema_extra={"minimum": 1, "maximum": 5}, description="4 and 5 are up, 1 and 2 down, 3 neither."),
    ] = None
    thumbs: Annotated[
        Text | None,
        Field(json_schema_extra={"enum": ["up", "down", None]}, description="Instead of rating: up or down."),
    ] = None
    reason: Annotated[
        Text | None, Field(json_schema_extra={"maxLength": MAX_REASON}, description="Why, for administrators.")
    ] = None


@router.post("/chat/run", responses=_FAILURES, dependencies=BROWSE)
async def run(request: Request, body: ChatRequest) -> ChatResponse:
    """The answer with its sources, or that the documents do not answer."""
    turn = await _turn(request, body)
    answer = await until_gone(request, service_of(request).in_flight, answer_turn(app_of(request), turn))
    add_turn_subjects(request, turn, answer)
    return ChatResponse.of(turn, answer)


@router.post(
    "/chat/stream",
    response_class=Response,
    responses={
        **_FAILURES,
        200: {"description": _EVENTS, "content": {EVENT_STREAM: {}}},
    },
    dependencies=BROWSE,
)
async def stream(request: Request, body: ChatRequest) -> Response:
    """The same answer as events while it is generated. A failure before the first event has the status of /chat/run."""
    turn = await _turn(request, body)
    add_turn_subjects(request, turn)
    feed = EventFeed(service_of(request).in_flight, partial(answer_turn, app_of(request), turn))
    await feed.wait_for_first(request)

    async def done(answer: PipelineResponse) -> dict[str, Any]:
        await note_streamed_answer(request, turn.caller, answer)
        return ChatResponse.of(turn, answer).model_dump(mode="json", by_alias=True)

    return EventStream(answer_events(feed, done), feed.close)


@router.post("/chat/feedback", responses=failures(400, 403, 404, 413, 415, 422, 503, 507), dependencies=READ)
async def feedback(request: Request, body: AnswerFeedbackBody) -> FeedbackOutcome:
    """Stores your feedback on an answer to your question; sent again, it replaces the earlier one."""
    outcome = await app_of(request).feedback.give(
        body.trace_id, rating=body.rating, thumbs=body.thumbs, reason=body.reason, caller=caller_of(request)
    )
    add_subjects(request, [outcome.trace_id])
    return outcome


def source_rows(citations: Iterable[Citation]) -> Mapping[str, Any]:
    """The data of the event `citations`."""
    return {"citations": _SOURCES.dump_python(sources(citations), mode="json", by_alias=True)}


async def answer_events(
    feed: EventFeed[PipelineResponse], done: Callable[[PipelineResponse], Awaitable[object]]
) -> AsyncGenerator[bytes, None]:
    """The events of a run that answers: its own, `replace` when its text so far is not the answer, and finally `done`
    with what that function gives, or `error`."""
    shown = ""
    async for run_event in feed.events():
        if run_event is None:
            yield KEEPALIVE_COMMENT
            continue
        name, data = run_event
        yield event(source_rows(data["citations"]) if name == "citations" else data, name)
        if name in {"token", "replace"}:
            shown = data["text"] if name == "replace" else shown + data["text"]
    failure = failure_of(feed)
    if failure is not None:
        yield event(failure, "error")
        return
    answer = feed.result()
    body = await done(answer)
    if shown != answer.text:
        yield event({"text": answer.text}, "replace")
    yield event(body, "done")


async def _turn(request: Request, body: ChatRequest) -> ChatTurn:
    agent_id = body.agent()
    agent = await app_of(request).agents.get(agent_id, caller=caller_of(request)) if agent_id else None
    return await prepare_turn(
        request,
        body.question(),
        agent=agent,
        filters=body.filters(),
        options=body.options(),
        history=body.history(),
        conversation=body.conversation_id,
    )
