"""Writing the in-memory index: `IndexWriter`, and what the index was built with: `IndexSettings`."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

from dtrag.core import lexicon_entry
from dtrag.core.access.scope import EVERYTHING, Scope
from dtrag.core.answers.confidence import SETTING
from dtrag.core.documents import ChunkedDocument, Draft, IndexedDocument
from dtrag.core.editions import Edition
from dtrag.core.taxonomy.tree import ROOT, CategoryPath, Node, Taxonomy
from dtrag.errors import Forbidden
from dtrag.ports import StoredWork, check_identity, valid_day
from dtrag.testing.memory.state import MemoryState, StoredDocument, StoredSource


class MemoryWriter:
    """The writing side of one state."""

    def __init__(self, state: MemoryState):
        self._state = state

    async def fingerprints(self, document_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, bytes]:
        """Fingerprints of those of the documents that exist."""
        documents = self._state.documents
        return {key: documents[key].written.fingerprint for key in document_ids if key in documents}

    async def write(self, documents: Sequence[IndexedDocument], scope: Scope = EVERYTHING) -> None:
        """Write each document whole, or replace it. Raises `Forbidden` before replacing one outside of the scope."""
        for document in documents:
            self._list(document)
            current = self._state.documents.get(document.document_id)
            if current is not None and not current.in_scope(scope):
                raise Forbidden(
                    "A document with this address exists outside your branches. Give the file another name."
                )
            node_id = self._state.living_node(document.node_id)
            followed_on = current.followed_on if current is not None and current.node_id == node_id else None
            self._state.documents[document.document_id] = StoredDocument(
                document, node_id, datetime.now(UTC), followed_on=followed_on
            )
            self._state.vectors.pop(document.document_id, None)
            self._state.follow_texts(document.document_id)
            self._state.waiting.add(document.document_id)
        if documents:
            self._state.refresh_editions()
            self._state.changed()

    async def source_fingerprint(self, source_id: uuid.UUID) -> bytes | None:
        """The fingerprint of a source that was read to its end, or None."""
        source = self._state.sources.get(source_id)
        return source.fingerprint if source is not None else None

    async def documents_of(self, source_id: uuid.UUID, most: int) -> list[uuid.UUID]:
        """The documents of a source, at most so many, in the order of their ids."""
        return [stored.written.document_id for stored in self._of_source(source_id)][:most]

    async def reaches_out(self, source_id: uuid.UUID, scope: Scope) -> bool:
        """Whether a document of this source is outside of the scope."""
        return not all(stored.in_scope(scope) for stored in self._of_source(source_id))

    async def finish_source(
        self, source_id: uuid.UUID, uri: str, fingerprint: bytes, current: Sequence[int], scope: Scope = EVERYTHING
    ) -> int:
        """Record that a source was read to its end, and delete its documents in scope that are not in `current`.

        Returns how many it deleted. `current` holds the upper 64 bits of the ids of its documents.
        """
        deleted = await self.drop_source(source_id, scope, current)
        self._state.sources[source_id] = StoredSource(uri, fingerprint)
        return len(deleted)

    async def drop_source(self, source_id: uuid.UUID, scope: Scope, current: Sequence[int] = ()) -> list[uuid.UUID]:
        """Delete the documents of a source in scope that are not in `current`, but for superseded editions."""
        present = frozenset(current)
        gone: list[uuid.UUID] = []
        for stored in self._of_source(source_id):
            key = stored.written.document_id
            if key.int >> 64 in present:
                self._state.change_edition(key, retained=False)
            elif not stored.in_scope(scope) or self._hand_over(stored):
                continue
            elif stored.validity is not None and (end := stored.validity.end) and (present or end <= valid_day(scope)):
                self._state.change_edition(key, retained=True)
                if not present:  # a file that comes back is read again
                    self._state.sources.pop(source_id, None)
            else:
                gone.append(key)
        for key, listed in self._state.edition_sources.items():
            if key.int >> 64 not in present:
                listed.pop(source_id, None)
        return [key for key in gone if await self.delete(key, scope, ends=True)]

    async def contains_others(self, source_id: uuid.UUID) -> bool:
        """Whether the source contains an edition whose document belongs to another source, which was read later."""
        return any(
            source_id in listed
            and key in self._state.documents
            and self._state.documents[key].written.source_id != source_id
            for key, listed in self._state.edition_sources.items()
        )

    def _list(self, document: IndexedDocument) -> None:
        """Record that the source of a document contains this edition."""
        edition = document.edition
        if edition is not None and edition.work_id is not None and not edition.retained:
            listed = self._state.edition_sources.setdefault(document.document_id, {})
            listed.pop(document.source_id, None)
            listed[document.source_id] = document

    def _hand_over(self, stored: StoredDocument) -> bool:
        """Give an edition to another source that contains it, the one that was read last; False if there is none."""
        key, own = stored.written.document_id, stored.written.source_id
        others = [read for source, read in self._state.edition_sources.get(key, {}).items() if source != own]
        if not others:
            return False
        heir = others[-1]
        written = replace(
            stored.written, source_id=heir.source_id, source_uri=heir.source_uri, source_path=heir.source_path
        )
        self._state.documents[key] = replace(stored, written=written)
        self._state.change_edition(key, retained=False)
        if heir.source_id in self._state.sources:
            self._state.sources[heir.source_id] = replace(self._state.sources[heir.source_id], fingerprint=b"")
        self._state.changed()
        return True

    async def editions_of(self, source_id: uuid.UUID) -> dict[str, Edition]:
        """Address -> newest edition that the source contained, for its documents with a date."""
        newest: dict[str, tuple[date, Edition]] = {}
        for stored in self._of_source(source_id):
            edition, uri = stored.written.edition, stored.written.source_uri
            if edition is None or edition.effective_from is None or stored.retained:
                continue
            if uri not in newest or newest[uri][0] < edition.effective_from:
                newest[uri] = edition.effective_from, edition
        return {uri: edition for uri, (_, edition) in newest.items()}

    async def works(self, works: Collection[tuple[str, str]]) -> list[StoredWork]:
        """The works with one of these codes and folded names, one for each category with editions of it."""
        newest_first: list[tuple[date, StoredDocument, Edition]] = []
        for stored in self._state.documents.values():
            edition = stored.written.edition
            if edition is not None and edition.effective_from is not None and edition.work in works:
                newest_first.append((edition.effective_from, stored, edition))
        newest_first.sort(key=lambda each: each[0], reverse=True)
        known: dict[tuple[uuid.UUID, tuple[str, str], int], StoredWork] = {}
        for day, stored, edition in newest_first:
            if edition.work_id is not None:
                key = edition.work_id, edition.work, stored.node_id
                work = known.get(key) or StoredWork(*key, stored.written.source_id, {})
                known[key] = replace(work, editions={**work.editions, stored.written.document_id: day})
        return list(known.values())

    async def delete(self, document_id: uuid.UUID, scope: Scope, *, ends: bool = False) -> bool:
        """Delete a document that the scope may see; False without one.

        The edition before a deleted one is valid again, unless `ends`.
        """
        stored = self._state.documents.get(document_id)
        if stored is None or not stored.in_scope(scope):
            return False
        del self._state.documents[document_id]
        self._state.vectors.pop(document_id, None)
        self._state.follow_texts(document_id)
        self._state.waiting.discard(document_id)
        for source_id in self._state.edition_sources.pop(document_id, {}):
            self._state.sources.pop(source_id, None)
        edition = stored.written.edition
        if ends and edition is not None and edition.work_id is not None:
            self._end_before(edition, stored)
        self._state.refresh_editions()
        self._state.sources.pop(stored.written.source_id, None)
        self._state.changed()
        return True

    async def read_back(self, after: uuid.UUID | None, limit: int) -> list[Draft]:
        """The documents as they were written, in the order of their ids, from the first after `after`."""
        later = [
            stored for stored in self._state.seen(EVERYTHING) if after is None or stored.written.document_id > after
        ]
        return [draft_of(stored) for stored in later[:limit]]

    async def recover(self) -> int:
        """Nothing outlives a crash here: 0."""
        return 0

    async def tidy(self) -> None:
        """Nothing to do."""

    async def ensure_paths(self, paths: Collection[CategoryPath]) -> Taxonomy:
        """The active taxonomy, with these paths in it."""
        taxonomy = self._state.taxonomy
        for path in paths:
            for depth in range(1, len(path.names) + 1):
                above = CategoryPath(path.names[:depth], path.key[:depth])
                if taxonomy.find(above) is None:
                    taxonomy = self._with_node(taxonomy, above)
        if taxonomy is not self._state.taxonomy:
            self._state.trees[taxonomy.version] = taxonomy
            self._state.changed()
        return taxonomy

    def _with_node(self, taxonomy: Taxonomy, path: CategoryPath) -> Taxonomy:
        parent = taxonomy.find(CategoryPath(path.names[:-1], path.key[:-1])) if path.names[1:] else ROOT
        self._state.last_node += 1
        node = Node(self._state.last_node, parent or ROOT, path.names[-1], path.key[-1])
        return Taxonomy.of(taxonomy.version, [*taxonomy.nodes.values(), node])

    def _end_before(self, removed: Edition, last: StoredDocument) -> None:
        """Earlier editions of the same work do not become valid again, but for one that the file still contains."""
        for key, stored in list(self._state.documents.items()):
            edition, day = stored.written.edition, removed.effective_from
            if edition is None or edition.work_id != removed.work_id or edition.effective_from is None or day is None:
                continue
            is_contained = stored.written.source_id == last.written.source_id and not stored.retained
            if edition.effective_from < day and stored.node_id == last.node_id and not is_contained:
                ended = replace(stored, followed_on=min(day, stored.followed_on or day))
                self._state.documents[key] = ended

    def _of_source(self, source_id: uuid.UUID) -> list[StoredDocument]:
        return [stored for stored in self._state.seen(EVERYTHING) if stored.written.source_id == source_id]


def draft_of(stored: StoredDocument) -> Draft:
    """A stored document as it came in."""
    written = stored.written
    document = replace(written.document, blocks=(), part="", category_path=None)
    passages = ChunkedDocument(document, tuple(indexed.chunk for indexed in written.chunks))
    return Draft(
        written.document_id,
        passages,
        written.source_id,
        written.source_uri,
        stored.node_id,
        b"",
        source_path=written.source_path,
        edition=written.edition,
    )


class MemoryIndexSettings:
    """What the index of one state was built with, its calibration, and the own entries of the lexicon."""

    def __init__(self, state: MemoryState):
        self._state = state

    async def register(self, analyzer: str) -> str:
        """Record the analyzer in an index that has none yet. Raises `IndexMismatch` when it has another one.

        There was no earlier release: returns "".
        """
        check_identity(self._state.settings, analyzer)
        self._state.settings.setdefault("analyzer", analyzer)
        self._state.changed()
        return ""

    async def forget(self) -> None:
        """Forget analyzer, sources and vectors; the documents stay, to be indexed again."""
        self._state.settings.pop("analyzer", None)
        self._state.sources.clear()
        self._state.vectors.clear()
        self._state.waiting.update(self._state.documents)
        for key, stored in self._state.documents.items():
            self._state.documents[key] = replace(stored, written=replace(stored.written, fingerprint=b""))
        self._state.settings["rebuilding"] = True
        self._state.changed()

    async def rebuilt(self) -> None:
        """The index is complete again."""
        self._state.settings.pop("rebuilding", None)
        self._state.changed()

    async def store_calibration(self, value: Mapping[str, Any]) -> None:
        """Replace the calibration."""
        self._state.settings[SETTING] = dict(value)
        self._state.changed()

    async def forget_calibration(self) -> bool:
        """Return to the shipped weights; whether there was a calibration."""
        self._state.changed()
        return self._state.settings.pop(SETTING, None) is not None

    async def replace_lexicon(self, value: Mapping[str, Any], previous: Mapping[str, Any] | None) -> bool:
        """Replace the own entries; False, without a change, when those stored are not `previous`."""
        if self._state.settings.get(lexicon_entry.SETTING) != previous:
            return False
        self._state.settings[lexicon_entry.SETTING] = dict(value)
        self._state.changed()
        return True
