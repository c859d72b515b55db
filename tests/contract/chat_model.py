"""What every chat model must do, and what one behind a server must do. A test module inherits one of the suites."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import pytest

from dtrag.core.chat import Message, Reply
from dtrag.errors import LanguageModelFailed
from dtrag.ports import ChatModel
from tests.model_server import FAULTS, HARMLESS, Fault, ModelServer

TEXT = "A full-time employee has 26 days of paid annual leave. [1] 연차는 26일이다. [2]"
QUESTION = (Message("system", "Cite."), Message("user", "How many days?"))
SECONDS = 0.8
"""The limit of calls that fail: short, for some servers are asked until it is over."""
AMPLE = 20.0
"""The limit of calls that succeed, in seconds: a loaded machine does not reach it."""

modes = pytest.mark.parametrize("streaming", [False, True], ids=["plain", "stream"])

PARTIAL: tuple[Fault, ...] = ("cut", "reset", "bad-json", "bad-utf8", "error-event", "flood")
"""Those in which a stream breaks off after some of its pieces."""
SLOW: tuple[Fault, ...] = ("hang", "hang-mid", "trickle")


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


class ChatServerContract(ChatModelContract):
    """Fixtures: `server` and `model`, which asks it. Limits hold in whatever way the server fails."""

    @pytest.fixture
    def failing_model(self, server: ModelServer, model: ChatModel) -> ChatModel:
        server.fault = "500"
        return model

    @modes
    async def test_the_answer_and_what_it_took(self, server: ModelServer, model: ChatModel, streaming: bool) -> None:
        reply, pieces = await call(model, streaming)
        assert (reply.text, reply.model, reply.finished) == (TEXT, model.id, True)
        assert (reply.usage.calls, reply.usage.input_tokens, reply.usage.output_tokens) == (1, 4, len(TEXT.split()))
        assert "".join(pieces) == (TEXT if streaming else "")
        assert len(pieces) > 3 or not streaming
        (request,) = server.requests
        assert [(message["role"], message["content"]) for message in request["messages"]] == [
            ("system", "Cite."),
            ("user", "How many days?"),
        ]
        await nothing_left(server, model)

    @modes
    async def test_the_limit_of_tokens_is_sent(self, server: ModelServer, model: ChatModel, streaming: bool) -> None:
        await call(model, streaming, max_tokens=123)
        (request,) = server.requests
        assert 123 in (request.get("max_tokens"), request.get("max_completion_tokens"))

    @modes
    @pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in HARMLESS])
    async def test_a_fault_ends_in_time_and_in_one_error(
        self, server: ModelServer, model: ChatModel, streaming: bool, fault: Fault
    ) -> None:
        server.fault = fault
        began = time.monotonic()
        if fault == "length" or (streaming and fault in PARTIAL):
            reply, pieces = await call(model, streaming)
            assert not reply.finished
            assert reply.text and reply.text == ("".join(pieces) if streaming else TEXT)
            assert reply.usage.output_tokens > 0
        else:
            with pytest.raises(LanguageModelFailed, match=f"{model.id}' returned no usable answer: ") as caught:
                await call(model, streaming, seconds=SECONDS)
            assert "the setting llm" in str(caught.value)
            took = time.monotonic() - began
            assert took < 3 * SECONDS + 1
            assert took >= SECONDS or fault not in SLOW
        await nothing_left(server, model)

    @modes
    @pytest.mark.parametrize("fault", HARMLESS)
    async def test_what_does_no_harm_is_borne(
        self, server: ModelServer, model: ChatModel, streaming: bool, fault: Fault
    ) -> None:
        server.fault = fault
        reply, _ = await call(model, streaming)
        assert (reply.text, reply.finished) == (TEXT, True)
        assert reply.usage.input_tokens > 0
        assert reply.usage.output_tokens > 0

    @modes
    @pytest.mark.parametrize("fault", ["500", "reset", "close", "429"])
    async def test_what_passes_is_tried_again(
        self, server: ModelServer, model: ChatModel, streaming: bool, fault: Fault
    ) -> None:
        if streaming and fault == "reset":
            return  # pieces have been given out already
        server.fault, server.retry_after = [fault, None], "0.1"
        reply, _ = await call(model, streaming, seconds=5.0)
        assert reply.text == TEXT
        assert len(server.requests) == 2

    @modes
    @pytest.mark.parametrize("fault", ["401", "bad-json", "empty-choices", "html", "unknown-tool", "empty-text"])
    async def test_what_does_not_pass_is_not(
        self, server: ModelServer, model: ChatModel, streaming: bool, fault: Fault
    ) -> None:
        server.fault = fault
        if streaming and fault in PARTIAL:
            return
        with pytest.raises(LanguageModelFailed):
            await call(model, streaming, seconds=5.0)
        assert len(server.requests) == 1

    @modes
    async def test_it_is_not_tried_again_when_the_server_asks_for_more_time_than_there_is(
        self, server: ModelServer, model: ChatModel, streaming: bool
    ) -> None:
        server.fault, server.retry_after = "429", "30"
        began = time.monotonic()
        with pytest.raises(LanguageModelFailed, match="429"):
            await call(model, streaming, seconds=20.0)
        assert len(server.requests) == 1
        assert time.monotonic() - began < 10

    @modes
    async def test_cancelling_a_call_closes_the_connection(
        self, server: ModelServer, model: ChatModel, streaming: bool
    ) -> None:
        server.fault = "hang-mid"
        task = asyncio.create_task(call(model, streaming, seconds=60.0))
        await asyncio.sleep(0.3)
        assert server.open_connections == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.wait_until_idle)
        await nothing_left(server, model)

    async def test_abandoning_a_stream_closes_the_connection(self, server: ModelServer, model: ChatModel) -> None:
        server.fault = "hang-mid"
        stream = model.stream(QUESTION, max_tokens=100, seconds=60.0)
        assert isinstance(await anext(stream), str)
        await stream.aclose()  # type: ignore[attr-defined]
        assert await asyncio.to_thread(server.wait_until_idle)
        await nothing_left(server, model)

    @modes
    async def test_a_server_that_is_not_there(self, server: ModelServer, model: ChatModel, streaming: bool) -> None:
        server.__exit__()
        with pytest.raises(LanguageModelFailed, match="could not be reached"):
            await call(model, streaming, seconds=2.0)

    async def test_many_at_once(self, server: ModelServer, model: ChatModel) -> None:
        server.delay = 0.3
        replies = await asyncio.gather(*(call(model, number % 2 == 0, seconds=20.0) for number in range(40)))
        assert {reply.text for reply, _ in replies} == {TEXT}
        assert server.most_running > 20
        await nothing_left(server, model)

    @modes
    async def test_odd_characters_neither_way_do_harm(
        self, server: ModelServer, model: ChatModel, streaming: bool
    ) -> None:
        server.reply = "nul \x00 and half a pair \ud83d."
        odd = (Message("user", "lone \ud800 surrogate \x00"),)
        reply, _ = await call(model, streaming, odd)
        reply.text.encode("utf-8")
        assert "\x00" not in reply.text
        assert "half a pair" in reply.text


async def nothing_left(server: ModelServer, model: ChatModel) -> None:
    """Neither a task nor, after closing, a connection."""
    await asyncio.sleep(0.05)
    mine = asyncio.current_task()
    left = [task for task in asyncio.all_tasks() if task is not mine and "LangChain" in repr(task.get_coro())]
    assert left == []
    await model.close()
    assert await asyncio.to_thread(server.wait_until_idle)


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
