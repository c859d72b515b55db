"""The shapes of `/chat/run` and `/chat/stream`."""

from __future__ import annotations

from typing import Annotated, Any, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from dtrag.core.chat import Message, Role
from dtrag.core.conversation import MAX_ID
from dtrag.delivery.api.chat_turn import ChatTurn, TurnAnswer
from dtrag.delivery.api.schemas.search import Filters, RequestBody, Text
from dtrag.errors import InvalidInput
from dtrag.pipeline.execution import MAX_TOP_K
from dtrag.retrieval.request import MAX_QUERY

_REQUEST = ConfigDict(extra="forbid", strict=True)
MAX_MESSAGES = 200
MAX_CONTENT = 4 * MAX_QUERY
"""Characters of one message of a conversation that the client keeps."""
MAX_AGENT_ID = 64


class ChatMessage(BaseModel):
    """One message of a conversation that the client keeps."""

    model_config = _REQUEST

    role: Annotated[Text, WithJsonSchema({"type": "string", "enum": list(get_args(Role))})] = Field(
        description="user or assistant; what system says is not followed, for the service has instructions of its own."
    )
    content: Text = Field(json_schema_extra={"maxLength": MAX_CONTENT}, description="What was said.")


class ChatContext(BaseModel):
    """What to answer from, and how."""

    model_config = _REQUEST

    taxonomy_paths: list[list[str]] | None = Field(
        None, description="Branches to answer from; short for filters with taxonomy_paths."
    )
    filters: Filters = None
    agent_id: Text | None = Field(
        default=None,
        json_schema_extra={"maxLength": MAX_AGENT_ID},
        description="The agent to ask, in place of the whole scope.",
    )
    top_k: int | None = Field(
        default=None,
        json_schema_extra={"minimum": 1, "maximum": MAX_TOP_K},
        description="Passages to retrieve; an agent's are its own.",
    )
    debate: bool | None = Field(None, description="false: no debate, even where the service holds them.")


class ChatRequest(RequestBody):
    """A question, as `message` or as the last of `messages`; limits are checked when it is asked."""

    message: Text | None = Field(
        default=None,
        json_schema_extra={"maxLength": MAX_QUERY},
        description="The question.",
        examples=["How many days of leave are there?"],
    )
    messages: list[ChatMessage] | None = Field(
        default=None,
        json_schema_extra={"minItems": 1, "maxItems": MAX_MESSAGES},
        description="In place of message: a conversation that you keep yourself, the question last.",
    )
    conversation_id: Text | None = Field(
        default=None,
        json_schema_extra={"maxLength": MAX_ID},
        description="The conversation to go on with, or a name for a new one; null: a new one, whose id is answered.",
    )
    agent_id: Text | None = Field(
        default=None,
        json_schema_extra={"maxLength": MAX_AGENT_ID},
        description="The agent to ask, in place of the whole scope.",
    )
    context: ChatContext | None = Field(default=None, description="What to answer from, and how.")

    def question(self) -> str:
        """The question, from whichever field holds it. Raises `InvalidInput`."""
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
        """The messages before the question that count; None where the service keeps the conversation."""
        if self.messages is None:
            return None
        earlier = (message for message in self.messages[:-1] if message.role != "system")
        return [Message(cast("Role", message.role), message.content) for message in earlier]

    def filters(self) -> dict[str, Any] | None:
        """The filters, from whichever field holds them. Raises `InvalidInput` for two."""
        if self.context is None or self.context.taxonomy_paths is None:
            return None if self.context is None else self.context.filters
        if self.context.filters and "taxonomy_paths" in self.context.filters:
            raise InvalidInput("taxonomy_paths and filters.taxonomy_paths are two names of one thing: give one.")
        return {**(self.context.filters or {}), "taxonomy_paths": self.context.taxonomy_paths}

    def options(self) -> dict[str, Any]:
        """Options of the pipeline."""
        if self.context is None:
            return {}
        return {name: value for name, value in self.context if name in {"top_k", "debate"} and value is not None}

    def agent(self) -> str | None:
        """The agent's id, from whichever field holds it. Raises `InvalidInput` for two that differ."""
        inner = self.context.agent_id if self.context else None
        if self.agent_id and inner and self.agent_id != inner:
            raise InvalidInput("agent_id and context.agent_id differ: give one of them.")
        return self.agent_id or inner


class SourceShape(BaseModel):
    """What the answer cites."""

    number: int = Field(description="The n of [n] in the answer.")
    label: str = Field(description="What people cite: regulation and article, or title and heading.")
    title: str = Field(description="Title of the document.")
    url: str = Field(description="Where the document came from.")
    date: str = Field(description="When the document was indexed.")
    version: str = Field(description="Version that the document states; empty for none.")
    document_id: str = Field(description="The document.")
    chunk_id: str = Field(description="The passage.")
    quote: str = Field(description="The cited characters, verbatim.")
    start: int = Field(description="Where they begin, in code points of the document's text.")
    end: int = Field(description="Where they end (exclusive).")


class ToolRun(BaseModel):
    """A tool that was run for the answer."""

    tool: str = Field(description="Its name.")
    success: bool = Field(description="Whether it gave a result.")
    error: str | None = Field(description="Why not, for people.")
    elapsed: float = Field(description="Seconds that it took.")


class ChatMetadata(BaseModel):
    """How the answer was made."""

    intent: str = Field(description="question, explanation, search or general.")
    step_timings: dict[str, float] = Field(description="Seconds of each step that ran.")
    taxonomy_version: str = Field(description="The version of the tree that was searched, as you see it.")
    decision: str = Field(description="answer, review (on weak evidence: check the sources) or abstain.")
    unfinished: bool = Field(
        description="Whether the question was not answered in time: nothing is known about what the documents say."
    )
    reason: str = Field(description="How the confidence was reached.")
    degraded: list[str] = Field(description="Parts that failed and were done without; llm for the language model.")
    notes: list[str] = Field(description="What a reader should know, in words.")
    model: str | None = Field(description="The language model that wrote the answer; null where it is quoted.")
    tokens: int = Field(description="Tokens that language models used, in both directions.")
    cost: float = Field(description="What they cost, in won; 0 without a model, and for one of unknown price.")
    latency: float = Field(description="Seconds from question to answer.")
    trace_id: str = Field(description="The id of the run's trace.")
    baseline_confidence: float = Field(description="The plain formula: best score, halved for a single source.")
    debated: bool = Field(description="Whether two agents debated the answer.")
    tools: list[ToolRun] = Field(description="The tools that were run.")
    agent_id: str | None = Field(description="The agent that was asked; null for none.")
    hitl_required: bool = Field(description="Whether the answer waits for a person, too, as the agent demands.")


class ChatResponse(BaseModel):
    """The answer with what proves it; or that the documents do not answer."""

    response: str = Field(description="The answer, with [n] where a source belongs.")
    answer: str = Field(description="The same text.")
    conversation_id: str = Field(description="The conversation; send it with the next question.")
    sources: list[SourceShape] = Field(description="One for each [n].")
    confidence: float = Field(description="The probability that the documents answer this, in [0, 1].")
    metadata: ChatMetadata = Field(description="Intent, times, decision, costs and what a reader should know.")

    @classmethod
    def of(cls, turn: ChatTurn, answer: TurnAnswer) -> ChatResponse:
        """The response to a turn."""
        response = answer.response
        return cls(
            response=response.answer,
            answer=response.answer,
            conversation_id=turn.conversation_id,
            sources=[SourceShape.model_validate(source) for source in response.sources],
            confidence=response.confidence,
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
        degraded=list(response.degraded),
        notes=list(response.notes),
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
