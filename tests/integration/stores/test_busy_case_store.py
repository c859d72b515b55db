"""A search of the cases in the database while others change them all the time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dtrag.adapters.postgres.stores import cases as postgres_cases
from dtrag.adapters.postgres.stores.cases import PostgresCases
from dtrag.core.access.scope import EVERYTHING, Scope
from dtrag.core.cases.case import Case, CaseQuery
from dtrag.ports import Stores
from tests.builders import case

QUERY = CaseQuery(text="How many days of annual leave are there?", limit=50)


class ChangedAtEveryRead:
    """Adds a case before each read of a store, so that its index is never up to date."""

    def __init__(self, store: PostgresCases, changes: int) -> None:
        self._store = store
        self._read = store._first_visible
        self._changes = changes
        self.reads = 0

    async def first_visible(self, case_ids: Sequence[str], limit: int, scope: Scope) -> tuple[dict[str, Case], int]:
        self.reads += 1
        if self.reads <= self._changes:
            assert await self._store.add(case(f"added {self.reads}"))
        return await self._read(case_ids, limit, scope)


async def ids(store: PostgresCases) -> set[str]:
    return {each.case_id for each, _ in await store.nearest(QUERY, EVERYTHING)}


@pytest.mark.parametrize("changes", [0, 1, 100])
async def test_a_stream_of_changes_does_not_hold_up_a_search(
    stores: Stores, monkeypatch: pytest.MonkeyPatch, changes: int
) -> None:
    store = stores.cases
    assert isinstance(store, PostgresCases)
    await store.add(case("first"))
    assert await ids(store) == {"first"}
    busy = ChangedAtEveryRead(store, changes)
    with monkeypatch.context() as patched:
        patched.setattr(store, "_first_visible", busy.first_visible)
        seen = await ids(store)
    updates = min(changes, postgres_cases._MOST_UPDATES)
    assert busy.reads == 1 + updates
    # What was added before the last update is there; only what came after it may be missing.
    assert seen == {"first", *(f"added {number}" for number in range(1, updates + 1))}
    assert await ids(store) == {each.case_id for each in await store.page(EVERYTHING, 1_000)}
