"""One change of many documents: another category for them, or their deletion; and what it does."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from dtrag.core.access.taxonomy_impact import AccessChange
from dtrag.core.response import INTERNAL, response
from dtrag.core.statements import Statement, stated
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.core.taxonomy.versions import GradeChange, Path
from dtrag.errors import InvalidInput

MAX_DOCUMENTS = 1_000
"""Of one change: it is one transaction, which locks each of them."""
NOT_VISIBLE = stated("change_not_visible", "There is no such document that you may see.")
PLACED_BY_SOURCE = stated(
    "change_placed_by_source", "Its category is that of its source: change it there, and sync the source again."
)


@dataclass(frozen=True, slots=True)
class ManyDocuments:
    """The documents of one change, by id; `category` None deletes them, else they move there."""

    document_ids: tuple[str, ...]
    category: CategoryPath | None = None

    @classmethod
    def parse(cls, document_ids: Sequence[str], category: Sequence[str] | str | None = None) -> ManyDocuments:
        """Each id once. Raises `InvalidInput`."""
        if not 1 <= len(document_ids) <= MAX_DOCUMENTS:
            raise InvalidInput(f"One change is about 1 to {MAX_DOCUMENTS:,} documents: divide the others.")
        path = None if category is None else CategoryPath.parse(category)
        return cls(tuple(dict.fromkeys(map(str, document_ids))), path)


@dataclass(frozen=True, slots=True)
class CategoryDocuments:
    """A number of documents in a category."""

    __pydantic_config__ = response("CategoryDocumentsShape")

    path: Path
    """The category, outermost name first; [] for none."""
    documents: int
    """Number of documents."""


@dataclass(frozen=True, slots=True)
class RefusedDocument:
    """A document that cannot be changed so."""

    __pydantic_config__ = response("RefusedDocumentShape")

    document_id: str
    """Its id, as it was sent."""
    title: str
    """Its title; empty for one that you may not see."""
    reason: Statement
    """Why."""


@dataclass(frozen=True, slots=True)
class ChangedDocument:
    """A document that the change is about, as it is before: `path` is its category."""

    document_id: uuid.UUID
    node_id: int
    path: Path
    passages: int
    fingerprint: bytes


@dataclass(frozen=True, slots=True)
class DocumentsEffect:
    """What a change of many documents does, or would do."""

    __pydantic_config__ = response("DocumentsEffectShape")

    action: Literal["move", "delete"]
    """move or delete."""
    changed: tuple[ChangedDocument, ...] = field(metadata=INTERNAL)
    node_id: int | None = field(default=None, metadata=INTERNAL)  # where the documents move; None: they are deleted
    dry_run: bool = False
    """Whether nothing was changed."""
    documents: int = field(init=False, default=0)
    """Documents that are moved or deleted."""
    passages: int = field(init=False, default=0)
    """Their passages."""
    unchanged: int = 0
    """Documents that are in the category already."""
    categories: tuple[CategoryDocuments, ...] = field(init=False, default=())
    """Where the changed documents were, by category."""
    refused: tuple[RefusedDocument, ...] = ()
    """Documents that stay as they are, and why; those of a deletion that exist no more are among them."""
    widened: bool = False
    """Whether documents become visible to others. Where `access` is null: whether they move to a category that is
    not above theirs."""
    access: tuple[AccessChange, ...] | None = ()
    """Keys, agents and the public that gain or lose documents; null unless you are an administrator of the whole tree.
    """
    lowered: tuple[GradeChange, ...] = ()
    """Categories whose documents get a lower grade."""
    cases: int | None = None
    """Cases that cite deleted documents; null unless you may see the whole tree."""
    conversations: int | None = None
    """Conversations with answers from deleted documents, which are not shown any more; null as for cases."""
    state: str = field(init=False, default="")
    """Digest of the documents with their texts and categories, and of the access and grades above."""

    def __post_init__(self) -> None:
        paths = [document.path for document in self.changed]
        counts = tuple(CategoryDocuments(path, paths.count(path)) for path in sorted(set(paths)))
        object.__setattr__(self, "documents", len(self.changed))
        object.__setattr__(self, "passages", sum(document.passages for document in self.changed))
        object.__setattr__(self, "categories", counts)
        rows = [(str(row.document_id), row.path, row.fingerprint.hex()) for row in self.changed]
        shown = json.dumps([self.action, sorted(rows), sorted(map(repr, (*(self.access or ()), *self.lowered)))])
        object.__setattr__(self, "state", hashlib.sha256(shown.encode()).hexdigest()[:32])

    def for_caller(self, *, whole_tree: bool, names_keys: bool) -> DocumentsEffect:
        """Without what only callers of the whole tree, or its administrators, may see."""
        if names_keys:
            return replace(self, widened=any(row.gained for row in self.access or ()))
        return replace(self, access=None) if whole_tree else replace(self, access=None, cases=None, conversations=None)
