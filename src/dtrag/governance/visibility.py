"""Who can see a document, and why: the keys and agents with a branch that holds its category."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from dtrag.core.access.api_key import Role
from dtrag.core.access.scope import Access, Grant
from dtrag.core.documents import uuid_or_none
from dtrag.core.response import response
from dtrag.core.taxonomy.tree import UNCLASSIFIED, CategoryPath, Taxonomy
from dtrag.errors import NotFound
from dtrag.ports import AgentStore, DocumentIndex, KeyStore


@dataclass(frozen=True, slots=True)
class Sight:
    """A key or an agent that sees the document."""

    __pydantic_config__ = response("SightShape")

    kind: Literal["key", "agent"]
    """key or agent."""
    name: str
    """Its name."""
    branch: tuple[str, ...] | None
    """The branch through which it sees the document; null: the whole tree."""
    role: Role | None = None
    """Role of the key; null for agents."""
    id: str = ""
    """Id of the agent; empty for keys."""


@dataclass(frozen=True, slots=True)
class Visibility:
    """Everybody who sees a document."""

    __pydantic_config__ = response("VisibilityShape")

    document_id: str
    """The document."""
    category: tuple[str, ...]
    """Its category, outermost name first; [] for none."""
    sights: tuple[Sight, ...]
    """Keys and agents that see it: agents first, each group by name."""
    without_keys: bool
    """Whether no key exists, so that every program on the service's machine sees it."""


class DocumentAccess:
    """Who can see a document: for administrators of the whole tree, as it names keys and agents of all branches."""

    def __init__(
        self,
        index: DocumentIndex,
        keys: KeyStore,
        agents: AgentStore,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._index = index
        self._keys = keys
        self._agents = agents
        self._now = now

    async def who(self, document_id: str) -> Visibility:
        """The valid keys and the agents that see the document, by name. Raises `NotFound`."""
        key = uuid_or_none(document_id)
        taxonomy = (await self._index.snapshot()).taxonomy
        document = await self._index.document(key, Access().resolved(taxonomy), taxonomy) if key else None
        if document is None:
            raise NotFound(kind="document", name=document_id[:60])
        category = document[0].taxonomy_path
        node = taxonomy.find(CategoryPath.parse(list(category))) if category else UNCLASSIFIED
        keys, agents, now = await self._keys.every(), await self._agents.every(), self._now()
        sights = [
            Sight("key", stored.name, branch, role=stored.role)
            for stored in keys
            if stored.state(now) == "valid"
            for branch in _branches(stored.grant, node, taxonomy)
        ]
        sights += [
            Sight("agent", agent.name, branch, id=str(agent.agent_id))
            for agent in agents
            for branch in _branches(agent.grant, node, taxonomy)
        ]
        sights.sort(key=lambda sight: (sight.kind, sight.name, sight.id))
        return Visibility(str(key), tuple(category), tuple(sights), without_keys=not keys)


def _branches(grant: Grant | None, node: int | None, taxonomy: Taxonomy) -> list[tuple[str, ...] | None]:
    """The first branch of the grant that holds the node, by its present path; none when no branch does."""
    if grant is None:
        return [None]
    for anchor in grant.anchors:
        top = anchor.node(taxonomy)
        if top is not None and node in taxonomy.subtree(top):
            return [tuple(taxonomy.path(top))]
    return []
