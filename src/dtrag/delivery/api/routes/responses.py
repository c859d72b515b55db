"""`POST /v1/responses`: the same answers in the form of Open Responses, with each citation as an annotation.

Stateless: the client sends the whole conversation, and nothing of it is stored.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from dtrag.core.chat import Message
from dtrag.core.documents import Citation
from dtrag.delivery.api.openai_reply import in_bold, pieces, reply
from dtrag.delivery.api.permissions import BROWSE
from dtrag.delivery.api.routes.chat import AnsweredBefore
from dtrag.delivery.api.routes.openai import MAX_MESSAGES, ContentPart, openai_failures, text_of
from dtrag.delivery.api.routing import AsOf, JsonRoute
from dtrag.delivery.api.sse import event
from dtrag.errors import InvalidInput
from dtrag.pipeline.state import PipelineResponse

_REQUEST = ConfigDict(extra="ignore")
_IGNORED_ITEMS = frozenset({"reasoning", "function_call", "function_call_output"})
"""Items of a conversation that other models made: there is nothing to answer in them."""
_REFUSED = {
    "previous_response_id": "nothing is stored here: send the earlier messages in 'input'",
    "conversation": "nothing is stored here: send the earlier messages in 'input'",
    "prompt": "no prompts are stored here: send the question in 'input'",
    "tools": "the service has its own tools: omit it",
    "background": "the answer comes with the reply: omit it",
    "top_logprobs": "there are none: omit it",
}
"""Parameters on whose effect clients rely: they are refused rather than silently ignored."""


class InputItem(BaseModel):
    """A part of the conversation."""

    model_config = _REQUEST

    type: str = Field(default="message", description="message; items of tools and reasoning are ignored.")
    role: Literal["user", "assistant", "system", "developer"] | None = Field(
        default=None, description="user or assistant; other roles are ignored, as the service has its own instructions."
    )
    content: str | list[ContentPart] | None = Field(default=None, description="A string, or parts of text.")

    def text(self) -> str:
        """Its text. Raises `InvalidInput` for parts of other types."""
        return text_of(self.content, "input_text", "output_text")


class ResponseRequest(BaseModel):
    """A conversation to continue. Other parameters, such as temperature, are ignored."""

    model_config = _REQUEST

    model: str = Field(max_length=500, description="dtrag, or agent: with the id or the name of an agent.")
    input: str | Annotated[list[InputItem], Field(min_length=1, max_length=MAX_MESSAGES)] = Field(
        description="The question, or the conversation with the user's question last."
    )
    as_of: AsOf = None
    stream: bool | None = Field(default=None, description="true: the answer is sent as events after it was checked.")
    instructions: str | None = Field(default=None, description="Returned, not followed, like the role system.")
    metadata: dict[str, str] | None = Field(default=None, max_length=16, description="Returned as it is.")
    previous_response_id: object = Field(default=None, description="Refused: nothing is stored.")
    conversation: object = Field(default=None, description="Refused: nothing is stored.")
    prompt: object = Field(default=None, description="Refused: nothing is stored.")
    tools: object = Field(default=None, description="Refused: the service has its own tools.")
    background: object = Field(default=None, description="Refused.")
    top_logprobs: object = Field(default=None, description="Refused: not available.")
    text: object = Field(default=None, description="With a format of the type text; others are refused.")

    def check(self) -> None:
        """Raises `InvalidInput` for unsupported parameters."""
        refused = next((name for name in _REFUSED if getattr(self, name)), None)
        if refused is not None:
            raise InvalidInput(f"The parameter {refused!r} is not supported: {_REFUSED[refused]}.")
        form = self.text.get("format") if isinstance(self.text, Mapping) else None
        if form and (form.get("type") if isinstance(form, Mapping) else form) != "text":
            raise InvalidInput("The parameter 'text' must have a format of type text: answers are prose.")

    def messages(self) -> list[Message]:
        """The messages of user and assistant. Raises `InvalidInput` unless the last one is the user's."""
        if isinstance(self.input, str):
            return [Message("user", self.input)]
        unknown = next((item.type for item in self.input if item.type not in {"message", *_IGNORED_ITEMS}), None)
        if unknown is not None:
            raise InvalidInput(f"Items of the type {unknown[:60]!r} are not supported: send the messages themselves.")
        spoken = [item for item in self.input if item.type == "message" and item.role in {"user", "assistant"}]
        if not spoken or spoken[-1].role != "user":
            raise InvalidInput("The last message must be the user's question.")
        return [
            Message("user" if item.role == "user" else "assistant", text)
            for item in spoken
            if (text := item.text()) or item is spoken[-1]
        ]


class UrlCitation(BaseModel):
    """A citation at its mark in the text."""

    type: Literal["url_citation"] = Field(default="url_citation", description="url_citation.")
    url: str = Field(description="Source address of the document.")
    title: str = Field(description="Citation label: regulation and article, or title and heading.")
    start_index: int = Field(description="Where [n] begins in the text, in code points.")
    end_index: int = Field(description="Where [n] ends (exclusive).")
    citation: Citation = Field(description="The passage, its quotation and where it stands.")


class OutputText(BaseModel):
    """The text of the answer."""

    type: Literal["output_text"] = Field(default="output_text", description="output_text.")
    text: str = Field(description="The answer, with [n] where a citation belongs.")
    annotations: list[UrlCitation] = Field(description="One for each [n], in the order of the text.")
    logprobs: list[None] = Field(default=[], description="Always empty.")


class OutputMessage(BaseModel):
    """The answer as a message."""

    type: Literal["message"] = Field(default="message", description="message.")
    id: str = Field(description="msg_ and an id.")
    status: Literal["in_progress", "completed"] = Field(default="completed", description="completed.")
    role: Literal["assistant"] = Field(default="assistant", description="assistant.")
    content: list[OutputText] = Field(description="One text.")


class InputDetails(BaseModel):
    """Details of the input tokens."""

    cached_tokens: int = Field(default=0, description="0.")


class OutputDetails(BaseModel):
    """Details of the output tokens."""

    reasoning_tokens: int = Field(default=0, description="0.")


class ResponseUsage(BaseModel):
    """Tokens used by language models; 0 for quoted answers."""

    input_tokens: int = Field(description="Input tokens.")
    output_tokens: int = Field(description="Output tokens.")
    total_tokens: int = Field(description="Both.")
    input_tokens_details: InputDetails = Field(default=InputDetails(), description="Of the input tokens.")
    output_tokens_details: OutputDetails = Field(default=OutputDetails(), description="Of the output tokens.")


class ResponseError(BaseModel):
    """Why there is no answer."""

    code: str = Field(description="The error type, for programs.")
    message: str = Field(description="One sentence: what happened, and what to do.")


class TextFormat(BaseModel):
    """The format of the answer."""

    type: Literal["text"] = Field(default="text", description="text.")


class TextOptions(BaseModel):
    """How the answer is written."""

    format: TextFormat = Field(default=TextFormat(), description="Text, always.")


class ResponseResource(BaseModel):
    """An answer in the form of Open Responses."""

    id: str = Field(description="resp_ and an id; nothing is stored under it.")
    object: Literal["response"] = Field(default="response", description="response.")
    created_at: int = Field(description="Seconds since 1970.")
    completed_at: int | None = Field(default=None, description="Seconds since 1970; null before the answer.")
    status: Literal["in_progress", "completed", "failed"] = Field(description="in_progress, completed or failed.")
    incomplete_details: None = Field(default=None, description="Always null.")
    model: str = Field(description="The requested model.")
    previous_response_id: None = Field(default=None, description="Always null.")
    instructions: str | None = Field(default=None, description="Those of the request.")
    output: list[OutputMessage] = Field(default=[], description="The answer.")
    error: ResponseError | None = Field(default=None, description="Why there is no answer; null if there is one.")
    tools: list[None] = Field(default=[], description="Always empty.")
    tool_choice: Literal["none"] = Field(default="none", description="none.")
    truncation: Literal["auto"] = Field(default="auto", description="auto: the newest messages are used.")
    parallel_tool_calls: bool = Field(default=False, description="false.")
    text: TextOptions = Field(default=TextOptions(), description="The format of the answer.")
    top_p: float = Field(default=1.0, description="1: not used.")
    temperature: float = Field(default=1.0, description="1: not used.")
    presence_penalty: float = Field(default=0.0, description="0: not used.")
    frequency_penalty: float = Field(default=0.0, description="0: not used.")
    top_logprobs: int = Field(default=0, description="0.")
    reasoning: None = Field(default=None, description="Always null.")
    usage: ResponseUsage | None = Field(default=None, description="Its token usage; null before the answer.")
    max_output_tokens: None = Field(default=None, description="Always null.")
    max_tool_calls: None = Field(default=None, description="Always null.")
    store: bool = Field(default=False, description="false: nothing is stored.")
    background: bool = Field(default=False, description="false.")
    service_tier: Literal["default"] = Field(default="default", description="default.")
    metadata: dict[str, str] = Field(default={}, description="That of the request.")
    safety_identifier: None = Field(default=None, description="Always null.")
    prompt_cache_key: None = Field(default=None, description="Always null.")
    confidence: float | None = Field(
        default=None, description="The probability that the documents answer this, in [0, 1]; null before the answer."
    )
    decision: str | None = Field(
        default=None, description="answer, review (on weak evidence: check the sources) or abstain."
    )
    degraded: tuple[str, ...] = Field(default=(), description="Parts that failed or timed out and were left out.")
    trace_id: str = Field(default="", description="The id of the run's trace.")
    answered_before: AnsweredBefore = None


router = APIRouter(route_class=JsonRoute, tags=["openai"])
_MARK = re.compile(r"\[(\d{1,3})\]")


@router.post(
    "/v1/responses",
    response_model=ResponseResource,
    responses={
        **openai_failures(400, 403, 404, 413, 415, 422, 503),
        200: {"content": {"text/event-stream": {}}},
    },
    dependencies=BROWSE,
)
async def respond(request: Request, body: ResponseRequest) -> ResponseResource | Response:
    """The answer to the last message, with citations as [n] in the text and as annotations."""
    body.check()
    messages = body.messages()
    return await reply(request, body.model, messages, _Reply(body), as_of=body.as_of, stream=body.stream is True)


@dataclass(slots=True)
class _Reply:
    """See `ReplyFormat`. Events of a stream are numbered in order."""

    body: ResponseRequest
    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    created: int = field(default_factory=lambda: int(time.time()))
    sent: int = 0

    def _response(self, status: Literal["in_progress", "completed", "failed"], **values: Any) -> ResponseResource:
        return ResponseResource(
            id=f"resp_{self.key}",
            created_at=self.created,
            status=status,
            model=self.body.model,
            instructions=self.body.instructions,
            metadata=self.body.metadata or {},
            **values,
        )

    def whole(self, answer: PipelineResponse) -> ResponseResource:
        """See `ReplyFormat`."""
        usage = answer.usage
        return self._response(
            "completed",
            completed_at=int(time.time()),
            output=[OutputMessage(id=f"msg_{self.key}", content=[_content(answer)])],
            usage=ResponseUsage(
                input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, total_tokens=usage.tokens
            ),
            confidence=answer.confidence,
            decision=answer.decision,
            degraded=answer.degraded,
            trace_id=answer.trace_id,
            answered_before=answer.answered_before,
        )

    def opening(self) -> Iterable[bytes]:
        """See `ReplyFormat`."""
        for kind in ("created", "in_progress"):
            yield self._event(f"response.{kind}", response=_dumped(self._response("in_progress")))

    def events(self, answer: PipelineResponse) -> Iterable[bytes]:
        """See `ReplyFormat`."""
        whole = _dumped(self.whole(answer))
        item = whole["output"][0]
        part = item["content"][0]
        place = {"output_index": 0}
        of_part = {"item_id": item["id"], "output_index": 0, "content_index": 0}
        empty = {**part, "text": "", "annotations": []}
        yield self._event("response.output_item.added", **place, item={**item, "status": "in_progress", "content": []})
        yield self._event("response.content_part.added", **of_part, part=empty)
        for piece in pieces(part["text"]):
            yield self._event("response.output_text.delta", **of_part, delta=piece, logprobs=[])
        for index, annotation in enumerate(part["annotations"]):
            yield self._event(
                "response.output_text.annotation.added", **of_part, annotation_index=index, annotation=annotation
            )
        yield self._event("response.output_text.done", **of_part, text=part["text"], logprobs=[])
        yield self._event("response.content_part.done", **of_part, part=part)
        yield self._event("response.output_item.done", **place, item=item)
        yield self._event("response.completed", response=whole)
        yield event("[DONE]")

    def failed(self, failure: Mapping[str, Any]) -> Iterable[bytes]:
        """See `ReplyFormat`."""
        error = ResponseError(code=failure["error"]["code"], message=failure["error"]["message"])
        yield self._event("response.failed", response=_dumped(self._response("failed", error=error)))
        yield event("[DONE]")

    def _event(self, kind: str, **values: Any) -> bytes:
        self.sent += 1
        return event({"type": kind, "sequence_number": self.sent - 1, **values}, kind)


def _dumped(response: ResponseResource) -> dict[str, Any]:
    return response.model_dump(mode="json")


def _content(answer: PipelineResponse) -> OutputText:
    text = in_bold(answer.text, answer.marked)
    cited = {citation.number: citation for citation in answer.citations}
    annotations = [
        UrlCitation(
            url=citation.source_url,
            title=citation.label,
            start_index=mark.start(),
            end_index=mark.end(),
            citation=citation,
        )
        for mark in _MARK.finditer(text)
        if (citation := cited.get(int(mark[1]))) is not None
    ]
    return OutputText(text=text, annotations=annotations)
