"""Amendment marks, histories and effective dates of regulations. All texts here are invented."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.provisions import Amendment
from dtrag.regulations.korean.amendments import (
    amendments,
    dates,
    effective_date,
    effective_dates,
    history,
    mark_spans,
)
from tests.cases import each
from tests.growth import grows_linearly


@each(
    "text, expected",
    [
        ("2019. 3. 1.", "2019-03-01"),
        ("2019.3.1", "2019-03-01"),
        ("2019. 03.01.", "2019-03-01"),
        ("2019. 3 .1", "2019-03-01"),
        ("2019, 3. 1.", "2019-03-01"),
        ("2019 3. 1", "2019-03-01"),
        ("2019-03-01", "2019-03-01"),
        ("2019/3/1", "2019-03-01"),
        ("2019년 3월 1일", "2019-03-01"),
        ("2019년3월 1일자", "2019-03-01"),
        ("2019.\n3. 1.", "2019-03-01"),
    ],
)
def test_dates_are_written_in_many_ways(text: str, expected: str) -> None:
    assert dates(f"앞 {text} 뒤") == (expected,)


@each(
    "text", ["2019. 13. 1.", "2019. 2. 30.", "12019. 3. 1.", "2019. 3. 123", "2023. 2월", "3. 1.", "1.2019. 3. 1", ""]
)
def test_other_numbers_are_no_dates(text: str) -> None:
    assert dates(text) == ()


@each(
    "text, expected",
    [
        ("둔다. <개정 2019. 3. 1.>", [("개정", "2019-03-01")]),
        ("둔다. <개정 2019. 3. 1., 2020. 2. 1>", [("개정", "2019-03-01"), ("개정", "2020-02-01")]),
        ("둔다. <신설 2017. 2. 1., 개정 2018. 1. 1.>", [("신설", "2017-02-01"), ("개정", "2018-01-01")]),
        ("둔다. (신설 2006.11.06)", [("신설", "2006-11-06")]),
        ("[본조신설 2008. 5. 1.]", [("신설", "2008-05-01")]),
        ("【본 조 개정 2008. 5. 1.】", [("개정", "2008-05-01")]),
        ("[전문개정 2011. 4. 12.]", [("전문개정", "2011-04-12")]),
        ("〈전문 개정 2011. 4. 12.〉", [("전문개정", "2011-04-12")]),
        ("<조 번호 개정 2025. 3. 1.>", [("조번호개정", "2025-03-01")]),
        ("<제목개정, 개정 2025. 5. 1.>", [("제목개정", "2025-05-01"), ("개정", "2025-05-01")]),
        ("<2005. 3. 1 신설, 개정 2006. 1. 1>", [("신설", "2005-03-01"), ("개정", "2006-01-01")]),
        ("[제2조에서 이동 2022. 6. 15]", [("이동", "2022-06-15")]),
        ("<단서조항삽입 2016. 10. 1.>", [("단서조항삽입", "2016-10-01")]),
        ("<개정 2019. 2. 30., 2020. 3. 1.>", [("개정", "2020-03-01")]),
        ("삭제 <2020.1.1>", [("삭제", "2020-01-01")]),
        ("<삭제>", [("삭제", None)]),
        ("(삭제)", [("삭제", None)]),
        ("<개정 2019.\n3. 1.>", [("개정", "2019-03-01")]),
    ],
)
def test_marks_of_an_article(text: str, expected: list[tuple[str, str | None]]) -> None:
    assert amendments(text) == tuple(Amendment(kind, date) for kind, date in expected)


@each(
    "text",
    [
        "(변경)",
        "(이동)",
        "(명칭변경에 따른 경과조치)",
        "(2014. 3. 1. 현재 재직 중인 사람)",
        "(1999. 8. 18)",
        "(단, 2011. 12. 31. 이전에 개정된 것)",
        "개정 2019. 3. 1.",
        "2020. 3. 1.부터 시행한다.",
        "<개정 2019. 3. 1.",
    ],
)
def test_other_words_are_no_marks(text: str) -> None:
    assert amendments(text) == ()


def test_a_mark_belongs_to_its_paragraph() -> None:
    text = (
        "① 휴학은 네 학기로 한다. <개정 2020. 2. 1.>\n1. 질병\n2. 창업 <신설 2021. 3. 1.>\n"
        "② <삭제 2022. 1. 1.>\n㉑ 더한다. <신설 2023. 1. 1.>\n[본조신설 2019. 3. 1.]\n<제목개정 2024. 1. 1.>"
    )
    assert amendments(text, "제3조(휴학) <개정 2018. 1. 1.>") == (
        Amendment("개정", "2018-01-01"),
        Amendment("개정", "2020-02-01", 1),
        Amendment("신설", "2021-03-01", 1),
        Amendment("삭제", "2022-01-01", 2),
        Amendment("신설", "2023-01-01", 21),
        Amendment("신설", "2019-03-01"),
        Amendment("제목개정", "2024-01-01"),
    )


def test_the_history_is_above_the_first_article() -> None:
    assert history("휴학규정\n제정 2001. 3. 1.\n개정 2010. 9. 1., 2024. 3. 1.\n<규정 명칭 변경 2013. 2. 1.>") == (
        Amendment("제정", "2001-03-01"),
        Amendment("개정", "2010-09-01"),
        Amendment("개정", "2024-03-01"),
        Amendment("규정명칭변경", "2013-02-01"),
    )
    assert history("[시행 2024. 1. 1.] [대통령령 제34000호, 2023. 12. 5., 일부개정]")[0] == Amendment(
        "시행", "2024-01-01"
    )
    assert history("이 규정은 2001. 3. 1. 제정되었다.\n소관부서: 교무처") == ()


@each(
    "text, heading, expected",
    [
        ("이 규정은 2001년 3월 1일부터 시행한다.", "", ["2001-03-01"]),
        (
            "1. 이 규정은 2001년 3월 1일부터 시행한다.\n2. 이 변경 규정은 2002. 3. 1.부터 시행한다",
            "",
            ["2001-03-01", "2002-03-01"],
        ),
        ("① (시행일) 이 개정 학칙은 2024년 3월 1일부터\n시행한다.", "", ["2024-03-01"]),
        ("제1조(시행일) 이 시행세칙의 시행일은 2021년 12월 1일로 한다.", "", ["2021-12-01"]),
        ("(시행일) 2021년 12월 1일부터 시행한다.", "", ["2021-12-01"]),
        ("이 규칙은 공포한 날부터 시행한다.", "<제12호, 2020. 3. 1.>", ["2020-03-01"]),
        ("이 법은 공포 후 6개월이 경과한 날부터 시행한다.", "<2020. 8. 31.>", ["2021-02-28"]),
        ("이 법은 공포 후 1년이 경과한 날부터 시행한다.", "<2020. 2. 29.>", ["2021-02-28"]),
        ("이 규정은 승인한 날(1999. 8. 18)부터 시행한다.", "", ["1999-08-18"]),
        ("이 규정은 공포한 날부터 시행한다.", "", []),
        ("이 규정은 2019년 6월 1일부터 시행하되, 제3조는 2020년 1월 1일부터 적용한다.", "", ["2019-06-01"]),
        ("이 세칙은 2019년 6월 1일부터 반영하여 2019년 9월 1일부터 시행한다.", "", ["2019-09-01"]),
        ("이 학칙은 2006년 4월 11일 및 시행령(제19278호, 2006.1.13) 공포일로부터 시행한다.", "", ["2006-04-11"]),
        ("다만, 제5조는 2026년 3월 1일부터 시행한다.", "", []),
        ("이 학칙 중 제19조는 2011년 12월 16일부터 적용한다.", "", []),
        ("(경과조치) 2023년 3월 1일 이후의 신청부터 적용한다.", "", []),
        ("이 경우 종전의 규정은 2023년 3월 1일까지 적용한다.", "", []),
        ("이 방법은 2023년 3월 1일부터 시행한다.", "", []),
        ("별도의 문장이 없다.", "2010. 3. 1.", ["2010-03-01"]),
        ("1966. 10. 22. (인가일) 제 정\n1972. 12. 1. 개 정", "", ["1966-10-22", "1972-12-01"]),
    ],
)
def test_effective_dates_of_an_addendum(text: str, heading: str, expected: list[str]) -> None:
    assert list(effective_dates(text, heading)) == expected


def test_the_effective_date_of_a_regulation_is_its_newest() -> None:
    first, second = (
        ("이 규정은 2001년 3월 1일부터 시행한다.", ""),
        ("이 변경 규정은 2020. 2. 1.부터 시행한다.", "2019. 12. 1."),
    )
    assert effective_date([second, first], "제정 2001. 3. 1.\n개정 2019. 12. 1.") == "2020-02-01"
    assert effective_date([first], "[시행 2024. 1. 1.]") == "2024-01-01"
    assert effective_date([], "제정 2001. 3. 1.\n개정 2010. 3. 1.") == "2010-03-01"
    assert effective_date([("별표는 따로 정한다.", "")]) is None


days = st.dates(datetime.date(1900, 1, 1), datetime.date(2099, 12, 31))
FORMATS = ("{0}. {1}. {2}.", "{0}.{1}.{2}", "{0}. {1:02}. {2:02}", "{0}-{1:02}-{2:02}", "{0}년 {1}월 {2}일")


@given(
    st.lists(days, min_size=1, max_size=5),
    st.sampled_from(FORMATS),
    st.sampled_from(["<{}>", "({})", "[{}]", "〈{}〉"]),
)
def test_every_date_of_a_mark_is_read_in_every_form(written: list[datetime.date], form: str, brackets: str) -> None:
    texts = [form.format(day.year, day.month, day.day) for day in written]
    text = f"둔다. {brackets.format('개정 ' + ', '.join(texts))}"
    assert amendments(text) == tuple(dict.fromkeys(Amendment("개정", day.isoformat()) for day in written))
    assert effective_dates(f"1. 이 변경 규정은 {texts[0]}부터 시행한다.") == (written[0].isoformat(),)


@given(st.text(alphabet="0123456789.년월일개정신설삭제시행 <>()[]①②이규정은,\n-/", max_size=120))
def test_any_text_is_read(text: str) -> None:
    for entry in (*amendments(text, text), *history(text)):
        assert entry.kind == "".join(entry.kind.split())
        assert entry.date is None or datetime.date.fromisoformat(entry.date)
    for date in effective_dates(text, text):
        datetime.date.fromisoformat(date)


@pytest.mark.parametrize(
    "hostile",
    [
        "<개정 ",
        "(개정 2019.",
        "이 규정은 ",
        "2019. 1. 1. ",
        "①<",
        "본조",
        "조 ",
        "개 ",
        " ",
        "<2019. 3. 1., ",
        "시행일 ",
    ],
)
def test_marks_and_dates_are_read_in_linear_time(hostile: str) -> None:
    def read(size: int) -> None:
        text = hostile * size
        amendments(text)
        history(text)
        effective_dates(text)

    assert grows_linearly(read, 2_000)


@each(
    "text, marks",
    [
        ("차량은 빌린다. <개정 2019. 3. 1.>", ["<개정 2019. 3. 1.>"]),
        ("[본조신설 2020. 1. 1.]", ["[본조신설 2020. 1. 1.]"]),
        ("신설<2012.5.1.> [전문개정]", ["신설<2012.5.1.>", "[전문개정]"]),
        ("제1조(시행일) 이 학칙은 2023. 3. 1.부터 시행한다.", []),
        ("제4조(변경) 제5조(이동)", []),
        ("제3조 삭제 <2020. 1. 1.>", []),
    ],
)
def test_marks_are_told_from_titles_and_from_what_remains_of_a_deleted_text(text: str, marks: list[str]) -> None:
    assert [text[start:end] for start, end in mark_spans(text)] == marks
