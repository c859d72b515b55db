"""Comparing two texts of a regulation provision by provision."""

from __future__ import annotations

from datetime import date

from dtrag.core.documents import ParsedDocument
from dtrag.regulations.changes import changed_spans, file_differences
from dtrag.regulations.korean.editions import article_dates, edition_of, repealed_names
from dtrag.regulations.korean.structure import split

OLD = """# 차량관리규정

## 제1조(목적)

이 규정은 차량의 운행을 정한다.

## 제2조(배차)

배차는 서른 번까지 한다.

## 제3조(운행)

운행은 배차를 받은 사람이 한다.

## 부칙

이 규정은 2020년 3월 1일부터 시행한다.
"""
NEW = (
    OLD.replace("서른", "마흔")
    .replace("## 제3조(운행)\n\n운행은 배차를 받은 사람이 한다.\n\n", "")
    .replace("## 부칙", "## 제4조(반납)\n\n차량은 당일에 반납한다.\n\n## 부칙")
    + "\n## 부칙\n\n이 규정은 2024년 3월 1일부터 시행한다.\n"
)


def regulations(text: str) -> list:  # type: ignore[type-arg]
    return list(split(ParsedDocument("rule", text, "text/markdown")) or ())


def test_provisions_that_differ_are_amended_added_or_deleted() -> None:
    [compared] = file_differences(("old.md", regulations(OLD)), ("new.md", regulations(NEW)))
    assert (compared.regulation, compared.before, compared.after) == ("차량관리규정", "old.md", "new.md")
    assert [(change.label, change.change) for change in compared.changes] == [
        ("제2조", "amended"),
        ("제3조", "deleted"),
        ("제4조", "added"),
        ("부칙", "added"),
    ]
    assert compared.unchanged == 2
    amended = compared.changes[0]
    assert [amended.before[slice(*span)] for span in amended.before_spans] == ["서른"]
    assert [amended.after[slice(*span)] for span in amended.after_spans] == ["마흔"]


def test_an_addendum_that_grew_is_amended() -> None:
    grown = OLD + "\n② 이 규정은 2024년 3월 1일부터 시행한다.\n"
    [compared] = file_differences(("a", regulations(OLD)), ("b", regulations(grown)))
    assert [(change.label, change.change) for change in compared.changes] == [("부칙", "amended")]
    assert compared.unchanged == 3
    [change] = compared.changes
    assert [change.after[slice(*span)] for span in change.after_spans] == ["② 이 규정은 2024년 3월 1일부터 시행한다."]


def test_white_space_is_no_change() -> None:
    [compared] = file_differences(("a", regulations(OLD)), ("b", regulations(OLD.replace("서른 번", "서른\n번"))))
    assert compared.changes == () and compared.unchanged == 4


def test_a_long_text_is_marked_as_a_whole() -> None:
    text = "말 " * 3_000
    assert changed_spans(text, "말 " * 2) == (((0, len(text)),), ((0, 4),))


def test_dates_of_single_articles() -> None:
    clause = "제1조(시행일) 이 규정은 2024년 3월 1일부터 시행한다. 다만, {}"
    assert article_dates(
        clause.format("제12조 및 제15조의2부터 제17조까지의 개정규정은 2025. 1. 1.부터 시행한다.")
    ) == {label: date(2025, 1, 1) for label in ("제12조", "제15조의2", "제16조", "제17조")}
    both = "제5조의 개정규정은 2024. 9. 1.부터 시행하고, 별표 2의 개정규정은 2025. 1. 1.부터 시행한다."
    assert article_dates(clause.format(both)) == {"제5조": date(2024, 9, 1), "별표 2": date(2025, 1, 1)}
    listed = (
        "다음 각 호의 개정규정은 각 호의 날부터 시행한다.\n1. 제12조의 개정규정: 2025년 1월 1일\n2. 제20조: 2026. 3. 1."
    )
    assert article_dates(clause.format(listed)) == {"제12조": date(2025, 1, 1), "제20조": date(2026, 3, 1)}
    assert article_dates("제5조의 개정규정은 2024년 3월 1일 이후 입학한 학생부터 적용한다.") == {}
    assert article_dates(clause.format("")) == {}


def test_repealed_regulations() -> None:
    quoted = "제2조(다른 규정의 폐지) 「연구비 관리지침」 및 「장비규정」은 이 규정 시행과 동시에 폐지한다."
    assert repealed_names(quoted) == ["연구비관리지침", "장비규정"]
    assert repealed_names("종전의 시설관리규정은 폐지한다.") == ["시설관리규정"]
    assert repealed_names("제3조를 삭제한다.") == []


def test_an_edition_of_a_text_without_dates() -> None:
    edition = edition_of("차량 관리규정", "1-2", "", [])
    assert (edition.work, edition.effective_from) == (("1-2", "차량관리규정"), None)


def test_a_regulation_that_repeals_itself_ends() -> None:
    text = OLD + "\n## 부칙\n\n이 규정은 2022년 3월 1일부터 시행한다.\n\n이 규정은 2025년 2월 28일자로 폐지한다.\n"
    [regulation] = regulations(text)
    assert regulation.edition.effective_from == date(2022, 3, 1)
    assert regulation.edition.ends_on == date(2025, 2, 28)
