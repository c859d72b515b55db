"""How long each part of a search may take, inside the time that its caller has."""

from __future__ import annotations

import math
import time

from dtrag.retrieval.config import EngineConfig
from dtrag.settings import timeout_multiplier

WORDS = 0.85
"""Share of the caller's time that the lexical side has; the rest is for fetching what was found."""
VECTORS = 0.75
"""Share of it that the vector side has, its embedding included: what words have found can still be reranked then."""
FOLLOWING = 0.3
"""Share of the time that is left which documents mentioned by the best passages may take."""


CITATIONS = 0.1
"""Seconds that following citations may take at most."""


class TimeLimits:
    """The limits of one search; `seconds` is the time of the caller, None for no limit.

    Limits of the configuration are stretched by PIPELINE_TIMEOUT_MULTIPLIER and cut to the caller's time.
    """

    def __init__(self, config: EngineConfig, seconds: float | None) -> None:
        self.seconds = seconds
        self._config = config
        self._end = math.inf if seconds is None else time.monotonic() + seconds
        self._multiplier = timeout_multiplier()

    @property
    def embedding(self) -> float:
        """Seconds for the vector of the query."""
        return min(self._config.embedding_timeout * self._multiplier, self._left())

    @property
    def words(self) -> float | None:
        """Seconds for the lexical side; None for no limit."""
        return self._share(WORDS)

    @property
    def vectors(self) -> float | None:
        """Seconds for the vector side, the vector of the query included; None for no limit."""
        return self._share(VECTORS)

    @property
    def following(self) -> float | None:
        """Seconds for mentioned documents; None for no limit."""
        return self._share(FOLLOWING)

    @property
    def citations(self) -> float:
        """Seconds for the provisions that the best passages cite."""
        following = self.following
        longest = CITATIONS * self._multiplier
        return longest if following is None else min(longest, following)

    @property
    def reranking(self) -> float:
        """Seconds for the reranker."""
        return min(self._config.rerank_timeout * self._multiplier, self._left())

    def _left(self) -> float:
        return max(0.0, self._end - time.monotonic())

    def _share(self, share: float) -> float | None:
        return None if math.isinf(self._end) else share * self._left()
