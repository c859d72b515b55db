"""Citations in lists, addenda and forms: abolished rules, parts of appendices, decrees of a law, names used alone."""

from __future__ import annotations

import pytest

from dtrag.core.provisions import ProvisionCitation
from dtrag.regulations.korean.catalog import Catalog, Outline, former_names
from dtrag.regulations.korean.citations import citations


def outline(name: str, appendices: dict[str, str] | None = None) -> Outline:
    """A regulation with 20 articles and an addendum."""
    articles = frozenset((number, 0) for number in range(1, 21))
    return Outline(name, articles=articles, appendices=appendices or {}, has_addendum=True)


PARKING = outline("주차보상기준", {"별표1-1": "별표 1-1", "별표1-2": "별표 1-2", "별표2": "별표 2"})
TUITION = outline("한빛대학교학칙", {"별표1(1-1)": "별표 1(1-1)", "별표1(1-2)": "별표 1(1-2)"})
CATALOG = Catalog.of([PARKING, TUITION, outline("기숙사운영규정", {"별표": "별표"}), outline("자전거대여규정")])


def read(text: str, label: str = "제3조") -> list[ProvisionCitation]:
    return citations(text, PARKING, label, CATALOG)


def cited(text: str, label: str = "제3조") -> list[tuple[str, str, tuple[str, ...]]]:
    return [(citation.text, citation.kind, citation.targets) for citation in read(text, label)]


OWN = "주차보상기준"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("점수는 〈별표1〉과 같다.", [("별표1", "appendix", (f"{OWN} 별표 1-1", f"{OWN} 별표 1-2"))]),
        (
            "한빛대학교학칙 별표 1(1-2)를 본다.",
            [("한빛대학교학칙 별표 1(1-2)", "appendix", ("한빛대학교학칙 별표 1(1-2)",))],
        ),
        (
            "방 배정은 기숙사운영규정에 따른 [별표]와 같다.",
            [
                ("기숙사운영규정", "other-regulation", ("기숙사운영규정",)),
                ("별표", "appendix", ("기숙사운영규정 별표",)),
            ],
        ),
        ("별지 서식 및 별지는 맨 뒤에 싣는다.", []),
        ("보상은 기준 제4조 및 제5조에 따른다.", [("제4조 및 제5조", "internal", (f"{OWN} 제4조", f"{OWN} 제5조"))]),
        ("결석자는 5조3항을 적용한다.", [("5조3항", "internal", (f"{OWN} 제5조",))]),
        ("제5조제1항 제2항 제6항은 빼고 정한다.", [("제5조제1항 제2항 제6항", "internal", (f"{OWN} 제5조",))]),
        (
            "제5조 내지 제7조 내지 제9조를 본다.",
            [("제5조 내지 제7조 내지 제9조", "internal", tuple(f"{OWN} 제{number}조" for number in range(5, 10)))],
        ),
        ("검사는 제①호부터 제③호까지의 결과로 한다.", [("제①호부터 제③호까지", "internal", (f"{OWN} 제3조",))]),
        ("접수(서면을 말한다. 이하 이 조에서 같다)한다.", []),
        ("<심의 평가 기준>\n\n1. 안전", []),
    ],
)
def test_articles_and_appendices(text: str, expected: list[tuple[str, str, tuple[str, ...]]]) -> None:
    assert cited(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("「도로안전법」, 같은 법 시행령 및 시행규칙을 따른다.", ["「도로안전법」", "같은 법 시행령", "시행규칙"]),
        ("「도로안전법 시행령」, 시행규칙 제3조를 따른다.", ["「도로안전법 시행령」", "시행규칙 제3조"]),
        ("한빛법상의 계약은 상법상의 계약이다.", ["한빛법", "상법"]),
        (
            "「의료기기법」 및 「대학주차에 대한 특례규칙」에 따른다.",
            ["「의료기기법」", "「대학주차에 대한 특례규칙」"],
        ),
        ("기간을 넘긴 경우 대학주차요금에관한규칙을 준용한다.", ["대학주차요금에관한규칙"]),
        (
            "자전거의보관및대학구성원의이동안전을위한특별법 제9조에 따른다.",
            ["자전거의보관및대학구성원의이동안전을위한특별법 제9조"],
        ),
        ("총장이 법 및 이 영에 의한 시설을 둔다.", ["법", "이 영"]),
        ("관계 법에 따른 시설로 한다.", []),
        ("시설은 [주차장 설치법]에 따른 시설이다.", ["[주차장 설치법]"]),
        ("주차장의 안전 관리에 관한 훈령(교통부 훈령 제463호)에 따른다.", ["주차장의 안전 관리에 관한 훈령"]),
        ("기타 공사법상의 조치를 한다.", []),
        ("「주차안전법」 및 「전문주차법」에서 정한다. <개정 2019. 3. 1.>", ["「주차안전법」", "「전문주차법」"]),
    ],
)
def test_laws(text: str, expected: list[str]) -> None:
    assert cited(text) == [(name, "external-law", ()) for name in expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("별도 자전거보관지침을 따른다.", ["자전거보관지침"]),
        ("사용은 정기휴가 지침에 따른다.", ["정기휴가 지침"]),
        ("교직원은 사학기관 행동강령을 준수한다.", ["사학기관 행동강령"]),
        ("세부지침에 따른다. 위원이 지침에 따라 심의한다.", []),
    ],
)
def test_rules_outside_the_collection_that_are_to_be_followed(text: str, expected: list[str]) -> None:
    assert cited(text) == [(name, "missing", ()) for name in expected]


def test_rules_that_an_addendum_abolishes() -> None:
    text = "2. (폐지) 이 기준의 시행과 동시에 자전거대여규정, 통학버스 요금 지침 및 주차장운영세칙은 폐지한다."
    assert cited(text, "부칙") == [
        ("자전거대여규정", "other-regulation", ("자전거대여규정",)),
        ("통학버스 요금 지침", "missing", ()),
        ("주차장운영세칙", "missing", ()),
    ]
    assert cited("3. 종전의 주차장운영세칙은 폐지한다.", "부칙") == []


def test_a_paragraph_of_an_addendum() -> None:
    text = "2. (경과조치) ① 재직자는 60세로 한다.\n\n② 제1항의 적용을 받지 않는 자는 59세로 한다."
    assert cited(text, "부칙") == [("제1항", "addendum", (f"{OWN} 부칙",))]
    (citation,) = read("학칙의 부칙 중 제4항에 따른다.")
    assert (citation.text, citation.targets, citation.paragraph) == (
        "학칙의 부칙 중 제4항",
        ("한빛대학교학칙 부칙",),
        4,
    )


def test_items_that_follow_an_item() -> None:
    first, second, third = read("③ 제3조 2항의 1호～4호는 결석이며, 5호는 휴일이다. 6호~7호는 지침에 따른다.")
    assert (first.text, first.paragraph, first.item) == ("제3조 2항의 1호～4호", 2, 1)
    assert (second.text, second.targets, second.paragraph, second.item) == ("5호", (f"{OWN} 제3조",), 2, 5)
    assert (third.text, third.item) == ("6호~7호", 6)


def test_a_short_name_inside_a_longer_one_is_not_the_rule() -> None:
    assert cited("구 학위규정 및 학칙시행세칙이 바뀐다.") == []


FORMS = Outline(
    "연수규정",
    articles=frozenset((number, 0) for number in range(1, 13)),
    appendices={**{f"별지{number}호서식": f"별지 제{number}호 서식" for number in range(1, 8)}, "별표1": "별표 1"},
    has_addendum=True,
    divisions={
        ("제1장",): ((1, 0), (2, 0)),
        ("제2장",): (),
        ("제2장", "제1절"): ((3, 0), (4, 0)),
        ("제2장", "제2절"): ((5, 0),),
        ("제3장",): ((6, 0), (7, 0)),
    },
    renamed=("교육훈련규정",),
    replaced=("해외연수지침",),
)
FORM_CATALOG = Catalog.of([FORMS, outline("자전거대여규정")])


def articles(*numbers: int) -> tuple[str, ...]:
    return tuple(f"연수규정 제{number}조" for number in numbers)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("제2장에서 정한 절차에 따른다.", ("제2장", articles(3, 4, 5))),
        ("연수규정 제2장 제2절의 규정을 준용한다.", ("연수규정 제2장 제2절", articles(5))),
        ("제2장 제1절부터 제2절까지를 따른다.", ("제2장 제1절부터 제2절까지", articles(3, 4, 5))),
        ("제1장 내지 제2장의 규정", ("제1장 내지 제2장", articles(1, 2, 3, 4, 5))),
        ("제3장(연수) 제7조에 따른다.", ("제7조", articles(7))),
        ("자료는 별지 제2호 내지 제4호와 같다.", ("별지 제2호 내지 제4호", (2, 3, 4))),
        ("별지 제1호～제2호 서식을 낸다.", ("별지 제1호～제2호 서식", (1, 2))),
        ("별지 제5호 서식 내지 별지 제9호 서식에 따라", ("별지 제5호 서식 내지 별지 제9호 서식", (5, 6, 7))),
    ],
)
def test_chapters_and_ranges_of_forms(text: str, expected: tuple[str, tuple[str | int, ...]]) -> None:
    (citation,) = citations(text, FORMS, "제8조", FORM_CATALOG)
    targets = tuple(f"연수규정 별지 제{target}호 서식" if isinstance(target, int) else target for target in expected[1])
    assert (citation.text, citation.targets) == (expected[0], targets)


def test_headings_of_chapters_are_no_citations() -> None:
    assert citations("제2장 연수\n연수를 정한다.\n제3장 의무", FORMS, "제8조", FORM_CATALOG) == []


def test_former_names_mean_what_the_book_says() -> None:
    (renamed,) = citations("교육훈련규정 제5조에 따른다.", PARKING, "제3조", FORM_CATALOG)
    assert renamed.targets == ("연수규정 제5조",)
    for text in ("해외연수지침에 따른다.", "「해외연수지침」 제5조를 준용한다."):
        (replaced,) = citations(text, PARKING, "제3조", FORM_CATALOG)
        assert (replaced.kind, replaced.targets) == ("other-regulation", ("연수규정",)), (
            "its articles had other numbers"
        )
    (own,) = citations("해외연수지침은 폐지한다.", FORMS, "부칙", FORM_CATALOG)
    assert (own.kind, own.targets) == ("missing", ())


def test_former_names_in_addenda() -> None:
    text = """부칙
    1. 교육원규정은 연수규정으로 명칭을 변경한다.
    2. (폐지규정) 이 규정의 시행과 동시에 「해외연수지침」 및 연수위원회규정은 이를 폐지한다. 연수내규를 제정한다.
    3. 종전의 「국내연수지침」에 의한 업무는 이 규정에 의한 것으로 본다."""
    assert former_names("연수규정", [text]) == (("교육원규정",), ("해외연수지침", "연수위원회규정", "국내연수지침"))
