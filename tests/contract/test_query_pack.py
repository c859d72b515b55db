"""The regulation pack keeps the contract of packs, on PostgreSQL and in memory."""

from __future__ import annotations

import pytest

from dtrag.ports import QueryPack, Stores
from dtrag.retrieval.regulation_collection import CollectionReader
from dtrag.retrieval.regulation_pack import RegulationRanking
from dtrag.testing.contracts.query_pack import QueryPackContract
from tests.contract.test_stores import OnBoth


class TestRegulationRanking(OnBoth, QueryPackContract):
    @pytest.fixture
    def pack(self, stores: Stores) -> QueryPack:
        return RegulationRanking(stores.index, collections=CollectionReader(stores.regulations))
