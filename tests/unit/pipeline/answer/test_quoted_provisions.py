"""Which parts of a provision are quoted, and what is marked in them."""

from __future__ import annotations

from dtrag.core.documents import SearchResult
from dtrag.core.text.sentences import analysed_sentences
from dtrag.pipeline.answer.candidates import Quote
from dtrag.pipeline.answer.citations import cite
from dtrag.pipeline.answer.quoted_provisions import WHOLE, of_provision

LONG = "서류를 갖추어 정한 기간 안에 담당 부서를 거쳐 총장에게 제출하여야 한다"
ARTICLE = f"""① 휴학의 절차는 다음 각 호와 같다. <개정 2020. 3. 1.>
1. 일반휴학: {LONG}.
2. 군휴학: {LONG}.
가. 입영통지서를 붙인다.
나. 삭제 <2021. 9. 1.>
② <삭제 2019. 3. 1.>
③ 복학의 절차는 다음 각 호와 같다.
1. 복학원: {LONG}.
2. 등록: {LONG}.
④ 휴학과 복학의 세부사항은 총장이 정한다. 다만, 대학원은 대학원장이 정한다.
⑤ {LONG}. {LONG}. {LONG}. {LONG}."""


def _passage(text: str) -> SearchResult:
    return SearchResult("c", text, metadata={"article": "제3조"})


def _quoted(text: str, *best: str, limit: int = WHOLE) -> tuple[list[str], str]:
    """The texts that are quoted, and the marked one, when these sentences are the likeliest, from the first one on."""
    units = analysed_sentences(text)
    scores = {unit.start: 0.01 for unit in units if unit.quotable}
    for number, beginning in enumerate(best):
        start = next(unit.start for unit in units if unit.text.startswith(beginning))
        scores[start] = 0.5 - number / 100
    quotes = of_provision(0, _passage(text), scores, limit=limit)
    assert all(text[quote.start : quote.end] == quote.text for quote in quotes)
    (marked,) = [text[slice(*quote.marked)] for quote in quotes if quote.marked is not None] or [""]
    return [quote.text for quote in quotes], marked


def test_a_short_article_is_quoted_whole() -> None:
    text = "① 휴학은 두 학기까지 한다.\n② 휴학원을 낸다."
    assert _quoted(text, "② 휴학원") == ([text], "② 휴학원을 낸다.")


def test_of_a_long_article_the_paragraph_with_the_best_sentence_is_quoted_with_its_lead_in_and_items() -> None:
    (quote,), marked = _quoted(ARTICLE, "1. 복학원")
    assert quote.startswith("③ 복학의 절차")
    assert quote.endswith(f"2. 등록: {LONG}.")
    assert marked == f"1. 복학원: {LONG}."


def test_a_rule_is_quoted_with_its_proviso() -> None:
    quotes, _ = _quoted(ARTICLE, "④ 휴학과")
    assert quotes == ["④ 휴학과 복학의 세부사항은 총장이 정한다. 다만, 대학원은 대학원장이 정한다."]


def test_further_paragraphs_are_quoted_while_there_is_space_for_them() -> None:
    (quote,), _ = _quoted(ARTICLE, "④ 휴학과", "1. 복학원")
    assert quote.startswith("③ 복학의 절차")  # neighbours are one quotation
    assert quote.endswith("대학원장이 정한다.")
    assert len(_quoted(ARTICLE, "④ 휴학과", "1. 일반휴학")[0]) == 2
    assert len(_quoted(ARTICLE, "④ 휴학과", "1. 일반휴학", limit=60)[0]) == 1


def test_of_a_paragraph_that_is_too_long_the_item_is_quoted_with_its_lead_in() -> None:
    quotes, marked = _quoted(ARTICLE, "2. 군휴학", limit=70)
    assert quotes == [f"2. 군휴학: {LONG}.\n가. 입영통지서를 붙인다."]
    assert marked == f"2. 군휴학: {LONG}."
    passage = _passage(ARTICLE)
    text, (citation,), _ = cite(of_provision(0, passage, {ARTICLE.index("2. 군휴학"): 1.0}, limit=70), [passage])
    assert text.startswith("① 휴학의 절차는 다음 각 호와 같다.\n2. 군휴학")
    assert citation.quote == quotes[0]


def test_a_sentence_longer_than_the_limit_is_quoted_anyway() -> None:
    quotes, _ = _quoted(ARTICLE, "④ 휴학과", limit=10)
    assert quotes == ["④ 휴학과 복학의 세부사항은 총장이 정한다."]


def test_a_heading_is_marked_with_its_items() -> None:
    items = "1. 석사과정\n가. 18학점 이상을 취득한 자\n나. 외국어시험에 합격한 자"
    assert _quoted(f"시험 자격은 다음과 같다.\n{items}\n2. 박사과정\n가. 27학점", "1. 석사과정")[1] == items


def test_what_is_marked_is_found_in_the_text_of_the_answer_and_in_the_document() -> None:
    passage = SearchResult("c", ARTICLE, metadata={"article": "제3조"}, start=1000)
    scores = {ARTICLE.index("2. 군휴학"): 1.0}
    text, (citation,), marked = cite(of_provision(0, passage, scores), [passage])
    assert [text[start:end] for start, end in marked] == [f"2. 군휴학: {LONG}."]
    ((start, end),) = citation.marked
    assert ARTICLE[start - 1000 : end - 1000] == f"2. 군휴학: {LONG}."


def test_marks_of_amendments_and_deleted_paragraphs_are_in_the_quotation_but_not_in_the_answer() -> None:
    article = (
        "① 휴학은 두 학기까지 한다. <개정 2020. 3. 1., 2021. 3. 1.>\n② <삭제 2019. 3. 1.>\n"
        "③ 휴학원을 낸다. <단서조항삽입 2005. 9. 1>\n[제9조에서 이동 2022. 6. 15]"
    )
    text, (citation,), _ = cite(of_provision(0, _passage(article), {0: 1.0}), [_passage(article)])
    assert text == "① 휴학은 두 학기까지 한다.\n③ 휴학원을 낸다. [1]"
    assert citation.quote == article


def test_a_further_provision_is_one_line_with_its_label() -> None:
    first = _passage("휴학은 두 학기까지 한다. 휴학원을 낸다.")
    passages = [first, SearchResult("d", "복학원을 낸다.", title="복학 [2]")]
    quotes = of_provision(0, passages[0], {0: 1.0})
    further = Quote(1, 0, 8, "복학원을 낸다.", 1.0, further=True)
    text, _, marked = cite([*quotes, further], passages)
    assert text == "휴학은 두 학기까지 한다. 휴학원을 낸다. [1]\n복학 (2): 복학원을 낸다. [2]"
    assert [text[start:end] for start, end in marked] == ["휴학은 두 학기까지 한다."]
