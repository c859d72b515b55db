"""Bodies and responses of `/chat/run` and `/chat/stream`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any, cast, get_args

from pydantic import BaseModel, Field, WithJsonSchema

from dtrag.core.chat import Message, Role
from dtrag.core.conversation import MAX_ID
from dtrag.core.documents import Citation, Declined, EarlierQuestion
from dtrag.core.response import extended, response
from dtrag.delivery.api.chat_turn import ChatTurn
from dtrag.delivery.api.routing import (
    NoteStatements,
    ReasonStatements,
    StrictBody,
)
from dtrag.delivery.api.schemas.search import AsOf, Filters, JsonObject, RequestBody, Text
from dtrag.errors import InvalidInput
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


class ChatResponse(BaseModel):
    """The answer with its sources, or that the documents do not answer."""

    response: str = Field(description="The answer, with [n] where a source belongs.")
    answer: str = Field(description="The same text.")
    marked: tuple[tuple[int, int], ...] = Field(
        description="Spans [start, end) of the answer, in code points, with the sentences that answer, where "
        "provisions are quoted."
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
            conversation_id=turn.conversation_id,
            metadata=ChatMetadata.of(turn, answer),
        )


def _same(kind: type[BaseModel], answer: PipelineResponse) -> dict[str, Any]:
    """The fields of the model that the answer has under the same name."""
    return {name: getattr(answer, name) for name in kind.model_fields if hasattr(answer, name)}
