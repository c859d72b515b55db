"""Approved tools in the database: `ApprovalStore` over the table approved_tools. Only the owner's role can read it."""

from __future__ import annotations

from dtrag.adapters.postgres.database import Database
from dtrag.adapters.postgres.queries import queries
from dtrag.core.tool_approval import Approval


class PostgresApprovals:
    """The approvals of one database."""

    def __init__(self, database: Database):
        self._database = database
        self._sql = queries("approvals")

    async def every(self) -> dict[str, Approval]:
        """Full name of a tool -> how it was approved."""
        async with self._database.connection("owner") as connection:
            rows = await (await connection.execute(self._sql["approvals"])).fetchall()
        return {
            row["tool"]: Approval(row["tool"], bytes(row["fingerprint"]), row["approved_by"], row["approved_at"])
            for row in rows
        }

    async def put(self, approval: Approval) -> None:
        """Approve; replaces an earlier approval of the tool."""
        values = {
            "tool": approval.tool,
            "fingerprint": approval.fingerprint,
            "approved_by": approval.approved_by,
            "approved_at": approval.approved_at,
        }
        async with self._database.connection("owner") as connection:
            await connection.execute(self._sql["approve"], values)

    async def remove(self, tool: str) -> bool:
        """Revoke the approval; False when there was none."""
        async with self._database.connection("owner") as connection:
            return bool(await (await connection.execute(self._sql["revoke"], {"tool": tool})).fetchall())
