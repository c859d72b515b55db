"""The regulation pack keeps the contract of packs, on PostgreSQL and in memory."""

from __future__ import annotations

import pytest

from dtrag.core.access.scope import EVERYTHING
from dtrag.core.lexicon_entry import LexiconEntry
from dtrag.packs.regulation_ko.own_entries import as_stored
from dtrag.packs.regulation_ko.question_concepts import Reading
from dtrag.ports import QueryPack, Stores
from dtrag.retrieval.regulation_collection import CollectionReader
from dtrag.retrieval.regulation_pack import RegulationRanking
from dtrag.testing.contracts.query_pack import QueryPackContract
from tests.contract.test_stores import OnBoth


class TestRegulationRanking(OnBoth, QueryPackContract):
    @pytest.fixture
    def pack(self, stores: Stores) -> QueryPack:
        return RegulationRanking(stores.index, collections=CollectionReader(stores.regulations))

    async def test_own_entries_of_the_lexicon_apply_to_the_next_reading(self, stores: Stores) -> None:
        await self._filled(stores)
        pack = RegulationRanking(stores.index)
        question = "벨루가 어디서 신청해요?"

        async def official() -> tuple[str, ...]:
            reading = await pack.read(question, await stores.index.snapshot(), EVERYTHING)
            assert isinstance(reading, Reading)
            return reading.official

        built_in = await official()
        own = as_stored([LexiconEntry(1, ("벨루가",), ("등록금",))], 2)
        assert await stores.index_settings.replace_lexicon(own, None)
        assert set(await official()) - set(built_in) == {"등록금"}
        assert await stores.index_settings.replace_lexicon(as_stored([], 2), own)
        assert await official() == built_in
