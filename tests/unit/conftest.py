"""No unit test opens a database, or works with an app that tests before it have left open in the same process."""

from __future__ import annotations

import pytest

from dtrag import current_app


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no open app but those that the test opens."""
    monkeypatch.setattr(current_app, "_opened", [])


@pytest.fixture(scope="session")
def embedded() -> None:
    """Fails: a test with a database belongs to tests/integration, so that `make check` stays quick."""
    pytest.fail("Unit tests open no database: move this test to tests/integration.")
