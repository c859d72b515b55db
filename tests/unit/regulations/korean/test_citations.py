"""The grammar of citations, case by case, over an invented collection."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrag.regulations.korean.catalog import Catalog, Outline
from dtrag.regulations.korean.citations import citations, cited_texts


def outline(name: str, last: int = 30, **more: object) -> Outline:
    """A regulation with articles 1 to `last`, 4의2 and an addendum."""
    articles = frozenset({*((number, 0) for number in range(1, last + 1)), (4, 2)})
    return Outline(name, articles=articles, has_addendum=True, **more)  # type: ignore[arg-type]


SOURCE = Outline(
    "휴학규정",
    articles=frozenset({*((number, 0) for number in range(1, 31) if number != 9), (4, 2), (12, 2)}),
    repealed=frozenset({(9, 0)}),
    appendices={"별표1": "별표 1", "별표1-2": "별표 1의2", "별지1호서식": "별지 제1호 서식"},
    has_addendum=True,
    repealed_appendices=frozenset({"별표3"}),
)
CATALOG = Catalog.of(
    [
        SOURCE,
        outline("학칙"),
        outline("대학원학칙"),
        outline("한빛대학교정관"),
        outline("교원인사규정", appendices={"별표2": "별표 2"}),
        outline("JA교원인사규정"),
        outline("교육ㆍ연구 시설 관리 규정"),
        outline("난민지원규정"),
    ]
)
Case = tuple[str, str, str, tuple[str, ...]]


def own(*labels: str) -> tuple[str, ...]:
    return tuple(f"휴학규정 {label}" for label in labels)


def of(name: str, *labels: str) -> tuple[str, ...]:
    return tuple(f"{name} {label}" for label in labels)


CASES: list[Case] = [
    # one article of the same regulation
    ("제15조에 따라", "제15조", "internal", own("제15조")),
    ("제 15 조에 따라", "제 15 조", "internal", own("제15조")),
    ("제15조제2항에 따라", "제15조제2항", "internal", own("제15조")),
    ("제15조 제2항 제3호를 본다", "제15조 제2항 제3호", "internal", own("제15조")),
    ("제15조제2항제3호가목을 본다", "제15조제2항제3호가목", "internal", own("제15조")),
    ("제15조제1호에 해당하는", "제15조제1호", "internal", own("제15조")),
    ("제4조의2에 따라", "제4조의2", "internal", own("제4조의2")),
    ("제4조의 2에 따라", "제4조의 2", "internal", own("제4조의2")),
    ("제4조의 2항에 따라", "제4조의 2항", "internal", own("제4조")),
    ("제12조의2제1항에 따라", "제12조의2제1항", "internal", own("제12조의2")),
    ("제5조(신청)에 따라", "제5조(신청)", "internal", own("제5조")),
    ("제20조를 준용한다.", "제20조", "internal", own("제20조")),
    ("15조에 따라", "15조", "internal", own("제15조")),
    # ranges and lists
    ("제13조 내지 제17조에", "제13조 내지 제17조", "internal", own("제13조", "제14조", "제15조", "제16조", "제17조")),
    ("제13조부터 제15조까지", "제13조부터 제15조까지", "internal", own("제13조", "제14조", "제15조")),
    ("제13조 ~ 제14조의", "제13조 ~ 제14조", "internal", own("제13조", "제14조")),
    ("제13조∼제14조의", "제13조∼제14조", "internal", own("제13조", "제14조")),
    ("제5조와 제6조에", "제5조와 제6조", "internal", own("제5조", "제6조")),
    ("제5조 및 제6조에", "제5조 및 제6조", "internal", own("제5조", "제6조")),
    ("제5조, 제7조, 제11조에", "제5조, 제7조, 제11조", "internal", own("제5조", "제7조", "제11조")),
    ("제5조ㆍ제7조에", "제5조ㆍ제7조", "internal", own("제5조", "제7조")),
    ("제5조·제7조에", "제5조·제7조", "internal", own("제5조", "제7조")),
    ("제5조 또는 제7조에", "제5조 또는 제7조", "internal", own("제5조", "제7조")),
    ("제8조부터 제10조까지", "제8조부터 제10조까지", "internal", own("제8조", "제10조")),
    # references to what stands here
    ("같은 조 제2항은", "같은 조 제2항", "internal", own("제6조")),
    ("동조 제2항은", "동조 제2항", "internal", own("제6조")),
    ("전조의 규정은", "전조", "internal", own("제5조")),
    ("전항의 경우", "전항", "internal", own("제6조")),
    ("본조에서 정한", "본조", "internal", own("제6조")),
    ("제2항의 경우", "제2항", "internal", own("제6조")),
    ("제1항제2호의 경우", "제1항제2호", "internal", own("제6조")),
    ("이 규정 제7조에", "이 규정 제7조", "internal", own("제7조")),
    ("본 규정 제7조에", "본 규정 제7조", "internal", own("제7조")),
    # other regulations
    ("학칙 제20조에", "학칙 제20조", "other-regulation", of("학칙", "제20조")),
    ("「학칙」 제20조에", "「학칙」 제20조", "other-regulation", of("학칙", "제20조")),
    ("『학칙』 제20조제1항에", "『학칙』 제20조제1항", "other-regulation", of("학칙", "제20조")),
    ("“학칙” 제20조에", "“학칙” 제20조", "other-regulation", of("학칙", "제20조")),
    ("학칙 제12조와 제13조에", "학칙 제12조와 제13조", "other-regulation", of("학칙", "제12조", "제13조")),
    ("교원인사규정 제8조에", "교원인사규정 제8조", "other-regulation", of("교원인사규정", "제8조")),
    ("JA교원인사규정 제8조에", "JA교원인사규정 제8조", "other-regulation", of("JA교원인사규정", "제8조")),
    ("교원 인사 규정 제8조에", "교원 인사 규정 제8조", "other-regulation", of("교원인사규정", "제8조")),
    ("대학원학칙 제3조에", "대학원학칙 제3조", "other-regulation", of("대학원학칙", "제3조")),
    ("교원인사규정에 따른다.", "교원인사규정", "other-regulation", ("교원인사규정",)),
    ("「교원인사규정」을 준용한다.", "「교원인사규정」", "other-regulation", ("교원인사규정",)),
    ("정관 제5조에", "정관 제5조", "other-regulation", of("한빛대학교정관", "제5조")),
    *(
        (
            f"교육{dot}연구 시설 관리 규정 제2조에",
            f"교육{dot}연구 시설 관리 규정 제2조",
            "other-regulation",
            of("교육ㆍ연구 시설 관리 규정", "제2조"),
        )
        for dot in "·ㆍ‧•・"
    ),
    (
        "교육연구시설관리규정 제2조에",
        "교육연구시설관리규정 제2조",
        "other-regulation",
        of("교육ㆍ연구 시설 관리 규정", "제2조"),
    ),
    ("교원은 학칙 제20조에", "학칙 제20조", "other-regulation", of("학칙", "제20조")),
    # appendices and addenda
    ("별표 1과 같다", "별표 1", "appendix", own("별표 1")),
    ("<별표 1>과 같다", "별표 1", "appendix", own("별표 1")),
    ("[별표 1의2]와 같다", "별표 1의2", "appendix", own("별표 1의2")),
    ("별지 제1호 서식에", "별지 제1호 서식", "appendix", own("별지 제1호 서식")),
    ("교원인사규정 별표 2에", "교원인사규정 별표 2", "appendix", of("교원인사규정", "별표 2")),
    ("별표 3과 같다", "별표 3", "repealed", own("별표 3")),
    ("별표 7과 같다", "별표 7", "missing", ()),
    ("부칙 제2조에", "부칙 제2조", "addendum", own("부칙")),
    ("학칙 부칙에", "학칙 부칙", "addendum", of("학칙", "부칙")),
    # outside, repealed, missing
    ("고등교육법 제20조에", "고등교육법 제20조", "external-law", ()),
    ("「고등교육법」 제20조제1항에", "「고등교육법」 제20조제1항", "external-law", ()),
    ("「고등교육법 시행령」 제4조에", "「고등교육법 시행령」 제4조", "external-law", ()),
    ("민법 제5조에", "민법 제5조", "external-law", ()),
    ("난민법 제5조에", "난민법 제5조", "external-law", ()),
    ("제9조에 따라", "제9조", "repealed", own("제9조")),
    ("제99조에 따라", "제99조", "missing", ()),
    ("학칙 제99조에", "학칙 제99조", "missing", ()),
    ("제99조의2에 따라", "제99조의2", "missing", ()),
    # read in a real book, by the rule that they stand for
    ("① 정한다.\n②제1항에 따라 바꾼다.", "제1항", "internal", own("제6조")),
    ("센터는 제2조 직무에 관한 업무를 한다.", "제2조", "internal", own("제2조")),
    ("제18조, 19조, 22조의 심사", "제18조, 19조, 22조", "internal", own("제18조", "제19조", "제22조")),
    ("※「전염병예방법」제2조에 따름", "「전염병예방법」제2조", "external-law", ()),
    ("(관리법 시행규칙 별표4 )참조", "관리법 시행규칙 별표4", "external-law", ()),
]


@pytest.mark.parametrize(("text", "cited", "kind", "targets"), CASES, ids=[case[0] for case in CASES])
def test_one_citation(text: str, cited: str, kind: str, targets: tuple[str, ...]) -> None:
    (found,) = citations(text, SOURCE, "제6조", CATALOG)
    assert (found.text, found.kind, found.targets) == (cited, kind, targets)
    assert text[found.start : found.end] == cited


@pytest.mark.parametrize(
    "text",
    [
        "조교는 조건을 지킨다.",
        "이 규정은 공포한 날부터 시행한다.",
        "총장은 제1학기와 제2학기를 정한다.",
        "제3장에서 정한다.",
        "제3차 회의를 연다.",
        "이 방법에 따른다.",
        "<개정 2024. 3. 1.>",
        "[본조신설 2019. 3. 1.]",
        "제6조(휴학의 신청) 학생은 신청한다.",
        "",
    ],
)
def test_text_that_is_not_a_citation(text: str) -> None:
    assert citations(text, SOURCE, "제6조", CATALOG) == []


def test_paragraph_and_item_are_numbers() -> None:
    (found,) = citations("제15조제2항제3호", SOURCE, "제6조", CATALOG)
    assert (found.paragraph, found.item) == (2, 3)
    (found,) = citations("③ 전항의 경우", SOURCE, "제6조", CATALOG)
    assert found.paragraph == 2


def test_same_law_means_the_law_of_the_sentence() -> None:
    found = citations("고등교육법 제20조와 같은 법 시행령 제4조에 따른다.", SOURCE, "제6조", CATALOG)
    assert [citation.kind for citation in found] == ["external-law", "external-law"]
    assert found[1].text == "같은 법 시행령 제4조"


def test_a_short_name_means_the_rule_of_the_branch_of_the_source() -> None:
    branches = [outline("대학원위원회규정"), outline("학생회규정"), outline("대학원학칙"), outline("한빛대학교학칙")]
    catalog = Catalog.of(branches)
    found = [citations("학칙 제3조에", source, "제2조", catalog)[0].targets for source in branches[:2]]
    assert found == [("대학원학칙 제3조",), ("한빛대학교학칙 제3조",)]


def test_articles_of_an_addendum_are_not_citations_of_the_regulation() -> None:
    text = "부칙\n제1조(시행일) 이 규정은 공포한 날부터 시행한다.\n제2조(경과조치) 제5조의 기간은 종전에 따른다."
    found = citations(text, SOURCE, "부칙", CATALOG)
    assert [citation.targets for citation in found if citation.kind == "internal"] == [("휴학규정 제5조",)]


def test_names_outside_the_collection() -> None:
    assert cited_texts("학칙 제20조와 제15조, 휴학규정에 따른다.") == ["학칙 제20조", "제15조", "휴학규정"]


PIECES = st.sampled_from(
    "제1조 제9조 제4조의2 제2항 제3호 가목 내지 부터 까지 및 , · ㆍ 학칙 「학칙」 정관 같은 조 동조 전조 전항 이 규정 "
    "같은 법 시행령 별표 1 별지 서식 부칙 교원인사규정 고등교육법 민법 난민법 ( ) [ ] < > 「 」 개정 삭제 의 에 \n ① "
    "2024. 조 항 호".split(" ")
)
PHRASES = st.lists(PIECES, max_size=25)


@settings(max_examples=200)
@given(st.one_of(st.text(max_size=120), PHRASES.map(" ".join), PHRASES.map("".join)))
def test_any_text_is_read_and_offsets_are_exact(text: str) -> None:
    for label in ("제6조", "별표 1", "부칙"):
        found = citations(text, SOURCE, label, CATALOG)
        assert all(text[citation.start : citation.end] == citation.text for citation in found)
        assert all(one.end <= other.start for one, other in itertools.pairwise(found))
        assert all(bool(c.targets) == (c.kind not in {"external-law", "missing"}) for c in found)
