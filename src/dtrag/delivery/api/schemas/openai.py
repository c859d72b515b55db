"""The shapes of `/v1`: what clients of the OpenAI protocol send and expect, as far as documents can answer it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from dtrag.core.chat import Message
from dtrag.delivery.api.schemas.common import CitationShape, ErrorShape
from dtrag.errors import InvalidInput

_REQUEST = ConfigDict(extra="ignore")
MAX_MESSAGES = 1_000
_REFUSED = ("tools", "functions", "logprobs", "top_logprobs", "audio")
"""Parameters whose effect a client relies on: what cannot be done is refused rather than silently left out."""


class ContentPart(BaseModel):
    """A part of a message."""

    model_config = _REQUEST

    type: str = Field(description="text; others are refused, for only text is read.")
    text: str | None = Field(default=None, description="The text.")


class CompletionMessage(BaseModel):
    """One message of the conversation."""

    model_config = _REQUEST

    role: Literal["system", "developer", "user", "assistant", "tool", "function"] = Field(
        description="user or assistant; the others are not followed, for the service has instructions of its own."
    )
    content: str | list[ContentPart] | None = Field(default=None, description="A text, or parts of type text.")

    def text(self) -> str:
        """What it says. Raises `InvalidInput` for parts that are no text."""
        if isinstance(self.content, str) or self.content is None:
            return self.content or ""
        other = next((part.type for part in self.content if part.type != "text"), None)
        if other is not None:
            raise InvalidInput("Only parts of type text are read.")
        return "\n".join(part.text or "" for part in self.content)


class StreamOptions(BaseModel):
    """What a stream tells besides the answer."""

    model_config = _REQUEST

    include_usage: bool | None = Field(default=None, description="true: a last piece without choices tells the usage.")


class CompletionRequest(BaseModel):
    """A conversation to go on with. Parameters that are not named here are ignored, such as temperature."""

    model_config = _REQUEST

    model: str = Field(max_length=500, description="dtrag, or agent: with the id or the name of an agent.")
    messages: list[CompletionMessage] = Field(
        min_length=1, max_length=MAX_MESSAGES, description="The conversation, the user's question last."
    )
    stream: bool | None = Field(default=None, description="true: the answer comes in pieces, once it has been checked.")
    stream_options: StreamOptions | None = Field(default=None, description="What a stream tells besides.")
    n: int | None = Field(default=None, description="1; there is one answer.")
    tools: Any = Field(default=None, description="Refused: tools are the service's own.")
    functions: Any = Field(default=None, description="Refused, like tools.")
    logprobs: Any = Field(default=None, description="Refused: there are none.")
    top_logprobs: Any = Field(default=None, description="Refused: there are none.")
    audio: Any = Field(default=None, description="Refused: answers are text.")
    response_format: Any = Field(default=None, description="The type text; others are refused.")

    def check(self) -> None:
        """Raises `InvalidInput` for what is asked for and cannot be done."""
        asked = next((name for name in _REFUSED if getattr(self, name)), None)
        if asked is not None:
            raise InvalidInput(f"The parameter {asked!r} is not supported: leave it out.")
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
        """What users and assistants have said before."""
        return [
            Message("user" if message.role == "user" else "assistant", text)
            for message in self.messages[:-1]
            if message.role in {"user", "assistant"} and (text := message.text())
        ]


def _type_of(given: object) -> object:
    return given.get("type") if isinstance(given, Mapping) else None


class ModelShape(BaseModel):
    """Something to ask."""

    id: str = Field(description="dtrag for all that you may see, or an agent.")
    object: Literal["model"] = Field(default="model", description="model.")
    created: int = Field(description="When it was made, in seconds since 1970; 0 for dtrag.")
    owned_by: str = Field(description="Who made it.")


class ModelList(BaseModel):
    """What there is to ask."""

    object: Literal["list"] = Field(default="list", description="list.")
    data: list[ModelShape] = Field(description="dtrag first, then the agents that you may use.")


class AssistantMessage(BaseModel):
    """The answer."""

    role: Literal["assistant"] = Field(default="assistant", description="assistant.")
    content: str = Field(description="The answer, with [n] where a citation belongs.")
    refusal: None = Field(default=None, description="Always null.")
    citations: list[CitationShape] = Field(description="One for each [n].")


class Choice(BaseModel):
    """The one answer there is."""

    index: int = Field(default=0, description="0.")
    message: AssistantMessage = Field(description="The answer as a message.")
    finish_reason: Literal["stop"] = Field(default="stop", description="stop.")
    logprobs: None = Field(default=None, description="Always null.")


class UsageShape(BaseModel):
    """Tokens that language models used; 0 for quoted answers."""

    prompt_tokens: int = Field(description="Tokens that were read.")
    completion_tokens: int = Field(description="Tokens that were written.")
    total_tokens: int = Field(description="Both.")


class Completion(BaseModel):
    """An answer in the OpenAI protocol."""

    id: str = Field(description="chatcmpl- and the id of the run's trace.")
    object: Literal["chat.completion"] = Field(default="chat.completion", description="chat.completion.")
    created: int = Field(description="Seconds since 1970.")
    model: str = Field(description="The model as it was asked for.")
    choices: list[Choice] = Field(description="One.")
    usage: UsageShape = Field(description="What it used.")
    confidence: float = Field(description="The probability that the documents answer this, in [0, 1].")
    decision: str = Field(description="answer, review (on weak evidence: check the sources) or abstain.")
    degraded: list[str] = Field(description="Parts that failed or were late and were done without.")


class OpenAIError(BaseModel):
    """What went wrong."""

    message: str = Field(description="One sentence: what happened, and what to do.")
    type: str = Field(description="invalid_request_error, rate_limit_error or server_error.")
    param: None = Field(default=None, description="Always null.")
    code: str = Field(description="The kind of failure, for programs.")


class OpenAIFailure(ErrorShape):
    """The body of every failure below /v1: that of the other routes, and the same in the words of the protocol."""

    error: OpenAIError = Field(description="The failure as clients of the protocol know it.")


def pieces(text: str, size: int = 40) -> Sequence[str]:
    """The text in pieces of about so many characters, cut behind spaces where there are some."""
    cut: list[str] = []
    start = 0
    while start < len(text):
        end = text.find(" ", start + size)
        end = len(text) if end < 0 or end - start > 4 * size else end + 1
        cut.append(text[start:end])
        start = end
    return cut
