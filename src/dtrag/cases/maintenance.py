"""Maintenance of the case memory: who may do it, reading all cases, expiry of interactions, and copies of a store."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from dtrag.core.access.api_key import Caller
from dtrag.core.access.scope import EVERYTHING
from dtrag.core.cases.case import Case
from dtrag.core.retention import TidyTimer, kept_since
from dtrag.errors import FeatureOff, Forbidden
from dtrag.ports import CaseStore
from dtrag.settings import flag

PAGE = 500


def require_maintainer(caller: Caller) -> None:
    """Raises `FeatureOff` while the memory is off, and `Forbidden` for a caller with a scope."""
    if not flag("cbr_enabled"):
        raise FeatureOff(feature="CBR system", variable="CBR_ENABLED")
    if caller.access.grants or not caller.may("admin"):
        raise Forbidden("Only an administrator of the whole tree may maintain the case memory.")


async def pages(store: CaseStore) -> AsyncIterator[list[Case]]:
    """All cases of the store by id, in pages."""
    after: str | None = None
    while page := await store.page(EVERYTHING, PAGE, after):
        yield list(page)
        after = page[-1].case_id


async def all_cases(store: CaseStore) -> list[Case]:
    """All cases of the store, by id."""
    return [case async for page in pages(store) for case in page]


class LogExpiry:
    """Expires the interactions of one store. `days` 0: none expires."""

    def __init__(
        self,
        store: CaseStore,
        days: int,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._days = days
        self._now = now
        self._timer = TidyTimer(now, monotonic)

    async def tidy(self) -> int:
        """Delete what is expired, about once an hour; returns its number."""
        if not self._days or not self._timer.due():
            return 0
        return await self._store.forget_logs(kept_since(self._now(), self._days))


@dataclass(frozen=True, slots=True)
class Migrated:
    """How many cases (with their votes and decisions) and interactions were copied, and how many were there already."""

    cases: int = 0
    known_cases: int = 0
    logs: int = 0
    known_logs: int = 0


async def migrate(from_store: CaseStore, to_store: CaseStore) -> Migrated:
    """Copy all cases with their votes and decisions, and all interactions; nothing is deleted or overwritten.

    An interrupted copy is completed by the next one. A case whose id is in use in the other store stays as it is there,
    with its own votes.
    """
    copied = known = 0
    after: str | None = None
    while records := await from_store.records(PAGE, after):
        for record in records:
            added = await to_store.put(record)
            copied, known = copied + added, known + (not added)
        after = records[-1].case.case_id
    logs, known_logs = await _migrate_logs(from_store, to_store)
    return Migrated(copied, known, logs, known_logs)


async def _migrate_logs(from_store: CaseStore, to_store: CaseStore) -> tuple[int, int]:
    copied = known = 0
    after: str | None = None
    while logs := await from_store.log_page(PAGE, after):
        for log in logs:
            if await to_store.log(log.log_id, log.user_id) is None:
                await to_store.add_log(log)
                copied += 1
            else:
                known += 1
        after = logs[-1].log_id
    return copied, known
