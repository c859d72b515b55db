"""Services that share buckets allow no more than one of them, but for what a bucket refills while a share is valid."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.rate_limit import SHARE_S, SHARES, SharedRateLimit


class Buckets:
    """The store of buckets, in memory and on the clock of the test."""

    def __init__(self) -> None:
        self.now = 0.0
        self.statements = 0
        self._levels: dict[bytes, tuple[float, float]] = {}

    def monotonic(self) -> float:
        return self.now

    async def take(self, caller: bytes, rate: int, tokens: int, unspent: int) -> tuple[int, float]:
        self.statements += 1
        level, since = self._levels.get(caller, (float(rate), self.now))
        level = min(rate, level + unspent + (self.now - since) * rate / 60)
        taken = min(tokens, math.floor(level + 1e-9))
        self._levels[caller] = level - taken, self.now
        return taken, level - taken

    def services(self, number: int) -> list[SharedRateLimit]:
        return [SharedRateLimit("requests", self.take) for _ in range(number)]


async def test_two_services_allow_what_one_allows() -> None:
    buckets = Buckets()
    services = buckets.services(2)
    answers = [await services[turn % 2].take("a", 5, buckets.monotonic) for turn in range(12)]
    assert [answer.wait_s for answer in answers] == [0] * 5 + [12] * 7
    assert [answer.remaining for answer in answers[:6]] == [4, 3, 2, 1, 0, 0]
    assert buckets.statements == 5 + 2  # each service remembers the refusal
    buckets.now = 12.0
    assert (await services[0].take("a", 5, buckets.monotonic)).wait_s == 0
    assert (await services[1].take("a", 5, buckets.monotonic)).wait_s == 12


async def test_a_service_alone_asks_the_database_once_for_a_share() -> None:
    buckets = Buckets()
    [service] = buckets.services(1)
    answers = [await service.take("a", 600, buckets.monotonic) for _ in range(601)]
    assert [answer.wait_s > 0 for answer in answers] == [False] * 600 + [True]
    assert [answer.remaining for answer in answers[:3]] == [599, 598, 597]
    assert buckets.statements == SHARES + 1


async def test_what_is_not_spent_is_returned() -> None:
    buckets = Buckets()
    services = buckets.services(2)
    for _ in range(200):  # a slow client does not lose the tokens that it could have spent
        buckets.now += SHARE_S + 0.1
        assert (await services[0].take("a", 600, buckets.monotonic)).wait_s == 0
    assert (await services[1].take("a", 600, buckets.monotonic)).remaining > 600 - 2 * 600 // SHARES


@given(st.integers(1, 400), st.lists(st.tuples(st.floats(0, 3), st.integers(0, 2), st.integers(1, 40)), max_size=40))
async def test_no_more_is_allowed_than_the_bound(rate: int, bursts: list[tuple[float, int, int]]) -> None:
    buckets = Buckets()
    services = buckets.services(3)
    allowed: list[float] = []
    for pause, service, requests in bursts:
        buckets.now += pause
        answers = [await services[service].take("a", rate, buckets.monotonic) for _ in range(requests)]
        allowed += [buckets.now] * sum(not answer.wait_s for answer in answers)
    for first, begin in enumerate(allowed):
        for last in range(first, len(allowed)):
            passed = allowed[last] - begin
            assert last - first + 1 <= rate * (1 + (passed + SHARE_S) / 60) + 1e-6
