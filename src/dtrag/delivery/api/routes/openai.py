"""`/v1`: the OpenAI protocol. The model `dtrag` answers from the caller's whole scope; agents are models, too."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from dtrag.core.agent import Agent
from dtrag.core.chat import Message, Usage
from dtrag.core.documents import Citation
from dtrag.delivery.api.audited import add_subjects
from dtrag.delivery.api.errors import OpenAIFailure
from dtrag.delivery.api.openai_reply import AGENT, WHOLE_SCOPE, agent_of, in_bold, pieces, reply, visible_agents
from dtrag.delivery.api.permissions import BROWSE
from dtrag.delivery.api.routes.chat import AnsweredBefore
from dtrag.delivery.api.routing import AsOf, JsonRoute, failures
from dtrag.delivery.api.sse import event
from dtrag.errors import InvalidInput
from dtrag.pipeline.state import PipelineResponse

_REQUEST = ConfigDict(extra="ignore")
MAX_MESSAGES = 1_000
_REFUSED = ("tools", "functions", "logprobs", "top_logprobs", "audio")
"""Parameters on whose effect clients rely: they are refused rather than silently ignored."""


class ContentPart(BaseModel):
    """A part of a message."""

    model_config = _REQUEST

    type: str = Field(description="text, in a response input_text or output_text; other types are refused.")
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
        return text_of(self.content, "text")


def text_of(content: str | Sequence[ContentPart] | None, *kinds: str) -> str:
    """The text of a message. Raises `InvalidInput` for parts of other kinds."""
    if isinstance(content, str) or content is None:
        return content or ""
    if any(part.type not in kinds for part in content):
        raise InvalidInput(f"Only parts of type {' and '.join(kinds)} are supported.")
    return "\n".join(part.text or "" for part in content)


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

    def conversation(self) -> list[Message]:
        """The messages of user and assistant."""
        return [
            Message("user" if message.role == "user" else "assistant", text)
            for place, message in enumerate(self.messages, 1)
            if message.role in {"user", "assistant"} and ((text := message.text()) or place == len(self.messages))
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


router = APIRouter(route_class=JsonRoute, tags=["openai"])
openai_failures = partial(
    failures,
    model=OpenAIFailure,
    descriptions={
        400: "The input is invalid or not supported.",
        404: "No such model is visible to you.",
        422: "Not used here: invalid input is answered with 400.",
    },
)


@router.get("/v1/models", responses=openai_failures(503), dependencies=BROWSE)
async def models(request: Request) -> ModelList:
    """The models: `dtrag`, and the agents whose branches are within yours."""
    agents = await visible_agents(request)
    add_subjects(request, [str(agent.agent_id) for agent in agents])
    return ModelList(data=[_WHOLE_SCOPE_MODEL, *(_shape(agent, agents) for agent in agents)])


@router.get("/v1/models/{model:path}", responses=openai_failures(400, 404, 422, 503), dependencies=BROWSE)
async def model(request: Request, model: str) -> ModelShape:
    """One model, by its id or as `agent:` and the agent's name."""
    agent = await agent_of(request, model)
    if agent is None:
        return _WHOLE_SCOPE_MODEL
    add_subjects(request, [str(agent.agent_id)])
    return _shape(agent, await visible_agents(request))


@router.post(
    "/v1/chat/completions",
    response_model=Completion,
    responses={
        **openai_failures(400, 403, 404, 413, 415, 422, 503),
        200: {"content": {"text/event-stream": {}}},
    },
    dependencies=BROWSE,
)
async def complete(request: Request, body: CompletionRequest) -> Completion | Response:
    """The answer to the last message, with citations as [n] in the text and in `citations` of the message."""
    body.check()
    return await reply(
        request, body.model, body.conversation(), _Chat(body), as_of=body.as_of, stream=body.stream is True
    )


@dataclass(frozen=True, slots=True)
class _Chat:
    """See `ReplyFormat`."""

    body: CompletionRequest

    def whole(self, answer: PipelineResponse) -> Completion:
        """See `ReplyFormat`."""
        message = AssistantMessage(content=in_bold(answer.text, answer.marked), citations=answer.citations)
        return Completion(
            id=f"chatcmpl-{answer.trace_id}",
            created=int(time.time()),
            model=self.body.model,
            choices=[Choice(message=message)],
            usage=UsageShape.of(answer.usage),
            confidence=answer.confidence,
            decision=answer.decision,
            degraded=answer.degraded,
            answered_before=answer.answered_before,
        )

    def opening(self) -> Iterable[bytes]:
        """None: every chunk has the id of the answer."""
        return ()

    def failed(self, failure: Mapping[str, Any]) -> Iterable[bytes]:
        """See `ReplyFormat`."""
        yield event({"error": failure["error"]})

    def events(self, answer: PipelineResponse) -> Iterable[bytes]:
        """See `ReplyFormat`."""
        whole = self.whole(answer).model_dump(mode="json")
        message = whole["choices"][0]["message"]
        common = {name: whole[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
        options = self.body.stream_options
        with_usage = options is not None and options.include_usage is True
        extra = {"usage": None} if with_usage else {}
        yield event(common | extra | {"choices": [_choice({"role": "assistant", "content": ""})]})
        for piece in pieces(message["content"]):
            yield event(common | extra | {"choices": [_choice({"content": piece})]})
        last = {"citations": message["citations"], "answered_before": whole["answered_before"]}
        yield event(common | extra | {"choices": [_choice(last, "stop")]})
        if with_usage:
            yield event(common | {"choices": [], "usage": whole["usage"]})
        yield event("[DONE]")


def _choice(delta: Mapping[str, object], finish_reason: str | None = None) -> Mapping[str, object]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}


_WHOLE_SCOPE_MODEL = ModelShape(id=WHOLE_SCOPE, created=0, owned_by="dtrag")


def _shape(agent: Agent, agents: list[Agent]) -> ModelShape:
    """The agent by its name; by its id when other agents have the same name."""
    is_unique = sum(other.name == agent.name for other in agents) == 1
    name = agent.name if is_unique else str(agent.agent_id)
    return ModelShape(id=AGENT + name, created=int(agent.created_at.timestamp()), owned_by=agent.created_by)
