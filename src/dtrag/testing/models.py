"""Models for tests: deterministic, without weights or a network, and quick."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np

from dtrag.core.chat import Message, Reply, Usage
from dtrag.core.documents import Vector
from dtrag.core.text.analysis import terms
from dtrag.errors import LanguageModelFailed

WORDS_READ = 512
"""Words of a text that the models read; the rest is cut off."""
Script = Sequence[str | Exception] | Callable[[Sequence[Message]], str]
"""Replies in the order of the calls, the last one for all later calls; or a function of the messages."""


@dataclass(frozen=True)
class HashEmbedder:
    """A bag of stemmed words, hashed into a few dimensions: texts with common words are near to each other.

    It knows no meanings: "refund" and "money back" are far apart. It reads the first `max_tokens` words.
    """

    id: str = "hash@00000001"
    dim: int = 64
    max_tokens: int = WORDS_READ
    languages: frozenset[str] = frozenset({"*"})
    floor: float = 0.0
    decides: bool = True

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        """Shape (len(texts), dim), L2-normalised."""
        vectors = np.full((len(texts), self.dim), 0.01, np.float32)
        for row, text in enumerate(texts):
            for term in terms(_head(text, self.max_tokens)):
                digest = blake2b(f"{self.id}{term}".encode("utf-8", "replace"), digest_size=8).digest()
                vectors[row, int.from_bytes(digest, "big") % self.dim] += 1
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        """As `embed_documents`."""
        return self.embed_documents(texts)


@dataclass(frozen=True)
class OverlapReranker:
    """Scores a text by the share of the query's words that it holds."""

    id: str = "overlap"
    languages: frozenset[str] = frozenset({"*"})

    def score(self, query: str, texts: Sequence[str], deadline: float) -> Sequence[float] | None:
        """In (0, 1) for each text; None when `deadline` (of `time.monotonic()`) is over before the last."""
        words = set(terms(query))
        scores = []
        for text in texts:
            if time.monotonic() > deadline:
                return None
            held = words & set(terms(_head(text, WORDS_READ)))
            scores.append((len(held) + 0.5) / (len(words) + 1))
        return scores


@dataclass
class ScriptedModel:
    """A chat model that gives the replies of a script, and raises those that are exceptions.

    `requests` holds the messages of every call. Tokens are counted as words.
    """

    script: Script = ("",)
    id: str = "scripted:model"
    problem: str = ""
    requests: list[tuple[Message, ...]] = field(default_factory=list)

    def cost_of(self, input_tokens: int, output_tokens: int) -> float:
        """It costs nothing."""
        return 0.0

    async def complete(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> Reply:
        """The next reply of the script, cut after `max_tokens` words. Raises `LanguageModelFailed`."""
        self.requests.append(tuple(messages))
        text = self._next(messages)
        words = text.split(" ")
        finished = len(words) <= max_tokens
        shown = text if finished else " ".join(words[:max_tokens])
        input_tokens = sum(len(message.content.split()) for message in messages)
        return Reply(shown, self.id, Usage(1, input_tokens, len(shown.split())), finished)

    async def stream(
        self, messages: Sequence[Message], *, max_tokens: int, seconds: float
    ) -> AsyncIterator[str | Reply]:
        """The words of the next reply one by one, then the whole of it."""
        reply = await self.complete(messages, max_tokens=max_tokens, seconds=seconds)
        for place, word in enumerate(reply.text.split(" ")):
            yield word if place == 0 else f" {word}"
        yield reply

    async def close(self) -> None:
        """Nothing is open."""

    def _next(self, messages: Sequence[Message]) -> str:
        if callable(self.script):
            return self.script(messages)
        reply = self.script[min(len(self.requests), len(self.script)) - 1]
        self.problem = str(reply) if isinstance(reply, Exception) else ""
        if isinstance(reply, LanguageModelFailed):
            raise reply
        if isinstance(reply, Exception):
            raise LanguageModelFailed(model=self.id, reason=str(reply)) from reply
        return reply


def _head(text: str, words: int) -> str:
    return " ".join(text.split(maxsplit=words)[:words])
