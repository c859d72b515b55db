"""Which provisions a question names, with and without 제, blanks, the whole name, or a name at all."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.provisions import Provision, RegulationText
from dtrag.errors import InvalidInput, NotFound
from dtrag.regulations.korean.collection import Collection, Regulation
from dtrag.regulations.korean.references import NamedProvisions, find_provision, may_refer, named_provisions
from tests.cases import each
from tests.growth import grows_linearly


def regulation(name: str, *labels: str, text: str = "") -> Regulation:
    kinds = {"제": "article", "부": "addendum"}
    provisions = tuple(
        Provision(kinds.get(label[0], "appendix"), label, "", 1, number, number + 1, number, number)
        for number, label in enumerate(labels)
    )
    return Regulation.of(RegulationText(uuid.uuid5(uuid.NAMESPACE_DNS, name), name, "", text, provisions))


ARTICLES = tuple(f"제{number}조" for number in range(1, 9))
COLLECTION = Collection.of(
    [
        regulation("JA교원인사규정", *ARTICLES),
        regulation("교원인사규정", *ARTICLES, "제20조"),
        regulation("한빛대학교학칙", *ARTICLES, "제21조", "별표 1", "부칙", text="제9조 삭제 <2022. 9. 1.>"),
        regulation("휴학규정", *ARTICLES, "제5조의2", "별지 제1호 서식"),
        regulation("장학금지급규정", *ARTICLES, "별표 1", "별표 2"),
        regulation("중앙도서관규정", *ARTICLES),
    ]
)


def named(question: str, *earlier: str, documents: tuple[str, ...] = ()) -> NamedProvisions:
    found = named_provisions(question, COLLECTION, earlier, documents)
    assert found is not None
    return found


def names(found: NamedProvisions) -> list[str]:
    return [source.name for source in found.sources]


@each(
    "question, name",
    [
        ("학칙 제21조", "한빛대학교학칙 제21조"),
        ("학칙의 21조 내용이 궁금합니다", "한빛대학교학칙 제21조"),
        ("휴학규정 제6조 알려줘", "휴학규정 제6조"),
        ("휴학 규정 6조", "휴학규정 제6조"),
        ("휴학규정6조", "휴학규정 제6조"),
        ("휴학규정 제5조의2", "휴학규정 제5조의2"),
        ("휴학규정 5조의 2", "휴학규정 제5조의2"),
        ("제5조의2", "휴학규정 제5조의2"),
        ("장학금 규정 5조", "장학금지급규정 제5조"),
        ("장학금규정5조", "장학금지급규정 제5조"),
        ("장학금 5조", "장학금지급규정 제5조"),
        ("도서관 규정 3조", "중앙도서관규정 제3조"),
        ("「휴학규정」 제5조에 뭐라고 써 있어?", "휴학규정 제5조"),
        ("교원인사규정 제8조", "교원인사규정 제8조"),
        ("JA교원인사규정 제8조", "JA교원인사규정 제8조"),
        ("우리대학교휴학규정 제3조", "휴학규정 제3조"),
        ("제21조가 뭐예요?", "한빛대학교학칙 제21조"),
        ("장학금지급규정 별표 2", "장학금지급규정 별표 2"),
        ("학칙 별표", "한빛대학교학칙 별표 1"),
        ("학칙 부칙 보여줘", "한빛대학교학칙 부칙"),
        ("휴학규정 별지 1호서식", "휴학규정 별지 제1호 서식"),
        ("What is 학칙 제21조?", "한빛대학교학칙 제21조"),
    ],
)
def test_one_provision_and_nothing_else(question: str, name: str) -> None:
    found = named(question)
    assert (names(found), found.asks_only) == ([name], True)
    assert name in found.question


@each(
    "question, paragraph",
    [
        ("휴학 규정 6조 2항", 2),
        ("휴학규정 제6조제3항", 3),
        ("휴학규정 제6조의 2항", 2),
        ("휴학규정 제6조 제1항 제2호", 1),
    ],
)
def test_a_paragraph(question: str, paragraph: int) -> None:
    found = named(question)
    assert (names(found), found.paragraph) == (["휴학규정 제6조"], paragraph)


@each(
    "question, expected",
    [
        ("학칙 제3조와 제5조 보여줘", ["한빛대학교학칙 제3조", "한빛대학교학칙 제5조"]),
        (
            "휴학규정 제3조부터 제5조까지",
            ["휴학규정 제3조", "휴학규정 제4조", "휴학규정 제5조", "휴학규정 제5조의2"][:3],
        ),
        ("휴학규정 제3조, 학칙 제4조", ["휴학규정 제3조", "한빛대학교학칙 제4조"]),
        ("학칙 제3조, 제3조", ["한빛대학교학칙 제3조"]),
        ("학칙 제3·5조 알려줘", ["한빛대학교학칙 제3조", "한빛대학교학칙 제5조"]),
        ("휴학규정 3조 및 5조", ["휴학규정 제3조", "휴학규정 제5조"]),
        ("장학금 규정 [별표 1] 내지 [별표 2]", ["장학금지급규정 별표 1", "장학금지급규정 별표 2"]),
    ],
)
def test_several_provisions(question: str, expected: list[str]) -> None:
    assert names(named(question)) == expected


def test_a_question_about_a_provision_is_not_only_for_its_text() -> None:
    found = named("휴학 규정 6조에서 휴학 기간은 몇 학기인가요?")
    assert (names(found), found.asks_only) == (["휴학규정 제6조"], False)
    assert found.question == "휴학규정 제6조에서 휴학 기간은 몇 학기인가요?"


@each(
    "question",
    [
        "휴학은 몇 학기까지 되나요",
        "3조원 지원금",
        "2조 편성은 어떻게 하나요",
        "민법 제5조는 뭐야",
        "5조 2교대 근무",
        "부칙이 뭐야",
        "",
    ],
)
def test_no_provision(question: str) -> None:
    assert named_provisions(question, COLLECTION) is None


def test_without_a_name_all_regulations_with_such_an_article_are_choices() -> None:
    found = named("제5조 알려줘")
    assert len(found.choices) == len(COLLECTION.regulations)
    assert {source.name for source in named("인사규정 8조").choices} == {"JA교원인사규정 제8조", "교원인사규정 제8조"}
    assert names(named("인사규정 20조")) == ["교원인사규정 제20조"], "the only one with such an article"
    assert named_provisions("제5조에 따른 벌점은 몇 점인가요", COLLECTION) is None, "the search answers"


def test_the_conversation_names_the_regulation() -> None:
    assert names(named("제5조는?", "휴학은 몇 학기까지?", "휴학규정 제2조 알려줘")) == ["휴학규정 제5조"]
    assert names(named("그럼 5조 2항은요?", "장학금 규정 3조")) == ["장학금지급규정 제5조"]
    assert names(named("그 규정 제5조", "학칙에는 뭐가 있나요")) == ["한빛대학교학칙 제5조"]
    based_on = str(COLLECTION.named("휴학규정").document_id)
    assert names(named("제5조는?", "몇 학기까지 쉴 수 있나요", documents=(based_on,))) == ["휴학규정 제5조"]


def test_a_name_answers_which_regulation_was_meant() -> None:
    assert names(named("휴학규정이요", "제5조 알려줘")) == ["휴학규정 제5조"]
    assert names(named("장학금 규정", "5조 2항 알려줘")) == ["장학금지급규정 제5조"]
    assert named_provisions("휴학규정", COLLECTION, ["학칙 제5조"]) is None


def test_an_absent_provision_is_named() -> None:
    for question, absent in (("학칙 제99조", "한빛대학교학칙 제99조"), ("휴학 규정 별표 7 보여줘", "휴학규정 별표 7")):
        found = named(question)
        assert (names(found), found.absent) == ([], absent)
    assert COLLECTION.named("학칙").deleted_on == {"제9조": "2022-09-01"}


def test_show_takes_the_same_references() -> None:
    for reference, name in (
        ("장학금 규정 5조", "장학금지급규정 제5조"),
        ("제21조", "한빛대학교학칙 제21조"),
        ("학칙 9조", "한빛대학교학칙 제9조"),
    ):
        assert find_provision(reference, COLLECTION).name == name
    with pytest.raises(InvalidInput, match="in several regulations: JA교원인사규정 제5조"):
        find_provision("제5조", COLLECTION)
    with pytest.raises(NotFound, match="has no 제99조"):
        find_provision("장학금 규정 99조", COLLECTION)


@given(st.text(alphabet="제조의항호별표부칙학칙휴학규정 0123456789·「」()~,는알려줘", max_size=80), st.booleans())
def test_any_question_is_read(question: str, follows: bool) -> None:
    found = named_provisions(question, COLLECTION, ["제5조"] if follows else [])
    if found is None:
        return
    assert bool(found.sources) + bool(found.choices) + bool(found.absent) == 1
    assert follows or may_refer(question)


@each("text", ["제5조", "휴학규정 ", "이야", "별표 ", "제5조 내지 ", "가", " ", "「", "5조 ", "(", "알려줘"])
def test_questions_are_read_in_linear_time(text: str) -> None:
    assert grows_linearly(lambda size: named_provisions((text * size)[:size], COLLECTION), 200)
