"""Interfaces between services and adapters: protocols, implemented in `dtrag.adapters` and in `dtrag.testing`."""

from dtrag.ports.cases import CaseStore
from dtrag.ports.conversations import ConversationStore, DocumentVisibility
from dtrag.ports.evaluations import EvaluationStore
from dtrag.ports.files import FolderStore, Parser, StoredFile
from dtrag.ports.governance import (
    AgentStore,
    AuditSpoolStore,
    AuditStore,
    KeyStore,
    Recorder,
    SessionStore,
    unrecorded,
)
from dtrag.ports.index import (
    DocumentIndex,
    Index,
    IndexSettings,
    IndexSnapshot,
    IndexWriter,
    Storage,
    StoredWork,
    check_identity,
    valid_day,
)
from dtrag.ports.judges import ClaimChecker, Judge
from dtrag.ports.learning import LearningStore
from dtrag.ports.models import (
    NOT_CONFIGURED,
    CategoryModel,
    ChatModel,
    Embedder,
    EmbedderRouter,
    Loadable,
    Models,
    Monitored,
    NotConfigured,
    Reranker,
    Warmable,
    model_for,
    similarity,
    speaks,
)
from dtrag.ports.packs import CitedProvision, NamedPassages, PackRanking, QueryPack, QueryReading, RegulationStore
from dtrag.ports.stores import Stores
from dtrag.ports.taxonomy import PlacementStore, ReviewStore, TaxonomyStore
from dtrag.ports.tools import ApprovalStore, Fetcher, ToolServer, WebReply, WebRequest
from dtrag.ports.traces import TraceStore
from dtrag.ports.vectors import VectorStore, VectorTurn, WaitingBatch, WaitingPassage

__all__ = [
    "NOT_CONFIGURED",
    "AgentStore",
    "ApprovalStore",
    "AuditSpoolStore",
    "AuditStore",
    "CaseStore",
    "CategoryModel",
    "ChatModel",
    "CitedProvision",
    "ClaimChecker",
    "ConversationStore",
    "DocumentIndex",
    "DocumentVisibility",
    "Embedder",
    "EmbedderRouter",
    "EvaluationStore",
    "Fetcher",
    "FolderStore",
    "Index",
    "IndexSettings",
    "IndexSnapshot",
    "IndexWriter",
    "Judge",
    "KeyStore",
    "LearningStore",
    "Loadable",
    "Models",
    "Monitored",
    "NamedPassages",
    "NotConfigured",
    "PackRanking",
    "Parser",
    "PlacementStore",
    "QueryPack",
    "QueryReading",
    "Recorder",
    "RegulationStore",
    "Reranker",
    "ReviewStore",
    "SessionStore",
    "Storage",
    "StoredFile",
    "StoredWork",
    "Stores",
    "TaxonomyStore",
    "ToolServer",
    "TraceStore",
    "VectorStore",
    "VectorTurn",
    "WaitingBatch",
    "WaitingPassage",
    "Warmable",
    "WebReply",
    "WebRequest",
    "check_identity",
    "model_for",
    "similarity",
    "speaks",
    "unrecorded",
    "valid_day",
]
