"""How many requests somebody may make: a bucket that holds a minute's worth and fills up steadily."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

MOST_BUCKETS = 10_000
"""More of them are not remembered: whoever was away longest starts again with a full one."""

ROUNDING = 1e-9
"""So much less than one request is one: sums of seconds are rounded, and a caller that waits long enough is served."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What became of one request; `wait_s` is 0 when it may go on. Whole seconds, as headers have them."""

    limit: int
    remaining: int
    full_in_s: int
    wait_s: int


class RateLimit:
    """Buckets by whoever asks, on a clock of seconds that is passed in and never goes back."""

    def __init__(self) -> None:
        self._buckets: dict[Hashable, tuple[float, float]] = {}

    def take(self, who: Hashable, per_minute: int, now: float) -> Allowance:
        """Take one request out of the bucket, if there is one in it."""
        level, since = self._buckets.pop(who, (float(per_minute), now))
        level = min(float(per_minute), level + (now - since) * per_minute / 60)
        wait_s = 0
        if level >= 1 - ROUNDING:
            level = max(0.0, level - 1)
        else:
            wait_s = max(1, math.ceil((1 - level) * 60 / per_minute)) if per_minute else 60
        if len(self._buckets) >= MOST_BUCKETS:
            del self._buckets[next(iter(self._buckets))]
        self._buckets[who] = (level, now)  # at the end: the first is whoever was away longest
        full_in_s = math.ceil((per_minute - level) * 60 / per_minute) if per_minute else 60
        return Allowance(per_minute, int(level), full_in_s, wait_s)
