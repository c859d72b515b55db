"""Token bucket per client: its capacity is one minute of requests, and it refills continuously."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

MOST_BUCKETS = 10_000
"""Beyond this number the least recently used client is evicted, and starts again with a full bucket."""

ROUNDING = 1e-9
"""Tolerance of the level, so that rounding errors do not refuse a caller that waited for `wait_s`."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """The result for one request; `wait_s` is 0 when it is allowed. Whole seconds, as in HTTP headers."""

    limit: int
    remaining: int
    full_in_s: int
    wait_s: int


class RateLimit:
    """Buckets by client, on a monotonic clock in seconds that is passed in."""

    def __init__(self) -> None:
        self._buckets: dict[Hashable, tuple[float, float]] = {}

    def take(self, client: Hashable, per_minute: int, now: float) -> Allowance:
        """Take one token from the bucket if there is one."""
        level, since = self._buckets.pop(client, (float(per_minute), now))
        level = min(float(per_minute), level + (now - since) * per_minute / 60)
        wait_s = 0
        if level >= 1 - ROUNDING:
            level = max(0.0, level - 1)
        else:
            wait_s = max(1, math.ceil((1 - level) * 60 / per_minute)) if per_minute else 60
        if len(self._buckets) >= MOST_BUCKETS:
            del self._buckets[next(iter(self._buckets))]
        self._buckets[client] = (level, now)  # at the end: the first is the least recently used
        full_in_s = math.ceil((per_minute - level) * 60 / per_minute) if per_minute else 60
        return Allowance(per_minute, int(level), full_in_s, wait_s)
