"""SPEC-RAG-SEARCH-001 by its ids: the snippets of the text nearly as they are, and its scenarios over the sample book.

D25-D28, D39-D41 and D48 say what is built where the text contradicts itself.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import pytest
import pytest_asyncio

from dtrag import (
    AdaptiveTopKSelector,
    App,
    EnhancedSearchService,
    EntityType,
    MultiHopRetriever,
    MultiStageQueryExpander,
    RegulationEntityRecognizer,
    SearchResult,
    current_app,
)
from dtrag.app import open_app
from dtrag.regulations.service import legacy_search
from tests.store import Databases

BOOK = Path(__file__).parents[2] / "examples" / "hanbit-university" / "regulations.md"
ASSISTANTS = """# 조교운영규정

## 제1조(목적)

이 규정은 한빛대학교 교육조교와 연구조교의 임용, 근무와 처우에 관한 사항을 정함을 목적으로 한다.

## 제2조(구분)

조교는 교육조교와 연구조교로 구분한다.

## 제3조(근무시간)

① 조교의 근무시간은 주 40시간으로 한다.

② 근무시간의 변경은 소속 부서의 장이 정한다.

## 제4조(보수와 복지)

조교에게는 제3조의 근무시간에 따라 보수와 수당을 지급하고, 직원과 같은 복지 혜택을 준다.
"""
APPOINTMENTS = """# 교원인사규정

## 제1조(목적)

이 규정은 한빛대학교 교원의 임용과 승진에 관한 사항을 정함을 목적으로 한다.

## 제14조(승진의 요건)

교원의 승진은 제15조에 따른 심사를 거친다.

## 제15조(승진심사)

교원인사위원회는 승진 대상자의 연구업적을 심사한다.

## 제16조(재임용)

재임용에는 제15조를 준용한다.
"""
SAMPLE_QUERIES = (
    "장학금 신청 방법",
    "연구년 자격 요건",
    "조교 근무 시간",
    "교원인사규정 제15조",
    "휴학 그리고 복학",
)


@pytest_asyncio.fixture(scope="module")
async def service(databases_of_module: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[App]:
    """The open app over the sample book and the regulations that the sample queries name besides."""
    folder = tmp_path_factory.mktemp("regulations")
    (folder / "assistants.md").write_text(ASSISTANTS, "utf-8")
    (folder / "appointments.md").write_text(APPOINTMENTS, "utf-8")
    async with open_app(databases_of_module.settings()) as app:
        report = await app.ingest([BOOK, folder])
        assert not report.failed
        yield app


@pytest.fixture
def opened(service: App) -> App:
    current_app.opened(service)
    return service


# -- TAG-001: entities ----------------------------------------------------------------------------------------------


def test_tag_001_section_recognition() -> None:
    matches = RegulationEntityRecognizer().recognize("제15조의 휴학 절차")
    assert any(m.entity_type == EntityType.SECTION for m in matches)
    assert any(m.text == "제15조" for m in matches)
    assert all(m.confidence >= 0.95 for m in matches if m.entity_type == EntityType.SECTION)


@pytest.mark.parametrize("query", ["제3조", "제3조 제2항", "제2항", "제3호", "제15조의2"])
def test_tag_001_articles_paragraphs_and_items(query: str) -> None:
    sections = [m for m in RegulationEntityRecognizer().recognize(query) if m.entity_type == EntityType.SECTION]
    assert sections and all(m.confidence >= 0.95 for m in sections)


def test_tag_001_procedure_expansion() -> None:
    matches = RegulationEntityRecognizer().recognize("장학금 신청 방법")
    procedure_matches = [m for m in matches if m.entity_type == EntityType.PROCEDURE]
    assert len(procedure_matches) > 0
    assert "신청" in procedure_matches[0].expanded_terms


def test_tag_001_requirement_expansion() -> None:
    matches = RegulationEntityRecognizer().recognize("연구년 자격 요건")
    requirement_matches = [m for m in matches if m.entity_type == EntityType.REQUIREMENT]
    assert len(requirement_matches) > 0
    assert "자격" in requirement_matches[0].expanded_terms


@pytest.mark.parametrize(
    ("entity_type", "words"),
    [
        (EntityType.PROCEDURE, ("신청", "절차", "방법")),
        (EntityType.REQUIREMENT, ("자격", "요건", "조건")),
        (EntityType.BENEFIT, ("혜택", "지급", "지원")),
        (EntityType.DEADLINE, ("기한", "마감", "날짜")),
    ],
)
def test_tag_001_keywords_expand_to_related_words(entity_type: EntityType, words: Sequence[str]) -> None:
    for word in words:
        (match,) = (m for m in RegulationEntityRecognizer().recognize(word) if m.entity_type == entity_type)
        assert match.text == word and len(match.expanded_terms) > 1


def test_tag_001_hypernyms_go_up_two_levels() -> None:
    matches = RegulationEntityRecognizer().recognize("등록금")
    (match,) = (m for m in matches if m.entity_type == EntityType.HYPERNYM)
    assert match.expanded_terms == ("등록금", "학사", "행정")


def test_tag_001_no_false_positives() -> None:
    assert len(RegulationEntityRecognizer().recognize("일반적인 문장입니다")) == 0


# -- TAG-002: expansion ---------------------------------------------------------------------------------------------


def expander() -> MultiStageQueryExpander:
    return MultiStageQueryExpander(RegulationEntityRecognizer())


def test_tag_002_three_stage_expansion() -> None:
    result = expander().expand("장학금 신청 방법")
    assert 0 < len(result.stage1_synonyms) <= 3
    assert 0 <= len(result.stage2_hypernyms) <= 2
    assert 0 < len(result.stage3_procedures) <= 2
    assert result.final_expanded != result.original_query


def test_tag_002_expansion_limit() -> None:
    result = expander().expand("very long query with many keywords")
    assert len(result.final_expanded.split()) <= 10
    assert len(expander().expand("장학금 신청 방법 자격 요건 기한 혜택").final_expanded.split()) <= 10


def test_tag_002_formal_query_skip() -> None:
    result = expander().expand("교원인사규정 제15조")
    assert result.final_expanded == result.original_query
    assert result.confidence == 1.0


def test_tag_002_synonym_expansion() -> None:
    result = expander().expand("장학금")
    assert "장학금 지급" in result.stage1_synonyms or "재정 지원" in result.stage1_synonyms


# -- TAG-003: adaptive k --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "top_k"),
    [
        ("휴학", 5),
        ("휴학 어떻게 하나요", 10),
        ("장학금 신청 자격 요건", 15),
        ("휴학 방법 그리고 복학 절차", 20),
        ("교원인사규정", 5),
        ("장학금 신청 방법", 15),
    ],
)
def test_tag_003_top_k_depends_on_the_question(query: str, top_k: int) -> None:
    assert AdaptiveTopKSelector().select_top_k(query) == top_k


def test_tag_003_a_slow_search_reads_fewer() -> None:
    assert AdaptiveTopKSelector().select_top_k("휴학 어떻게 하나요", elapsed=0.6) == 5


# -- TAG-004: hops --------------------------------------------------------------------------------------------------


class Passages:
    """Both stores of the text's mocks: texts, what a citation means, and relevances (1.0 where none is given)."""

    def __init__(
        self, texts: Mapping[str, str], meant: Mapping[str, str], relevance: Mapping[str, float] | None = None
    ) -> None:
        self.texts, self.meant, self.relevance = texts, meant, relevance or {}

    def get(self, chunk_id: str) -> str | None:
        return self.texts.get(chunk_id)

    def resolve(self, citation: str, source_id: str) -> str | None:
        return self.meant.get(citation)

    def similarity(self, query: str, ids: Sequence[str]) -> dict[str, float]:
        return {key: self.relevance.get(key, 1.0) for key in ids}


def test_tag_004_section_citation_following() -> None:
    store = Passages({"doc1": "이 경우 제15조를 참조한다.", "doc15": "끝."}, {"제15조": "doc15"})
    result = MultiHopRetriever(store, store).retrieve("query", ["doc1"])
    assert "doc15" in result.all_results


def test_tag_004_related_regulation_following() -> None:
    store = Passages({"doc1": "세부 사항은 휴학규정에 따른다.", "doc2": "끝."}, {"휴학규정": "doc2"})
    assert MultiHopRetriever(store, store).retrieve("query", ["doc1"]).hop_results == ("doc2",)


def test_tag_004_two_hop_limit() -> None:
    texts = {"doc1": "제2조를 본다.", "doc2": "제3조를 본다.", "doc3": "제4조를 본다.", "doc4": "끝."}
    store = Passages(texts, {"제2조": "doc2", "제3조": "doc3", "제4조": "doc4"})
    result = MultiHopRetriever(store, store).retrieve("query", ["doc1"])
    assert result.hops_performed == 2
    assert "doc4" not in result.all_results


def test_tag_004_low_relevance_filtering() -> None:
    store = Passages({"doc1": "제2조와 제3조"}, {"제2조": "irrelevant_doc", "제3조": "doc3"}, {"irrelevant_doc": 0.49})
    result = MultiHopRetriever(store, store).retrieve("query", ["doc1"])
    assert result.hop_results == ("doc3",)


def test_tag_004_cycle_detection() -> None:
    store = Passages({"doc1": "제2조", "doc2": "제1조"}, {"제1조": "doc1", "제2조": "doc2"})
    result = MultiHopRetriever(store, store).retrieve("query", ["doc1"])
    assert result.hops_performed <= 2
    assert result.all_results == ["doc1", "doc2"]


# -- TAG-005 (search) and the scenarios -------------------------------------------------------------------------------


def headings(results: Sequence[SearchResult]) -> list[str]:
    return [f"{r.metadata['regulation']} {r.metadata['article']}({r.metadata['article_title']})" for r in results]


async def test_reg_search_end_to_end_search(opened: App) -> None:
    results = await EnhancedSearchService().search("장학금 신청 방법")
    assert len(results) > 0
    assert any("신청" in r.text for r in results)
    assert any("절차" in r.text for r in results)
    assert results[0].score > 0.5


@pytest.mark.parametrize("query", SAMPLE_QUERIES)
async def test_reg_search_the_sample_queries_pass_the_threshold(opened: App, query: str) -> None:
    results = await EnhancedSearchService().search(query)
    assert results[0].score > 0.5
    names = [(r.metadata["regulation"], r.metadata["article"], r.metadata.get("occurrence", 1)) for r in results]
    assert len(set(names)) == len(names)
    assert all(r.metadata["kind"] in {"article", "appendix", "addendum"} for r in results)


async def test_reg_search_the_number_of_results(opened: App) -> None:
    service = EnhancedSearchService()
    assert len(await service.search("휴학")) == 5
    assert len(await service.search("휴학", 3)) == 3


async def test_reg_latency_of_the_stages(opened: App) -> None:
    """The maxima of the text at three times; a warm search stands for the total."""
    query = "장학금 신청 방법"
    recognizer, selector = RegulationEntityRecognizer(), AdaptiveTopKSelector()
    expanding = MultiStageQueryExpander(recognizer)
    service = EnhancedSearchService()
    await service.search("장학금 신청 절차")
    for run, limit in (
        (lambda: recognizer.recognize(query), 0.02),
        (lambda: expanding.expand(query), 0.1),
        (lambda: selector.select_top_k(query), 0.01),
    ):
        run()
        started = time.perf_counter()
        run()
        assert time.perf_counter() - started < 3 * limit
    started = time.perf_counter()
    await service.search(query)
    assert time.perf_counter() - started < 3 * 0.5


@pytest.mark.parametrize("query", ["교원인사규정", "제15조", "휴학"])
async def test_reg_characterization_existing_behaviour_is_preserved(opened: App, query: str) -> None:
    old_results = await legacy_search(query)
    new_results = await EnhancedSearchService().search(query)
    assert new_results[0].id == old_results[0].id or new_results[0].score >= old_results[0].score * 0.9


async def test_reg_scenario_1_scholarship_application(opened: App) -> None:
    query = "장학금 신청 방법"
    matches = RegulationEntityRecognizer().recognize(query)
    assert ("장학금", EntityType.BENEFIT) in {(m.text, m.entity_type) for m in matches}
    assert {"신청", "방법"} <= {m.text for m in matches if m.entity_type == EntityType.PROCEDURE}
    terms = {term for m in matches for term in m.expanded_terms}
    assert {"장학금 지급", "절차"} <= terms
    results = await opened.regulations.search(query)
    assert len(results) == AdaptiveTopKSelector().select_top_k(query) == 15
    found = headings(results)[:5]
    assert sum(name.startswith("장학금지급규정") for name in found) >= 3
    assert any("신청" in name for name in found)


async def test_reg_scenario_2_research_year(opened: App) -> None:
    query = "연구년 자격 요건"
    matches = RegulationEntityRecognizer().recognize(query)
    assert any(m.text == "연구년" for m in matches)
    assert {"자격", "요건"} <= {m.text for m in matches if m.entity_type == EntityType.REQUIREMENT}
    assert {"안식년", "교원연구년"} & set(expander().expand(query).stage1_synonyms)
    results = await opened.regulations.search(query)
    found = [name for name in headings(results) if name.startswith("교원연구년규정")]
    assert any("자격" in name for name in found) and any("기간" in name for name in found), found
    assert len(found) >= 2


async def test_reg_scenario_3_working_hours_of_assistants(opened: App) -> None:
    query = "조교 근무 시간"
    assert any(m.text == "조교" for m in RegulationEntityRecognizer().recognize(query))
    assert {"교육조교", "연구조교"} & set(expander().expand(query).stage1_synonyms)
    found = headings(await opened.regulations.search(query))
    assert found[0] == "조교운영규정 제3조(근무시간)"
    assert "조교운영규정 제4조(보수와 복지)" in found[:5]
