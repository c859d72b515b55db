"""Amendments, effective dates and links of provisions. All texts here are invented."""

from __future__ import annotations

import uuid

from dtrag.core.documents import ParsedDocument
from dtrag.core.provisions import Amendment, Provision, RegulationText
from dtrag.regulations.korean.collection import Collection, ProvisionDetails, Regulation, details
from dtrag.regulations.korean.structure import split
from tests.cases import each

TEXT = """차량규정【폐지】
제정 2001. 3. 1.
폐지 2025. 3. 1.
제1장 총칙 <개정 2003. 1. 1.>
제1조(목적) 이 규정은 차량을 정한다.
제2조 (개정 2010. 3. 1.) (배차) ① 배차는 별표 1과 같다. <신설 2012. 1. 1.>
② 그 밖의 것은 제1조에 따른다. <개정 2013. 1. 1.>
제3조 삭제 <2014. 1. 1.>
제4조(서식) 신청은 별지 제1호 서식에 따른다.
부칙 <2001. 3. 1.>
이 규정은 공포한 날부터 시행한다.
부칙
① (시행일) 이 규정은 2014년 1월 1일부터 시행한다.
② (경과조치) 제2조의 배차는 2015년 1월 1일까지 종전에 따른다.
[별표 1] 배차 기준(제2조 관련)
차량 | 대수
[별지 제1호 서식]
신청서
"""


def stored(text: str) -> RegulationText:
    """The regulation of a text as the index stores it."""
    (regulation,) = list(split(ParsedDocument("파일", text, "text/plain")) or ())
    provisions = tuple(
        Provision(
            str(chunk.metadata["kind"]),
            str(chunk.metadata["article"]),
            str(chunk.metadata["article_title"]),
            int(str(chunk.metadata.get("occurrence", 1))),
            chunk.start,
            chunk.end,
            chunk.ordinal,
            chunk.ordinal,
        )
        for chunk in regulation.chunks
    )
    return RegulationText(uuid.UUID(int=1), regulation.document.title, "", regulation.document.text, provisions)


REGULATION = stored(TEXT)
COLLECTION = Collection.of([Regulation.of(REGULATION)])


def of(reference: str) -> ProvisionDetails:
    return details(COLLECTION, COLLECTION.find(f"차량규정 {reference}"), REGULATION)


@each(
    "reference, amendments",
    [
        ("제1조", ()),
        (
            "제2조",
            (Amendment("개정", "2010-03-01"), Amendment("신설", "2012-01-01", 1), Amendment("개정", "2013-01-01", 2)),
        ),
        ("제3조", (Amendment("삭제", "2014-01-01"),)),
        ("제4조", ()),
        ("부칙", ()),
    ],
)
def test_amendments(reference: str, amendments: tuple[Amendment, ...]) -> None:
    assert of(reference).amendments == amendments


@each(
    "reference, names, named_by",
    [
        ("제1조", (), ("제2조",)),
        ("제2조", ("별표 1", "제1조"), ("부칙", "별표 1")),
        ("제4조", ("별지 제1호 서식",), ()),
        ("별표 1", ("제2조",), ("제2조",)),
        ("별지 1호서식", (), ("제4조",)),
        ("부칙", ("제2조",), ()),
    ],
)
def test_links(reference: str, names: tuple[str, ...], named_by: tuple[str, ...]) -> None:
    known = of(reference)
    assert known.names == tuple(f"차량규정 {name}" for name in names)
    assert known.named_by == tuple(f"차량규정 {name}" for name in named_by)


def test_dates() -> None:
    assert of("부칙").effective_dates == ("2001-03-01", "2014-01-01")
    assert of("제1조").effective_dates == ()
    assert {of(reference).effective_date for reference in ("제1조", "부칙", "별표 1")} == {"2014-01-01"}


def test_a_repealed_regulation_is_marked() -> None:
    assert of("제1조").repealed
    plain = stored(TEXT.replace("【폐지】", "").replace("폐지 2025. 3. 1.\n", ""))
    collection = Collection.of([Regulation.of(plain)])
    assert not details(collection, collection.find("차량규정 제1조"), plain).repealed
