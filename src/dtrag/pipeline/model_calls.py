"""Calls of language models: checked against budgets, limited, charged, and recorded in the trace."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from dtrag import llm_service
from dtrag.concurrency import limit_clock
from dtrag.core.answer_record import content_hash
from dtrag.core.chat import BOUNDARY, Message, Reply, Usage
from dtrag.core.text.token_counts import estimated_tokens
from dtrag.core.trace import CallTrace
from dtrag.errors import DtragError, LanguageModelFailed, ModelNotAllowed
from dtrag.pipeline.run_context import Run
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
    """The model's whole reply; `on_text` receives its pieces as they arrive.

    Raises `ModelNotAllowed` (for a budget that is used up), `Overloaded` and `LanguageModelFailed`.
    """
    await _check_allowed(run, model)
    started = limit_clock()
    pieces: list[str] = []

    def collect(piece: str) -> None:
        assert on_text is not None  # noqa: S101 - called for streams only
        pieces.append(piece)
        on_text(piece)

    try:
        async with run.admission.model():
            remaining = max(0.0, seconds - (limit_clock() - started))
            reply = await _generate(
                model,
                messages,
                max_tokens=max_tokens,
                seconds=remaining,
                on_text=collect if on_text is not None else None,
            )
        if reply is None:
            raise LanguageModelFailed(model=model.id, reason="it gave no answer.")
    except (LanguageModelFailed, asyncio.CancelledError) as error:
        received, reason = "".join(pieces), str(error) or "given up"
        await _record_failure(run, step, model, messages, received=received, started=started, error=reason)
        raise
    await _record_reply(run, step, messages, reply, started)
    return reply


async def call_without_model(
    messages: Callable[[], Sequence[Message]], *, max_tokens: int, seconds: float
) -> Reply | None:
    """None, because no model is configured, unless a program has replaced `llm_service.generate_answer`.

    The messages are made only for that.
    """
    if not llm_service.is_replaced():
        return None
    return await _generate(NOT_CONFIGURED, messages(), max_tokens=max_tokens, seconds=seconds)


async def _generate(
    model: ChatModel | NotConfigured,
    messages: Sequence[Message],
    *,
    max_tokens: int,
    seconds: float,
    on_text: Callable[[str], None] | None = None,
) -> Reply | None:
    """The reply of `llm_service`. Any error of a replacement of it counts as a failure of the model."""
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


async def _check_allowed(run: Run, model: ChatModel) -> None:
    reason = await run.forbidden()
    if reason is not None:
        raise ModelNotAllowed(model=model.id, reason=reason)


async def _record_reply(run: Run, step: str, messages: Sequence[Message], reply: Reply, started: float) -> None:
    usage = reply.usage
    run.recording.calls.append(
        CallTrace(
            step=step,
            model=reply.model,
            seconds=limit_clock() - started,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cost=usage.cost,
            started=started - run.recording.started,
            prompt=_transcript(messages) if run.recording.keeps_text else "",
            reply=reply.text if run.recording.keeps_text else "",
            prompt_hash=_prompt_hash(messages),
        )
    )
    await run.charge(usage)


async def _record_failure(
    run: Run,
    step: str,
    model: ChatModel,
    messages: Sequence[Message],
    *,
    started: float,
    error: str,
    received: str = "",
) -> None:
    """Record and charge a failed or cancelled call, which the provider may bill: by the tokens sent and received."""
    sent_tokens, received_tokens = estimated_tokens(_transcript(messages)), estimated_tokens(received)
    cost = model.cost_of(sent_tokens, received_tokens)
    run.recording.calls.append(
        CallTrace(
            step=step,
            model=model.id,
            seconds=limit_clock() - started,
            input_tokens=sent_tokens,
            output_tokens=received_tokens,
            cost=cost,
            error=error,
            started=started - run.recording.started,
            prompt=_transcript(messages) if run.recording.keeps_text else "",
            reply=received if run.recording.keeps_text else "",
            prompt_hash=_prompt_hash(messages),
        )
    )
    await run.charge(Usage(1, sent_tokens, received_tokens, cost))


def _transcript(messages: Sequence[Message]) -> str:
    return "\n\n".join(f"[{message.role}]\n{message.content}" for message in messages)


def _prompt_hash(messages: Sequence[Message]) -> str:
    return content_hash(BOUNDARY.sub("~~~", _transcript(messages)))
