"""What a question is about: Korean endings and particles go, content stays, English is left alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrag.core.text.analysis import term_id, terms
from dtrag.core.text.questions import (
    ASKING_WEIGHT,
    WORD_DAMPING,
    analyze_query,
    content,
    content_terms,
    required_terms,
    weighted_terms,
)


@pytest.mark.parametrize(
    ("question", "about"),
    [
        ("휴학은 최대 몇 학기까지 할 수 있나요?", "휴학 최대 학기"),
        ("졸업 요건에 대해 알려주세요", "졸업 요건"),
        ("도서관이 어디에 있나요?", "도서관"),
        ("등록금을 반환하려면", "등록금 반환"),
        ("기숙사에서 퇴사되나요?", "기숙사 퇴사"),
        ("제12조의2는 무엇인가요?", "제12조의2"),
        ("BM25와 벡터의 관계", "BM25 벡터 관계"),
        ("어떤 사유로 제적되나요?", "제적"),
        ("휴학 사유", "휴학 사유"),
    ],
)
def test_korean_endings_and_particles_are_removed_and_content_words_stay(question: str, about: str) -> None:
    assert terms(content(question)) == terms(about)
    assert content_terms(question) == [term_id(term) for term in terms(about)]


@pytest.mark.parametrize(
    ("question", "required"),
    [
        ("등록금은 언제까지 납부하나요?", ("등록", "록금", "납부")),
        ("이 규정은", ("규정",)),
        ("총 GPA를 알려주세요", ("gpa",)),
        ("수", ("수",)),
        ("???", ()),
    ],
)
def test_required_terms_are_those_of_the_content_words(question: str, required: tuple[str, ...]) -> None:
    assert required_terms(question) == {term_id(term) for term in required}


@pytest.mark.parametrize("question", ["어떻게 하나요?", "무엇인가요?", "왜?", "있나요", "???", ""])
def test_a_question_without_content_words_stays_unchanged(question: str) -> None:
    assert content(question) == question


@pytest.mark.parametrize(
    "question", ["How many days of parental leave are there?", "who wrote C++ and when", "text-embedding-3-small"]
)
def test_english_stays_unchanged(question: str) -> None:
    assert terms(content(question)) == terms(question)
    assert {weight for _, weight in weighted_terms(question)} == {1.0}


def test_a_question_word_weighs_less() -> None:
    weights = dict(weighted_terms("휴학은 최대 몇 학기까지 할 수 있나요?"))
    assert weights[term_id("최대")] == 1.0
    assert weights[term_id("휴학")] == 2**-WORD_DAMPING
    assert weights[term_id("있나")] == weights[term_id("나요")] == ASKING_WEIGHT * 2**-WORD_DAMPING


def test_the_pairs_of_a_long_word_count_less_each() -> None:
    weights = dict(weighted_terms("교원인사규정 규정"))
    assert weights[term_id("교원")] == weights[term_id("규정")] == 5**-WORD_DAMPING
    assert {weight for _, weight in weighted_terms("leave entitlement")} == {1.0}


@settings(max_examples=100)
@given(
    st.lists(
        st.sampled_from(
            "휴학 은 이 최대 몇 학기까지 할 수 있나요? 어떻게 하나요 알려 BM25 leave 한 ① . , \ud800".split()
        ),
        max_size=9,
    ).map(" ".join)
    | st.text(st.characters(), max_size=40)
)
def test_content_is_never_empty_and_weights_are_in_0_1(question: str) -> None:
    weighted = weighted_terms(question)
    assert [term for term, _ in weighted] == [term_id(term) for term in terms(question)]
    assert all(0 < weight <= 1 for _, weight in weighted)
    assert bool(content_terms(question)) == bool(terms(question))


LONG = "How to implement distributed machine learning algorithms for large-scale data processing"


def test_search_006_the_two_examples_of_the_text() -> None:
    short, long = analyze_query("API"), analyze_query(LONG)
    assert (short["length"], short["exact_terms"], short["semantic_complexity"]) == (1, ("API",), 0.0)
    assert long.semantic_complexity == pytest.approx(0.8)
    assert (long.length, long.exact_terms, long.has_operators) == (11, (), False)
    assert long.avg_term_length == pytest.approx(sum(map(len, LONG.split())) / 11)
    assert dict(long) == {name: getattr(long, name) for name in long} and len(long) == 5
    with pytest.raises(KeyError):
        long["keys"]


@pytest.mark.parametrize(
    ("query", "exact"),
    [
        ("the HTTP API of I and A", ("HTTP", "API")),
        ("BM25 against gpt-4", ("BM25", "gpt-4")),
        ("제12조의2는 무엇인가요?", ("제12조의2는",)),
        ('what is "parental leave"?', ("parental leave",)),
        ("“육아휴직” 기간", ("육아휴직",)),
        ("call read_file() in core/access/scope.py, or getText", ("read_file()", "core/access/scope.py", "getText")),
        ("C++ and C#, text-embedding-3-small.", ("C++", "C#", "text-embedding-3-small")),
        ("large-scale well-being in 2024", ()),
        ("LEAVE AND NOT WAGES", ("LEAVE", "WAGES")),
        ('""', ()),
    ],
)
def test_what_counts_as_an_exact_term(query: str, exact: tuple[str, ...]) -> None:
    assert analyze_query(query).exact_terms == exact


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("cats AND dogs", True),
        ("cats or dogs", True),
        ("+cats -dogs", True),
        ("a - b", True),
        ("android notebooks", False),
        ("large-scale 3-5 years", False),
        ("and", True),
        ("", False),
    ],
)
def test_operators_are_words_and_not_parts_of_words(query: str, expected: bool) -> None:
    assert analyze_query(query).has_operators is expected


def test_korean_questions_are_complex_by_their_content_and_not_by_their_spaces() -> None:
    simple, long = "휴학 기간", "대학원 박사과정 학생이 연구장려금 지급 대상이 되기 위한 성적 요건과 제출 서류"
    assert analyze_query(simple).semantic_complexity == pytest.approx(0.2)
    assert analyze_query(long).semantic_complexity > 0.7
    assert analyze_query("휴학은 어떻게 하나요?").semantic_complexity == pytest.approx(0.1)
    closed = analyze_query("대학원박사과정학생성적요건").semantic_complexity
    assert closed == pytest.approx(analyze_query("대학원박사 과정 학생 성적 요건").semantic_complexity, abs=0.11)


@settings(max_examples=150)
@given(st.text(st.characters(), max_size=60) | st.text(st.sampled_from('aA1_./:#()"+-가 '), max_size=300))
def test_every_query_has_characteristics(query: str) -> None:
    like = analyze_query(query)
    assert 0.0 <= like.semantic_complexity <= 1.0
    assert like.length >= 0 <= like.avg_term_length
    assert all(term and term in query for term in like.exact_terms)


def test_a_long_token_is_fast() -> None:
    for token in ("aA" * 5_000 + "%", "a_" * 5_000 + "%", "a." * 5_000 + "%", '"' * 10_000, "+" * 10_000):
        assert analyze_query(token).length <= 1
