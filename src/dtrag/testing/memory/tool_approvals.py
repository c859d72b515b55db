"""Approved tools in memory: `ApprovalStore`."""

from __future__ import annotations

from dtrag.core.tool_approval import Approval
from dtrag.testing.memory.state import MemoryState


class MemoryApprovals:
    """The approvals of one state."""

    def __init__(self, state: MemoryState):
        self._approvals = state.approvals

    async def every(self) -> dict[str, Approval]:
        """Full name of a tool -> its approval, ordered by name."""
        return dict(sorted(self._approvals.items()))

    async def put(self, approval: Approval) -> None:
        """Approve; replaces an earlier approval of the tool."""
        self._approvals[approval.tool] = approval

    async def remove(self, tool: str) -> bool:
        """Withdraw the approval; False without one."""
        return self._approvals.pop(tool, None) is not None
