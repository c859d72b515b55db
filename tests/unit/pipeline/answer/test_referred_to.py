"""What a sentence refers to is quoted after it; one that only refers on is never the whole answer."""

from __future__ import annotations

import pytest

from dtrag.core.documents import FollowedCitation, PackFindings, SearchResult
from dtrag.core.ranking.bm25 import LexicalStatistics
from dtrag.pipeline.answer.candidates import refers_on
from dtrag.pipeline.answer.citations import cite
from dtrag.pipeline.answer.extractive import extract

NOTHING_KNOWN = LexicalStatistics(chunks=100)
PACK = PackFindings({})


def _passage(name: str, text: str, score: float = 0.9, **metadata: str) -> SearchResult:
    of_article = {"regulation": "복무규정", "article": name} | metadata
    return SearchResult(name, text, bm25_score=0.5, hybrid_score=score, metadata=of_article)


def _answer(question: str, passages: list[SearchResult], citing: str, cited: str) -> str:
    """The answer when the words `citing` in the first passage cite the last one."""
    start = passages[0].text.index(citing)
    followed = FollowedCitation("복무규정 제6조", "제6조", start, start + len(citing), (cited,))
    quotes = extract(question, passages, NOTHING_KNOWN, pack=PACK, followed=[followed])
    return cite(quotes, passages)[0]


def test_a_sentence_that_refers_on_is_followed_by_the_article_that_it_names() -> None:
    first = _passage("제6조", "조교의 복무는 제15조에 따른다.")
    cited = _passage(
        "제15조", "① 근무시간은 9시부터 18시까지로 한다.\n② 휴게시간은 1시간으로 한다.", 0.0, cited_by="복무규정 제6조"
    )
    assert _answer("조교는 몇 시간 근무하나요?", [first, cited], "제15조", "제15조") == (
        "조교의 복무는 제15조에 따른다. [1]\n복무규정 제6조에 따라 제15조\n"
        "① 근무시간은 9시부터 18시까지로 한다.\n② 휴게시간은 1시간으로 한다. [2]"
    )


def test_a_table_that_is_named_is_quoted_with_the_rows_of_the_question() -> None:
    first = _passage("제6조", "경조사가 있으면 별표 1의 기준에 의한 휴가를 얻는다.")
    table = "구분 | 대상 | 일수\n결혼 | 본인 | 5\n출산 | 배우자 | 20\n사망 | 부모 | 3"
    cited = _passage("별표 1", table, 0.0, kind="appendix", cited_by="복무규정 제6조")
    answer = _answer("결혼하면 경조사 휴가는 며칠인가요?", [first, cited], "별표 1", "별표 1")
    assert answer.split("\n")[1:] == ["복무규정 제6조에 따라 별표 1: 결혼 | 본인 | 5 [2]"]


SALARIES = (
    "단위: 원\n호 봉 | 봉 급 액 | 호 봉 | 봉 급 액\n"
    "1 | 1,217,300 | 16 | 1,970,700\n5 | 1,440,200 | 20 | 2,079,100\n10 | 1,744,200 | 25 | 2,198,700"
)


@pytest.mark.parametrize(
    ("question", "row"),
    [
        ("고용직 10호봉이면 한 달 봉급이 얼마인가요?", "10 | 1,744,200 | 25 | 2,198,700"),
        ("고용직 20호봉이면 한 달 봉급이 얼마인가요?", "5 | 1,440,200 | 20 | 2,079,100"),
        ("5급 고용직 1호봉은 한 달에 얼마인가요?", "1 | 1,217,300 | 16 | 1,970,700"),
    ],
)
def test_the_row_with_the_number_of_the_question_is_quoted(question: str, row: str) -> None:
    first = _passage("제6조", "고용직원의 봉급월액은 별표 4에 명시된 금액으로 한다.")
    cited = _passage("별표 4", SALARIES, 0.0, kind="appendix", cited_by="복무규정 제6조")
    quoted = _answer(question, [first, cited], "별표 4", "별표 4").split("별표 4", 2)[2]
    assert row in quoted and sum(line in quoted for line in SALARIES.split("\n")[2:]) == 1


def test_a_table_that_the_provision_names_elsewhere_is_quoted_for_the_number_of_the_question() -> None:
    text = "① 각 전공은 기준인원의 130%까지 배정한다.\n② 전공 수에 따른 배정비율은 별표와 같다."
    table = "전공 수 | 1순위 | 2순위\n2개 전공 | 130% | 70%\n3개 전공 | 130% | 100%"
    passages = [_passage("제6조", text), _passage("별표", table, 0.0, kind="appendix", cited_by="복무규정 제6조")]
    asked = "전공이 세 개인 학부는 정원의 몇 %까지 배정하나요?"
    answer = _answer(asked, passages, "별표", "별표")
    assert "3개 전공 | 130% | 100%" in answer and "2개 전공" not in answer
    assert "2개 전공" not in _answer("학부는 정원의 몇 %까지 배정하나요?", passages, "별표", "별표")


def test_the_provision_that_names_the_table_with_the_value_comes_first() -> None:
    passages = [
        _passage("제6조", "봉급월액은 별표 4에 명시된 금액으로 한다.", 0.9),
        _passage("제7조", "초임호봉은 1천 원 단위로 정한다.", 0.89),
        _passage("별표 4", SALARIES, 0.0, kind="appendix", cited_by="복무규정 제6조"),
    ]
    assert "1,744,200" in _answer("10호봉 봉급은 몇 원인가요?", passages, "별표 4", "별표 4")


def test_an_article_that_a_sentence_only_mentions_is_not_quoted() -> None:
    first = _passage("제6조", "제15조의 근무시간을 지키지 아니한 조교에게는 총장이 경고를 하고 보수를 감액한다.")
    cited = _passage("제15조", "근무시간은 9시부터 18시까지로 한다.", 0.0, cited_by="복무규정 제6조")
    assert "9시" not in _answer("근무시간을 안 지키면 어떻게 되나요?", [first, cited], "제15조", "제15조")


def test_one_that_refers_to_nothing_that_can_be_quoted_is_not_the_first() -> None:
    passages = [
        _passage("제6조", "휴학에 관한 사항은 따로 정한다.", 0.9),
        _passage("제7조", "휴학은 두 학기까지 한다. 휴학의 서식은 별도로 정한다.", 0.89),
    ]
    quotes = extract("휴학은 어떻게 하나요?", passages, NOTHING_KNOWN, pack=PACK)
    assert [quote.passage for quote in quotes] == [1]
    assert quotes[0].marked is not None
    assert passages[1].text[slice(*quotes[0].marked)] == "휴학은 두 학기까지 한다."


@pytest.mark.parametrize(
    ("text", "citation", "expected"),
    [
        ("세부사항은 따로 정한다. <개정 2020. 3. 1.>", "", True),
        ("금액은 별표 1과 같다.", "별표 1", True),
        ("신청자격은 연구년제규정 제3조를 따른다.", "연구년제규정 제3조", True),
        ("2. 학칙 제23조에 의한 제적자", "학칙 제23조", True),
        ("제15조의 근무시간을 지키지 아니한 조교에게는 경고한다.", "제15조", False),
        ("휴학은 두 학기까지 한다.", "", False),
    ],
)
def test_sentences_that_only_refer_on(text: str, citation: str, expected: bool) -> None:
    assert refers_on(text, citation) is expected
