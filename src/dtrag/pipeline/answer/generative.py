"""An answer by a language model, in pieces as they come; whoever listens hears them before they are checked."""

from __future__ import annotations

from collections.abc import Sequence

from dtrag.core.chat import Message, Reply
from dtrag.core.documents import SearchResult
from dtrag.errors import LanguageModelFailed
from dtrag.pipeline import model_calls
from dtrag.pipeline.prompt import NO_ANSWER, messages
from dtrag.pipeline.run import Run
from dtrag.ports import ChatModel

MAX_TOKENS = 800


async def generate(
    run: Run,
    model: ChatModel,
    question: str,
    passages: Sequence[SearchResult],
    *,
    tool_lines: Sequence[str] = (),
    history: Sequence[Message] = (),
    seconds: float,
) -> Reply | None:
    """The model's reply; None when it says that the passages do not answer. Raises `LanguageModelFailed`."""
    said = messages(question, passages, tool_lines, history)
    if not run.listened:
        reply = await model_calls.call(run, "compose", model, said, max_tokens=MAX_TOKENS, seconds=seconds)
    else:
        reply = await _streamed(run, model, said, seconds)
    text = reply.text.strip()
    if not text:
        raise LanguageModelFailed(model=model.id, reason="the answer is empty.")
    return None if text.strip("`*\"'. ").startswith(NO_ANSWER) else reply


async def _streamed(run: Run, model: ChatModel, said: Sequence[Message], seconds: float) -> Reply:
    held: str | None = ""  # held back until it cannot be the word for "no answer" any more

    def tell(piece: str) -> None:
        nonlocal held
        if held is None:
            run.emit("token", {"text": piece})
            return
        held += piece
        start = held.lstrip()
        if not NO_ANSWER.startswith(start) and not start.startswith(NO_ANSWER):
            run.emit("token", {"text": held})
            held = None

    return await model_calls.call(run, "compose", model, said, max_tokens=MAX_TOKENS, seconds=seconds, on_text=tell)
