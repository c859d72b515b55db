"""The case memory switched on for the tests that ask for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dtrag.pipeline.recall import FLAG
from dtrag.settings import set_feature_flag


@pytest.fixture
def memory_on(patient: None) -> Iterator[None]:
    """The flag of the case memory is on, and answers have all the time they need."""
    set_feature_flag(FLAG, True)
    yield
    set_feature_flag(FLAG, None)
