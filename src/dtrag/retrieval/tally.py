"""How the searches of one engine went so far: counts and mean times, for statistics in process."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

from dtrag.core.documents import SearchMetrics


class Tally:
    """Counts since the engine was made. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._modes: Counter[str] = Counter()
        self._degraded: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._cache_hits = 0
        self._seconds = 0.0

    def answered(self, metrics: SearchMetrics) -> None:
        """Count a search that was answered."""
        with self._lock:
            self._modes[metrics.mode] += 1
            self._degraded.update(metrics.degraded)
            self._cache_hits += metrics.cache_hit
            self._seconds += metrics.total_time

    def failed(self, error: Exception) -> None:
        """Count a search that gave an error, by its class."""
        with self._lock:
            self._errors[type(error).__name__] += 1

    def figures(self) -> dict[str, Any]:
        """Searches and errors by kind; `mean_seconds` over the answered ones, `error_rate` in [0, 1]."""
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
