"""Finds the work that an edition belongs to, when its document is read."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from dtrag.core.documents import DOCUMENT_NAMESPACE, Draft
from dtrag.core.editions import Edition, edition_id, folded_name, new_work_id
from dtrag.core.taxonomy.tree import UNCLASSIFIED, Taxonomy
from dtrag.ingestion.write_guard import WriteGuard
from dtrag.ports import IndexWriter, StoredWork

RULES = "editions-2"
"""How dates are read: files are read again when this changes."""


class Editions:
    """The editions of one run. `name` and `effective_from` are those of documents that state none themselves.

    A work is a code and a name in one category. An edition joins the work in its own category; without a category of
    its own, one that the run may write to, and it gets the category of that work. Elsewhere it begins another work.
    """

    def __init__(
        self, writer: IndexWriter, guard: WriteGuard, *, name: str = "", effective_from: date | None = None
    ) -> None:
        self._writer = writer
        self._guard = guard
        self._name = folded_name(name)
        self._effective_from = effective_from
        self.unstated = 0
        """Documents that took name or date from the index, because neither they nor the run state it."""
        self._source_id: uuid.UUID | None = None
        self._stored: dict[str, Edition] = {}
        self._seen: Counter[tuple[uuid.UUID, tuple[str, str], date]] = Counter()

    @property
    def id(self) -> str:
        """Changes with everything but the file itself that decides about its editions."""
        return f"{RULES} {self._name} {self._effective_from or ''}"

    async def completed(self, edition: Edition | None, source_id: uuid.UUID, uri: str) -> Edition | None:
        """The edition as its document and the options of the run state it, else as it is in the index."""
        if edition is None and self._name:
            edition = Edition(self._name)
        if edition is not None and edition.effective_from is None and self._effective_from is not None:
            edition = replace(edition, effective_from=self._effective_from)
        if edition is not None and edition.effective_from is not None:
            return edition
        if self._source_id != source_id:
            self._source_id, self._stored = source_id, await self._writer.editions_of(source_id)
        stored = self._stored.get(uri)
        if stored is None or (edition is not None and edition.name != stored.name):
            return edition
        self.unstated += 1
        return replace(edition or Edition(stored.name, stored.code), effective_from=stored.effective_from)

    async def joined(self, draft: Draft, taxonomy: Taxonomy) -> Draft:
        """The draft of a dated edition as a document of its work; any other unchanged."""
        edition = draft.edition
        if edition is None or edition.effective_from is None:
            return draft
        effective_from = edition.effective_from
        place = (draft.source_id, edition.work, effective_from)
        self._seen[place] += 1
        if self._seen[place] > 1:  # two regulations of one name and date in one file are two works
            edition = replace(edition, name=f"{edition.name}#{self._seen[place]}")
        document = draft.passages.document
        works = await self._writer.works([edition.work])
        chosen = self._chosen(works, draft, effective_from)
        if chosen is None:
            taken = {work.work_id for work in works}
            work_id = new_work_id(DOCUMENT_NAMESPACE, taxonomy.path(draft.node_id), edition, taken)
        else:
            work_id = chosen.work_id
            if not document.category_path and chosen.node_id != UNCLASSIFIED:
                document = replace(document, category_path=taxonomy.path(chosen.node_id) or None)
                draft = replace(draft, node_id=chosen.node_id)
        return replace(
            draft,
            document_id=_document_id(work_id, effective_from, draft.node_id, works),
            passages=replace(draft.passages, document=document),
            edition=edition.joined(work_id),
        )

    def _chosen(self, works: Sequence[StoredWork], draft: Draft, day: date) -> StoredWork | None:
        """The work to join: one with an edition of the day or of the same file first, then the newest."""
        nodes = self._guard.scope.nodes
        known = [work for work in works if nodes is None or work.node_id in nodes]
        if draft.passages.document.category_path:
            known = [work for work in known if work.node_id == draft.node_id]

        def order(work: StoredWork) -> tuple[bool, bool, int, uuid.UUID, int]:
            days = work.editions.values()
            is_other = work.source_id != draft.source_id
            return day not in days, is_other, -max(days).toordinal(), work.work_id, work.node_id

        return min(known, key=order, default=None)


def _document_id(work_id: uuid.UUID, day: date, node_id: int, works: Sequence[StoredWork]) -> uuid.UUID:
    """The id of the edition of the day in the category; a new one never replaces a document in another category."""
    taken = set[uuid.UUID]()
    for work in works:
        if work.work_id == work_id:
            taken |= work.editions.keys()
            if work.node_id == node_id:
                taken -= {key for key, other in work.editions.items() if other == day}
    return edition_id(work_id, day, taken)
