"""Hostile regulations: whatever a document contains, reading its structure and its citations takes linear time."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrag.adapters.parsers.pdf import reflow
from dtrag.core.documents import ParsedDocument
from dtrag.core.provisions import Provision, RegulationText
from dtrag.regulations.korean.catalog import Catalog, Outline, deletions
from dtrag.regulations.korean.citations import citations, cited_texts
from dtrag.regulations.korean.collection import Collection, Regulation
from dtrag.regulations.korean.lexicon import built_in
from dtrag.regulations.korean.structure import split
from tests.cases import each
from tests.growth import grows_linearly

HEAD = "# 시험규정\n\n## 제1조(목적)\n\n이 규정은 시험을 정한다.\n\n## 제2조(항목)\n\n"
TAIL = "\n\n## 부칙\n\n이 규정은 2024년 3월 1일부터 시행한다.\n"
OWN = Outline("시험규정", "1", frozenset((number, 0) for number in range(1, 500)), has_addendum=True)
RULES = Outline("학칙", "2", frozenset((number, 0) for number in range(1, 500)))
CATALOG = Catalog.of([OWN, RULES, *(Outline(f"가나{number}대학교규정{number}세칙") for number in range(30))])


def passages(body: str, head: str = HEAD) -> int:
    """The number of passages of a regulation with this second article."""
    regulations = split(ParsedDocument("파일", head + body + TAIL, "text/markdown"))
    return sum(len(regulation.chunks) for regulation in regulations or ())


BODIES: dict[str, Callable[[int], str]] = {
    "items": lambda size: "".join(f"{number}. 항목이다.\n" for number in range(size)),
    "paragraphs": lambda size: "① 항목이다.\n" * size,
    "nested sub-items": lambda size: "".join(f"{' ' * (n % 50)}{'가나다라마'[n % 5]}. 목\n" for n in range(size)),
    "one line": lambda size: "가나다 " * size,
    "one word": lambda size: "가" * size,
    "blanks": lambda size: "가" + " " * size + "나",
    "articles": lambda size: "".join(f"## 제{number % 9999 + 3}조(제목)\n\n내용이다.\n\n" for number in range(size)),
    "first articles": lambda size: "제1조(목적) 내용\n" * size,
    "addenda": lambda size: "부칙\n\n내용이다.\n" * size,
    "appendices": lambda size: "".join(f"[별표 {number}]\n\n내용\n\n" for number in range(size)),
    "open brackets": lambda size: f"제3조{'(' * size}\n" + "제3조((((\n" * size,
    "open marks": lambda size: "제3조(제목) " + "<개정 " * size,
    "appendix number": lambda size: "[별표 1" + "-1" * size + "\n",
    "contents": lambda size: "".join(f"규정{number} 1-{number % 9999}\n" for number in range(size)),
    "bold": lambda size: "**" * size,
}


@each("kind", BODIES)
def test_the_structure_is_read_in_linear_time(kind: str) -> None:
    assert grows_linearly(lambda size: passages(BODIES[kind](size)), 1_000)


def test_a_hundred_thousand_items_are_one_article_in_pieces() -> None:
    assert passages(BODIES["items"](100_000)) > 1_000


@each("name", ["가" * 10_000 + "규정", "가 " * 10_000 + "규정", "가" + " " * 10_000 + "규정", "(" * 10_000 + "규정"])
def test_a_name_of_ten_thousand_characters_is_no_name(name: str) -> None:
    regulations = split(
        ParsedDocument(
            "파일", f"# {name}\n\n## 제1조(목적)\n\n이 규정은.\n\n## 제2조(항)\n\n내용이다.\n" + TAIL, "text/markdown"
        )
    )
    assert all(len(regulation.document.title) <= 60 for regulation in regulations or ())


CITING: dict[str, Callable[[int], str]] = {
    "articles": lambda size: "제3조에 따라 " * size,
    "a list": lambda size: "제3조," * size,
    "ranges": lambda size: "제3조 내지 제400조 " * size,
    "quoted names": lambda size: "「학칙」 제3조 " * size,
    "names": lambda size: "학칙 제3조, " * size,
    "laws": lambda size: "고등교육법 제3조 같은 법 시행령 제3조\n" * size,
    "unknown rules": lambda size: "모르는규정 제3조 " * size,
    "endings": lambda size: "규정 제3조 " * size,
    "long words": lambda size: f"{'가' * 50}규정 제3조," * (size // 10),
    "one word": lambda size: "가" * size + "규정 제3조",
    "previous articles": lambda size: "전조 및 " * size,
    "previous paragraphs": lambda size: "① 전항의 " * size,
    "same articles": lambda size: "같은 조 제2항 " * size,
    "this regulation": lambda size: "이 규정 제2조 " * size,
    "appendices": lambda size: "별표 " + "1호서식," * size,
    "blanks": lambda size: "제3조" + " " * size + "제4조",
    "open quotes": lambda size: "「" * size,
    "open brackets": lambda size: "학칙(" * size,
    "open marks": lambda size: "<개정 " * size,
    "hereafter": lambda size: "(이하 「가나」" * size,
}


@each("kind", CITING)
def test_citations_are_read_in_linear_time(kind: str) -> None:
    assert grows_linearly(lambda size: citations(CITING[kind](size), OWN, "제2조", CATALOG), 400)


@each("text", ["가·", "규정", "가 ", "제3조 "])
def test_citations_of_an_unknown_collection_are_read_in_linear_time(text: str) -> None:
    assert grows_linearly(lambda size: cited_texts(text * size), 2_000)


@each("text", ["제1조{}", "제1조{}(", "[별표 1{}", "[별표{}1"])
@each("run", [" ", "\n", " \n", "\t*"])
def test_deleted_provisions_are_found_in_linear_time(text: str, run: str) -> None:
    assert grows_linearly(lambda size: list(deletions(text.format(run * size))), 2_000)


def test_deleted_provisions_are_found_across_white_space() -> None:
    for text, labels in (
        ("내용\n\n  제3조   (제목) \n 삭제 <2020.1.1>", ["제3조"]),
        ("제3조 내지  제5조 삭 제", ["제3조", "제4조", "제5조"]),
        ("\n[별표  2] <삭제 2020. 1. 1.>", ["별표 2"]),
    ):
        assert [deletion.label for deletion in deletions(text)] == labels


@pytest.mark.parametrize("length", [1, 2, 200])
def test_regulations_that_cite_each_other_in_a_circle(length: int) -> None:
    texts = []
    for number in range(length):
        text = f"「순환{(number + 1) % length}규정」 제1조에 따르고, 이 규정 제1조를 준용한다."
        provision = Provision("article", "제1조", "", 1, 0, len(text), 0, 0)
        texts.append(RegulationText(uuid.UUID(int=number + 1), f"순환{number}규정", "", text, (provision,)))
    collection = Collection.of(map(Regulation.of, texts))
    for number, regulation in enumerate(texts):
        source = collection.find(f"순환{number}규정 제1조")
        targets = [citation.targets for citation in collection.citations_of(source, [regulation.text])]
        assert targets == [(f"순환{(number + 1) % length}규정 제1조",), (f"순환{number}규정 제1조",)]


@each("words", ["휴학신청절차", "휴학 ", "가나다라마바사아자차"])
def test_a_question_is_interpreted_in_linear_time(words: str) -> None:
    """Without a blank, it is one word of thousands of syllables: no entry is as long."""
    lexicon = built_in()
    assert grows_linearly(lambda size: lexicon.matches(words * size), 100)


TOKENS = [
    *"제 1 3 조 의 항 호 제3조 별표 별지 서식 부칙 학칙 규정 시험규정 세칙 법 시행령 같은 동 전 이 및".split(),
    *"또는 내지 부터 까지 · ㆍ , . ( ) [ ] < > 「 」 ① ② 개정 삭제 신설 2020. 1. 에 따라 을 준용".split(),
    *"폐지한다 | ■ # ** 가 나다 관한 기준".split(),
    *(" ", "\n", "\t", "\n\n"),
]


@given(st.lists(st.sampled_from(TOKENS), min_size=1, max_size=5).map("".join))
@settings(max_examples=25)
def test_no_repeated_text_takes_quadratic_time(unit: str) -> None:
    assert grows_linearly(lambda size: citations(unit * size, OWN, "제2조", CATALOG), 150)
    assert grows_linearly(lambda size: passages(unit * size), 150)
    assert grows_linearly(lambda size: list(reflow((unit * size).split("\n"))), 300)
