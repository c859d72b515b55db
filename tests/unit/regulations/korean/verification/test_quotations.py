"""Words in quotation marks beside a citation, compared with the text of what is cited."""

from __future__ import annotations

import unicodedata

import pytest

from dtrag.core.verification import VerifiedQuotation
from dtrag.regulations.korean.verification.check import read_text
from tests.growth import grows_linearly
from tests.unit.regulations.korean.verification.book import BOOK, COLLECTION, STAFF

SENTENCE = "휴학은 4학기까지로 한다."


def quotations(text: str) -> tuple[VerifiedQuotation, ...]:
    read = read_text(text, COLLECTION)
    return read.judged(BOOK[key] for key in read.editions).quotations


@pytest.mark.parametrize(
    ("text", "status", "target"),
    [
        (f"학칙 제2조는 “{SENTENCE}”라고 정한다.", "verbatim", "한빛대학교학칙 제2조"),
        (f'학칙 제2조제1항에 따르면 "{SENTENCE}"', "verbatim", "한빛대학교학칙 제2조제1항"),
        (f"“{SENTENCE}”(학칙 제2조)", "verbatim", "한빛대학교학칙 제2조"),
        (f"학칙 제2조: “제2조(휴학) ① {SENTENCE}”", "verbatim", "한빛대학교학칙 제2조"),
        ("학칙 제2조는 “휴학은 4 학기까지로 한다”라고 정한다.", "same_letters", "한빛대학교학칙 제2조"),
        ("학칙 제2조는 “휴학은 6학기까지로 한다.”라고 정한다.", "different", "한빛대학교학칙 제2조"),
        (f"학칙 제1조는 “{SENTENCE}”라고 정한다.", "different", "한빛대학교학칙 제1조"),
        (f"학칙 제1조부터 제2조까지는 “{SENTENCE}”라고 정한다.", "verbatim", "한빛대학교학칙 제1조–제2조"),
        ("교원인사규정 별표 1에는 “점수”가 아니라 “점수 합계 백분율”이 있다.", "different", "교원인사규정 별표 1"),
        ("교원인사규정 부칙 제2조는 “종전의 규정에 따른다.”이다.", "verbatim", "교원인사규정 부칙 제2조"),
        (f"학칙 제99조는 “{SENTENCE}”라고 정한다.", "unchecked", None),
        ("고등교육법 제20조는 “학년은 3월에 시작한다.”라고 정한다.", "unchecked", None),
    ],
)
def test_quotations_are_compared_with_what_is_cited(text: str, status: str, target: str | None) -> None:
    (quotation,) = quotations(text)
    assert (quotation.status, quotation.target) == (status, target)
    assert text[quotation.start : quotation.end] == quotation.text


def test_a_citation_in_brackets_belongs_to_the_quotation_before_it() -> None:
    text = f"“이 학칙은 학사를 정한다.”(학칙 제1조), “{SENTENCE}”(학칙 제2조). 학칙 제1조는 “{SENTENCE}”이 아니다."
    assert [quotation.status for quotation in quotations(text)] == ["verbatim", "verbatim", "different"]


@pytest.mark.parametrize(
    "text",
    [
        "교원인사규정(이하 “우리 인사 규정”이라 한다) 제4조",
        "“교원 인사 규정” 제4조",
        "담당자는 “학칙 제2조제1항”을 말하였다.",
        "학칙 제2조의 “군휴학”은 다르다.",
        f"“{SENTENCE}”라고 한다.\n학칙 제2조",
        STAFF.replace("임용은 총장이 한다.", f"학칙 제2조는 “{SENTENCE}”라고 정한다."),
    ],
)
def test_names_terms_and_text_without_a_citation_are_not_quotations(text: str) -> None:
    assert quotations(text) == ()


def test_offsets_are_those_of_the_original_with_decomposed_letters() -> None:
    text = unicodedata.normalize("NFD", f"🙂 학칙 제2조는 “{SENTENCE}”라고 정한다.")
    (quotation,) = quotations(text)
    assert text[quotation.start : quotation.end] == quotation.text == unicodedata.normalize("NFD", SENTENCE)
    assert quotation.status == "same_letters"


def test_the_time_grows_with_the_length() -> None:
    assert grows_linearly(lambda number: quotations("학칙 제2조 “가 " * number), 500)
