"""The open app of a test is the only one, whatever the tests before it have left open in the same process."""

from __future__ import annotations

import pytest

from dtrag import current_app
from dtrag.assembly import pipeline_type


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """`dtrag` functions without an app take the one that the test opens."""
    monkeypatch.setattr(current_app, "_opened", [])


@pytest.fixture(params=["plain", "langgraph"])
def runner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every case once with each of the two that run the steps: in the app, and where a snippet makes a pipeline."""
    chosen = pipeline_type(request.param)
    monkeypatch.setattr("dtrag.app.pipeline_type", lambda name: chosen)
    monkeypatch.setattr(request.module, "LangGraphPipeline", chosen)
