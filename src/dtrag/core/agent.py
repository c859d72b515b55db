"""Agents: current manifest, granted branches, and spending per day."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from dtrag.core.access.scope import Grant
from dtrag.core.manifest import AgentManifest, ManifestView
from dtrag.core.taxonomy.tree import Taxonomy

MILLION = 1_000_000
"""Costs are integers in millionths of a won: the price of one token is a fraction of a won."""


class AgentView(ManifestView):
    """An agent for display."""

    agent_id: str
    edition: int
    unresolved_paths: list[str]
    created_by: str
    created_at: str
    updated_at: str


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent; `edition` starts at 1 and increases with every change of the manifest."""

    agent_id: uuid.UUID
    edition: int
    manifest: AgentManifest
    grant: Grant
    created_by: str
    created_at: datetime.datetime
    updated_at: datetime.datetime

    @property
    def name(self) -> str:
        """Name in its manifest."""
        return self.manifest.name

    def unresolved(self, taxonomy: Taxonomy) -> list[str]:
        """Granted paths that do not exist in this version of the tree."""
        return [str(path) for path in self.grant.unresolved(taxonomy)]

    def as_dict(self, taxonomy: Taxonomy) -> AgentView:
        """The manifest and the properties of the agent, with plain values."""
        return {
            **self.manifest.as_dict(),
            "agent_id": str(self.agent_id),
            "edition": self.edition,
            "unresolved_paths": self.unresolved(taxonomy),
            "created_by": self.created_by,
            "created_at": self.created_at.isoformat(),
            "updated_at": self.updated_at.isoformat(),
        }


@dataclass(frozen=True, slots=True)
class Edition:
    """A current or earlier manifest of an agent, with the granted branches."""

    edition: int
    manifest: AgentManifest
    created_by: str
    created_at: datetime.datetime
    grant: Grant


@dataclass(frozen=True, slots=True)
class Spending:
    """What an agent's model calls used on a day (UTC); `cost` in millionths of a won."""

    day: datetime.date
    calls: int = 0
    tokens: int = 0
    cost: int = 0

    @property
    def krw(self) -> float:
        """The cost in won."""
        return self.cost / MILLION


def allowed_tools(agent: Agent, tools: Iterable[str]) -> tuple[str, ...]:
    """The tools among these that the agent may use, compared by exact name; there are no wildcards."""
    return tuple(dict.fromkeys(tool for tool in tools if tool in agent.manifest.mcp_tools_allowlist))
