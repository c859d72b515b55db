"""Bodies and responses of `/chat/run` and `/chat/stream`."""

from __future__ import annotations

from typing import Annotated, cast, get_args

from pydantic import BaseModel, Field, WithJsonSchema

from dtrag.core.chat import Message, Role
from dtrag.core.conversation import MAX_ID
from dtrag.core.statements import all_statements, statements_of
from dtrag.delivery.api.chat_turn import ChatTurn, TurnAnswer
from dtrag.delivery.api.schemas.base import StrictBody
from dtrag.delivery.api.schemas.common import (
    ANSWER_CONFIDENCE,
    CONTEXT,
    DISPLAY,
    HIGHLIGHTS,
    MARKED,
    MARKED_IN_ANSWER,
    PAGE,
    AnsweredBefore,
    ContextShape,
    Declined,
    DeclinedShape,
    EarlierQuestionShape,
    Offered,
    answered_before,
)
from dtrag.delivery.api.schemas.search import AsOf, Filters, JsonObject, RequestBody, Text
from dtrag.delivery.api.schemas.statements import NOTE_STATEMENTS, REASON_STATEMENTS, StatementShape
from dtrag.errors import InvalidInput
from dtrag.pipeline.execution import MAX_TOP_K
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


class SourceShape(BaseModel):
    """A source of the answer."""

    number: int = Field(description="The n of [n] in the answer.")
    label: str = Field(description="Citation label: regulation and article, or title and heading.")
    title: str = Field(description="Title of the document.")
    url: str = Field(description="Where the document came from.")
    date: str = Field(description="When the document was indexed.")
    version: str = Field(description="Version stated in the document; empty if none.")
    document_id: str = Field(description="The document.")
    chunk_id: str = Field(description="The passage.")
    quote: str = Field(description="The cited text, verbatim.")
    start: int = Field(description="Its start, in code points of the document's text.")
    end: int = Field(description="Its end (exclusive).")
    display: str = Field(description=DISPLAY)
    context: list[ContextShape] = Field(description=CONTEXT)
    highlights: list[tuple[int, int]] = Field(description=HIGHLIGHTS)
    marked: list[tuple[int, int]] = Field(description=MARKED)
    page: int | None = Field(description=PAGE)


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
    reason_statements: list[StatementShape] = Field(description=REASON_STATEMENTS)
    degraded: list[str] = Field(description="Parts that failed and were left out; llm for the language model.")
    notes: list[str] = Field(description="Notes for the reader.")
    note_statements: list[StatementShape] = Field(description=NOTE_STATEMENTS)
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


class ChatResponse(BaseModel):
    """The answer with its sources, or that the documents do not answer."""

    response: str = Field(description="The answer, with [n] where a source belongs.")
    answer: str = Field(description="The same text.")
    marked: list[tuple[int, int]] = Field(description=MARKED_IN_ANSWER)
    conversation_id: str = Field(description="The conversation; send it with the next question.")
    sources: list[SourceShape] = Field(description="One for each [n].")
    confidence: float = Field(description="The probability that the documents answer this, in [0, 1].")
    answer_confidence: float | None = Field(description=ANSWER_CONFIDENCE)
    answered_before: AnsweredBefore = None
    offered: Offered = []
    declined: Declined = None
    metadata: ChatMetadata = Field(description="Intent, times, decision, costs and notes.")

    @classmethod
    def of(cls, turn: ChatTurn, answer: TurnAnswer) -> ChatResponse:
        """The response to a turn."""
        response = answer.response
        return cls(
            response=response.answer,
            answer=response.answer,
            marked=list(response.marked),
            conversation_id=turn.conversation_id,
            sources=[SourceShape.model_validate(source) for source in response.sources],
            confidence=response.confidence,
            answer_confidence=response.answer_confidence,
            answered_before=answered_before(response.answered_before),
            offered=[EarlierQuestionShape.model_validate(each) for each in response.offered],
            declined=None if response.declined is None else DeclinedShape.model_validate(response.declined),
            metadata=_metadata(turn, answer),
        )


def _metadata(turn: ChatTurn, answer: TurnAnswer) -> ChatMetadata:
    response = answer.response
    return ChatMetadata(
        intent=response.intent,
        step_timings=response.step_timings,
        taxonomy_version=response.taxonomy_version,
        decision=response.decision,
        unfinished=response.unfinished,
        reason=response.reason,
        reason_statements=[StatementShape.model_validate(each) for each in statements_of(response.reason)],
        degraded=list(response.degraded),
        notes=list(response.notes),
        note_statements=[StatementShape.model_validate(each) for each in all_statements(response.notes)],
        model=response.model,
        tokens=response.usage.tokens,
        cost=response.cost,
        latency=response.latency,
        trace_id=response.trace_id,
        baseline_confidence=response.baseline_confidence,
        debated=response.debate is not None,
        tools=[ToolRun.model_validate(result) for result in response.tool_results],
        agent_id=str(turn.agent.agent_id) if turn.agent else None,
        hitl_required=answer.hitl_required,
    )
