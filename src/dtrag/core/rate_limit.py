"""Token bucket per client: its capacity is one minute of requests, and it refills continuously."""

from __future__ import annotations

import hashlib
import math
import struct
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

_BUCKET = struct.Struct("=16sdd")
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


class RateLimit:
    """Buckets by client, on a monotonic clock in seconds that is passed in.

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

    def take(self, client: object, per_minute: int, now: float) -> Allowance:
        """Take one token from the bucket of the client (by its `str`) if there is one."""
        digest = hashlib.blake2b(str(client).encode(), digest_size=16, key=self._secret).digest()
        with self._lock:
            place, level, since = self._bucket(digest, float(per_minute), now)
            level = min(float(per_minute), level + max(0.0, now - since) * per_minute / 60)
            wait_s = 0
            if level >= 1 - ROUNDING:
                level = max(0.0, level - 1)
            else:
                wait_s = max(1, math.ceil((1 - level) * 60 / per_minute)) if per_minute else 60
            _BUCKET.pack_into(self._table, place, digest, level, now)
        full_in_s = math.ceil((per_minute - level) * 60 / per_minute) if per_minute else 60
        return Allowance(per_minute, int(level), full_in_s, wait_s)

    def _bucket(self, digest: bytes, full: float, now: float) -> tuple[int, float, float]:
        """Place, level and time of the client's bucket; a full one at a free place, or at that of the oldest."""
        first = int.from_bytes(digest[:4]) % _SETS * _WAYS * _BUCKET.size
        oldest, oldest_since = first, math.inf
        for place in range(first, first + _WAYS * _BUCKET.size, _BUCKET.size):
            holder, level, since = _BUCKET.unpack_from(self._table, place)
            if holder == digest:
                return place, level, since
            if not any(holder):
                since = -math.inf
            if since < oldest_since:
                oldest, oldest_since = place, since
        return oldest, full, now
