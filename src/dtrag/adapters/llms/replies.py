"""Replies read from LangChain's messages: text, tokens, and whether the model finished."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from dtrag.adapters.llms.http_client import Unusable
from dtrag.adapters.llms.specs import Price
from dtrag.core.chat import Message, Usage
from dtrag.core.text.token_counts import estimated_tokens

CHARACTERS = 16
"""Characters of a reply for each requested token, four times the usual number: beyond, the server ignores the limit,
and the rest is not read."""
_ENDS = frozenset({"stop", "end_turn", "stop_sequence"})
_WHY = {
    "content_filter": "its provider's filter withheld the answer.",
    "safety": "its provider's filter withheld the answer.",
    "tool_calls": "it asked for a tool instead of answering.",
    "tool_use": "it asked for a tool instead of answering.",
    "length": "the limit of tokens was used up before the answer began.",
    "max_tokens": "the limit of tokens was used up before the answer began.",
}


class ReplyReader:
    """A reply while it is read."""

    def __init__(self, max_tokens: int) -> None:
        self.max_tokens = max_tokens
        self.text = ""
        self.reason = ""
        self.cut = False
        self.tokens: tuple[int, int] | None = None
        self._called = False

    def add(self, message: Any) -> str:
        """Add a message, or a piece of one; returns the new text."""
        new = _clean(_text(message.content))[: self.max_tokens * CHARACTERS - len(self.text)]
        self.cut = self.cut or len(self.text) + len(new) >= self.max_tokens * CHARACTERS
        self.text += new
        metadata = message.response_metadata or {}
        reason = metadata.get("finish_reason") or metadata.get("stop_reason")
        self.reason = str(reason).lower() if reason else self.reason
        self._called = self._called or bool(message.tool_calls or getattr(message, "invalid_tool_calls", None))
        counted = message.usage_metadata
        if counted:
            before = self.tokens or (0, 0)
            self.tokens = (before[0] + counted["input_tokens"], before[1] + counted["output_tokens"])
        return new

    @property
    def finished(self) -> bool:
        """Whether the model ended the reply itself."""
        return not self.cut and self.reason in _ENDS

    def check(self) -> None:
        """Raise `Unusable` when there is no text."""
        if not self.text.strip():
            reason = "tool_calls" if self._called else self.reason
            raise Unusable(_WHY.get(reason, "the reply held no text."))


async def read(chat: Any, messages: Sequence[Message], options: Mapping[str, object], reading: ReplyReader) -> None:
    """One call for the whole reply. A reply without a finish reason counts as finished."""
    reading.add(await chat.ainvoke(_role_and_text(messages), **options))
    reading.reason = reading.reason or "stop"


async def read_stream(
    chat: Any,
    messages: Sequence[Message],
    options: Mapping[str, object],
    reading: ReplyReader,
    put: Callable[[str], None],
) -> None:
    """One streaming call; `put` gets each piece as it arrives."""
    async with aclosing(chat.astream(_role_and_text(messages), **options)) as pieces:
        async for piece in pieces:
            new = reading.add(piece)
            if new:
                put(new)
            if reading.cut:
                break


def usage(messages: Sequence[Message], reading: ReplyReader, price: Price) -> Usage:
    """Tokens and cost of the call: as the server counted, else estimated."""
    tokens = reading.tokens
    if tokens is None or not reading.reason:
        tokens = (sum(estimated_tokens(message.content) for message in messages), estimated_tokens(reading.text))
    return Usage(1, *tokens, price.cost(*tokens))


def _role_and_text(messages: Sequence[Message]) -> list[tuple[str, str]]:
    roles = {"system": "system", "user": "human", "assistant": "ai"}
    return [(roles[message.role], _clean(message.content)) for message in messages]


def _text(content: Any) -> str:
    """The text of a message: its content is a string, or a list of parts (text, thoughts)."""
    if isinstance(content, str):
        return content
    parts = [part if isinstance(part, str) else part.get("text") for part in content or () if _is_text(part)]
    return "".join(part for part in parts if isinstance(part, str))


def _is_text(part: Any) -> bool:
    return isinstance(part, str) or (isinstance(part, dict) and part.get("type", "text") == "text")


def _clean(text: str) -> str:
    """The text without lone surrogates and NUL, which UTF-8 and PostgreSQL cannot hold."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\x00", "")
