"""Entities, expansion, the number of passages and hops, beyond the cases of the acceptance document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.text.analysis import term_id, terms
from dtrag.regulations.citation_hops import MultiHopRetriever
from dtrag.regulations.korean.expansion import MultiStageQueryExpander, is_formal
from dtrag.regulations.korean.lexicon import built_in
from dtrag.regulations.korean.question_concepts import AdaptiveTopKSelector, QueryComplexity, read
from dtrag.regulations.korean.question_entities import EntityType, RegulationEntityRecognizer
from dtrag.retrieval.multihop import MAX_SOURCES


@given(st.text(max_size=80))
def test_entities_are_spans_of_the_question(query: str) -> None:
    for match in RegulationEntityRecognizer().recognize(query):
        assert query[match.start : match.end] == match.text
        assert 0 <= match.confidence <= 1


@pytest.mark.parametrize("query", ["조교가 하는 일", "3조원 예산", "제1차 회의"])
def test_text_that_only_looks_like_an_article_is_not_one(query: str) -> None:
    found = RegulationEntityRecognizer().recognize(query)
    assert not [match for match in found if match.entity_type == EntityType.SECTION and "조" in match.text], found


@pytest.mark.parametrize(
    ("query", "formal"),
    [
        ("교원인사규정 제15조", True),
        ("휴학규정", True),
        ("학칙", True),
        ("제3항", True),
        ("조교 근무 시간", False),
        ("장학금 관련 규정", False),
        ("휴학 규정", False),
    ],
)
def test_formal_questions(query: str, formal: bool) -> None:
    assert is_formal(query) is formal


def test_names_of_the_collection_are_formal() -> None:
    expander = MultiStageQueryExpander(regulation_names=["생활관 이용 안내"])
    assert expander.expand("생활관이용안내").confidence == 1.0


WORDS = "장학금 신청 방법 자격 기한 휴학 등록금 까지 혜택 연구년 조교 언제".split()


@given(st.lists(st.sampled_from(WORDS), max_size=9))
def test_expansions_keep_the_question_and_its_limit(words: list[str]) -> None:
    query = " ".join(words)
    result = MultiStageQueryExpander().expand(query)
    assert result.final_expanded.startswith(query)
    assert len(result.final_expanded.split()) <= max(10, len(words))
    assert len(result.stage1_synonyms) <= 3 and len(result.stage2_hypernyms) <= 2 and len(result.stage3_procedures) <= 2


@pytest.mark.parametrize(
    ("query", "complexity"),
    [
        ("휴학, 복학 언제", QueryComplexity.MULTI_PART),
        ("신청 자격", QueryComplexity.COMPLEX),
        ("기숙사", QueryComplexity.SIMPLE),
        ("학칙 제21조", QueryComplexity.SIMPLE),
        ("도서관에서 책을 잃어버렸어요", QueryComplexity.MEDIUM),
    ],
)
def test_complexity(query: str, complexity: QueryComplexity) -> None:
    assert AdaptiveTopKSelector().classify(query) is complexity


class Chain:
    """Documents 0, 1, 2 … of which each cites what `cites` says."""

    def __init__(self, cites: Mapping[str, Sequence[str]]) -> None:
        self.cites = cites

    def get(self, chunk_id: str) -> str | None:
        return chunk_id

    def cited(self, text: str) -> Sequence[str]:
        return self.cites.get(text, ())

    def resolve(self, citation: str, source_id: str) -> str | None:
        return None if citation == "nowhere" else citation

    def similarity(self, query: str, ids: Sequence[str]) -> dict[str, float]:
        return {key: 0.5 if key == "least" else 0.4 if key == "less" else 0.9 for key in ids if key != "unknown"}


def followed(cites: Mapping[str, Sequence[str]], *initial: str, hops: int = 2) -> tuple[str, ...]:
    chain = Chain(cites)
    return MultiHopRetriever(chain, chain, cited=chain.cited, max_hops=hops).retrieve("q", initial).hop_results


def test_hops_are_limited_and_follow_only_relevant_citations() -> None:
    line = {str(number): [str(number + 1)] for number in range(9)}
    assert followed(line, "0") == ("1", "2")
    assert followed(line, "0", hops=9) == ("1", "2"), "two at most, whatever is asked for"
    assert followed(line, "0", hops=1) == ("1",)
    assert followed({}, "0") == ()
    assert followed({"0": ["0", "nowhere", "unknown", "less", "least"]}, "0") == ("least",)


def test_only_the_first_of_many_passages_are_read() -> None:
    many = [str(number) for number in range(MAX_SOURCES + 5)]
    assert len(followed({key: [f"cited{key}"] for key in many}, *many)) == MAX_SOURCES


@pytest.mark.parametrize(
    "question",
    [
        "장학금 신청 방법",
        "학교를 잠깐 쉬고 싶은데 신청 자격이 어떻게 되나요?",
        "연구년 자격 요건",
        "휴학 방법 그리고 복학 절차",
        "기숙사 통금은 몇 시고 벌점 점수가 몇 점이면 쫓겨나요?",
        "교원인사규정 제15조",
    ],
)
def test_what_the_classes_return_is_what_a_search_uses(question: str) -> None:
    reading, expanded = read(question, built_in()), MultiStageQueryExpander().expand(question)
    facts = reading.facts()
    recognized = RegulationEntityRecognizer().recognize(question)
    assert [(entity.kind, entity.text) for entity in facts.entities] == [
        (match.entity_type.value, match.text) for match in recognized
    ]
    added = {term.text: term.weight for row in facts.expansions for term in row.official}
    stages = {*expanded.stage1_synonyms, *expanded.stage2_hypernyms, *expanded.stage3_procedures}
    assert stages <= added.keys()
    searched = {term for term, _ in (*reading.own, *reading.added)}
    assert all(searched.issuperset(map(term_id, terms(word))) for word in added)
    for elapsed in (0.0, 0.6):
        assert reading.top_k(elapsed) == AdaptiveTopKSelector().select(question, elapsed=elapsed)


def test_a_formal_question_is_searched_as_it_is() -> None:
    assert read("휴학 기간은 학칙 제21조", built_in()).added == ()
    assert read("휴학 기간은 어떻게 되나요", built_in()).added != ()


def test_a_question_of_two_parts_is_one_for_the_number_of_passages_too() -> None:
    question = "기숙사 통금은 몇 시고 벌점 점수가 몇 점이면 쫓겨나요?"
    assert AdaptiveTopKSelector().select(question).top_k == 20
    slow = AdaptiveTopKSelector().select(question, elapsed=0.51)
    assert (slow.top_k, slow.reason, slow.reduced) == (10, "multi_part", True)
