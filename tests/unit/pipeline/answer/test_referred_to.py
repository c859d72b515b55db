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
