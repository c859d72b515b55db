"""The provision that a reference means, and the messages about one that does not exist."""

from __future__ import annotations

import uuid

import pytest

from dtrag.core.provisions import Provision, RegulationText
from dtrag.errors import InvalidInput, NotFound
from dtrag.regulations.korean.catalog import Catalog, Outline, deletions
from dtrag.regulations.korean.collection import BETWEEN, Collection, Regulation


def regulation(name: str, code: str, *labels: str, text: str = "") -> Regulation:
    """One with a passage for each label."""
    kinds = {"제": "article", "부": "addendum"}
    provisions = tuple(
        Provision(
            kinds.get(label[0], "appendix"),
            label,
            "",
            labels[:number].count(label) + 1,
            number,
            number + 1,
            number,
            number,
        )
        for number, label in enumerate(labels)
    )
    return Regulation.of(RegulationText(uuid.uuid4(), name, code, text, provisions))


COLLECTION = Collection.of(
    [
        regulation("JA교원인사규정", "9-9-9", "제8조"),
        regulation("교원인사규정", "2-1-1", "제1조", "제2조", "제8조", "제8조의2", "별표 1", "별지 제2호 서식",
                   "부칙", "부칙", text="제5조 삭제 <2020. 1. 1.>\n[별표 3] <삭제 2021. 1. 1.>"),
        regulation("한빛대학교학칙", "1-1-1", "제20조", "제21조", "서식 1"),
    ]
)  # fmt: skip


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("교원인사규정 제8조", "교원인사규정 제8조"),
        ("JA교원인사규정 제8조", "JA교원인사규정 제8조"),
        ("교원인사규정 제8조의2", "교원인사규정 제8조의2"),
        ("교원인사규정 제8조의 2", "교원인사규정 제8조의2"),
        ("교원 인사 규정 8조", "교원인사규정 제8조"),
        ("교원인사규정제8조", "교원인사규정 제8조"),
        ("「교원인사규정」 제8조제2항제1호", "교원인사규정 제8조"),
        ("교원인사규정 제8조(승진)", "교원인사규정 제8조"),
        ("2-1-1 제2조", "교원인사규정 제2조"),
        ("학칙 제21조", "한빛대학교학칙 제21조"),
        ("한빛대학교 학칙 제21조", "한빛대학교학칙 제21조"),
        ("교원인사규정 별표 1", "교원인사규정 별표 1"),
        ("교원인사규정 [별표1]", "교원인사규정 별표 1"),
        ("교원인사규정 별지 2호서식", "교원인사규정 별지 제2호 서식"),
        ("교원인사규정 부칙", "교원인사규정 부칙"),
        ("학칙 제21조".encode().decode(), "한빛대학교학칙 제21조"),
        ("한빛대학교학칙 서식 1", "한빛대학교학칙 서식 1"),
    ],
)
def test_a_reference_means_one_provision(reference: str, name: str) -> None:
    assert COLLECTION.find(reference).name == name


def test_addenda_of_several_years_are_one_source() -> None:
    assert len(COLLECTION.find("교원인사규정 부칙").provisions) == 2


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("교원인사규칙 제8조", "Nearest: 교원인사규정"),
        ("교원인사규정 제7조", "교원인사규정 has no 제7조. It has 제1조 to 제2조, 제8조 to 제8조의2"),
        ("교원인사규정 별표 9", "교원인사규정 has no 별표 9"),
    ],
)
def test_a_missing_provision_is_reported_with_the_existing_ones(reference: str, message: str) -> None:
    with pytest.raises(NotFound) as raised:
        COLLECTION.find(reference)
    assert message in str(raised.value)


@pytest.mark.parametrize("reference", ["교원인사규정", "제8조", ""])
def test_a_reference_needs_a_name_and_an_article(reference: str) -> None:
    with pytest.raises(InvalidInput):
        COLLECTION.find(reference)


def test_without_regulations_the_message_says_how_to_ingest_some() -> None:
    with pytest.raises(NotFound, match="dtrag ingest"):
        Collection.of([]).find("학칙 제1조")


def test_offsets_of_later_addenda_count_in_the_joined_text() -> None:
    texts = ["제2조에 따라 시행한다.", "이 규정 제8조를 시행한다."]
    found = list(COLLECTION.citations_of(COLLECTION.find("교원인사규정 부칙"), texts))
    joined = BETWEEN.join(texts)
    assert [joined[citation.start : citation.end] for citation in found] == ["제2조", "이 규정 제8조"]


def test_the_passage_of_a_result_belongs_to_a_provision() -> None:
    known = COLLECTION.regulations[1]
    source = COLLECTION.source_at(f"{known.document_id}:3")
    assert source is not None and source.name == "교원인사규정 제8조의2"
    assert COLLECTION.source_at(f"{uuid.uuid4()}:0") is None


def test_deleted_provisions_are_read_from_the_text() -> None:
    text = (
        "제3조 삭제 <2020. 1. 1.>\n제5조부터 제7조까지 삭제\n제9조의2(휴가) <삭제 2021. 1. 1.>\n"
        "### 제11조\n\n삭제 <2022. 9. 1.>\n**제12조** (삭제)\n[별표 2] <삭제 2020. 1. 1.>"
    )
    assert [(deletion.label, deletion.title, text[deletion.start : deletion.end]) for deletion in deletions(text)] == [
        ("제3조", "", "삭제 <2020. 1. 1.>"),
        ("제5조", "", "제5조부터 제7조까지 삭제"),
        ("제6조", "", "제5조부터 제7조까지 삭제"),
        ("제7조", "", "제5조부터 제7조까지 삭제"),
        ("제9조의2", "휴가", "<삭제 2021. 1. 1.>"),
        ("제11조", "", "삭제 <2022. 9. 1.>"),
        ("제12조", "", "(삭제)"),
        ("별표 2", "", "<삭제 2020. 1. 1.>"),
    ]


def test_a_deleted_provision_is_what_remains_of_it() -> None:
    source = COLLECTION.find("교원인사규정 5조")
    assert (source.name, source.is_deleted) == ("교원인사규정 제5조", True)
    assert COLLECTION.source(source.name) is None, "citations do not lead there"
    assert COLLECTION.find("교원인사규정 별표 3").is_deleted


def test_an_exact_name_comes_before_a_short_one() -> None:
    outlines = [Outline("한빛대학교인사규정"), Outline("인사규정")]
    assert Catalog.of(outlines).named("인사규정") is outlines[1]
    assert Catalog.of(outlines[:1]).named("인사규정") is outlines[0]
