"""Time limits of the stages of a search, derived from the configuration and the time limit of the caller."""

from __future__ import annotations

import math
import time

from dtrag.retrieval.config import EngineConfig
from dtrag.settings import timeout_multiplier

LEXICAL_SHARE = 0.85
"""Share of the caller's remaining time for the lexical retriever; the rest is for fetching passages."""
VECTOR_SHARE = 0.75
"""Share for the vector retriever, the embedding included: lexical candidates can still be reranked after it."""
MENTIONS_SHARE = 0.3
"""Share for documents that the best passages mention."""
CITATIONS_SECONDS = 0.1
"""Time limit for the provisions that the best passages cite."""


class TimeLimits:
    """The limits of one search; `seconds` is the time limit of the caller, None for none.

    Limits of the configuration are multiplied by PIPELINE_TIMEOUT_MULTIPLIER and never exceed the caller's time.
    """

    def __init__(self, config: EngineConfig, seconds: float | None) -> None:
        self.seconds = seconds
        self._config = config
        self._end = math.inf if seconds is None else time.monotonic() + seconds
        self._multiplier = timeout_multiplier()

    @property
    def embedding(self) -> float:
        """Seconds for the vector of the query."""
        return min(self._config.embedding_timeout * self._multiplier, self._remaining())

    @property
    def lexical(self) -> float | None:
        """Seconds for the lexical retriever; None for no limit."""
        return self._share_of_remaining(LEXICAL_SHARE)

    @property
    def vector(self) -> float | None:
        """Seconds for the vector retriever, the vector of the query included; None for no limit."""
        return self._share_of_remaining(VECTOR_SHARE)

    @property
    def mentions(self) -> float | None:
        """Seconds for mentioned documents; None for no limit."""
        return self._share_of_remaining(MENTIONS_SHARE)

    @property
    def citations(self) -> float:
        """Seconds for the provisions that the best passages cite."""
        limit = CITATIONS_SECONDS * self._multiplier
        mentions = self.mentions
        return limit if mentions is None else min(limit, mentions)

    @property
    def reranking(self) -> float:
        """Seconds for the reranker."""
        return min(self._config.rerank_timeout * self._multiplier, self._remaining())

    def _remaining(self) -> float:
        return max(0.0, self._end - time.monotonic())

    def _share_of_remaining(self, share: float) -> float | None:
        return None if math.isinf(self._end) else share * self._remaining()
