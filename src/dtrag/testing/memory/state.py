"""What the in-memory stores share: the content of one database."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any

from dtrag.core.access.api_key import Key
from dtrag.core.access.audit_chain import AuditRow
from dtrag.core.access.scope import Scope
from dtrag.core.access.session import Session
from dtrag.core.access.taxonomy_impact import TreeVersion
from dtrag.core.agent import Agent
from dtrag.core.answer_feedback import AnswerFeedback
from dtrag.core.cases.case import Case, CaseLog, ReuseDecision
from dtrag.core.cases.votes import CountedVote
from dtrag.core.documents import IndexedDocument, Vector
from dtrag.core.editions import StoredEdition, Validity, passage_label, validity
from dtrag.core.evaluation_run import EvaluationRun
from dtrag.core.taxonomy.apply import successor
from dtrag.core.taxonomy.review import Item
from dtrag.core.taxonomy.tree import UNCLASSIFIED, Taxonomy
from dtrag.core.tool_approval import Approval
from dtrag.core.trace import Trace
from dtrag.ports import NewQuestion, valid_day

FIRST_VERSION = "1.0.0"
START = datetime(2025, 1, 1, tzinfo=UTC)
"""When the first version of the tree was created."""


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as it was written; `node_id` is the category it is in now, `validity` that of a dated edition.

    `followed_on` is the day on which a later edition took effect that has been removed since.
    """

    written: IndexedDocument
    node_id: int
    processed_at: datetime
    validity: Validity | None = None
    followed_on: date | None = None

    @property
    def retained(self) -> bool:
        """Whether it is a superseded edition that its file does not contain any more."""
        return self.written.edition is not None and self.written.edition.retained

    def is_valid(self, scope: Scope) -> bool:
        """Whether the document as a whole is valid on the day of the scope."""
        day, validity = valid_day(scope), self.validity
        return validity is None or (validity.start <= day and (validity.end is None or day < validity.end))

    def holds_valid(self, ordinal: int, scope: Scope) -> bool:
        """Whether the passage is valid on the day of the scope."""
        part = self.validity.of(ordinal) if self.validity is not None else None
        return part is None or part.admits(valid_day(scope))

    def valid_passages(self, scope: Scope) -> int:
        """How many of its passages are valid on the day of the scope."""
        return sum(self.holds_valid(indexed.chunk.ordinal, scope) for indexed in self.written.chunks)

    def is_listed(self, scope: Scope) -> bool:
        """Whether it is undated, or has a passage that is valid on the day of the scope."""
        return self.validity is None or self.valid_passages(scope) > 0

    def in_scope(self, scope: Scope) -> bool:
        """Whether a caller with this scope may see it."""
        return scope.nodes is None or self.node_id in scope.nodes


@dataclass(frozen=True, slots=True)
class StoredSource:
    """A file that was read to its end."""

    uri: str
    fingerprint: bytes


@dataclass(frozen=True, slots=True)
class Activation:
    """A version that became active.

    `vacated` maps each node that left the tree to the node that took its documents; `moves` maps each document that
    changed its node to (node before, node after).
    """

    version: str
    activated_at: datetime
    vacated: Mapping[int, int] = field(default_factory=dict)
    moves: Mapping[uuid.UUID, tuple[int, int]] = field(default_factory=dict)


@dataclass(slots=True)
class ImaginedText:
    """The imagined questions of a text, and the model and vector of each that has one."""

    text: str
    questions: tuple[NewQuestion, ...]
    origin: str
    created_at: datetime
    vectors: dict[int, tuple[str, Vector]] = field(default_factory=dict)


@dataclass(slots=True)
class MemoryState:
    """The content of one database. Create one and hand it to all stores that belong together.

    Nothing here waits, so that every method of a store is atomic on its event loop. Not for use by several threads.
    """

    documents: dict[uuid.UUID, StoredDocument] = field(default_factory=dict)
    sources: dict[uuid.UUID, StoredSource] = field(default_factory=dict)
    edition_sources: dict[uuid.UUID, dict[uuid.UUID, IndexedDocument]] = field(default_factory=dict)
    """Document of an edition -> source that contains it -> the document as it was read there, the newest last."""
    vectors: dict[uuid.UUID, dict[int, tuple[str, Vector]]] = field(default_factory=dict)
    """Document -> number of a passage -> id of the model and its vector."""
    imagined: dict[tuple[uuid.UUID, bytes], ImaginedText] = field(default_factory=dict)
    """Document and hash of a text in it -> the imagined questions of that text."""
    waiting: set[uuid.UUID] = field(default_factory=set)
    """Documents with passages that may wait for a vector."""
    services: int = 0
    is_filling: bool = False
    """Whether a turn of `MemoryVectors` is in use, and of how many services."""
    settings: dict[str, Any] = field(default_factory=lambda: {"generation": 0, "vectors": 0})
    trees: dict[str, Taxonomy] = field(default_factory=lambda: {FIRST_VERSION: Taxonomy(FIRST_VERSION)})
    versions: dict[str, TreeVersion] = field(
        default_factory=lambda: {FIRST_VERSION: TreeVersion(FIRST_VERSION, None, "", True, (), "", START, None)}
    )
    activations: list[Activation] = field(default_factory=lambda: [Activation(FIRST_VERSION, START)])
    active_version: str = FIRST_VERSION
    last_node: int = UNCLASSIFIED
    decided_nodes: dict[uuid.UUID, int] = field(default_factory=dict)
    placements: dict[uuid.UUID, float] = field(default_factory=dict)
    review_items: dict[uuid.UUID, Item] = field(default_factory=dict)
    keys: dict[uuid.UUID, Key] = field(default_factory=dict)
    sessions: dict[bytes, Session] = field(default_factory=dict)
    agents: dict[uuid.UUID, Agent] = field(default_factory=dict)
    audit_rows: list[AuditRow] = field(default_factory=list)
    approvals: dict[str, Approval] = field(default_factory=dict)
    traces: dict[uuid.UUID, Trace] = field(default_factory=dict)
    answer_feedback: dict[tuple[uuid.UUID, str], AnswerFeedback] = field(default_factory=dict)
    evaluations: dict[uuid.UUID, EvaluationRun] = field(default_factory=dict)
    cases: dict[str, Case] = field(default_factory=dict)
    case_logs: dict[str, CaseLog] = field(default_factory=dict)
    case_votes: dict[tuple[str, str, str], CountedVote] = field(default_factory=dict)
    """Case, voter, log -> vote."""
    case_decisions: dict[tuple[str, str], ReuseDecision] = field(default_factory=dict)
    """Case, log -> decision."""

    @property
    def taxonomy(self) -> Taxonomy:
        """The active tree."""
        return self.trees[self.active_version]

    def changed(self) -> None:
        """Count a change of the index or of the tree: readers load a new snapshot."""
        self.settings["generation"] += 1

    def seen(self, scope: Scope) -> Iterator[StoredDocument]:
        """The documents in scope, in the order of their ids."""
        return (stored for _, stored in sorted(self.documents.items()) if stored.in_scope(scope))

    def follow_texts(self, document_id: uuid.UUID) -> None:
        """Delete the imagined questions of texts that the document does not contain any more."""
        stored = self.documents.get(document_id)
        texts = {indexed.chunk.text for indexed in stored.written.chunks} if stored is not None else set()
        for key, imagined in list(self.imagined.items()):
            if key[0] == document_id and imagined.text not in texts:
                del self.imagined[key]

    def change_edition(self, document_id: uuid.UUID, **changes: Any) -> None:
        """Replace fields of a document's edition."""
        stored = self.documents[document_id]
        if stored.written.edition is not None:
            written = replace(stored.written, edition=replace(stored.written.edition, **changes))
            self.documents[document_id] = replace(stored, written=written)

    def refresh_editions(self) -> None:
        """Derive the validity of all editions, in each category from those there."""
        works: dict[tuple[uuid.UUID, int], list[StoredDocument]] = {}
        for stored in self.documents.values():
            written = stored.written.edition
            if written is not None and written.work_id is not None:
                works.setdefault((written.work_id, stored.node_id), []).append(stored)
        for work in works.values():
            editions = [edition for each in work if (edition := _stored_edition(each)) is not None]
            for key, valid in validity(editions, self._repealed_on(work)).items():
                self.documents[key] = replace(self.documents[key], validity=valid)

    def _repealed_on(self, work: list[StoredDocument]) -> list[date]:
        editions = [stored.written.edition for stored in work if stored.written.edition is not None]
        repealing = (
            other.written.edition.effective_from
            for other in self.documents.values()
            if other.written.edition is not None
            and editions[-1].name in other.written.edition.repeals
            and other.node_id == work[0].node_id
            and other.written.edition.work_id != editions[-1].work_id
        )
        return [day for day in repealing if day is not None]

    def move(self, document_id: uuid.UUID, node_id: int) -> None:
        """Put a document into another category."""
        self.documents[document_id] = replace(self.documents[document_id], node_id=node_id)

    def living_node(self, node_id: int) -> int:
        """The node, or the one that took its documents when it left the tree; UNCLASSIFIED when none did."""
        living = {*self.taxonomy.nodes, UNCLASSIFIED}
        return successor(node_id, living, [activation.vacated for activation in reversed(self.activations)])


def _stored_edition(stored: StoredDocument) -> StoredEdition | None:
    written, edition = stored.written, stored.written.edition
    if edition is None or edition.effective_from is None:
        return None
    metadata = [indexed.chunk.metadata for indexed in written.chunks]
    labels = [passage_label(each.get("kind"), each.get("article")) for each in metadata]
    ends_on = min((day for day in (edition.ends_on, stored.followed_on) if day is not None), default=None)
    return StoredEdition(written.document_id, edition.effective_from, edition.article_dates, ends_on, labels)
