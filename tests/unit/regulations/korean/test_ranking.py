"""The second ranking: concepts of a question, features of articles, exact references first, wrong entries."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.answers.evidence import PACK_SIGNALS
from dtrag.core.answers.passage_confidence import model_name
from dtrag.core.text.analysis import term_id, terms
from dtrag.regulations.korean.lexicon import Entry, Lexicon
from dtrag.regulations.korean.question_concepts import read
from dtrag.regulations.korean.ranking import (
    FEATURES,
    NEAREST_SIGNAL,
    Article,
    Scorer,
    feature_rows,
    kind_factor,
    regulation_scores,
    reranked,
    signals,
    standardised,
    weights,
)

ENTRIES = [
    Entry(("학교 쉬", "한 학기 쉬"), ("휴학",)),
    Entry(("돈 돌려받", "환불"), ("반환",)),
    Entry(("방 빼", "나가"), ("퇴사",)),
    Entry(("늦게 들어오", "늦게 오"), ("외박", "귀사시각")),
]
LEXICON = Lexicon.of(ENTRIES)


def article(key: str, regulation: str, title: str, text: str, score: float = 1.0) -> Article:
    return Article(key, regulation, key, title, "", (text,), "article", score, score)


BOOK = [
    article("제5조", "휴학규정", "휴학기간", "일반휴학은 한 번에 두 학기까지 할 수 있다.", 0.5),
    article("제9조", "등록금규정", "등록금의 반환", "자퇴한 학생에게는 등록금을 반환한다.", 0.5),
    article("제11조", "생활관규정", "퇴사", "사생이 퇴사하려는 때에는 퇴사원을 낸다.", 0.5),
    article("제12조", "생활관규정", "외박", "귀사시각 이후에 들어오는 사생은 미리 허가를 받는다.", 0.5),
    article("제1조", "휴학규정", "목적", "이 규정은 휴학에 필요한 사항을 정함을 목적으로 한다.", 0.5),
]
FREQUENCIES = {
    term: sum(term in map(term_id, terms(f"{one.title} {one.pieces[0]}")) for one in BOOK)
    for one in BOOK
    for term in map(term_id, terms(f"{one.regulation} {one.title} {one.pieces[0]}"))
}
IDF = {term: math.log(1 + (len(BOOK) - count + 0.5) / (count + 0.5)) for term, count in FREQUENCIES.items()}


def first(question: str, lexicon: Lexicon = LEXICON, book: list[Article] = BOOK) -> str:
    return reranked(Scorer(read(question, lexicon), IDF), book, 50)[0][0]


CASES = [
    ("학교를 한 학기 쉬고 싶어요", "제5조"),
    ("돈을 돌려받을 수 있나요", "제9조"),
    ("방을 빼려면 어떻게 해요", "제11조"),
    ("밤에 늦게 들어오면 어떻게 되나요", "제12조"),
]


@pytest.mark.parametrize(("question", "label"), CASES)
def test_everyday_words_rank_the_article_with_the_official_terms_first(question: str, label: str) -> None:
    assert first(question) == label


def test_wrong_entries_are_worse_than_right_ones() -> None:
    """What helps is what the entries say: with the official words exchanged it finds less than without entries."""
    official = [entry.official for entry in ENTRIES]
    random.Random(3).shuffle(official)
    shuffled = Lexicon.of([Entry(entry.spoken, words) for entry, words in zip(ENTRIES, official, strict=True)])
    right = [sum(first(question, lexicon) == label for question, label in CASES) for lexicon in (LEXICON, shuffled)]
    assert right[0] == len(CASES) > right[1]


def test_an_article_named_exactly_is_first_whatever_its_score() -> None:
    book = [
        article("제8조", "JA교원인사규정", "임용", "임용한다.", 1.0),
        Article("other", "교원인사규정", "제8조", "자격", "", ("자격은 이렇다.",), "article", 0.1, 0.1),
        article("제9조", "교원인사규정", "임용", "임용한다.", 0.9),
    ]
    order = reranked(Scorer(read("교원인사규정 제8조 알려줘", LEXICON), IDF), book, 50)
    assert order[0] == ("other", 1.0)


def test_features_and_shares_lie_in_their_ranges_and_are_ordered() -> None:
    scorer = Scorer(read("휴학은 몇 학기까지 돼요", LEXICON), IDF)
    for one in BOOK:
        values = scorer.features(one, 0.5, 0.5)
        assert len(values) == len(FEATURES) == len(weights()) - 2
        assert all(0.0 <= value <= 1.0 for value in values)
    scores = [score for _, score in reranked(scorer, BOOK, 3)]
    assert scores == sorted(scores, reverse=True)
    assert all(0.0 <= score <= 1.0 for score in scores)


def test_articles_beyond_the_limit_keep_their_order() -> None:
    book = [article(f"제{number}조", "규정집", "", "본문", 1.0 / number) for number in range(1, 9)]
    order = [key for key, _ in reranked(Scorer(read("본문", LEXICON), IDF), book, 3)]
    assert order[3:] == [f"제{number}조" for number in range(4, 9)]


def test_addenda_and_forms_count_less_unless_the_question_asks_for_forms() -> None:
    assert kind_factor("addendum", "부칙", "휴학 기간") < kind_factor("article", "제1조", "휴학 기간")
    assert kind_factor("appendix", "별지 제1호 서식", "휴학 기간") < kind_factor("appendix", "별표 1", "휴학 기간")
    assert kind_factor("appendix", "별지 제1호 서식", "휴학 신청서 서식") == 1.0


def test_the_score_of_a_regulation_is_the_mean_of_its_three_best() -> None:
    scores = regulation_scores(
        {"a": 0.9, "b": 0.6, "c": 0.3, "d": 0.1, "e": 0.6}, dict.fromkeys("abcd", "x") | {"e": "y"}
    )
    assert scores["x"] == pytest.approx(0.6)
    assert scores["y"] == pytest.approx(0.2)


@given(st.text(max_size=60))
def test_any_question_is_read_and_ranked(question: str) -> None:
    reading = read(question, LEXICON)
    assert all(0.0 < weight <= 1.0 for _, weight in reading.added)
    assert len(reranked(Scorer(reading, IDF), BOOK, 50)) == len(BOOK)


def _signals(question: str, book: list[Article] = BOOK) -> dict[str, float]:
    reading = read(question, LEXICON)
    scorer = Scorer(reading, IDF)
    by_key = {article.key: article for article in book}
    ranked = [by_key[key] for key, _ in reranked(scorer, book, 50)]
    return signals(reading, ranked, {article.key: 10 * article.score for article in book}, scorer, rare_term=10.0)


def test_signals_lie_between_0_and_1_and_are_those_of_the_confidence() -> None:
    for question, _ in CASES:
        values = _signals(question)
        assert values.keys() == PACK_SIGNALS.keys() - {NEAREST_SIGNAL}
        assert all(0 <= value <= 1 for value in values.values())
        assert model_name(question, values) == "regulations"
    reading = read("휴학", LEXICON)
    assert set(signals(reading, [], {}, Scorer(reading, IDF), 1.0).values()) == {0.0}


def test_the_nearest_article_is_a_signal_where_the_first_ones_have_vectors() -> None:
    near = [replace(article, similarity=0.01 * place) for place, article in enumerate(BOOK, start=1)]
    values = _signals("휴학은 몇 학기까지 되나요?", near)
    assert values.keys() == PACK_SIGNALS.keys()
    assert values[NEAREST_SIGNAL] == 0.01 * len(BOOK)
    assert model_name("휴학은 몇 학기까지 되나요?", values) == "regulations_vectors"
    without = [replace(article, similarity=None) for article in near[:3]] + near[3:]
    assert NEAREST_SIGNAL not in _signals("휴학은 몇 학기까지 되나요?", without)


def test_situations_are_the_words_that_forms_of_several_words_explain() -> None:
    assert _signals("학교를 한 학기 쉬고 싶어요")["regulation_situations"] > 0.3
    assert _signals("지하철 출구가 어디예요")["regulation_situations"] == 0.0


def test_an_article_that_the_question_names_has_the_highest_signals() -> None:
    values = _signals("휴학규정 제5조 알려줘")
    assert values["regulation_score"] == values["regulation_covered"] == 1.0


def with_similarity(one: Article, similarity: float | None) -> Article:
    return replace(one, similarity=similarity)


def test_without_vectors_the_order_and_the_shares_are_those_of_words() -> None:
    scorer = Scorer(read("휴학은 몇 학기까지 돼요", LEXICON), IDF)
    equal = [with_similarity(one, 0.4) for one in BOOK]
    assert reranked(scorer, equal, 50) == reranked(scorer, BOOK, 50)


def test_the_nearest_article_moves_up_among_equal_ones() -> None:
    book = [article(f"제{number}조", "규정집", "", "본문", 0.5) for number in range(1, 9)]
    near = [with_similarity(one, 0.9 if one.key == "제7조" else 0.3) for one in book]
    scorer = Scorer(read("전혀 다른 말", LEXICON), IDF)
    assert reranked(scorer, near, 50)[0][0] == "제7조"


def test_a_near_article_of_a_low_first_score_is_ranked_a_second_time() -> None:
    book = [article(f"제{number}조", "규정집", "", "본문", 1.0) for number in range(1, 9)]
    far = with_similarity(article("제9조", "규정집", "", "본문", 0.0), 0.9)
    ranked, rest, _ = feature_rows(Scorer(read("본문", LEXICON), IDF), [*book, far], 3)
    assert far in ranked
    assert len(ranked) == 4
    assert len(rest) == 5


def test_an_article_without_a_vector_counts_as_the_mean_of_the_others() -> None:
    values = standardised([0.2, None, 0.4])
    assert values.tolist() == pytest.approx([-1.0, 0.0, 1.0])
    assert standardised([None, None]).tolist() == [0.0, 0.0]
    assert standardised([0.3, 0.3]).tolist() == [0.0, 0.0]
    assert len(standardised([])) == 0


def test_articles_below_the_lowest_share_keep_their_order() -> None:
    """The order of articles must not fall back to their keys, which differ from one installation to another."""
    book = [article(f"제{number}조", "교원인사규정", "목적", "본문", 0.0) for number in range(1, 6)]
    near = [with_similarity(one, place / 10) for place, one in enumerate(book)]
    order = reranked(Scorer(read("전혀 다른 말", LEXICON), IDF), near, 50)
    assert [key for key, _ in order] == [one.key for one in reversed(book)]
    assert all(score > 0.0 for _, score in order)
