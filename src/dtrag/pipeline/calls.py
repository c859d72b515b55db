"""Every call of a language model goes through here: asked for, counted, charged, and kept in the trace."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence

from dtrag.core.chat import Message, Reply, Usage
from dtrag.core.tokens import estimated_tokens
from dtrag.errors import LanguageModelFailed, ModelNotAllowed
from dtrag.pipeline.run import Run
from dtrag.pipeline.trace import CallTrace
from dtrag.ports import ChatModel


async def call(
    run: Run, step: str, model: ChatModel, messages: Sequence[Message], *, max_tokens: int, seconds: float
) -> Reply:
    """The model's whole answer. Raises `ModelNotAllowed` (a budget is used up) and `LanguageModelFailed`."""
    await _ask_leave(run, model)
    started = time.perf_counter()
    try:
        async with run.admission.model():
            left = seconds - (time.perf_counter() - started)
            reply = await model.complete(messages, max_tokens=max_tokens, seconds=max(0.0, left))
    except (LanguageModelFailed, asyncio.CancelledError, GeneratorExit) as error:
        await _failed(run, step, model, messages, started=started, error=str(error) or "given up")
        raise
    await _answered(run, step, messages, reply, started)
    return reply


async def stream(
    run: Run, step: str, model: ChatModel, messages: Sequence[Message], *, max_tokens: int, seconds: float
) -> AsyncIterator[str | Reply]:
    """Pieces of the answer as they come, the whole of it last. Raises as `call`."""
    await _ask_leave(run, model)
    started, given, reply = time.perf_counter(), "", None
    try:
        async with run.admission.model():
            left = seconds - (time.perf_counter() - started)
            async for piece in model.stream(messages, max_tokens=max_tokens, seconds=max(0.0, left)):
                if isinstance(piece, Reply):
                    reply = piece
                else:
                    given += piece
                    yield piece
    except (LanguageModelFailed, asyncio.CancelledError, GeneratorExit) as error:
        await _failed(run, step, model, messages, given=given, started=started, error=str(error) or "given up")
        raise
    if reply is not None:
        await _answered(run, step, messages, reply, started)
        yield reply


async def _ask_leave(run: Run, model: ChatModel) -> None:
    reason = await run.forbidden()
    if reason is not None:
        raise ModelNotAllowed(model=model.id, reason=reason)


async def _answered(run: Run, step: str, messages: Sequence[Message], reply: Reply, started: float) -> None:
    usage = reply.usage
    run.recording.calls.append(
        CallTrace(
            step=step,
            model=reply.model,
            seconds=time.perf_counter() - started,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cost=usage.cost,
            prompt=_text(messages) if run.recording.keeps_text else "",
            reply=reply.text if run.recording.keeps_text else "",
        )
    )
    await run.charge(usage)


async def _failed(
    run: Run,
    step: str,
    model: ChatModel,
    messages: Sequence[Message],
    *,
    started: float,
    error: str,
    given: str = "",
) -> None:
    """A call that failed or was given up may have been billed all the same: it counts, with what went to and fro."""
    sent, came = estimated_tokens(_text(messages)), estimated_tokens(given)
    cost = model.cost_of(sent, came)
    run.recording.calls.append(
        CallTrace(
            step=step,
            model=model.id,
            seconds=time.perf_counter() - started,
            input_tokens=sent,
            output_tokens=came,
            cost=cost,
            error=error,
            prompt=_text(messages) if run.recording.keeps_text else "",
            reply=given if run.recording.keeps_text else "",
        )
    )
    await run.charge(Usage(1, sent, came, cost))


def _text(messages: Sequence[Message]) -> str:
    return "\n\n".join(f"[{message.role}]\n{message.content}" for message in messages)
