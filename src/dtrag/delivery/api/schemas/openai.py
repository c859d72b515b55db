"""Bodies and responses of `/v1`: the supported part of the OpenAI protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from dtrag.core.chat import Message, Usage
from dtrag.core.documents import Citation
from dtrag.delivery.api.schemas.chat import AnsweredBefore
from dtrag.delivery.api.schemas.search import AsOf
from dtrag.errors import InvalidInput

_REQUEST = ConfigDict(extra="ignore")
MAX_MESSAGES = 1_000
_REFUSED = ("tools", "functions", "logprobs", "top_logprobs", "audio")
"""Parameters on whose effect clients rely: they are refused rather than silently ignored."""


class ContentPart(BaseModel):
    """A part of a message."""

    model_config = _REQUEST

    type: str = Field(description="text; other types are refused.")
    text: str | None = Field(default=None, description="The text.")


class CompletionMessage(BaseModel):
    """One message of the conversation."""

    model_config = _REQUEST

    role: Literal["system", "developer", "user", "assistant", "tool", "function"] = Field(
        description="user or assistant; other roles are ignored, as the service has its own instructions."
    )
    content: str | list[ContentPart] | None = Field(default=None, description="A string, or parts of type text.")

    def text(self) -> str:
        """Its text. Raises `InvalidInput` for parts of other types."""
        if isinstance(self.content, str) or self.content is None:
            return self.content or ""
        other = next((part.type for part in self.content if part.type != "text"), None)
        if other is not None:
            raise InvalidInput("Only parts of type text are supported.")
        return "\n".join(part.text or "" for part in self.content)


class StreamOptions(BaseModel):
    """What a stream contains besides the answer."""

    model_config = _REQUEST

    include_usage: bool | None = Field(default=None, description="true: a last chunk without choices holds the usage.")


class CompletionRequest(BaseModel):
    """A conversation to continue. Other parameters, such as temperature, are ignored."""

    model_config = _REQUEST

    model: str = Field(max_length=500, description="dtrag, or agent: with the id or the name of an agent.")
    messages: list[CompletionMessage] = Field(
        min_length=1, max_length=MAX_MESSAGES, description="The conversation, the user's question last."
    )
    as_of: AsOf = None
    stream: bool | None = Field(default=None, description="true: the answer is sent in chunks after it was checked.")
    stream_options: StreamOptions | None = Field(default=None, description="What a stream contains besides the answer.")
    n: int | None = Field(default=None, description="1; there is only one answer.")
    tools: object = Field(default=None, description="Refused: the service has its own tools.")
    functions: object = Field(default=None, description="Refused, like tools.")
    logprobs: object = Field(default=None, description="Refused: not available.")
    top_logprobs: object = Field(default=None, description="Refused: not available.")
    audio: object = Field(default=None, description="Refused: answers are text.")
    response_format: object = Field(default=None, description="The type text; other types are refused.")

    def check(self) -> None:
        """Raises `InvalidInput` for unsupported parameters."""
        refused = next((name for name in _REFUSED if getattr(self, name)), None)
        if refused is not None:
            raise InvalidInput(f"The parameter {refused!r} is not supported: omit it.")
        if self.n not in {None, 1}:
            raise InvalidInput("The parameter 'n' must be 1: there is one answer.")
        if self.response_format and _type_of(self.response_format) != "text":
            raise InvalidInput("The parameter 'response_format' must be of type text: answers are prose.")
        if self.messages[-1].role != "user":
            raise InvalidInput("The last message must be the user's question.")

    def question(self) -> str:
        """The last message."""
        return self.messages[-1].text()

    def history(self) -> list[Message]:
        """The earlier messages of user and assistant."""
        return [
            Message("user" if message.role == "user" else "assistant", text)
            for message in self.messages[:-1]
            if message.role in {"user", "assistant"} and (text := message.text())
        ]


def _type_of(response_format: object) -> object:
    return response_format.get("type") if isinstance(response_format, Mapping) else None


class ModelShape(BaseModel):
    """A model: the whole scope, or an agent."""

    id: str = Field(description="dtrag for your whole scope, or an agent.")
    object: Literal["model"] = Field(default="model", description="model.")
    created: int = Field(description="Creation time in seconds since 1970; 0 for dtrag.")
    owned_by: str = Field(description="Who created it.")


class ModelList(BaseModel):
    """The available models."""

    object: Literal["list"] = Field(default="list", description="list.")
    data: list[ModelShape] = Field(description="dtrag first, then the agents that you may use.")


class AssistantMessage(BaseModel):
    """The answer."""

    role: Literal["assistant"] = Field(default="assistant", description="assistant.")
    content: str = Field(description="The answer, with [n] where a citation belongs.")
    refusal: None = Field(default=None, description="Always null.")
    citations: tuple[Citation, ...] = Field(description="One for each [n].")


class Choice(BaseModel):
    """The only answer."""

    index: int = Field(default=0, description="0.")
    message: AssistantMessage = Field(description="The answer as a message.")
    finish_reason: Literal["stop"] = Field(default="stop", description="stop.")
    logprobs: None = Field(default=None, description="Always null.")


class UsageShape(BaseModel):
    """Tokens used by language models; 0 for quoted answers."""

    prompt_tokens: int = Field(description="Input tokens.")
    completion_tokens: int = Field(description="Output tokens.")
    total_tokens: int = Field(description="Both.")

    @classmethod
    def of(cls, usage: Usage) -> UsageShape:
        """The usage in the names of the protocol."""
        return cls(prompt_tokens=usage.input_tokens, completion_tokens=usage.output_tokens, total_tokens=usage.tokens)


class Completion(BaseModel):
    """An answer in the OpenAI protocol."""

    id: str = Field(description="chatcmpl- and the id of the run's trace.")
    object: Literal["chat.completion"] = Field(default="chat.completion", description="chat.completion.")
    created: int = Field(description="Seconds since 1970.")
    model: str = Field(description="The requested model.")
    choices: list[Choice] = Field(description="One.")
    usage: UsageShape = Field(description="Its token usage.")
    confidence: float = Field(description="The probability that the documents answer this, in [0, 1].")
    decision: str = Field(description="answer, review (on weak evidence: check the sources) or abstain.")
    degraded: tuple[str, ...] = Field(description="Parts that failed or timed out and were left out.")
    answered_before: AnsweredBefore = None


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
