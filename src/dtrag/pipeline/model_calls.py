"""Every call of a language model goes through here: asked for, counted, charged, and kept in the trace."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from dtrag import llm_service
from dtrag.concurrency import limit_clock
from dtrag.core.chat import Message, Reply, Usage
from dtrag.core.text.token_counts import estimated_tokens
from dtrag.core.trace import CallTrace
from dtrag.errors import DtragError, LanguageModelFailed, ModelNotAllowed
from dtrag.pipeline.run import Run
from dtrag.ports import NOT_CONFIGURED, ChatModel, NotConfigured

_LOG = logging.getLogger(__name__)


async def call(
    run: Run,
    step: str,
    model: ChatModel,
    messages: Sequence[Message],
    *,
    max_tokens: int,
    seconds: float,
    on_text: Callable[[str], None] | None = None,
) -> Reply:
    """The model's whole answer; `on_text` gets its pieces as they come.

    Raises `ModelNotAllowed` (a budget is used up) and `LanguageModelFailed`.
    """
    await _ask_leave(run, model)
    started = limit_clock()
    pieces: list[str] = []

    def collect(piece: str) -> None:
        assert on_text is not None  # noqa: S101 - called for streams only
        pieces.append(piece)
        on_text(piece)

    try:
        async with run.admission.model():
            left = max(0.0, seconds - (limit_clock() - started))
            reply = await _generated(
                model, messages, max_tokens=max_tokens, seconds=left, on_text=collect if on_text is not None else None
            )
        if reply is None:
            raise LanguageModelFailed(model=model.id, reason="it gave no answer.")
    except (LanguageModelFailed, asyncio.CancelledError) as error:
        given, reason = "".join(pieces), str(error) or "given up"
        await _failed(run, step, model, messages, given=given, started=started, error=reason)
        raise
    await _answered(run, step, messages, reply, started)
    return reply


async def call_without_model(messages: Sequence[Message], *, max_tokens: int, seconds: float) -> Reply | None:
    """None, because no model is configured; or what a replaced `generate_answer` returns or raises."""
    return await _generated(NOT_CONFIGURED, messages, max_tokens=max_tokens, seconds=seconds)


async def _generated(
    model: ChatModel | NotConfigured,
    messages: Sequence[Message],
    *,
    max_tokens: int,
    seconds: float,
    on_text: Callable[[str], None] | None = None,
) -> Reply | None:
    """The boundary to `llm_service`, which a program may have replaced: what it raises is a failure of the model."""
    try:
        return await llm_service.generate_answer(
            messages, model=model, max_tokens=max_tokens, seconds=seconds, on_text=on_text
        )
    except DtragError:
        raise
    except Exception as error:
        _LOG.warning("the language model raised %s", type(error).__name__, exc_info=True)
        name = "none" if isinstance(model, NotConfigured) else model.id
        raise LanguageModelFailed(model=name, reason=f"it raised {type(error).__name__}.") from error


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
            seconds=limit_clock() - started,
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
            seconds=limit_clock() - started,
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
