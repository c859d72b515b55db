"""Token bucket per client: its capacity is one minute of requests, and it refills continuously.

`RateLimit` keeps the buckets itself. `SharedRateLimit` takes shares of buckets that several services have in common.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import NamedTuple

_BUCKET = struct.Struct("=16sddd")
_WAYS, _SETS = 8, 2_048
MOST_BUCKETS = _WAYS * _SETS
"""A client may have one of eight places. Where they are taken, the one unseen for longest is evicted, and starts again
with a full bucket."""
TABLE_BYTES = MOST_BUCKETS * _BUCKET.size

ROUNDING = 1e-9
"""Tolerance of the level, so that rounding errors do not refuse a caller that waited for `wait_s`."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """The result for one request; `wait_s` is 0 when it is allowed. Whole seconds, as in HTTP headers."""

    limit: int
    remaining: int
    full_in_s: int
    wait_s: int


SHARE_S = 2.0
"""Seconds for which tokens that were taken may be spent."""
SHARES = 20
"""Of its rate a client gets at most this part at a time: so many statements for a minute of its requests."""
REFUSED = -1.0


class _Places:
    """A number, a time and another number for each client, on a monotonic clock in seconds that is passed in.

    `table`: `TABLE_BYTES` of memory, all 0 at first, which other processes may share under `lock`. `secret` keeps
    clients from choosing names that evict others.
    """

    def __init__(
        self,
        table: memoryview[float] | None = None,
        *,
        lock: AbstractContextManager[object] | None = None,
        secret: bytes = b"",
    ) -> None:
        self._table = memoryview(bytearray(TABLE_BYTES)) if table is None else table.cast("B")
        self._lock = nullcontext() if lock is None else lock
        self._secret = secret

    def _digest(self, client: object) -> bytes:
        return hashlib.blake2b(str(client).encode(), digest_size=16, key=self._secret).digest()

    def _place(self, digest: bytes, value: float, moment: float) -> tuple[int, float, float, float]:
        """Place and content of the client's place; these, and 0, for a free place or that of the oldest time."""
        first = int.from_bytes(digest[:4]) % _SETS * _WAYS * _BUCKET.size
        oldest, oldest_moment = first, math.inf
        for place in range(first, first + _WAYS * _BUCKET.size, _BUCKET.size):
            holder, stored, since, other = _BUCKET.unpack_from(self._table, place)
            if holder == digest:
                return place, stored, since, other
            if not any(holder):
                since = -math.inf
            if since < oldest_moment:
                oldest, oldest_moment = place, since
        return oldest, value, moment, 0.0


class RateLimit(_Places):
    """Buckets by client."""

    def take(self, client: object, per_minute: int, now: float) -> Allowance:
        """Take one token from the bucket of the client (by its `str`) if there is one."""
        digest = self._digest(client)
        with self._lock:
            place, level, since, _ = self._place(digest, float(per_minute), now)
            level = min(float(per_minute), level + max(0.0, now - since) * per_minute / 60)
            wait_s = 0
            if level >= 1 - ROUNDING:
                level = max(0.0, level - 1)
            else:
                wait_s = _wait_s(level, per_minute)
            _BUCKET.pack_into(self._table, place, digest, level, now, 0.0)
        return _allowance(per_minute, level, wait_s)


class _Share(NamedTuple):
    """Tokens of a client that may be spent until then, or a refusal; `level`: what its bucket had left."""

    digest: bytes
    tokens: float
    until: float
    level: float


class SharedRateLimit(_Places):
    """The limit `name`, whose buckets are those of `take`, a `RateLimitStore`.

    A client's tokens are taken from its bucket a share at a time and spent here within `SHARE_S`; what is left then is
    returned with the next share. So in any time all services together allow no more than its rate for that time and
    `SHARE_S`, however many they are. A refusal is remembered until the bucket has a token.
    """

    def __init__(
        self,
        name: str,
        take: Callable[[bytes, int, int, int], Awaitable[tuple[int, float]]],
        table: memoryview[float] | None = None,
        *,
        lock: AbstractContextManager[object] | None = None,
    ) -> None:
        super().__init__(table, lock=lock, secret=name.encode())
        self._take = take

    async def take(self, client: object, per_minute: int, monotonic: Callable[[], float]) -> Allowance:
        """Take one token of the client (by its `str`) if there is one. Raises what the store raises."""
        digest, now = self._digest(client), monotonic()
        with self._lock:
            place, tokens, until, level = self._place(digest, 0.0, now)
            if until > now and tokens:
                return self._spent(place, _Share(digest, tokens, until, level), per_minute, now)
            if tokens:  # no other request returns them, too
                _BUCKET.pack_into(self._table, place, digest, 0.0, now, level)
        taken, level = await self._take(digest, per_minute, max(1, per_minute // SHARES), int(max(0.0, tokens)))
        with self._lock:
            now = monotonic()
            place, tokens, until, _ = self._place(digest, 0.0, now)
            tokens = taken + (max(0.0, tokens) if until > now else 0.0)  # with those of another request
            until = now + (SHARE_S if tokens else (1 - level) * 60 / per_minute)
            return self._spent(place, _Share(digest, tokens or REFUSED, until, level), per_minute, now)

    def _spent(self, place: int, share: _Share, per_minute: int, now: float) -> Allowance:
        """Spend a token of the share, unless it is a refusal."""
        wait_s = max(1, math.ceil(share.until - now)) if share.tokens == REFUSED else 0
        left = share.tokens if wait_s else share.tokens - 1
        _BUCKET.pack_into(self._table, place, share.digest, left, share.until, share.level)
        return _allowance(per_minute, share.level + max(0.0, left), wait_s)


def _wait_s(level: float, per_minute: int) -> int:
    """Whole seconds until the bucket has a token."""
    return max(1, math.ceil((1 - level) * 60 / per_minute)) if per_minute else 60


def _allowance(per_minute: int, level: float, wait_s: int) -> Allowance:
    full_in_s = math.ceil((per_minute - level) * 60 / per_minute) if per_minute else 60
    return Allowance(per_minute, int(level), full_in_s, wait_s)
