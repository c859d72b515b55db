"""Models that say what a test wants, and a run that has them and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, cast

from dtrag.core.chat import Message, Reply, Usage
from dtrag.errors import LanguageModelFailed
from dtrag.pipeline.run_context import Run
from dtrag.ports import ChatModel

Answering = Callable[[int, Sequence[Message]], str]


class Scripted:
    """A model whose n-th answer (from 0) is made by `answer`; one that raises or is empty fails. Counts what runs."""

    def __init__(
        self,
        answer: str | Answering,
        *,
        name: str = "test:one",
        delay: float = 0.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.id = name
        self.answer: Answering = answer if callable(answer) else lambda number, messages: answer
        self.delay = delay
        self.sleep = sleep
        self.asked: list[list[Message]] = []
        self.limits: list[tuple[int, float]] = []
        self.running = 0
        self.most_running = 0
        self.cancelled = 0

    def cost_of(self, input_tokens: int, output_tokens: int) -> float:
        return 0.0

    async def complete(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> Reply:
        number = len(self.asked)
        self.asked.append(list(messages))
        self.limits.append((max_tokens, seconds))
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await self.sleep(self.delay)
            text = self.answer(number, messages)
            return Reply(text, self.id, Usage(1, 10, 5, 0.5))
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1

    async def stream(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> AsyncIterator[Any]:
        yield await self.complete(messages, max_tokens=max_tokens, seconds=seconds)

    async def close(self) -> None:
        """Nothing is held."""


def failing(number: int, messages: Sequence[Message]) -> str:
    """An answer that fails."""
    raise LanguageModelFailed(model="test:one", reason="it said no.")


def run_of(model: ChatModel | None, critic: ChatModel | None = None, **more: Any) -> Run:
    """A run without documents."""
    return Run(engine=cast(Any, None), index=cast(Any, None), embedder=None, model=model, critic=critic, **more)
