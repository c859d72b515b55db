"""What errors of libraries mean, and how long to wait for another attempt."""

from __future__ import annotations

import email.utils
import time
from typing import Any

import pytest

from dtrag.adapters.llms.http_client import (
    ATTEMPTS,
    LONGEST_PAUSE_S,
    Failure,
    ResponseRefused,
    Unusable,
    explain,
    pause,
)

PASSING = Failure("why", passing=True)


class Answered(Exception):
    """As libraries raise it for a status; Google's has its number as `code`."""

    def __init__(self, status: int, retry_after: str | None = None, *, name: str = "status_code", words: str = "no"):
        super().__init__(words)
        setattr(self, name, status)
        self.response = type("Response", (), {"headers": {"retry-after": retry_after} if retry_after else {}})()


@pytest.mark.parametrize("name", ["status_code", "code"])
@pytest.mark.parametrize(
    ("status", "passing"),
    [(429, True), (500, True), (502, True), (503, True), (529, True), (408, True), (400, False), (401, False)],
)
def test_statuses(status: int, passing: bool, name: str) -> None:
    failure = explain(Answered(status, name=name, words="the server's words."), "")
    assert failure == Failure(f"its server replied with {status} (the server's words).", passing, status)


def test_the_cause_decides() -> None:
    try:
        try:
            raise Answered(503)
        except Answered as error:
            raise RuntimeError("wrapped by another library") from error
    except RuntimeError as error:
        assert explain(error, "").status == 503


@pytest.mark.parametrize(
    "error", [ConnectionResetError(), BrokenPipeError(), type("TransportError", (Exception,), {})()]
)
def test_broken_connections_are_temporary(error: Exception) -> None:
    failure = explain(error, "")
    assert failure.passing
    assert "could not be reached or closed the connection" in failure.reason


@pytest.mark.parametrize("error", [ValueError("x"), KeyError("choices"), UnicodeDecodeError("utf-8", b"", 0, 1, "x")])
def test_unknown_errors_are_permanent(error: Exception) -> None:
    failure = explain(error, "")
    assert not failure.passing
    assert type(error).__name__ in failure.reason


def test_own_error_texts_stay_unchanged() -> None:
    assert explain(Unusable("no text."), "") == Failure("no text.", passing=False)
    wrapped = RuntimeError("x")
    wrapped.__cause__ = ResponseRefused("too large.")
    assert explain(wrapped, "") == Failure("too large.", passing=False)


def test_circular_causes_terminate() -> None:
    first, second = ValueError("1"), ValueError("2")
    first.__cause__, second.__cause__ = second, first
    assert not explain(first, "").passing


@pytest.mark.parametrize(
    "words", ["key secret-of-mine", "sk-abcdefgh1234", "AIzaSyA1234567890", "a sk-proj-******1234"]
)
def test_keys_are_not_repeated(words: str) -> None:
    reason = explain(Answered(401, words=words), "secret-of-mine").reason
    assert "***" in reason
    for part in ("secret", "abcdefgh", "1234"):
        assert part not in reason


def test_long_and_unusual_texts_are_truncated_and_cleaned() -> None:
    reason = explain(Answered(400, words="\x1b[31mred\n\nlines " + "x" * 900), "").reason
    assert len(reason) < 220
    assert "\x1b" not in reason
    assert "[31mred lines" in reason
    assert explain(Answered(400, words=""), "").reason == "its server replied with 400 (no reason given)."


@pytest.mark.parametrize(
    ("value", "expected"),
    [("2", 2.0), ("0.5", 0.5), ("-3", 0.0), ("soon", None), ("nan", None), (None, None), ("", None)],
)
def test_retry_after(value: str | None, expected: float | None) -> None:
    assert explain(Answered(429, value), "").retry_after == expected


def test_retry_after_as_a_date() -> None:
    later = email.utils.formatdate(time.time() + 60, usegmt=True)
    found = explain(Answered(429, later), "").retry_after
    assert found is not None
    assert 50 < found <= 60
    assert explain(Answered(429, email.utils.formatdate(0, usegmt=True)), "").retry_after == 0.0


def test_pauses_are_random_and_grow_to_a_limit() -> None:
    for attempt, longest in ((1, 0.5), (2, 1.0), (3, 2.0), (4, 4.0)):
        drawn = [wait for _ in range(300) if (wait := pause(PASSING, attempt, 100.0)) is not None]
        assert len(drawn) == 300
        assert 0.8 * longest < max(drawn) <= longest <= LONGEST_PAUSE_S
        assert min(drawn) < 0.2 * longest
    assert pause(PASSING, ATTEMPTS, 100.0) is None


def test_the_pause_follows_the_server_if_time_allows() -> None:
    asked: Any = Failure("why", passing=True, retry_after=3.0)
    wait = pause(asked, 1, 10.0)
    assert wait is not None
    assert 3.0 <= wait <= 3.25
    assert pause(asked, 1, 3.0) is None
    assert pause(PASSING, 1, 0.0) is None
    assert pause(Failure("why", passing=False), 1, 100.0) is None
