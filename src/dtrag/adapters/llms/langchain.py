"""`ChatModel` over LangChain, and the configured models: limits that hold, retries, only `LanguageModelFailed` raised.

Every call runs in its own task. When its time is over, or its caller is gone, the task is cancelled, which closes
the connection; the caller does not wait for a server that does not react.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dtrag.adapters.llms.http_client import closing_responses, explain, pause
from dtrag.adapters.llms.replies import ReplyReader, read, read_stream, usage
from dtrag.adapters.llms.specs import FREE, Price, Spec, parse, resolve
from dtrag.core.chat import Message, Reply
from dtrag.errors import InvalidInput, LanguageModelFailed
from dtrag.personal_data import mask_of
from dtrag.settings import Settings

_CHATTY = ("openai", "anthropic", "google_genai", "httpx", "httpx2", "httpcore", "httpcore2", "langsmith")
"""Loggers of libraries that log the content of requests at level DEBUG."""
_THINKS_UNLESS_TOLD = "gemini-2.5-flash"
"""Its thoughts count as output: they would use up the limit before the answer begins."""


@dataclass(frozen=True, slots=True)
class Built:
    """`chat` is LangChain's model; `http` its HTTP client, where the library accepts one."""

    chat: Any
    http: Any = None


def build(spec: Spec) -> Built:
    """Import the provider's library and make its model. Blocking, up to some seconds; connects to nothing."""
    from langchain.chat_models import init_chat_model

    from dtrag.adapters.llms.http_client import bounded_client

    for name in _CHATTY:
        if logging.getLogger(name).level == logging.NOTSET:
            logging.getLogger(name).setLevel(logging.WARNING)
    arguments: dict[str, Any] = {"api_key": spec.key, "base_url": spec.address, "cache": False}
    http = None
    if spec.provider.library == "openai":
        http = bounded_client(local=spec.local)
        # Missing arguments would be taken from environment variables of other programs.
        arguments |= {"http_async_client": http, "max_retries": 0, "stream_usage": True, "use_responses_api": False}
        arguments |= {"organization": "", "openai_proxy": ""}
    elif spec.provider.library == "google_genai":
        arguments |= {"max_retries": 1, "vertexai": False}  # 1 attempt, that is: 0 would be the library's own number
    else:
        arguments |= {"max_retries": 0}
    return Built(init_chat_model(spec.model, model_provider=spec.provider.library, **arguments), http)


def call_options(spec: Spec, max_tokens: int, *, temperature: bool) -> dict[str, object]:
    """Keyword arguments of one call. Temperature 0, so that the same passages give the same answer."""
    options: dict[str, object] = {"temperature": 0} if temperature else {}
    if spec.provider.library == "google_genai":
        thinking = {"thinking_budget": 0} if spec.model.startswith(_THINKS_UNLESS_TOLD) else {}
        return options | {"max_output_tokens": max_tokens} | thinking
    if spec.own_server:
        # Many servers know only the older of the protocol's two names for the limit, which LangChain renames.
        return options | {"extra_body": {"max_tokens": max_tokens}}
    return options | {"max_tokens": max_tokens}


_ENDINGS, _ENDING_S = 5, 0.02
"""How often a call is cancelled, and how long it may take each time to close its connection, before it is left alone.
Once is not enough: `asyncio.wait_for`, which the libraries use, loses a cancellation up to Python 3.11."""
Put = Callable[[str], None]


class LangChainModel:
    """One configured model. `mask` is applied to what is sent.

    `problem` is why the last call failed, "" when it did not or there was none.
    """

    def __init__(
        self, spec: Spec, price: Price, make: Callable[[Spec], Built] = build, *, mask: Callable[[str], str] = str
    ) -> None:
        self._mask = mask
        self.id = spec.id
        self.problem = ""
        self._spec = spec
        self._price = price
        self._make = make
        self._built: Built | None = None
        self._building: asyncio.Task[Built] | None = None
        self._temperature = True

    @property
    def address(self) -> str:
        """The base address of its server."""
        return self._spec.address

    async def warm(self) -> None:
        """Import what the first call would have to import, in a thread. Sends nothing; raises nothing."""
        try:
            await self._ready()
        except Exception as error:  # noqa: BLE001 - the boundary: libraries of providers raise any class
            self.problem = explain(error, self._spec.key).reason

    def cost_of(self, input_tokens: int, output_tokens: int) -> float:
        """See `ChatModel`."""
        return self._price.cost(input_tokens, output_tokens)

    async def complete(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> Reply:
        """See `ChatModel`."""
        deadline = time.monotonic() + seconds
        task = asyncio.create_task(self._answer(messages, max_tokens, deadline, None))
        try:
            await asyncio.wait({task}, timeout=seconds)
            return self._outcome(task, seconds)
        finally:
            await _end(task)

    async def stream(
        self, messages: Sequence[Message], *, max_tokens: int, seconds: float
    ) -> AsyncIterator[str | Reply]:
        """See `ChatModel`. A stream that breaks off ends with the text so far, as an unfinished reply."""
        deadline = time.monotonic() + seconds
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        task = asyncio.create_task(self._answer(messages, max_tokens, deadline, pieces.put_nowait))
        task.add_done_callback(lambda _: pieces.put_nowait(None))
        try:
            while (piece := await _within(pieces, deadline)) is not None:
                yield piece
            yield self._outcome(task, seconds)
        finally:
            await _end(task)

    async def close(self) -> None:
        """See `ChatModel`."""
        if self._building is not None:
            await asyncio.wait({self._building})
        built, self._built, self._building = self._built, None, None
        if built is not None and built.http is not None:
            await built.http.aclose()

    def _outcome(self, task: asyncio.Task[Reply], seconds: float) -> Reply:
        """What came of the call by now."""
        if not task.done():
            self.problem = f"it did not answer within {seconds:g} s."
            raise LanguageModelFailed(model=self.id, reason=self.problem)
        if task.cancelled():  # by a library: only abandoned calls are cancelled here
            self.problem = "the call was broken off."
            raise LanguageModelFailed(model=self.id, reason=self.problem)
        reply = task.result()
        self.problem = ""
        return reply

    async def _ready(self) -> Built:
        """The provider's model. Created once, by a task that survives a cancellation of the call."""
        if self._built is None:
            if self._building is None or self._building.get_loop() is not asyncio.get_running_loop():
                self._building = asyncio.create_task(asyncio.to_thread(self._make, self._spec))
                self._building.add_done_callback(lambda task: task.cancelled() or task.exception())
            building = self._building
            try:
                self._built = await asyncio.shield(building)
            finally:
                if building.done() and self._building is building:
                    self._building = None
        return self._built

    async def _answer(self, messages: Sequence[Message], max_tokens: int, deadline: float, put: Put | None) -> Reply:
        attempt = 0
        messages = [replace(message, content=self._mask(message.content)) for message in messages]
        while True:
            attempt += 1
            reading = ReplyReader(max_tokens)
            try:
                await self._attempt(messages, reading, put)
                reading.check()
                return self._reply(messages, reading, finished=reading.finished)
            except Exception as error:  # the boundary: libraries of providers raise any class
                failure = explain(error, self._spec.key)
                if put is not None and reading.text:
                    return self._reply(messages, reading, finished=False)
                if self._temperature and failure.status in {None, 400} and "temperature" in str(error):
                    self._temperature = False  # some models allow no other than their own
                    continue
                wait = pause(failure, attempt, deadline - time.monotonic())
                if wait is None:
                    self.problem = failure.reason
                    raise LanguageModelFailed(model=self.id, reason=failure.reason) from error
            await asyncio.sleep(wait)

    async def _attempt(self, messages: Sequence[Message], reading: ReplyReader, put: Put | None) -> None:
        chat = (await self._ready()).chat
        from langsmith import tracing_context

        options = call_options(self._spec, reading.max_tokens, temperature=self._temperature)
        # LangChain would tell its makers' tracing service of every call where variables ask for it.
        with tracing_context(enabled=False):
            async with closing_responses():
                if put is None:
                    await read(chat, messages, options, reading)
                else:
                    await read_stream(chat, messages, options, reading, put)

    def _reply(self, messages: Sequence[Message], reading: ReplyReader, *, finished: bool) -> Reply:
        return Reply(reading.text, self.id, usage(messages, reading, self._price), finished)


async def _within(pieces: asyncio.Queue[str | None], deadline: float) -> str | None:
    """The next piece; None at the end, and when none arrives in time."""
    try:
        async with asyncio.timeout(deadline - time.monotonic()):
            return await pieces.get()
    except TimeoutError:
        return None


async def _end(task: asyncio.Task[Reply]) -> None:
    """Cancel the task if it still runs, and retrieve its error, so that asyncio does not warn."""
    for _ in range(_ENDINGS):
        if task.done():
            break
        task.cancel()
        await asyncio.wait({task}, timeout=_ENDING_S)
    if task.done() and not task.cancelled():
        task.exception()


def choose(settings: Settings) -> tuple[LangChainModel | None, LangChainModel | None]:
    """The model that answers, and the one that criticises in a debate: the same one unless DTRAG_LLM_CRITIC names
    another. Both None without DTRAG_LLM.

    Raises `InvalidInput` for an invalid spec or price and for a missing key, `MissingExtra` where a library is missing.
    """
    prices = parse(settings.llm_prices)
    if _none(settings.llm):
        return None, None
    if settings.llm_max_tokens < 1:
        raise InvalidInput("DTRAG_LLM_MAX_TOKENS is 0, but must be at least 1: an answer has a length.")
    first = resolve(settings.llm or "", settings)
    mask = mask_of(settings)
    model = LangChainModel(first, prices.get(first.id, FREE), mask=mask)
    if _none(settings.llm_critic):
        return model, model
    second = resolve(settings.llm_critic or "", settings, "DTRAG_LLM_CRITIC")
    return model, model if second.id == first.id else LangChainModel(second, prices.get(second.id, FREE), mask=mask)


def _none(spec: str | None) -> bool:
    return spec is None or spec.strip() in {"", "none"}
