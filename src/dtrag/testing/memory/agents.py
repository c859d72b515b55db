"""Agents in memory: `AgentStore`."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import date, datetime

from dtrag.core.agent import Agent, Edition, Spending
from dtrag.core.manifest import AgentManifest
from dtrag.core.taxonomy.tree import Taxonomy
from dtrag.errors import NotFound
from dtrag.testing.memory.state import MemoryState


class MemoryAgents:
    """The agents of one state."""

    def __init__(self, state: MemoryState):
        self._state = state
        self._agents = state.agents
        self._editions: dict[uuid.UUID, list[Edition]] = {}
        self._spending: dict[tuple[uuid.UUID, date], Spending] = {}

    async def add(self, agent: Agent) -> None:
        """Store a new agent with its first edition."""
        self._agents[agent.agent_id] = agent = _stored(agent)
        self._editions[agent.agent_id] = [_edition(agent, agent.created_by, agent.created_at)]

    async def get(self, agent_id: uuid.UUID) -> Agent | None:
        """The agent, or None."""
        return self._agents.get(agent_id)

    async def every(self) -> list[Agent]:
        """All agents, the newest first."""
        return sorted(self._agents.values(), key=lambda agent: (-agent.created_at.timestamp(), agent.agent_id))

    async def replace(self, agent: Agent, changed_by: str) -> bool:
        """Replace the edition before it; False when that one is not active any more."""
        current = self._agents.get(agent.agent_id)
        if current is None or current.edition != agent.edition - 1:
            return False
        agent = _stored(agent)
        self._agents[agent.agent_id] = replace(agent, created_by=current.created_by, created_at=current.created_at)
        self._editions[agent.agent_id].insert(0, _edition(agent, changed_by, agent.updated_at))
        return True

    async def delete(self, agent_id: uuid.UUID) -> bool:
        """Delete the agent with its editions, spending and review items; False without one."""
        if self._agents.pop(agent_id, None) is None:
            return False
        del self._editions[agent_id]
        self._spending = {key: spending for key, spending in self._spending.items() if key[0] != agent_id}
        for item in [item for item in self._state.review_items.values() if item.agent_id == agent_id]:
            del self._state.review_items[item.item_id]
        return True

    async def editions(self, agent_id: uuid.UUID) -> list[Edition]:
        """Every manifest that the agent has had, the newest first."""
        return list(self._editions.get(agent_id, ()))

    async def charge(self, agent_id: uuid.UUID, day: date, calls: int, tokens: int, cost: int) -> Spending:
        """Add to what the agent used on the day; returns the day's sum. Raises `NotFound`."""
        if agent_id not in self._agents:
            raise NotFound(kind="agent", name=str(agent_id))
        before = await self.spending(agent_id, day)
        total = Spending(day, before.calls + calls, before.tokens + tokens, before.cost + cost)
        self._spending[agent_id, day] = total
        return total

    async def spending(self, agent_id: uuid.UUID, day: date) -> Spending:
        """What the agent used on the day."""
        return self._spending.get((agent_id, day), Spending(day))

    async def tree(self, version: str) -> Taxonomy | None:
        """That version of the tree, or None."""
        return self._state.trees.get(version)


def _stored(agent: Agent) -> Agent:
    """With the manifest as a database gives it back: folded paths."""
    return replace(agent, manifest=AgentManifest.from_dict(agent.manifest.as_dict()))


def _edition(agent: Agent, created_by: str, created_at: datetime) -> Edition:
    return Edition(agent.edition, agent.manifest, created_by, created_at, agent.grant)
