"""An agent as it is stored: its manifest in force, the branches it was given, and what its models used on a day."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dtrag.core.access.scope import Grant
from dtrag.core.manifest import AgentManifest
from dtrag.core.taxonomy.tree import Taxonomy

MILLION = 1_000_000
"""Money is counted in millionths of a won: the price of one token is a small part of one."""


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent; `edition` counts from 1 and grows with every change of its manifest."""

    agent_id: uuid.UUID
    edition: int
    manifest: AgentManifest
    grant: Grant
    created_by: str
    created_at: datetime.datetime
    updated_at: datetime.datetime

    @property
    def name(self) -> str:
        """As its manifest says."""
        return self.manifest.name

    def unresolved(self, taxonomy: Taxonomy) -> list[str]:
        """The paths, as they were written, that lead nowhere in this version of the tree."""
        return [str(path) for path in self.grant.unresolved(taxonomy)]

    def as_dict(self, taxonomy: Taxonomy) -> dict[str, Any]:
        """The manifest with what is known of the agent beside it."""
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
    """A manifest that an agent has, or had, with the branches that it was given."""

    edition: int
    manifest: AgentManifest
    created_by: str
    created_at: datetime.datetime
    grant: Grant


@dataclass(frozen=True, slots=True)
class Spending:
    """What the models of an agent used on a day (UTC); `cost` in millionths of a won."""

    day: datetime.date
    calls: int = 0
    tokens: int = 0
    cost: int = 0

    @property
    def krw(self) -> float:
        """The cost in won."""
        return self.cost / MILLION


def allowed_tools(agent: Agent, asked: Iterable[str]) -> tuple[str, ...]:
    """Those of the tools that the agent may use, by their exact names; nothing is a wildcard."""
    return tuple(dict.fromkeys(tool for tool in asked if tool in agent.manifest.mcp_tools_allowlist))
