"""Statuses of citations in any text: one sentence for each kind of reference, right and wrong."""

from __future__ import annotations

import unicodedata
import uuid
from dataclasses import replace

import pytest

from dtrag.core.provisions import RegulationText
from dtrag.regulations.korean.collection import Collection, Regulation
from dtrag.regulations.korean.verification.check import read_text
from dtrag.regulations.korean.verification.contents import read_article
from tests.cases import each
from tests.growth import grows_linearly
from tests.unit.regulations.korean.verification.book import BOOK, COLLECTION, statuses, verified

FINE = [
    "교원인사규정 제4조",
    "교원 인사 규정 제4조",
    "「교원인사규정」 제4조",
    "「교원인사규정 제4조」",
    "교원인사규정(2-1-1) 제4조",
    "2-1-1 제4조",
    "본교 교원인사규정 제4조",
    "교원인사규정의 제4조",
    "교원인사규정 제2장 제4조",
    "교원인사규정 4조",
    "교원인사규정 제 4 조",
    "교원인사규정 제4조(임용)",
    "교원인사규정 제4조 (임 용)",
    "교원인사규정 제3조(근무기간ㆍ조건)",
    "교원인사규정 제3조(근무기간, 조건)",
    "교원인사규정 제4조(이하 같다)",
    "교원인사규정 제2조제1항",
    "교원인사규정 제2조 제2항 제1호",
    "교원인사규정 제2조제2항제1호나목",
    "교원인사규정 제2조 2항 2호",
    "교원인사규정 제2조제2항제2호의2",
    "교원인사규정 제2조의 제2항",
    "교원인사규정 제3조제2호",
    "교원인사규정 별표 1",
    "교원인사규정 [별표 1]",
    "교원인사규정 별지 제1호서식",
    "교원인사규정 부칙",
    "교원인사규정 부칙 제2조",
    "교원인사규정 부칙(2019. 3. 1.) 제2조",
    "교원인사규정 부칙 제2항",
    "학칙 제2조(단서)",
    "교원인사규정 제2장",
    "교원인사규정 제1장 내지 제2장",
    "학칙 제3조의2",
    "한빛대학교 학칙 제2조제2항",
]


@each("text", FINE)
def test_what_exists_is_found(text: str) -> None:
    sentence = f"이 일은 {text}에 따라 처리한다."
    [citation] = verified(sentence)
    assert (citation.status, citation.reason) == ("exists", "")
    assert sentence[citation.start : citation.end] == citation.text
    assert citation.target


WRONG = [
    ("교원인사규정 제7조", "missing", "제1조–제4조, 제6조"),
    ("교원인사규정 제3조의2", "missing", "제1조–제4조, 제6조"),
    ("교원인사규정 제2조제4항", "missing", "제1항–제3항"),
    ("교원인사규정 제4조제1항", "missing", None),
    ("교원인사규정 제2조제2항제4호", "missing", "제1호–제3호"),
    ("교원인사규정 제2조제2항제1호다목", "missing", "가목, 나목"),
    ("교원인사규정 제2조제2항제2호의3", "missing", "제1호–제3호"),
    ("교원인사규정 별표 3", "missing", "별표 1"),
    ("교원인사규정 별지 제2호서식", "missing", "별지 제1호 서식"),
    ("학칙 별표 1", "missing", None),
    ("학칙 부칙", "missing", None),
    ("교원인사규정 부칙 제3조", "missing", "제1조–제2조"),
    ("교원인사규정 부칙(2018. 3. 1.) 제2조", "missing", None),
    ("교원인사규정 부칙 제3항", "missing", None),
    ("교원인사규정 제3장", "missing", "제1장, 제2장"),
    ("드론운용규정 제4조", "missing", None),
    ("「드론 운용 규정」", "missing", None),
    ("교원인사규칙 제9조", "missing", "제1조–제4조, 제6조"),
    ("교원인사규정 제5조", "repealed", None),
    ("교원인사규정 제2조제3항", "repealed", None),
    ("교원인사규정 제2조제2항제3호", "repealed", None),
    ("교원인사규정 별표 2", "repealed", None),
    ("휴학규정 제1조", "repealed", None),
    ("교원인사규정 제4조(승진)", "title_mismatch", None),
    ("교원인사규칙 제4조", "title_mismatch", None),
    ("교원 인사 규칙 제4조", "title_mismatch", None),
    ("「교원인사규칙」", "title_mismatch", None),
    ("교원인시규정 제4조", "title_mismatch", None),
    ("교원인사규정(1-1-1) 제4조", "title_mismatch", None),
    ("「교직원규정」(2-1-1) 제4조", "title_mismatch", None),
    ("교원인사규정 별표 1(학점 배점표)", "title_mismatch", None),
    ("교원인사규정 별표 1 내지 3", "missing", "별표 1"),
    ("교원인사규정 제1장 내지 제3장", "missing", "제1장, 제2장"),
    ("교수인사지침 제4조", "repealed", None),
    ("교원임용규정 제4조", "title_mismatch", None),
    ("고등교육법 제4조", "unclear", None),
    ("「고등교육법 시행령」 제4조", "unclear", None),
    ("민법 제3조", "unclear", None),
    ("국가공무원 복무규정 제4조", "unclear", None),
    ("제4조", "unclear", None),
    ("같은 조", "unclear", None),
]


@each("row", WRONG)
def test_what_does_not_exist_is_never_fine(row: tuple[str, str, str | None]) -> None:
    text, status, existing = row
    sentence = f"이 일은 {text}에 따라 처리한다."
    [citation] = verified(sentence)
    assert (citation.text, citation.status, citation.range) == (text, status, existing)
    assert citation.reason.endswith((".", "?"))


def test_the_real_title_and_the_nearest_regulation_are_named() -> None:
    [title] = verified("교원인사규정 제4조(승진)")
    assert (title.target, title.title) == ("교원인사규정 제4조", "임용")
    assert "제6조 has the title 승진" in title.reason
    [name] = verified("교원인사규칙 제4조")
    assert (name.target, name.title) == ("교원인사규정 제4조", "임용")
    assert "nearest is 교원인사규정" in name.reason


LISTS = [
    ("교원인사규정 제1조, 제3조 및 제7조", [("제1조", "exists"), ("제3조", "exists"), ("제7조", "missing")]),
    ("교원인사규정 제2조제1항 및 제4항", [("제2조제1항", "exists"), ("제4항", "missing")]),
    (
        "교원인사규정 제2조제2항제1호, 제2호 및 제3호",
        [("제2조제2항제1호", "exists"), ("제2호", "exists"), ("제3호", "repealed")],
    ),
    ("교원인사규정 제1조부터 제4조까지", [("제1조부터 제4조까지", "exists")]),
    ("교원인사규정 제1조 내지 제6조", [("제1조 내지 제6조", "repealed")]),
    ("교원인사규정 제1조~제9조", [("제1조~제9조", "missing")]),
    ("교원인사규정 제1~4조", [("제1~4조", "exists")]),
    ("교원인사규정 제1, 4조", [("제1", "exists"), ("4조", "exists")]),
    ("교원인사규정 제2조제1항부터 제4항까지", [("제2조제1항부터 제4항까지", "missing")]),
    ("교원인사규정 별표 1 및 별표 3", [("별표 1", "exists"), ("별표 3", "missing")]),
]


@each("row", LISTS)
def test_every_member_of_a_list_and_of_a_range_is_checked(row: tuple[str, list[tuple[str, str]]]) -> None:
    text, expected = row
    assert [(cited.removeprefix("교원인사규정 "), status) for cited, status in statuses(text)] == expected


def test_references_without_a_name_are_of_what_was_named_before() -> None:
    text = (
        "교원인사규정 제2조에 따른다. 제3조도 같다. 같은 조 제2호와 제9호는 제외하고, 제2조제2항과 "
        "같은 항 제1호를 본다. "
        "학칙 제2조는 다르다. 같은 조 제3항은 없다. 동 학칙 제1조. 민법 제3조와 같은 법 제5조, 제6조. "
    )
    assert statuses(text) == [
        ("교원인사규정 제2조", "exists"),
        ("제3조", "exists"),
        ("같은 조 제2호", "exists"),
        ("제9호", "missing"),
        ("제2조제2항", "exists"),
        ("같은 항 제1호", "exists"),
        ("학칙 제2조", "exists"),
        ("같은 조 제3항", "missing"),
        ("동 학칙 제1조", "exists"),
        ("민법 제3조", "unclear"),
        ("같은 법 제5조", "unclear"),
        ("제6조", "unclear"),
    ]


def test_the_regulation_of_references_before_any_name_may_be_given() -> None:
    assert statuses("제4조와 제5조") == [("제4조", "unclear"), ("제5조", "unclear")]
    assert statuses("제4조와 제5조", "교원인사규정") == [("제4조", "exists"), ("제5조", "repealed")]
    assert statuses("학칙 제1조, 제2조", "교원인사규정")[1] == ("제2조", "exists")


def test_a_reference_that_could_be_of_several_regulations_is_unclear() -> None:
    named = "교원인사규정 제1조와 학칙 제1조를 보았다."
    assert statuses(f"{named} 이어서 제2조를 본다. 위 규정 제2조, 같은 조.")[2:] == [
        ("제2조", "unclear"),
        ("위 규정 제2조", "unclear"),
        ("같은 조", "unclear"),
    ]
    assert statuses("교원인사규정 제1조와 학칙 제1조, 전자의 제2조")[-1] == ("제2조", "unclear")
    assert statuses(f"{named}\n학칙을 더 본다. 제2조에 따른다.")[-1] == ("제2조", "exists")
    assert statuses("교원인사규정 제1조를 보았다. 이어서 제5조를 본다.")[-1] == ("제5조", "repealed")
    assert statuses("「고등교육법」에 따라 학칙 제1조를 정한다. 제2조도 같다.")[-1] == ("제2조", "exists")


def test_a_text_may_define_short_names() -> None:
    text = "교원인사규정(이하 “인사규정”이라 한다) 제1조와 학칙(이하 '규칙'이라 함) 제1조. 인사규정 제9조, 규칙 제2조."
    assert [status for _, status in statuses(text)] == ["exists", "exists", "missing", "exists"]
    assert verified(text)[3].target == "한빛대학교학칙 제2조"


@each(
    "text",
    [
        "회의는 3조원 규모의 예산을 심의하였다.",
        "제3조는 2조와 경기한다.".replace("제3조는 ", ""),
        "관련 규정에 따라 처리한다. 운영 지침을 따른다.",
        "공고 제2024-3호, 안건 제3호, 제12회 회의",
        "학번 20241234, 2024. 3. 1. 시행",
        "그 방법을 따르고 불법을 막는다.",
        "",
    ],
)
def test_other_words_cite_nothing(text: str) -> None:
    assert verified(text) == []


def test_positions_are_those_of_the_original_text() -> None:
    for text in ("앞말\n교원인사규정 제2조제1항", "본 위원회는 관련 절차를 충실히 밟아 교원인\n사규정 제4조를 적용"):
        for form in ("NFC", "NFD"):
            written = unicodedata.normalize(form, text)
            [citation] = verified(written)
            assert citation.status == "exists"
            assert written[citation.start : citation.end] == citation.text
            assert unicodedata.normalize("NFC", citation.text).startswith("교원인")


def test_amendment_marks_cite_nothing() -> None:
    assert statuses("교원인사규정 제4조 <개정 2020. 3. 1., 제9조에서 이동>는") == [("교원인사규정 제4조", "exists")]


def test_counts_have_every_status() -> None:
    read = read_text("고등교육법 제3조", COLLECTION)
    found = read.judged([])
    assert found.counts == {"exists": 0, "missing": 0, "title_mismatch": 0, "repealed": 0, "unclear": 1}
    assert not found.all_exist
    assert read_text("인사말", COLLECTION).judged([]).all_exist


def test_an_empty_collection_knows_no_regulation() -> None:
    [citation] = read_text("교원인사규정 제4조", Collection.of([])).judged([]).citations
    assert (citation.status, citation.target, citation.range) == ("missing", None, None)


HOSTILE = {
    "articles": "교원인사규정 제3조에 따라 ",
    "a list": "제3조,",
    "ranges": "교원인사규정 제1조 내지 제400조 ",
    "parts": "제2조제1항 및 제2항, ",
    "unknown names": "모르는규정 제3조 ",
    "near names": "교원인사규칙 제3조, ",
    "endings": "규정 ",
    "one word": "가",
    "blanks": " ",
    "quotes": "「",
    "brackets": "제3조(",
    "marks": "<개정 ",
    "lines": "가나다라마바사아자차카타파하가나다라마바사\n",
    "appendices": "별표 1, ",
    "numbers": "제1,",
    "same article": "같은 조 제2항 ",
    "addenda": "교원인사규정 부칙 제1조 ",
    "laws": "고등교육법 제3조 같은 법 시행령 제3조 ",
    "items": "제2호 및 ",
    "drafts": "제1조(목적) 이 규정은 제2조에 따른다.\n제2조(항) ① 전항의 제3조\n",
    "short names": "학칙(이하 “가나”라 한다) 가나 제1조 ",
}


def test_items_inside_a_line_are_read_and_dates_are_none() -> None:
    inline = read_article("다음과 같다. 1. 교수 2. 부교수: 가. 전임 나. 겸임 3. 조교수")
    assert set(inline.whole.items) == {(1, 0), (2, 0), (3, 0)}
    assert inline.whole.items[2, 0].subitems == {1: False, 2: False}
    assert read_article("한다. <개정 2005. 9. 1., 2011. 7. 1., 2012. 2. 29.> 정원은 1. 5명이다.").whole.items == {}
    deleted = read_article("① 한다.\n②~④ 삭제 <2020. 1. 1.>\n⑤ 한다.\n1. 가\n2. ~ 4. 삭제\n5. 나")
    assert [number for number, paragraph in deleted.paragraphs.items() if paragraph.deleted] == [2, 3, 4]
    assert [number for number, item in deleted.paragraphs[5].items.items() if item.deleted] == [(2, 0), (3, 0), (4, 0)]


def edition(text: RegulationText, day: int) -> RegulationText:
    return replace(text, document_id=uuid.UUID(int=day), work_id=uuid.UUID(int=7))


def test_editions_that_are_valid_together_count_as_one() -> None:
    staff = next(iter(BOOK.values()))
    articles = [provision for provision in staff.provisions if provision.label in {"제4조", "제6조"}]
    newer = edition(replace(staff, provisions=tuple(one for one in staff.provisions if one not in articles)), 2)
    older = edition(replace(staff, provisions=tuple(articles)), 1)
    collection = Collection.of(map(Regulation.of, (newer, older)))
    read = read_text("교원인사규정 제1조, 제4조(임용), 제6조(심사), 제4조제1항, 제7조", collection)
    assert {key for keys in read.editions.values() for key in keys} == {newer.document_id, older.document_id}
    found = read.judged([newer, older]).citations
    assert [row.status for row in found] == ["exists", "exists", "title_mismatch", "missing", "missing"]


@each("kind", HOSTILE)
def test_a_text_is_verified_in_linear_time(kind: str) -> None:
    assert grows_linearly(lambda size: verified(HOSTILE[kind] * size), 500)


@pytest.mark.parametrize("size", [1_500])
def test_distinct_unknown_names_take_linear_time(size: int) -> None:
    assert grows_linearly(
        lambda count: verified(" ".join(f"교원{chr(0xAC00 + number)}규정 제3조" for number in range(count))), size
    )


DRAFT = """인사말씀: 학칙 제1조와 교원인사규정 제7조를 보십시오.

시험관리규정

제1조(목적)
이 규정은 학칙 제2조제2항에 따른다.

제2조(시험)
① 시험은 제1조에 따른다.
② 전항의 시험은 제3조를 따른다. 이 조 제1항도 같다.
③ 제2항의 절차는 제9조와 교원인사규정 제5조에 따르고, 제5항은 따로 정한다.

제3조(서식)
서식은 별표 1에 따르고, 시험관리규정(이하 “이 규정”이라 한다) 제2조를 적용한다.

부칙
제1조(시행일) 이 규정은 2024년 3월 1일부터 시행한다.
제2조(경과조치) 제3조는 제4조에 따른다.
"""


def test_in_a_draft_bare_references_are_to_its_own_articles() -> None:
    assert statuses(DRAFT) == [
        ("학칙 제1조", "exists"),
        ("교원인사규정 제7조", "missing"),
        ("학칙 제2조제2항", "exists"),
        ("제1조", "exists"),
        ("전항", "exists"),
        ("제3조", "exists"),
        ("이 조 제1항", "exists"),
        ("제2항", "exists"),
        ("제9조", "missing"),
        ("교원인사규정 제5조", "repealed"),
        ("제5항", "missing"),
        ("별표 1", "missing"),
        ("시험관리규정(이하 “이 규정”이라 한다) 제2조", "exists"),
        ("제3조", "exists"),
        ("제4조", "missing"),
    ]
    for citation in verified(DRAFT):
        assert DRAFT[citation.start : citation.end] == citation.text
    assert {row.target for row in verified(DRAFT) if row.text == "전항"} == {"시험관리규정 제2조제1항"}


def test_a_draft_of_a_known_regulation_is_checked_against_itself() -> None:
    draft = DRAFT.replace("시험관리규정", "교원인사규정")
    assert dict(statuses(draft))["교원인사규정 제5조"] == "missing"
