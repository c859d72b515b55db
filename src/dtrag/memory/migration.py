"""Copies the case memory from one store to another: from SQLite to PostgreSQL, or back."""

from __future__ import annotations

from dataclasses import dataclass

from dtrag.ports.cases import CaseStore

PAGE = 500


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
