"""Agents: current manifest, granted branches, and spending per day."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field, fields

from dtrag.core.access.scope import Grant
from dtrag.core.manifest import AgentManifest
from dtrag.core.response import INTERNAL, Moment, response
from dtrag.core.taxonomy.tree import Taxonomy

MILLION = 1_000_000
"""Costs are integers in millionths of a won: the price of one token is a fraction of a won."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentView(AgentManifest):
    """An agent with its manifest."""

    __pydantic_config__ = response("AgentShape")

    agent_id: uuid.UUID
    """Its id."""
    edition: int
    """Counts from 1; grows with every change."""
    unresolved_paths: list[str]
    """Paths that do not exist in the active tree; no document belongs to them."""
    created_by: str
    """Who created it: the name of a key, or local."""
    created_at: Moment
    """When, ISO 8601 in UTC."""
    updated_at: Moment
    """When its current edition was created, ISO 8601 in UTC."""


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

    def view(self, taxonomy: Taxonomy) -> AgentView:
        """The manifest and the properties of the agent."""
        return AgentView(
            **{declared.name: getattr(self.manifest, declared.name) for declared in fields(self.manifest)},
            agent_id=self.agent_id,
            edition=self.edition,
            unresolved_paths=self.unresolved(taxonomy),
            created_by=self.created_by,
            created_at=self.created_at,
            updated_at=self.updated_at,
        )


@dataclass(frozen=True, slots=True)
class AgentEdition:
    """A current or earlier manifest of an agent."""

    __pydantic_config__ = response("EditionShape")

    edition: int
    """Counts from 1."""
    manifest: AgentManifest
    """The manifest."""
    created_by: str
    """Who changed it."""
    created_at: Moment
    """When, ISO 8601 in UTC."""
    grant: Grant = field(metadata=INTERNAL)


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


@dataclass(frozen=True, slots=True)
class SpendingToday:
    """Usage of an agent's models on one day, and its budget."""

    __pydantic_config__ = response("SpendingShape")

    day: datetime.date
    """The day, in UTC."""
    calls: int
    """Model calls."""
    tokens: int
    """Input and output tokens."""
    krw: float
    """Cost in won."""
    tokens_per_day: int
    """Daily token budget."""
    krw_per_day: float
    """Daily cost budget in won."""


def allowed_tools(agent: Agent, tools: Iterable[str]) -> tuple[str, ...]:
    """The tools among these that the agent may use, compared by exact name; there are no wildcards."""
    return tuple(dict.fromkeys(tool for tool in tools if tool in agent.manifest.mcp_tools_allowlist))
