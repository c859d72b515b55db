"""Finds the work that an edition belongs to, when its document is read."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import replace
from datetime import date

from dtrag.core.documents import DOCUMENT_NAMESPACE, Draft
from dtrag.core.editions import Edition, edition_id, new_work_id
from dtrag.core.taxonomy.tree import UNCLASSIFIED, Taxonomy
from dtrag.ingestion.write_guard import WriteGuard
from dtrag.packs.regulation_ko.catalog import folded_name
from dtrag.ports import IndexWriter

RULES = "editions-1"
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
        self._begun: dict[tuple[tuple[str, str], int], uuid.UUID] = {}
        self._seen: Counter[tuple[uuid.UUID, tuple[str, str], date]] = Counter()

    @property
    def id(self) -> str:
        """Changes with everything but the file itself that decides about its editions."""
        return f"{RULES} {self._name} {self._effective_from or ''}"

    def completed(self, edition: Edition | None) -> Edition | None:
        """The edition as its document and the options of the run state it."""
        if edition is None:
            return Edition(self._name, effective_from=self._effective_from) if self._name else None
        if edition.effective_from is None and self._effective_from is not None:
            return replace(edition, effective_from=self._effective_from)
        return edition

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
        nodes = self._guard.scope.nodes
        known = [work for work in await self._writer.works([edition.work]) if nodes is None or work.node_id in nodes]
        if document.category_path:
            known = [work for work in known if work.node_id == draft.node_id]
        begun = self._begun.get((edition.work, draft.node_id))
        chosen = min(known, key=lambda work: (work.source_id != draft.source_id, work.work_id), default=None)
        if begun is not None or chosen is None:
            work_id = begun or new_work_id(DOCUMENT_NAMESPACE, draft.source_uri, edition)
        else:
            work_id = chosen.work_id
            if not document.category_path and chosen.node_id != UNCLASSIFIED:
                document = replace(document, category_path=taxonomy.path(chosen.node_id) or None)
                draft = replace(draft, node_id=chosen.node_id)
        self._begun[edition.work, draft.node_id] = work_id
        return replace(
            draft,
            document_id=edition_id(work_id, effective_from),
            passages=replace(draft.passages, document=document),
            edition=edition.joined(work_id),
        )
