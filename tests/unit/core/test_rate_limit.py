"""The bucket gives a minute's worth at once, fills steadily, and says truly when to come back."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from dtrag.core.rate_limit import MOST_BUCKETS, TABLE_BYTES, RateLimit


def test_a_bucket_allows_one_minute_of_requests_and_then_one_per_second() -> None:
    limit = RateLimit()
    taken = [limit.take("a", 60, 0.0) for _ in range(61)]
    assert [one.wait_s for one in taken] == [0] * 60 + [1]
    assert (taken[0].remaining, taken[59].remaining, taken[60].remaining) == (59, 0, 0)
    assert limit.take("a", 60, 1.0).wait_s == 0
    assert limit.take("a", 60, 1.0).wait_s == 1
    assert limit.take("b", 60, 1.0).wait_s == 0


def test_a_bucket_never_holds_more_than_its_capacity() -> None:
    limit = RateLimit()
    limit.take("a", 2, 0.0)
    assert limit.take("a", 2, 3600.0).remaining == 1


@given(st.integers(1, 1000), st.lists(st.floats(0, 5), max_size=60))
@example(1, [4.601947699052694, 0.0])  # 0.9999999999999999 of a request after a minute
def test_a_caller_that_waits_for_the_given_time_is_served(rate: int, pauses: list[float]) -> None:
    limit, now = RateLimit(), 0.0
    for pause in pauses:
        now += pause
        answer = limit.take("a", rate, now)
        assert 0 <= answer.remaining < rate
        if answer.wait_s:
            now += answer.wait_s
            assert limit.take("a", rate, now).wait_s == 0


def test_the_number_of_buckets_is_limited_and_the_oldest_are_evicted() -> None:
    limit, clients = RateLimit(), MOST_BUCKETS * 2
    for number in range(clients):
        limit.take(number, 1, number / clients)
    limited = [limit.take(number, 1, 1.0).wait_s > 0 for number in reversed(range(clients))]
    assert all(limited[:100])  # eight of the newest hundred do not share one of 2,048 sets
    assert MOST_BUCKETS / 2 < sum(limited) <= MOST_BUCKETS


def test_limits_over_one_table_are_one_limit() -> None:
    table = memoryview(bytearray(TABLE_BYTES)).cast("d")
    limits = [RateLimit(table, secret=b"same"), RateLimit(table, secret=b"same")]
    assert [limits[turn % 2].take("a", 5, 0.0).wait_s > 0 for turn in range(7)] == [False] * 5 + [True] * 2
