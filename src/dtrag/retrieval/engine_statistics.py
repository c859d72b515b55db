"""Counters of the searches of one engine."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypedDict

from dtrag.core.documents import SearchMetrics
from dtrag.errors import DtragError


class EnginePerformance(TypedDict):
    """Searches and errors by kind; `mean_seconds` over the answered searches, `error_rate` in [0, 1]."""

    searches: int
    by_mode: dict[str, int]
    cache_hits: int
    degraded: dict[str, int]
    errors: dict[str, int]
    error_rate: float
    mean_seconds: float


class EngineStatistics:
    """Counts since the engine was created. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._modes: Counter[str] = Counter()
        self._degraded: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._cache_hits = 0
        self._seconds = 0.0

    def count_answer(self, metrics: SearchMetrics) -> None:
        """Count an answered search."""
        with self._lock:
            self._modes[metrics.mode] += 1
            self._degraded.update(metrics.degraded)
            self._cache_hits += metrics.cache_hit
            self._seconds += metrics.total_time

    @contextmanager
    def counting_errors(self) -> Iterator[None]:
        """Count errors of dtrag by their class, and raise them."""
        try:
            yield
        except DtragError as error:
            with self._lock:
                self._errors[type(error).__name__] += 1
            raise

    def performance(self) -> EnginePerformance:
        """The counts so far."""
        with self._lock:
            searches, errors = self._modes.total(), self._errors.total()
            return {
                "searches": searches,
                "by_mode": dict(self._modes),
                "cache_hits": self._cache_hits,
                "degraded": dict(self._degraded),
                "errors": dict(self._errors),
                "error_rate": errors / (searches + errors) if searches + errors else 0.0,
                "mean_seconds": self._seconds / searches if searches else 0.0,
            }
