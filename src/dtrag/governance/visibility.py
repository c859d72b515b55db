"""Documents as callers see them: their text part by part, and which keys and agents see them through which branch."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from dtrag.core.access import confinement
from dtrag.core.access.api_key import Role
from dtrag.core.access.scope import Access, Grant, Scope, Viewer
from dtrag.core.document_listing import DocumentText, PassageSpan
from dtrag.core.documents import uuid_or_none
from dtrag.core.response import response
from dtrag.core.taxonomy.tree import UNCLASSIFIED, CategoryPath, Taxonomy
from dtrag.errors import InvalidInput, NotFound
from dtrag.ports import AgentStore, DocumentIndex, KeyStore


@dataclass(frozen=True, slots=True)
class Sight:
    """Who sees the document."""

    __pydantic_config__ = response("SightShape")

    kind: Literal["key", "agent", "public"]
    """key, agent, or public: callers without a key."""
    name: str
    """Name of the key or agent; public."""
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
    """Agents and keys that see it, each group by name; public at the end."""
    without_keys: bool
    """Whether no key exists and nothing is public, so that every program on the service's machine sees it."""


class DocumentAccess:
    """Who can see a document: for administrators of the whole tree, as it names keys and agents of all branches."""

    def __init__(
        self,
        index: DocumentIndex,
        keys: KeyStore,
        agents: AgentStore,
        public: Callable[[], Grant | None],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._index = index
        self._keys = keys
        self._agents = agents
        self._public = public
        self._now = now

    async def who(self, document_id: str) -> Visibility:
        """The valid keys and the agents that see the document, by name. Raises `NotFound`."""
        key = uuid_or_none(document_id)
        taxonomy = (await self._index.snapshot()).taxonomy
        document = (
            await self._index.document(key, Access(principals=None).resolved(taxonomy), taxonomy) if key else None
        )
        if document is None:
            raise NotFound(kind="document", name=document_id[:60])
        category = document[0].taxonomy_path
        node = taxonomy.find(CategoryPath.parse(list(category))) if category else UNCLASSIFIED
        keys, agents, now = await self._keys.every(), await self._agents.every(), self._now()
        sights = [
            Sight("key", stored.name, branch, role=stored.role)
            for stored in keys
            if stored.state(now) == "valid" and _sees(stored.caller().access, node, taxonomy)
            for branch in _branches(stored.grant, node, taxonomy)
        ]
        sights += [
            Sight("agent", agent.name, branch, id=str(agent.agent_id))
            for agent in agents
            if _sees(Access((agent.grant,)), node, taxonomy)
            for branch in _branches(agent.grant, node, taxonomy)
        ]
        public = self._public()
        if public is not None and _sees(Access((public,)), node, taxonomy):
            branches = _branches(public, node, taxonomy)
            sights += [Sight("public", "public", branch, role="public") for branch in branches]
        sights.sort(key=lambda sight: (sight.kind, sight.name, sight.id))
        return Visibility(str(key), tuple(category), tuple(sights), without_keys=not keys and public is None)


def _sees(access: Access, node: int | None, taxonomy: Taxonomy) -> bool:
    nodes = access.resolved(taxonomy).nodes
    return nodes is None or node in nodes


def _branches(grant: Grant | None, node: int | None, taxonomy: Taxonomy) -> list[tuple[str, ...] | None]:
    """The first branch of the grant that holds the node, by its present path; none when no branch does."""
    if grant is None:
        return [None]
    for anchor in grant.anchors:
        top = anchor.node(taxonomy)
        if top is not None and node in taxonomy.subtree(top):
            return [tuple(taxonomy.path(top)) or None]
    return []


MAX_CHARACTERS = 200_000
"""Of one part of a text."""
MAX_PASSAGES = 1_000


class DocumentTexts:
    """The texts of the documents of an index. `scope` defaults to the owner's, and inside a run to that of the run."""

    def __init__(self, index: DocumentIndex) -> None:
        self._index = index

    async def part(
        self, document_id: str, start: int = 0, end: int | None = None, *, scope: Viewer | None = None
    ) -> DocumentText:
        """The text from `start` to `end` in code points, at most `MAX_CHARACTERS`; without `end` as much as that.

        A span beyond the text is empty. Raises `NotFound`, and `InvalidInput` for a span that is too long.
        """
        last = start + MAX_CHARACTERS if end is None else end
        if not 0 <= start <= last or last - start > MAX_CHARACTERS:
            raise InvalidInput(f"start is at least 0, and end from start to start + {MAX_CHARACTERS:,}.")
        part = await self._index.document_text(_key(document_id), start, last, await self._resolved(scope))
        if part is None:
            raise _not_found(document_id)
        return part

    async def passages(
        self, document_id: str, limit: int = 100, offset: int = 0, *, scope: Viewer | None = None
    ) -> tuple[list[PassageSpan], int]:
        """A page of the passages in their order, without text, and their total number. Raises `NotFound`."""
        if not (1 <= limit <= MAX_PASSAGES and offset >= 0):
            raise InvalidInput(f"limit must be from 1 to {MAX_PASSAGES:,} and offset at least 0.")
        listed = await self._index.passage_spans(_key(document_id), limit, offset, await self._resolved(scope))
        if listed is None:
            raise _not_found(document_id)
        return listed

    async def _resolved(self, viewer: Viewer | None) -> Scope:
        taxonomy = (await self._index.snapshot()).taxonomy
        return confinement.bounded(viewer).resolved(taxonomy)


def _key(document_id: str) -> uuid.UUID:
    key = uuid_or_none(document_id)
    if key is None:
        raise _not_found(document_id)
    return key


def _not_found(document_id: str) -> NotFound:
    return NotFound(kind="document", name=str(document_id)[:60])
