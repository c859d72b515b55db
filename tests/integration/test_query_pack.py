"""The regulation pack expands queries and orders results, and shows nothing from outside of the caller's scope."""

from __future__ import annotations

import pytest

from dtrag.core.access.scope import EVERYTHING
from dtrag.core.lexicon_entry import LexiconEntry
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.ports import QueryPack, Stores
from dtrag.regulations.collection_reader import CollectionReader
from dtrag.regulations.korean.lexicon_entries import as_stored
from dtrag.regulations.korean.question_concepts import QuestionReading
from dtrag.regulations.pack import RegulationRanking
from tests.builders import NOTHING, branch_nodes, chunk_id, filled
from tests.integration.stores.test_files import regulation

QUERY = "휴학은 몇 학기까지 할 수 있나요?"


@pytest.fixture
def pack(stores: Stores) -> QueryPack:
    return RegulationRanking(stores.index, collections=CollectionReader(stores.regulations))


async def _filled(stores: Stores) -> None:
    """A regulation that cites another one in a branch of its own."""
    taxonomy = await stores.writer.ensure_paths([CategoryPath.parse("AI/Machines"), CategoryPath.parse("HR")])
    machines, staff = (taxonomy.find(CategoryPath.parse(path)) or 1 for path in ("AI/Machines", "HR"))
    await stores.writer.write(
        [
            regulation(
                "학칙",
                "제1조 휴학은 네 학기까지 할 수 있다.",
                "제2조 등록금은 교원규정 제1조에 따른다.",
                node_id=machines,
            ),
            regulation("교원규정", "제1조 교원은 휴직할 수 있다.", node_id=staff),
        ]
    )


async def test_it_has_an_identity(pack: QueryPack) -> None:
    assert pack.id
    assert pack.id == pack.id


async def test_it_does_not_apply_without_its_documents(stores: Stores, pack: QueryPack) -> None:
    await filled(stores)
    await pack.load(QUERY)
    assert await pack.read(QUERY, await stores.index.snapshot(), EVERYTHING) is None


async def test_it_applies_where_the_scope_holds_its_documents(stores: Stores, pack: QueryPack) -> None:
    _, machines, _ = await filled(stores)
    await stores.writer.write([regulation("학칙", "제1조 휴학.", node_id=branch_nodes(machines)[0])])
    await pack.load(None)
    snapshot = await stores.index.snapshot()
    assert await pack.read(QUERY, snapshot, machines) is not None
    assert await pack.read(QUERY, snapshot, NOTHING) is None


async def test_added_terms_have_weights_up_to_1(stores: Stores, pack: QueryPack) -> None:
    await _filled(stores)
    await pack.load(QUERY)
    reading = await pack.read("등록금 얼마 내요?", await stores.index.snapshot(), EVERYTHING)
    assert reading is not None
    assert reading.added
    assert all(isinstance(term, int) and 0 < weight <= 1 for term, weight in reading.added)


async def test_ranking_keeps_to_the_passages_it_was_given(stores: Stores, pack: QueryPack) -> None:
    await _filled(stores)
    await pack.load(QUERY)
    snapshot = await stores.index.snapshot()
    reading = await pack.read(QUERY, snapshot, EVERYTHING)
    assert reading is not None
    regulations = await stores.regulations.versions(EVERYTHING)
    keys = [chunk_id(document) for document in regulations]
    passages = list((await stores.index.fetch(keys, EVERYTHING, snapshot.taxonomy)).values())
    ranking = await pack.ranked(reading, passages, EVERYTHING)
    ranked = ranking.passages
    assert {row.chunk_id for row in ranked} == set(keys)
    assert all(0 <= row.hybrid_score <= 1 for row in ranked)
    scores = [row.hybrid_score for row in ranked]
    assert scores == sorted(scores, reverse=True)
    if ranking.findings is not None:
        assert set(ranking.findings.terms) <= set(reading.added)
        assert all(0 <= signal <= 1 for signal in ranking.findings.signals.values())
    assert (await pack.ranked(reading, [], EVERYTHING)).passages == []


async def test_citations_stay_in_the_scope_of_the_caller(stores: Stores, pack: QueryPack) -> None:
    await _filled(stores)
    snapshot = await stores.index.snapshot()
    documents = {
        text.name: text.document_id
        for text in await stores.regulations.read(list(await stores.regulations.versions(EVERYTHING)), EVERYTHING)
    }
    taxonomy = snapshot.taxonomy
    machines = taxonomy.find(CategoryPath.parse("AI/Machines"))
    assert machines is not None
    branch = EVERYTHING.narrowed({machines})
    passages = list((await stores.index.fetch([chunk_id(documents["학칙"], 1)], EVERYTHING, taxonomy)).values())
    await pack.prepare(snapshot, EVERYTHING)
    cited = await pack.cited(passages, snapshot, EVERYTHING)
    assert [(row.name, row.source, row.chunk_ids) for row in cited] == [
        ("교원규정 제1조", "학칙 제2조", (chunk_id(documents["교원규정"]),))
    ]
    await pack.prepare(snapshot, branch)
    assert await pack.cited(passages, snapshot, branch) == []


async def test_named_provisions_are_those_in_scope(stores: Stores, pack: QueryPack) -> None:
    await _filled(stores)
    snapshot = await stores.index.snapshot()
    machines = snapshot.taxonomy.find(CategoryPath.parse("AI/Machines"))
    assert machines is not None
    branch = EVERYTHING.narrowed({machines})
    assert await pack.named(QUERY, snapshot, EVERYTHING) is None
    named = await pack.named("교원 규정 1조", snapshot, EVERYTHING)
    assert named is not None and named.names == ("교원규정 제1조",)
    assert set(await stores.index.fetch(named.chunk_ids, EVERYTHING, snapshot.taxonomy)) == set(named.chunk_ids)
    assert await pack.named("교원 규정 1조", snapshot, branch) is None
    several = await pack.named("제1조", snapshot, EVERYTHING)
    assert several is not None
    assert {choice.partition("(")[0] for choice in several.choices} == {"교원규정 제1조", "학칙 제1조"}
    single = await pack.named("제1조", snapshot, branch)
    assert single is not None and single.names == ("학칙 제1조",)
    answered = await pack.named("교원규정", snapshot, EVERYTHING, earlier=["제1조"])
    assert answered is not None and answered.names == ("교원규정 제1조",)


async def test_own_entries_of_the_lexicon_apply_to_the_next_reading(stores: Stores) -> None:
    await _filled(stores)
    pack = RegulationRanking(stores.index)
    question = "벨루가 어디서 신청해요?"

    async def official() -> tuple[str, ...]:
        reading = await pack.read(question, await stores.index.snapshot(), EVERYTHING)
        assert isinstance(reading, QuestionReading)
        return reading.official

    built_in = await official()
    own = as_stored([LexiconEntry(1, ("벨루가",), ("등록금",))], 2)
    assert await stores.index_settings.replace("lexicon", own, None)
    assert set(await official()) - set(built_in) == {"등록금"}
    assert await stores.index_settings.replace("lexicon", as_stored([], 2), own)
    assert await official() == built_in
