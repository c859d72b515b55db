"""The stores of `dtrag.ports.Stores` keep their contracts, in PostgreSQL and in memory."""

from __future__ import annotations

import pytest

from dtrag.ports import Stores
from dtrag.testing.contracts.cases import (
    CaseLogContract,
    CaseReplacementContract,
    CaseSightContract,
    CaseStoreContract,
    CaseVoteContract,
)
from dtrag.testing.contracts.conversations import (
    ConversationStoreContract,
    DocumentVisibilityContract,
    TraceStoreContract,
)
from dtrag.testing.contracts.editions import EditionContract
from dtrag.testing.contracts.evaluations import EvaluationStoreContract
from dtrag.testing.contracts.files import FolderStoreContract, IndexSettingsContract, RegulationStoreContract
from dtrag.testing.contracts.governance import (
    AgentStoreContract,
    ApprovalStoreContract,
    AuditStoreContract,
    KeyStoreContract,
    SessionStoreContract,
)
from dtrag.testing.contracts.imagined import ImaginedStoreContract
from dtrag.testing.contracts.index import IndexContract
from dtrag.testing.contracts.index_writer import IndexWriterContract
from dtrag.testing.contracts.learning import LearningStoreContract
from dtrag.testing.contracts.review import PlacementStoreContract, ReviewStoreContract
from dtrag.testing.contracts.taxonomy import TaxonomyStoreContract
from dtrag.testing.contracts.vectors import VectorStoreContract


class OnBoth:
    """Runs every test of a suite on PostgreSQL and in memory."""

    @pytest.fixture(params=["postgres_stores", "in_memory_stores"], ids=["postgres", "memory"])
    def stores(self, request: pytest.FixtureRequest) -> Stores:
        stores: Stores = request.getfixturevalue(request.param)
        return stores


class TestIndex(OnBoth, IndexContract):
    pass


class TestIndexWriter(OnBoth, IndexWriterContract):
    pass


class TestKeys(OnBoth, KeyStoreContract):
    pass


class TestSessions(OnBoth, SessionStoreContract):
    pass


class TestAgents(OnBoth, AgentStoreContract):
    pass


class TestApprovals(OnBoth, ApprovalStoreContract):
    pass


class TestAudit(OnBoth, AuditStoreContract):
    pass


class TestConversations(OnBoth, ConversationStoreContract):
    pass


class TestDocumentVisibility(OnBoth, DocumentVisibilityContract):
    pass


class TestTraces(OnBoth, TraceStoreContract):
    pass


class TestEvaluations(OnBoth, EvaluationStoreContract):
    pass


class TestLearning(OnBoth, LearningStoreContract):
    pass


class OnThree:
    """Runs every test of a suite on PostgreSQL, in an SQLite file and in memory."""

    @pytest.fixture(
        params=["postgres_stores", "sqlite_stores", "in_memory_stores"], ids=["postgres", "sqlite", "memory"]
    )
    def stores(self, request: pytest.FixtureRequest) -> Stores:
        stores: Stores = request.getfixturevalue(request.param)
        return stores


class TestCases(OnThree, CaseStoreContract):
    pass


class TestCaseReplacements(OnThree, CaseReplacementContract):
    pass


class TestCaseVotes(OnThree, CaseVoteContract):
    pass


class TestCaseLogs(OnThree, CaseLogContract):
    pass


class TestCaseSight(OnThree, CaseSightContract):
    pass


class TestTaxonomy(OnBoth, TaxonomyStoreContract):
    pass


class TestPlacements(OnBoth, PlacementStoreContract):
    pass


class TestReview(OnBoth, ReviewStoreContract):
    pass


class TestFolders(OnBoth, FolderStoreContract):
    pass


class TestRegulations(OnBoth, RegulationStoreContract):
    pass


class TestIndexSettings(OnBoth, IndexSettingsContract):
    pass


class TestVectors(OnBoth, VectorStoreContract):
    pass


class TestImagined(OnBoth, ImaginedStoreContract):
    pass


class TestEditions(OnBoth, EditionContract):
    """Editions of a work."""
