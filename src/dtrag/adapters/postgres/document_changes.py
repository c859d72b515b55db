"""One change of many documents, in one transaction: what it would do, whether that is allowed, and then the change."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from psycopg.rows import DictRow

from dtrag.adapters.postgres.database import Connection, Database, Store, fetch, fetch_row, repeated
from dtrag.adapters.postgres.index_writer import PostgresWriter
from dtrag.adapters.postgres.queries import Lock, lock, lock_shared, queries, uuid_key
from dtrag.adapters.postgres.stores.review import place
from dtrag.adapters.postgres.stores.taxonomy_activation import Change, previewed
from dtrag.adapters.postgres.stores.taxonomy_moves import active_tree
from dtrag.core.access.scope import Access, Grant, Scope, category_within
from dtrag.core.document_changes import (
    NOT_VISIBLE,
    PLACED_BY_SOURCE,
    ChangedDocument,
    DocumentsEffect,
    ManyDocuments,
    RefusedDocument,
)
from dtrag.core.documents import uuid_or_none
from dtrag.core.taxonomy.grades import Grades
from dtrag.core.taxonomy.tree import CategoryPath, Taxonomy
from dtrag.errors import InvalidInput


class PostgresDocumentChanges(Store):
    """`DocumentChangeStore`. `public` are the branches of callers without a key; a move may lower `grades`."""

    subject = "document_changes"

    def __init__(self, database: Database, writer: PostgresWriter, grades: Grades, public: Callable[[], Grant | None]):
        super().__init__(database)
        self._writer = writer
        self._grades = grades
        self._public = public

    async def preview(self, selection: ManyDocuments, access: Access, now: datetime) -> DocumentsEffect:
        """See `DocumentChangeStore`."""
        async with self._database.connection("owner") as connection, connection.transaction():
            await connection.execute(queries("session")["read_one_state"])
            return await self._effect(connection, selection, access, now)

    async def change(
        self,
        selection: ManyDocuments,
        access: Access,
        allowed: Callable[[DocumentsEffect], None],
        *,
        by: str,
        now: datetime,
    ) -> DocumentsEffect:
        """See `DocumentChangeStore`."""
        async with self._database.connection("owner") as connection:
            effect = await repeated(lambda: self._change(connection, selection, access, allowed, by=by, now=now))
        if effect.changed:
            await self._writer.changed(len(effect.changed))
        return effect

    async def _change(
        self,
        connection: Connection,
        selection: ManyDocuments,
        access: Access,
        allowed: Callable[[DocumentsEffect], None],
        *,
        by: str,
        now: datetime,
    ) -> DocumentsEffect:
        async with connection.transaction():
            await lock(connection, Lock.CHANGES)
            await lock_shared(connection, Lock.WRITERS)
            keys = sorted(_keys(selection).values())
            await connection.execute(self._sql["lock_waiting"], {"document_ids": keys})
            for key in keys:
                await lock(connection, uuid_key(key))
            effect = await self._effect(connection, selection, access, now)
            allowed(effect)
            changed = [document.document_id for document in effect.changed]
            if not changed:
                return effect
            if effect.node_id is None:
                for document_id in changed:
                    await self._writer.erase(connection, document_id)
                await connection.execute(queries("writing")["bump_generation"])
            else:
                settled = {"document_ids": changed, "at": now, "by": by}
                await connection.execute(self._sql["settle_waiting"], settled)
                await place(connection, changed, effect.node_id, at=now, by=by)
        return effect

    async def _effect(
        self, connection: Connection, selection: ManyDocuments, access: Access, now: datetime
    ) -> DocumentsEffect:
        taxonomy = await active_tree(connection)
        scope, keys = access.resolved(taxonomy), _keys(selection)
        target = None if selection.category is None else _target(selection.category, taxonomy, scope)
        rows = await fetch(connection, self._sql["selected"], {"document_ids": list(keys.values())})
        visible = {row["document_id"]: row for row in rows if scope.nodes is None or row["node_id"] in scope.nodes}
        owned = await self._owned(connection, visible.values(), taxonomy) if target is not None else frozenset()
        refused = [
            RefusedDocument(name, "", NOT_VISIBLE) for name in selection.document_ids if keys.get(name) not in visible
        ]
        refused += [RefusedDocument(str(key), visible[key]["title"], PLACED_BY_SOURCE) for key in sorted(owned)]
        left = [row for key, row in visible.items() if key not in owned]
        changed = tuple(_document(row, taxonomy) for row in left if row["node_id"] != target)
        unchanged = len(left) - len(changed)
        if target is None:
            affected = {"document_ids": [document.document_id for document in changed]}
            numbers = [
                await fetch_row(connection, self._sql[name], affected)
                for name in ("cases_citing", "conversations_about")
            ]
            cases, conversations = (int(row["number"]) if row else 0 for row in numbers)
            return DocumentsEffect("delete", changed, refused=tuple(refused), cases=cases, conversations=conversations)
        moves: dict[tuple[int, int], list[uuid.UUID]] = defaultdict(list)
        for document in changed:
            moves[document.node_id, target].append(document.document_id)
        preview = await previewed(
            connection, Change("activate", taxonomy, taxonomy, moves), now, self._grades, self._public()
        )
        return DocumentsEffect(
            "move",
            changed,
            node_id=target,
            unchanged=unchanged,
            refused=tuple(refused),
            widened=any(target not in taxonomy.with_above([document.node_id]) for document in changed),
            access=preview.access,
            lowered=preview.lowered,
        )

    async def _owned(self, connection: Connection, rows: Iterable[DictRow], taxonomy: Taxonomy) -> frozenset[uuid.UUID]:
        """The documents whose category a synced source decides, or that are in a branch of its rights."""
        documents = list(rows)
        values = {"source_ids": list({row["source_id"] for row in documents})}
        synced = {row["source_id"] for row in await fetch(connection, self._sql["of_synced_sources"], values)}
        restricted = taxonomy.restricted
        return frozenset(
            row["document_id"] for row in documents if row["source_id"] in synced or row["node_id"] in restricted
        )


def _target(category: CategoryPath, taxonomy: Taxonomy, scope: Scope) -> int:
    """The node to which documents move. Raises `InvalidInput`."""
    node = category_within(category, taxonomy, scope)
    if node in taxonomy.restricted:
        raise InvalidInput("A source decides who reads this category, and what is in it. Give another one.")
    return node


def _keys(selection: ManyDocuments) -> Mapping[str, uuid.UUID]:
    """Those of the ids that can be ids of documents."""
    return {name: key for name in selection.document_ids if (key := uuid_or_none(name)) is not None}


def _document(row: DictRow, taxonomy: Taxonomy) -> ChangedDocument:
    path = taxonomy.path(row["node_id"])
    return ChangedDocument(row["document_id"], row["node_id"], path, row["chunks"], bytes(row["fingerprint"]))
