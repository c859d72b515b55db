"""The open app of a test is the only one, whatever the tests before it have left open in the same process."""

from __future__ import annotations

import pytest

from dtrag.retrieval import active


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """`dtrag` functions without an app take the one that the test opens."""
    monkeypatch.setattr(active, "_opened", [])
