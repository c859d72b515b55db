"""The audit log in memory: `AuditStore`."""

from __future__ import annotations

from collections.abc import Sequence

from dtrag.core.access.audit_chain import START, AuditEntry, AuditFilter, AuditRow, ChainHead, chained
from dtrag.testing.memory.state import MemoryState


class MemoryAudit:
    """The log of one state."""

    def __init__(self, state: MemoryState):
        self._rows = state.audit_rows

    async def append(self, entries: Sequence[AuditEntry]) -> ChainHead:
        """Add the entries as the next lines of the chain, all or none."""
        self._rows += chained(entries, self._head())
        return self._head()

    async def page(self, after: int, limit: int) -> list[AuditRow]:
        """Lines with numbers above `after`, at most so many, in order."""
        return [row for row in self._rows if row.number > after][:limit]

    async def newest(self, limit: int, filters: AuditFilter) -> list[AuditRow]:
        """The newest lines that pass the filters, the newest first."""
        return [row for row in reversed(self._rows) if filters.admits(row)][:limit]

    def _head(self) -> ChainHead:
        return ChainHead(self._rows[-1].number, self._rows[-1].hash) if self._rows else START
