"""Stores whose cases are in PostgreSQL, and stores whose cases are in an SQLite file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from dtrag.adapters.sqlite.cases import SqliteCases
from dtrag.ports import Stores


@pytest_asyncio.fixture(params=["postgres", "sqlite"])
async def stores(request: pytest.FixtureRequest, stores: Stores, tmp_path: Path) -> AsyncIterator[Stores]:
    """The stores of an empty database."""
    if request.param == "postgres":
        yield stores
        return
    cases = SqliteCases(tmp_path, stores.sight.visible)
    yield replace(stores, cases=cases)
    await cases.close()
