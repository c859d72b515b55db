"""All stores of one database, as services receive them."""

from __future__ import annotations

from dataclasses import dataclass

from dtrag.ports.cases import CaseStore
from dtrag.ports.conversations import ConversationStore, DocumentVisibility
from dtrag.ports.evaluations import EvaluationStore
from dtrag.ports.files import FolderStore
from dtrag.ports.governance import AgentStore, AuditSpoolStore, AuditStore, KeyStore, SessionStore
from dtrag.ports.imagined import ImaginedStore
from dtrag.ports.index import DocumentIndex, IndexSettings, IndexWriter
from dtrag.ports.learning import LearningStore
from dtrag.ports.packs import RegulationStore
from dtrag.ports.taxonomy import PlacementStore, ReviewStore, TaxonomyStore
from dtrag.ports.tools import ApprovalStore
from dtrag.ports.traces import TraceStore
from dtrag.ports.vectors import VectorStore


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores of one database. What one of them writes, the others read.

    `audit_spool` takes lines of the audit log that the database cannot take; None: they are lost with an error.
    """

    index: DocumentIndex
    index_settings: IndexSettings
    writer: IndexWriter
    vectors: VectorStore
    imagined: ImaginedStore
    folders: FolderStore
    regulations: RegulationStore
    placements: PlacementStore
    review: ReviewStore
    taxonomy: TaxonomyStore
    agents: AgentStore
    keys: KeyStore
    sessions: SessionStore
    audit: AuditStore
    approvals: ApprovalStore
    sight: DocumentVisibility
    conversations: ConversationStore
    traces: TraceStore
    evaluations: EvaluationStore
    cases: CaseStore
    learning: LearningStore
    audit_spool: AuditSpoolStore | None = None
