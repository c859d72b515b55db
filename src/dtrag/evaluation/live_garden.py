"""A live collection for the isolation test: requests name some documents of every branch.

Nothing is loaded as a whole. What a caller gets is compared with what the database answers its owner at that time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from dtrag.core.access.scope import Scope
from dtrag.core.taxonomy.tree import Taxonomy
from dtrag.evaluation.canaries import ID, TOKEN, Garden, Hidden, Identity
from dtrag.ports import Index

MOST_REQUESTED = 5_000
"""Documents that requests name, but at least one of every branch."""


class OwnerReads(Protocol):
    """What the database answers its owner: see `adapters/postgres/unscoped.py`."""

    async def documents_of_each_node(self, per_node: int) -> Sequence[Mapping[str, Any]]: ...

    async def total(self) -> int: ...

    async def count(self, scope: Scope) -> int: ...

    async def nodes(self, document_ids: Collection[str]) -> Mapping[str, int]: ...

    async def texts(self, keys: Collection[str]) -> Mapping[str, str]: ...

    async def tables_without_policy(self) -> Sequence[str]: ...

    async def rows_in_scope(self, scope: Scope, document_ids: Sequence[str]) -> Mapping[str, int]: ...

    async def rows_under_policy(self, scope: Scope, document_ids: Sequence[str]) -> Mapping[str, int]: ...


@dataclass(kw_only=True)
class LiveGarden(Garden):
    """Some documents of every branch; ids, counts and texts of responses are compared with the owner's reads."""

    index: Index
    owner: OwnerReads
    total: int
    attempts: ClassVar[int] = 3

    @classmethod
    async def load(cls, index: Index, owner: OwnerReads) -> LiveGarden:
        """The documents that requests name."""
        taxonomy = (await index.snapshot()).taxonomy
        per_node = max(1, MOST_REQUESTED // max(1, len(taxonomy.nodes)))
        hidden = [_hidden(row) for row in await owner.documents_of_each_node(per_node)]
        return cls(taxonomy, hidden, index=index, owner=owner, total=await owner.total())

    @property
    def documents(self) -> int:
        """The number of all documents when the test began."""
        return self.total

    async def count(self, identity: Identity) -> int:
        """The number of documents that the caller may see now."""
        return await self.owner.count(await self._scope(identity))

    async def seen(self, body: str, identity: Identity) -> list[str]:
        """The ids of documents in a response that the caller may not see now."""
        nodes = await self.owner.nodes(set(ID.findall(body.casefold())))
        allowed = (await self._scope(identity)).nodes or frozenset()
        return sorted(document_id for document_id, node in nodes.items() if node not in allowed)

    async def altered(self, texts: Mapping[str, str]) -> list[str]:
        """Those of the chunk ids and document ids in a response whose text is not theirs."""
        stored = await self.owner.texts(texts) if texts else {}
        return sorted(key for key, text in texts.items() if stored.get(key) != text)

    async def policy_faults(self, identity: Identity) -> list[str]:
        """Tables without row-level security, or that show the caller other rows than it may see."""
        unprotected = await self.owner.tables_without_policy()
        faults = [f"{table} has no row-level security, or no policy for callers" for table in unprotected]
        document_ids = [document.document_id for document in self.hidden]
        differing: set[tuple[str, int, int]] = set()
        for _ in range(self.attempts):
            scope = await self._scope(identity)
            shown = await self.owner.rows_under_policy(scope, document_ids)
            allowed = await self.owner.rows_in_scope(scope, document_ids)
            differing = {(table, shown[table], rows) for table, rows in allowed.items() if shown[table] != rows}
            if not differing:
                break
        return faults + [f"{table}: {rows:,} rows, where {may:,} may be seen" for table, rows, may in sorted(differing)]

    async def _scope(self, identity: Identity) -> Scope:
        return identity.access.resolved(await self._tree())

    async def _tree(self) -> Taxonomy:
        return (await self.index.snapshot()).taxonomy


def _hidden(row: Mapping[str, Any]) -> Hidden:
    title, author = row["title"], row["author"] or ""
    words = tuple(dict.fromkeys(TOKEN.findall(f"{title} {author}"))) or tuple(title.split()[:5]) or ("nothing",)
    return Hidden(str(row["document_id"]), row["node_id"], title, title, author, words)
