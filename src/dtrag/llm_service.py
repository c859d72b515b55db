"""Every call of a language model in dtrag is a call of `generate_answer` of this module, which is called by attribute.

A program can replace it (`mock.patch.object(dtrag.llm_service, "generate_answer", ...)`) to affect every answer,
plan and debate of the process, streamed answers included. The pipeline passes its own model, so that several apps of
one process do not mix; permission, admission, accounting and traces are its own (pipeline/model_calls.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from dtrag.core.chat import Message, Reply
from dtrag.current_app import active
from dtrag.ports import ChatModel, NotConfigured

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

MAX_TOKENS = 800
SECONDS = 30.0


def is_replaced() -> bool:
    """Whether a program has replaced `generate_answer`; without a model its own version needs no messages."""
    return generate_answer is not _OWN


async def generate_answer(
    messages: Sequence[Message],
    *,
    model: ChatModel | NotConfigured | None = None,
    max_tokens: int = MAX_TOKENS,
    seconds: float = SECONDS,
    on_text: Callable[[str], None] | None = None,
) -> Reply | None:
    """The model's reply to the messages; None when no model is configured, or a stream ends without a reply.

    Without `model` it is the open app's. With `on_text` the reply is streamed, and `on_text` gets each piece as it
    comes. Raises `NoActiveApp` and `LanguageModelFailed`.
    """
    chosen: ChatModel | NotConfigured | None = active().run.model if model is None else model
    if chosen is None or isinstance(chosen, NotConfigured):
        return None
    if on_text is None:
        return await chosen.complete(messages, max_tokens=max_tokens, seconds=seconds)
    reply = None
    stream: AsyncGenerator[str | Reply] = chosen.stream(messages, max_tokens=max_tokens, seconds=seconds)  # type: ignore[assignment]
    async with aclosing(stream):
        async for piece in stream:
            if isinstance(piece, Reply):
                reply = piece
            else:
                on_text(piece)
    return reply


_OWN = generate_answer
