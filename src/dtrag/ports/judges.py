"""Port of the judges: they say whether contexts support claims, and whether an answer replies to its question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dtrag.core.quality.judgement import Judgement, Relevance


class Judge(Protocol):
    """Judges claims, one judgement for each, in order. Raises a `DtragError` when it cannot."""

    @property
    def id(self) -> str:
        """Names the judge and its version in reports: `lexical`, `openai:gpt-4o-mini`, a folder's name."""

    async def support(self, claims: Sequence[str], contexts: Sequence[str], query: str) -> list[Judgement]:
        """Whether the contexts support each claim. `query` is the question that the claims answer."""

    async def relevance(self, query: str, answer: str) -> Relevance:
        """How well the answer replies to the query, whether or not it is true."""


class ClaimChecker(Protocol):
    """A model that reads a source and a claim. Blocking and CPU-bound: callers run it in a thread."""

    @property
    def id(self) -> str:
        """Name of the model."""

    def check(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The probability in [0, 1] that the source supports the claim, for each pair of them."""
