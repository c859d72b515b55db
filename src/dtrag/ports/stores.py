"""All stores of one database, as services receive them."""

from __future__ import annotations

from dataclasses import dataclass

from dtrag.ports.conversations import ConversationStore, DocumentVisibility, TraceStore
from dtrag.ports.files import FolderStore
from dtrag.ports.governance import AgentStore, AuditStore, KeyStore
from dtrag.ports.index import DocumentIndex, IndexWriter
from dtrag.ports.packs import RegulationStore
from dtrag.ports.taxonomy import PlacementStore, ReviewStore, TaxonomyStore
from dtrag.ports.tools import ApprovalStore


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores of one database. What one of them writes, the others read."""

    index: DocumentIndex
    writer: IndexWriter
    folders: FolderStore
    regulations: RegulationStore
    placements: PlacementStore
    review: ReviewStore
    taxonomy: TaxonomyStore
    agents: AgentStore
    keys: KeyStore
    audit: AuditStore
    approvals: ApprovalStore
    sight: DocumentVisibility
    conversations: ConversationStore
    traces: TraceStore
