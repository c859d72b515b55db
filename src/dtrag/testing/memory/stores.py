"""All in-memory stores on one state."""

from __future__ import annotations

from dtrag.core.text.analysis import Analyzer, term_id
from dtrag.ports import Stores
from dtrag.testing.memory.agents import MemoryAgents
from dtrag.testing.memory.api_keys import MemoryKeys
from dtrag.testing.memory.audit import MemoryAudit
from dtrag.testing.memory.cases import MemoryCases
from dtrag.testing.memory.conversations import MemoryConversations, MemoryDocumentVisibility
from dtrag.testing.memory.evaluations import MemoryEvaluations
from dtrag.testing.memory.folders import MemoryFolders
from dtrag.testing.memory.imagined import MemoryImagined
from dtrag.testing.memory.index_reader import MemoryIndex
from dtrag.testing.memory.index_writer import MemoryIndexSettings, MemoryWriter
from dtrag.testing.memory.learning import MemoryLearning
from dtrag.testing.memory.regulations import MemoryRegulations
from dtrag.testing.memory.review import MemoryReview
from dtrag.testing.memory.sessions import MemorySessions
from dtrag.testing.memory.state import MemoryState
from dtrag.testing.memory.storage import MemoryStorage
from dtrag.testing.memory.taxonomy import MemoryTaxonomy
from dtrag.testing.memory.tool_approvals import MemoryApprovals
from dtrag.testing.memory.traces import MemoryTraces
from dtrag.testing.memory.vectors import MemoryVectors


def memory_stores(state: MemoryState | None = None, analyzer: Analyzer = Analyzer()) -> Stores:
    """The stores of one in-memory database, empty unless `state` is not. The analyzer reads keywords of splits."""
    state = state or MemoryState()
    review, sight = MemoryReview(state), MemoryDocumentVisibility(state)

    def term_ids(text: str) -> list[int]:
        return [term_id(term) for term in analyzer.terms(text)]

    return Stores(
        storage=MemoryStorage(),
        index_settings=MemoryIndexSettings(state),
        index=MemoryIndex(state),
        writer=MemoryWriter(state),
        vectors=MemoryVectors(state),
        imagined=MemoryImagined(state),
        folders=MemoryFolders(state),
        regulations=MemoryRegulations(state),
        placements=review,
        review=review,
        taxonomy=MemoryTaxonomy(state, term_ids),
        agents=MemoryAgents(state),
        keys=MemoryKeys(state),
        sessions=MemorySessions(state),
        audit=MemoryAudit(state),
        approvals=MemoryApprovals(state),
        sight=sight,
        conversations=MemoryConversations(),
        traces=MemoryTraces(state),
        evaluations=MemoryEvaluations(state),
        cases=MemoryCases(state, sight.visible),
        learning=MemoryLearning(),
    )
