"""Since when provisions have their text: by marks of articles and paragraphs, and by the addenda."""

from __future__ import annotations

from datetime import date

from dtrag.core.documents import ChunkedDocument, ParsedDocument
from dtrag.regulations.korean.amendments import amended_after, amendments, text_of_day
from dtrag.regulations.korean.structure import split

HEAD = "# 차량관리규정\n\n## 제1조(목적)\n\n이 규정은 차량의 운행을 정함을 목적으로 한다.\n\n"
ADDENDA = (
    "## 부칙\n\n1. 이 규정은 2001년 3월 1일부터 시행한다.\n\n2. 이 규정은 2005년 9월 1일부터 시행한다.\n\n"
    "3. 이 규정은 2015년 3월 1일부터 시행한다.\n\n4. 이 규정은 2024년 3월 1일부터 시행한다.\n"
)


def regulation(body: str, addenda: str = ADDENDA) -> ChunkedDocument:
    documents = split(ParsedDocument("차량관리규정", HEAD + body + addenda, "text/markdown"))
    assert documents is not None
    [document] = documents
    return document


def since(body: str, addenda: str = ADDENDA) -> dict[str, str]:
    edition = regulation(body, addenda).edition
    assert edition is not None
    return {label: day.isoformat() for label, day in edition.article_dates.items()}


def test_the_newest_mark_of_an_article_dates_its_text() -> None:
    days = since(
        "## 제2조(배차)\n\n배차는 하루에 세 번까지 한다. <개정 2010. 5. 1., 2015. 3. 1.>\n\n"
        "## 제3조(운행) <개정 2024. 3. 1.>\n\n운행은 배차를 받은 사람이 한다.\n\n"
    )
    assert days["제2조"] == "2015-03-01"
    assert "제3조" not in days, "it is as old as the edition"
    assert days["제1조"] == "2005-09-01", "the last amendment before the first mark may have changed it"


def test_the_oldest_unchanged_paragraph_dates_an_article_with_marks_by_paragraph() -> None:
    days = since(
        "## 제2조(배차)\n\n① 하루에 세 번까지 한다. <개정 2015. 3. 1.>\n\n② 밤에는 쉰다. <개정 2024. 3. 1.>\n\n"
        "## 제3조(운행)\n\n① 한 사람이 한다.\n\n② 밤에는 쉰다. <신설 2015. 3. 1.>\n\n[본조신설 2010. 1. 1.]\n\n"
        "## 제4조(주차)\n\n① 주차는 하루만 한다.\n\n② 밤에는 닫는다.\n\n<개정 2015. 3. 1.>\n\n"
        "## 제5조(정비)\n\n① <삭제 2015. 3. 1.>\n\n② 정비는 매달 한다. <개정 2024. 3. 1.>\n\n"
        "## 제6조의2(세차)\n\n① 세차는 매달 한다. <신설 2015. 3. 1.>\n\n② 겨울에는 하지 않는다.\n\n"
    )
    assert days["제2조"] == "2015-03-01"
    assert days["제3조"] == "2010-01-01"
    assert days["제4조"] == "2015-03-01", "a mark in a last line of its own is that of the article"
    assert "제5조" not in days, "nothing but the mark of a deletion is older"
    assert days["제6조의2"] == "2015-03-01", "no paragraph is older than the article"


def test_what_left_no_mark_proves_nothing() -> None:
    body = "## 제2조(배차)\n\n배차는 하루에 세 번까지 한다.\n\n## 제2조의2(기록)\n\n배차는 기록한다.\n\n"
    assert since(body) == {}, "without any mark, each amendment may have changed everything"
    marked = body + "## 제3조(운행)\n\n운행은 한 사람이 한다. <개정 2002. 1. 1.>\n\n"
    assert since(marked) == {"제1조": "2001-03-01", "제2조": "2001-03-01", "제3조": "2002-01-01"}
    rewritten = ADDENDA.replace("3. 이 규정은", "3. (전부개정) 이 규정은")
    assert since(marked, rewritten)["제2조"] == "2015-03-01"


def test_a_mark_with_the_day_of_the_decision_counts_from_the_next_addendum() -> None:
    days = since("## 제2조(배차)\n\n배차는 하루에 세 번까지 한다. <개정 2015. 2. 10.>\n\n")
    assert days["제2조"] == "2015-03-01"
    early = since("## 제2조(배차)\n\n배차는 하루에 세 번까지 한다. <개정 1999. 2. 10.>\n\n")
    assert early["제2조"] == "2001-03-01", "nothing is older than the regulation"


def test_an_appendix_without_a_mark_is_not_proven() -> None:
    tables = "## [별표 1] 배차 시간\n\n| 요일 | 시각 |\n|---|---|\n| 월 | 9시 |\n\n"
    marked = "## [별표 2] <개정 2015. 3. 1.>\n\n| 요일 | 요금 |\n|---|---|\n| 월 | 천 원 |\n\n"
    days = since("## 제2조(배차)\n\n배차는 별표 1과 같다. <개정 2010. 5. 1.>\n\n", ADDENDA + tables + marked)
    assert "별표 1" not in days
    assert days["별표 2"] == "2015-03-01"


def test_paragraphs_that_were_amended_after_a_day_lose_their_words() -> None:
    text = "① 하루에 세 번. <개정 2015. 3. 1.>\n\n② 밤에는 쉰다. <신설 2020. 1. 1., 개정 2024. 3. 1.>\n\n③ 기록한다."
    assert [(number, day) for _, _, number, day in amended_after(text, "2019-12-31")] == [(2, "2024-03-01")]
    shown = text_of_day(text, "2019-12-31")
    assert len(shown) == len(text) and shown[: text.index("②") + 1] == text[: text.index("②") + 1]
    assert "쉰다" not in shown and "<신설 2020. 1. 1., 개정 2024. 3. 1.>" in shown
    assert shown.endswith("③ 기록한다.") and text_of_day(shown, "2019-12-31") == shown
    assert text_of_day(text, "2024-03-01") == text


def test_a_mark_in_the_last_line_is_that_of_the_article() -> None:
    assert [mark.paragraph for mark in amendments("① 가.\n\n② 나. <개정 2015. 3. 1.>")] == [2]
    assert [mark.paragraph for mark in amendments("① 가.\n\n② 나.\n\n<개정 2015. 3. 1.>")] == [None]


def test_the_oldest_edition_only_is_valid_before_its_date() -> None:
    edition = regulation("## 제2조(배차)\n\n배차는 세 번까지 한다. <개정 2015. 3. 1.>\n\n").edition
    assert edition is not None and edition.effective_from == date(2024, 3, 1)
    assert all(day < date(2024, 3, 1) for day in edition.article_dates.values())
