"""When provisions and their paragraphs were last amended."""

from __future__ import annotations

import uuid
from datetime import date

from dtrag.core.documents import ParsedDocument
from dtrag.core.provisions import RegulationText, provisions_of
from dtrag.regulations.korean.amendments import deletion_days, provision_days
from dtrag.regulations.korean.structure import split

TEXT = """# 차량관리규정

## 제1조(목적)

이 규정은 차량의 운행을 정한다.

## 제2조(배차) <신설 2021. 3. 1.>

① 배차는 서른 번까지 한다. <개정 2022. 3. 1.>

② 배차는 전날에 신청한다.

③ 배차를 받은 사람이 운행한다.

## 제3조(제한)

제2조제2항에 따른 배차를 제한할 수 있다.

## 부칙

이 규정은 2020년 3월 1일부터 시행한다.
"""


def edition(text: str, day: date | None = None) -> RegulationText:
    [regulation] = list(split(ParsedDocument("rule", text, "text/markdown")) or ())
    return RegulationText(
        uuid.uuid4(), "차량관리규정", "", regulation.document.text, provisions_of(regulation.chunks), None, day
    )


def test_marks_of_the_heading_and_of_paragraphs() -> None:
    days = provision_days([edition(TEXT)], "제2조")
    assert (days.written, days.amended) == ("2022-03-01", "2022-03-01")
    assert days.paragraphs == {1: "2022-03-01", 2: "2021-03-01", 3: "2021-03-01"}
    assert days.amended_in(2) == "2021-03-01"
    assert days.amended_in(None) == days.amended_in(9) == "2022-03-01"


def test_a_provision_without_marks_was_written_when_the_regulation_took_effect_and_not_amended() -> None:
    days = provision_days([edition(TEXT)], "제1조")
    assert (days.written, days.amended, days.paragraphs) == ("2020-03-01", None, {})


def test_a_paragraph_was_amended_by_the_edition_in_which_it_first_differs() -> None:
    editions = [
        edition(TEXT, date(2020, 3, 1)),
        edition(TEXT.replace("전날", "이틀 전"), date(2023, 3, 1)),
        edition(TEXT.replace("전날", "이틀\n전"), date(2024, 3, 1)),
    ]
    days = provision_days(editions, "제2조")
    assert (days.written, days.amended) == ("2023-03-01", "2023-03-01")
    assert days.paragraphs == {1: "2022-03-01", 2: "2023-03-01", 3: "2021-03-01"}


def test_deleted_provisions() -> None:
    assert deletion_days("제2조 삭제 <2020. 1. 1.>").amended_in(1) == "2020-01-01"
    assert deletion_days("제2조 삭제").amended is None
