"""The case memory switched on for the tests that ask for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dtrag.cases import retention
from dtrag.pipeline.recall import FLAG
from dtrag.settings import set_feature_flag


@pytest.fixture
def memory_on(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The flag of the case memory is on, answers have all the time they need, and what happened with them is stored
    when a test says so: a replay on a slow machine would judge a case in the middle of it."""
    monkeypatch.setattr(retention, "WRITE_S", 3_600.0)
    set_feature_flag(FLAG, True)
    yield
    set_feature_flag(FLAG, None)
