"""What every chat model must do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from dtrag.core.chat import Message, Reply
from dtrag.errors import LanguageModelFailed
from dtrag.ports import ChatModel

TEXT = "A full-time employee has 26 days of paid annual leave. [1] 연차는 26일이다. [2]"
QUESTION = (Message("system", "Cite."), Message("user", "How many days?"))
SECONDS = 0.8
"""The limit of calls that fail: short, for some servers are asked until it is over."""
AMPLE = 20.0
"""The limit of calls that succeed, in seconds: a loaded machine does not reach it."""

modes = pytest.mark.parametrize("streaming", [False, True], ids=["plain", "stream"])


class ChatModelContract:
    """Fixtures: `model`, which answers every question with `TEXT`, and `failing_model`, which always fails."""

    @modes
    async def test_the_reply_is_whole_and_counts_its_tokens(self, model: ChatModel, streaming: bool) -> None:
        reply, pieces = await call(model, streaming)
        assert (reply.text, reply.model, reply.finished) == (TEXT, model.id, True)
        assert reply.usage.calls == 1
        assert reply.usage.input_tokens > 0
        assert reply.usage.output_tokens > 0
        assert reply.usage.cost == pytest.approx(
            model.cost_of(reply.usage.input_tokens, reply.usage.output_tokens), abs=1e-9
        )
        assert "".join(pieces) == (TEXT if streaming else "")
        assert len(pieces) > 3 or not streaming

    @modes
    async def test_a_failure_is_one_error_that_names_the_model(self, failing_model: ChatModel, streaming: bool) -> None:
        with pytest.raises(LanguageModelFailed, match=f"{failing_model.id}' returned no usable answer: ") as caught:
            await call(failing_model, streaming, seconds=SECONDS)
        assert "the setting llm" in str(caught.value)

    @modes
    async def test_calls_at_the_same_time_do_not_disturb_each_other(self, model: ChatModel, streaming: bool) -> None:
        replies = await asyncio.gather(*(call(model, streaming) for _ in range(8)))
        assert {reply.text for reply, _ in replies} == {TEXT}

    async def test_more_tokens_never_cost_less(self, model: ChatModel) -> None:
        assert model.cost_of(0, 0) == 0.0
        assert 0.0 <= model.cost_of(1_000, 0) <= model.cost_of(2_000, 10)

    async def test_it_can_be_closed_again(self, model: ChatModel) -> None:
        await call(model, streaming=False)
        await model.close()
        await model.close()


async def call(
    model: ChatModel,
    streaming: bool,
    messages: Sequence[Message] = QUESTION,
    *,
    seconds: float = AMPLE,
    max_tokens: int = 100,
) -> tuple[Reply, list[str]]:
    """The reply, and the pieces in which it came."""
    if not streaming:
        return await model.complete(messages, max_tokens=max_tokens, seconds=seconds), []
    received = [piece async for piece in model.stream(messages, max_tokens=max_tokens, seconds=seconds)]
    reply = received.pop()
    assert isinstance(reply, Reply)
    assert all(isinstance(piece, str) for piece in received)
    return reply, [str(piece) for piece in received]
