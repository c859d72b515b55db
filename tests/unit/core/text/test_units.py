"""What can be quoted and what cannot, and the header, unit or lead-in that goes with a row or an item."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrag.core.text.line_kinds import QUOTABLE
from dtrag.core.text.line_wrapping import displayed
from dtrag.core.text.sentences import Preceding, analysed_sentences, beginning_of, sentences_after
from dtrag.core.text.units import units_of
from tests.growth import grows_linearly


def _read(text: str) -> list[tuple[str, str]]:
    """Kind and displayed text of every unit."""
    read = units_of(text)
    return [(unit.kind, displayed(text[unit.start : unit.end], words_broken=read.words_broken)) for unit in read.units]


def _quotable(text: str) -> list[str]:
    return [shown for kind, shown in _read(text) if kind in QUOTABLE]


def _context(text: str, beginning: str) -> list[tuple[str, str]]:
    """The context of the unit whose text begins so."""
    unit = next(unit for unit in units_of(text).units if text.startswith(beginning, unit.start))
    return [(span.kind, text[span.start : span.end]) for span in unit.context]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Undergraduates may borrow up to ten books at a time for a period of\nfourteen days. The loan can be "
            "renewed twice unless another\nreader has reserved the book.",
            [
                "Undergraduates may borrow up to ten books at a time for a period of fourteen days.",
                "The loan can be renewed twice unless another reader has reserved the book.",
            ],
        ),
        (
            "> Hi all,\n> the office will be closed from Monday the 3rd of May because the heat-\n> ing system is "
            "replaced. Please send urgent mail to the front\n> desk instead.",
            [
                "Hi all,",
                "the office will be closed from Monday the 3rd of May because the heating system is replaced.",
                "Please send urgent mail to the front desk instead.",
            ],
        ),
        (
            "학생은 매 학기 소정의 기간에 등록금을 납부하여야 하며, 정당한 사유 없이 등록하지 아\n니한 "
            "경우에는 제적할 수 있다. 다만, 총장이 인정하는 부득이한 사유가 있는 때에는 그러하\n지 아니하다. "
            "분할하여 납부하고자 하는 학생은 등록 기간에 신청서를 제출하여야 한\n다. 분할 납부는 4회까지 가능하다.",
            [
                "학생은 매 학기 소정의 기간에 등록금을 납부하여야 하며, "
                "정당한 사유 없이 등록하지 아니한 경우에는 제적할 수 있다.",
                "다만, 총장이 인정하는 부득이한 사유가 있는 때에는 그러하지 아니하다.",
                "분할하여 납부하고자 하는 학생은 등록 기간에 신청서를 제출하여야 한다.",
                "분할 납부는 4회까지 가능하다.",
            ],
        ),
        (
            "도서관의 열람실은 학기 중에는 24시간 개방하며, 방학 중에는 오전\n9시부터 오후 6시까지 "
            "운영한다. 대출은 1인당 10권까지 할 수\n있다.",
            [
                "도서관의 열람실은 학기 중에는 24시간 개방하며, 방학 중에는 오전 9시부터 오후 6시까지 운영한다.",
                "대출은 1인당 10권까지 할 수 있다.",
            ],
        ),
        ("Phone: 02-123-4567\nFax: 02-123-4568", ["Phone: 02-123-4567", "Fax: 02-123-4568"]),
        ("Student Office\nRoom 204", ["Student Office", "Room 204"]),
    ],
)
def test_lines_of_a_wrapped_paragraph_are_one_text(text: str, expected: list[str]) -> None:
    assert _quotable(text) == expected


@pytest.mark.parametrize(
    "line",
    [
        "[별지 제1호 서식]",
        "<별표 2> 수수료",
        "별지 제3호의2 서식",
        "휴 학 신 청 서",
        "장학금 신청서 (학부용)",
        "표 3. 숙박비 지급 기준",
        "Table 2: Fees by room",
        "Figure 1. The campus",
        "제1장 총칙",
        "제15조(휴학기간)",
        "제3조의2(정의) <신설 2020. 1. 1.>",
        "목 차",
        "Table of Contents",
        "## Refunds",
        "1. Borrowing .......... 3",
        "제2장 학적 ······· 12",
        "- 12 -",
        "Page 3 of 10",
        "12 / 40",
        "Acme Handbook            Page 3",
        "(단위: 천원)",
        "(unit: kg)",
        "----------",
        "①",
        "1.",
        "가.",
    ],
)
def test_headings_forms_contents_page_numbers_and_marks_are_not_sentences(line: str) -> None:
    prose = "The fee is paid in March. It is refunded within ten days."
    assert _quotable(f"{prose}\n\n{line}\n\n{prose}") == 2 * [
        "The fee is paid in March.",
        "It is refunded within ten days.",
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        "Table 3 shows the fees of all rooms.",
        "표 3은 숙박비를 보여 준다.",
        "별표 2에 따라 지급한다.",
        "Deadline: 3 March",
        "등록금은 학기 개시 전까지 납부",
        "제3조에 따라 휴학할 수 있다.",
        "신청서를 제출한다.",
        "2019. 3. 1.부터 시행한다.",
    ],
)
def test_sentences_that_look_like_headings_are_quoted(sentence: str) -> None:
    assert sentence in _quotable(f"The fee is paid in March.\n\n{sentence}\n\nIt is refunded within ten days.")


def test_a_short_line_is_a_heading_when_text_or_a_list_follows() -> None:
    text = "Refunds\nA refund is paid within ten days.\n\nRequired documents\n- identity card\n- photo"
    assert _quotable(text) == ["A refund is paid within ten days.", "- identity card", "- photo"]
    assert _context(text, "- photo") == [("lead_in", "Required documents")]
    assert _quotable("Bring a mug\n\nLeave by six") == ["Bring a mug", "Leave by six"]


def test_entries_below_the_title_of_a_table_of_contents_are_not_sentences() -> None:
    assert _quotable("Contents\nBorrowing  3\nFines  5\n\nBooks are lent for two weeks.") == [
        "Books are lent for two weeks."
    ]


REGULATION = """제15조(휴학기간) ① 휴학기간은 1회에 1년을 초과할 수 없다. <개정 2019. 3. 1.> \
다만, 군복무의 경우에는 그러하지 아니하다.
② 학과장은 다음 각 호의 사항을 분장한다. <신설 2020.1.1.>

1. 학과 운영에 관한 사항

2. 다음 각 목의 서류 관리

가. 학적부

나. 성적표

③ 그 밖의 사항은 총장이 정한다."""


def test_marks_and_amendments_of_regulations_split_nothing() -> None:
    assert _quotable(REGULATION) == [
        "① 휴학기간은 1회에 1년을 초과할 수 없다.",
        "다만, 군복무의 경우에는 그러하지 아니하다.",
        "1. 학과 운영에 관한 사항",
        "가. 학적부",
        "나. 성적표",
        "③ 그 밖의 사항은 총장이 정한다.",
    ]
    assert REGULATION[slice(*_span(REGULATION, "① 휴학"))].endswith("없다. <개정 2019. 3. 1.>")


def _span(text: str, beginning: str) -> tuple[int, int]:
    unit = next(unit for unit in units_of(text).units if text.startswith(beginning, unit.start))
    return unit.start, unit.end


def test_an_item_goes_with_its_lead_ins_which_are_never_quoted_alone() -> None:
    lead = "② 학과장은 다음 각 호의 사항을 분장한다. <신설 2020.1.1.>"
    assert _context(REGULATION, "1. 학과") == [("lead_in", lead)]
    assert _context(REGULATION, "나. 성적표") == [("lead_in", lead), ("lead_in", "2. 다음 각 목의 서류 관리")]
    assert _context(REGULATION, "③") == []
    english = "The following documents are needed:\n1. a passport\n2. a photo\n\nThe office is open daily."
    assert _quotable(english) == ["1. a passport", "2. a photo", "The office is open daily."]
    assert _quotable("위원회는 다음 각 호의 사항을 심의한다.") == []
    assert _quotable("다음 각 호의 어느 하나에 해당하면 제적한다. 제적된 사람은 재입학할 수 있다.") == [
        "다음 각 호의 어느 하나에 해당하면 제적한다.",
        "제적된 사람은 재입학할 수 있다.",
    ]


def test_a_nested_list_of_the_same_marks_has_both_lead_ins() -> None:
    items = ["1. opened packets", "2. tools made to order:", "  1. with a name", "  2. cut to length", "3. plants"]
    text = "\n".join(["We cannot take back:", *items])
    above = [("lead_in", "We cannot take back:")]
    assert _context(text, "2. cut") == [*above, ("lead_in", "2. tools made to order:")]
    assert _context(text, "3. plants") == above


def test_what_follows_a_colon_has_it_as_its_lead_in() -> None:
    text = "The deposit for a double room is:\n\n300,000 won, paid in advance."
    assert _quotable(text) == ["300,000 won, paid in advance."]
    assert _context(text, "300,000") == [("lead_in", "The deposit for a double room is:")]


TABLE = """표 3. 숙박비 지급 기준

(단위: 천원)

구분 | 국내 | 국외
교수 | 70 | 150
직원 | 50 | 120
해외 지역
 | 40 | 100"""


def test_a_row_goes_with_caption_unit_and_header() -> None:
    assert _quotable(TABLE) == ["교수 | 70 | 150", "직원 | 50 | 120", "40 | 100"]
    head = [("lead_in", "표 3. 숙박비 지급 기준"), ("unit", "(단위: 천원)"), ("header", "구분 | 국내 | 국외")]
    assert _context(TABLE, "직원") == head
    assert _context(TABLE, "| 40") == [*head, ("header", "해외 지역")]


@pytest.mark.parametrize(
    ("announcement", "between"),
    [
        ("The following limits apply to each person.", "A higher rate is paid on trade fairs."),
        ("숙박비 한도는 다음 표와 같다.", "공무로 정한 숙소는 예외로 한다."),
        ("Rates are listed below.", "Table 2. Rates per night"),
    ],
)
def test_a_sentence_that_announces_a_table_is_its_lead_in_although_others_are_between(
    announcement: str, between: str
) -> None:
    text = f"Travel is paid.\n{announcement}\n{between}\n\nCity | Rate\nSeoul | 70\nBusan | 50"
    assert announcement not in _quotable(text)
    assert ("lead_in", announcement) in _context(text, "Seoul | 70")
    assert "Travel is paid." in _quotable(text)


def test_a_sentence_far_above_a_table_or_for_a_list_does_not_announce_it() -> None:
    far = "The following rules apply.\nOne is old.\nOne is new.\nOne is odd.\n\nCity | Rate\nSeoul | 70\nBusan | 50"
    assert "The following rules apply." in _quotable(far)
    listed = "위원회는 다음 각 호의 일을 한다.\n위원은 5명이다.\n\n구분 | 금액\n서울 | 70\n부산 | 50"
    assert _context(listed, "서울 | 70") == [("header", "구분 | 금액")]


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("Item | Price\nPen | 500 won\nInk | 900 won", ["Pen | 500 won", "Ink | 900 won"]),
        (
            "Name | Kim\nPhone | 02-123-4567\nBorn | 3 May 1990",
            ["Name | Kim", "Phone | 02-123-4567", "Born | 3 May 1990"],
        ),
        ("구분 | 2023년 | 2024년\n입학 | 100 | 110\n졸업 | 90 | 95", ["입학 | 100 | 110", "졸업 | 90 | 95"]),
        ("구분 | 금액 | \n | 국내 | 국외\n교수 | 70 | 150\n직원 | 50 | 120", ["교수 | 70 | 150", "직원 | 50 | 120"]),
        ("서울 | 10 | 20\n부산 | 30 | 40", ["서울 | 10 | 20", "부산 | 30 | 40"]),
        (
            "Item        Description         Fee\n-----------------------------------\n"
            "Transcript  Official record     1,000\n            (two languages)\nDiploma     Certified copy      2,000",
            ["Transcript Official record 1,000 (two languages)", "Diploma | Certified copy | 2,000"],
        ),
        ("Day\tOpen\tClose\nMonday\t9\t18\nSunday\t10\t15", ["Monday | 9 | 18", "Sunday | 10 | 15"]),
        ("| Day | Open |\n|-----|------|\n| Monday | 9:00 |\n| Sunday | 9:30 |", ["Monday | 9:00", "Sunday | 9:30"]),
        (
            "이름: 김; 나이: 33; 비고: 좋다. 또 좋다.\n\n이름: 이; 나이: 31; 비고: -",
            ["이름: 김; 나이: 33; 비고: 좋다. 또 좋다.", "이름: 이; 나이: 31; 비고: -"],
        ),
    ],
)
def test_rows_are_quoted_and_headers_are_not(table: str, rows: list[str]) -> None:
    assert _quotable(table) == rows


def test_an_empty_first_cell_means_that_of_a_row_above() -> None:
    table = "지역 | 월 | 금액\n서울 | 1월 | 10\n | 2월 | 20"
    assert _context(table, "| 2월") == [("header", "지역 | 월 | 금액"), ("header", "서울")]


def test_a_passage_inside_a_table_takes_the_header_from_what_precedes_it() -> None:
    document = "구분 | 국내 | 국외\n교수 | 70 | 150\n직원 | 50 | 120\n조교 | 40 | 100"
    start = document.index("조교")
    assert units_of(document[start:]).continued
    (alone,) = analysed_sentences(document[start:])
    assert (alone.kind, alone.context) == ("row", ())
    head = document[: document.index("직원") - 1]
    (row,) = sentences_after(Preceding(0, head), document[start:], start)
    assert (row.text, row.start) == ("조교 | 40 | 100", 0)
    assert [document[start + span.start : start + span.end] for span in row.context] == ["구분 | 국내 | 국외"]
    assert set(row.context_terms) >= {"국내", "국외"}


def test_the_beginning_of_a_table_is_looked_for_before_the_passages_inside_it() -> None:
    texts = ["A text.\n\n구분 | 국내 | 국외\n교수 | 70 | 150", "직원 | 50 | 120\n조교 | 40 | 100"]
    document = "\n".join([*texts, "강사 | 30 | 90"])
    before = [(document.index("직원"), texts[1]), (0, texts[0])]
    assert beginning_of(document.index("강사"), before) == Preceding(0, texts[0])
    assert beginning_of(document.index("강사"), [(0, texts[0] + "\n직원 | 50 | 120 and the repeated")]) is not None
    assert beginning_of(0, []) is None


def test_display_leaves_out_amendment_marks_but_not_the_whole_text() -> None:
    assert displayed("① 정한다. <개정 2019. 3. 1.> [본조신설 2018. 1. 1.]") == "① 정한다."
    assert displayed("③ 정한다(개정 2010.2.1.)") == "③ 정한다"
    assert displayed("<개정 2019. 3. 1.>") == "<개정 2019. 3. 1.>"


TEXTS = st.lists(
    st.sampled_from(
        [
            "\n",
            "\n\n",
            " ",
            "  ",
            "\t",
            " | ",
            "|",
            "> ",
            "- ",
            "1. ",
            "2. ",
            "가. ",
            "① ",
            "② ",
            "제1조(목적) ",
            "다음 각 호와 같다.",
            "A word.",
            "한다. ",
            "<개정 2019. 3. 1.>",
            "다",
            ".",
            ":",
            "(단위: 원)",
            "12",
            "표 1. 표",
            "....... 3",
            "name: ",
            "; ",
            "x" * 70,
            "가나다 라마바 " * 6,
            "infor-",
            "\u00a0",
            "…",
        ]
    ),
    max_size=40,
).map("".join)


@settings(max_examples=300)
@given(TEXTS, TEXTS)
def test_units_are_trimmed_spans_in_order_that_cover_everything(before: str, text: str) -> None:
    covered, last = [False] * len(text), 0
    for unit in units_of(text).units:
        assert last <= unit.start < unit.end <= len(text)
        assert text[unit.start : unit.end] == text[unit.start : unit.end].strip()
        covered[unit.start : unit.end] = [True] * (unit.end - unit.start)
        assert all(0 <= span.start < span.end <= unit.start for span in unit.context if span.kind != "unit")
        last = unit.end
    assert all(done or character.isspace() or character == ">" for done, character in zip(covered, text, strict=True))
    document = f"{before}\n{text}"
    start = len(before) + 1
    for sentence in sentences_after(Preceding(0, before), text, start):
        assert text[sentence.start : sentence.end] == sentence.text
        assert all(document[start + span.start : start + span.end].strip() for span in sentence.context)


def test_names_above_ranges_are_the_header_of_a_table_of_two_columns() -> None:
    text = "연가는 다음과 같다.\n근속기간 | 연가일수\n1년 미만 | 월간 개근시 1일\n1년 이상 | 연간 8할 이상 출근시 15일"
    kinds = [unit.kind for unit in units_of(text).units]
    assert kinds == ["lead_in", "header", "row", "row"]
    named = "담당 | 학사팀\n전화 | 구내 1234\n기간 | 3월"
    assert "header" not in [unit.kind for unit in units_of(named).units]


def test_a_table_of_many_rows_is_read_in_linear_time() -> None:
    assert grows_linearly(lambda rows: units_of("가 | 나\n" * rows), 4_000)
