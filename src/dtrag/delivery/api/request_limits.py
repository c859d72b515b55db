"""Limits of the number of requests: of each key, and of wrong keys from one address."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.types import Scope

from dtrag.core.access.api_key import Key
from dtrag.core.rate_limit import Allowance, RateLimit
from dtrag.delivery.api.client_address import network_of
from dtrag.errors import TooManyRequests

FAILURES_PER_MINUTE = 30
"""Allowed wrong keys from one address: more than typing errors, few enough to slow down guessing."""


@dataclass(slots=True)
class RequestLimits:
    """The limits of one service; `monotonic` counts seconds."""

    monotonic: Callable[[], float] = time.monotonic
    _requests: RateLimit = field(default_factory=RateLimit)
    _failures: RateLimit = field(default_factory=RateLimit)

    def count_request(self, key: Key) -> Allowance:
        """Count a request of the key against its own rate."""
        return self._requests.take(key.key_id, key.rate, self.monotonic())

    def count_wrong_key(self, scope: Scope) -> None:
        """Count a wrong key against the client's address. Raises `TooManyRequests`."""
        failed = self._failures.take(network_of(scope), FAILURES_PER_MINUTE, self.monotonic())
        if failed.wait_s:
            raise TooManyRequests(
                f"Too many wrong keys from your address. Wait {failed.wait_s} seconds before the next.",
                seconds=failed.wait_s,
            )

    def require_allowance(self, key: Key) -> None:
        """Count a request of the key. Raises `TooManyRequests` beyond its rate."""
        allowance = self.count_request(key)
        if allowance.wait_s:
            raise TooManyRequests(rate=allowance.limit, seconds=allowance.wait_s)
