"""Buckets of rate limits in which no time passes: on a slow machine allowances would come back during a test."""

from __future__ import annotations

from fastapi import FastAPI


class StoppedBuckets:
    """A `RateLimitStore`."""

    def __init__(self) -> None:
        self._levels: dict[bytes, float] = {}

    async def take(self, caller: bytes, rate: int, tokens: int, unspent: int) -> tuple[int, float]:
        level = self._levels.get(caller, float(rate)) + unspent
        taken = int(min(tokens, level))
        self._levels[caller] = level - taken
        return taken, level - taken


def stop_refills(api: FastAPI) -> None:
    """From now on no limit of this service refills."""
    service = api.state.service
    service.limits.monotonic = lambda: 0.0
    service.app.rate_limits = StoppedBuckets()
