"""HWPX: what Hangul shows, in reading order. Every file is made here."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

import pytest

from dtrag.core.documents import ParsedDocument
from dtrag.errors import ParseFailed

Read = Callable[[str, bytes], list[ParsedDocument]]
YEAR = "2011"
HEADER = """<hh:head xmlns:hh="http://www.hancom.co.kr/hwpml/2011/head"><hh:refList>
<hh:paraProperties>
<hh:paraPr id="0"><hh:heading type="NONE" idRef="0" level="0"/></hh:paraPr>
<hh:paraPr id="1"><hh:heading type="OUTLINE" idRef="0" level="1"/></hh:paraPr>
<hh:paraPr id="2"><hh:heading type="NUMBER" idRef="0" level="0"/></hh:paraPr>
</hh:paraProperties>
<hh:styles>
<hh:style id="0" type="PARA" name="바탕글" engName="Normal"/>
<hh:style id="1" type="PARA" name="규정명" engName=""/>
<hh:style id="2" type="PARA" name="개요 3" engName="Outline 3"/>
<hh:style id="3" type="PARA" name="장제목" engName=""/>
</hh:styles></hh:refList></hh:head>"""


def section(*paragraphs: str, year: str = YEAR) -> str:
    spaces = " ".join(
        f'xmlns:{prefix}="http://www.hancom.co.kr/hwpml/{year}/{name}"'
        for prefix, name in (("hs", "section"), ("hp", "paragraph"), ("hc", "core"))
    )
    return f'<?xml version="1.0" encoding="UTF-8"?><hs:sec {spaces}>{"".join(paragraphs)}</hs:sec>'


def paragraph(*runs: str, style: int = 0, shape: int = 0) -> str:
    inside = "".join(run if run.startswith("<") else f"<hp:t>{run}</hp:t>" for run in runs)
    lines = '<hp:linesegarray><hp:lineseg textpos="0"/></hp:linesegarray>'
    return f'<hp:p paraPrIDRef="{shape}" styleIDRef="{style}"><hp:run charPrIDRef="0">{inside}</hp:run>{lines}</hp:p>'


def table(*rows: tuple[str, ...], caption: str = "") -> str:
    cells = ["".join(f"<hp:tc><hp:subList>{cell}</hp:subList></hp:tc>" for cell in row) for row in rows]
    named = f"<hp:caption><hp:subList>{paragraph(caption)}</hp:subList></hp:caption>" if caption else ""
    return f"<hp:tbl>{named}{''.join(f'<hp:tr>{row}</hp:tr>' for row in cells)}</hp:tbl>"


def package(*hrefs: str, title: str = "") -> str:
    items = "".join(f'<opf:item id="s{n}" href="{href}" media-type="application/xml"/>' for n, href in enumerate(hrefs))
    spine = "".join(f'<opf:itemref idref="s{n}" linear="yes"/>' for n in range(len(hrefs)))
    return (
        '<opf:package xmlns:opf="http://www.idpf.org/2007/opf/">'
        f"<opf:metadata><opf:title>{title}</opf:title></opf:metadata>"
        f"<opf:manifest>{items}</opf:manifest><opf:spine>{spine}</opf:spine></opf:package>"
    )


def packed(*sections: str, **parts: str) -> bytes:
    """A HWPX file; `parts` replace or add entries, named with `__` for `/` and `_` for `.`."""
    entries = {"mimetype": "application/hwp+zip", "Contents/header.xml": HEADER}
    entries |= {f"Contents/section{n}.xml": text for n, text in enumerate(sections)}
    entries |= {name.replace("__", "/").replace("_", "."): text for name, text in parts.items()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in entries.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def text_of(read: Read, *paragraphs: str) -> str:
    (document,) = read("문서.hwpx", packed(section(*paragraphs)))
    return document.text


def test_paragraphs_carry_their_style_names(read: Read) -> None:
    (document,) = read("문서.hwpx", packed(section(paragraph("휴학규정", style=1), paragraph("제1조 정한다."))))
    assert [(b.kind, b.style, document.text[b.start : b.end]) for b in document.blocks] == [
        ("paragraph", "규정명", "휴학규정"),
        ("paragraph", "바탕글", "제1조 정한다."),
    ]


def test_headings_come_from_outline_shapes_and_outline_styles(read: Read) -> None:
    shaped, styled = paragraph("둘째", shape=1), paragraph("셋째", style=2)
    numbered, chapter = paragraph("목록", shape=2), paragraph("제1장 총칙", style=3)
    long = paragraph("긴 글이다. " * 40, shape=1)
    (document,) = read("문서.hwpx", packed(section(shaped, styled, numbered, chapter, long)))
    assert [(b.kind, b.level) for b in document.blocks] == [
        ("heading", 2),
        ("heading", 3),
        ("paragraph", 0),
        ("heading", 2),
        ("paragraph", 0),
    ]


def test_a_table_keeps_its_place_in_its_paragraph(read: Read) -> None:
    rows = table((paragraph("구분"), paragraph("금액")), (paragraph("일반"), paragraph("1만원") + paragraph("이내")))
    (document,) = read("문서.hwpx", packed(section(paragraph("앞", rows, "뒤"))))
    assert [(b.kind, document.text[b.start : b.end]) for b in document.blocks] == [
        ("paragraph", "앞"),
        ("table", "구분 | 금액\n일반 | 1만원 이내"),
        ("paragraph", "뒤"),
    ]


def test_a_nested_table_is_flattened_and_empty_rows_are_left_out(read: Read) -> None:
    inner = paragraph("안", table((paragraph("가"), paragraph("나"))))
    assert text_of(read, paragraph(table((inner, paragraph("다")), (paragraph(""), paragraph(""))))) == "안 가 나 | 다"


def test_a_caption_and_a_text_box_are_paragraphs(read: Read) -> None:
    box = f"<hp:rect><hp:drawText><hp:subList>{paragraph('상자')}</hp:subList></hp:drawText></hp:rect>"
    group = f"<hp:container>{box}</hp:container>"
    text = text_of(read, paragraph(table((paragraph("칸"),), caption="표 1")), paragraph("앞", box), paragraph(group))
    assert text.split("\n\n") == ["표 1", "칸", "앞", "상자", "상자"]


def test_tabs_breaks_and_spaces_inside_text(read: Read) -> None:
    marked = "<hp:t>가<hp:tab/>나<hp:fwSpace/>다<hp:nbSpace/>라<hp:lineBreak/>마<hp:hyphen/>바</hp:t>"
    assert text_of(read, paragraph(marked)) == "가 나 다 라\n마-바"


def test_highlights_are_kept_and_tracked_deletions_are_dropped(read: Read) -> None:
    pen = "<hp:t>가<hp:markpenBegin/>나<hp:markpenEnd/>다</hp:t>"
    tracked = '<hp:t>남고<hp:deleteBegin Id="1"/>빠지고</hp:t><hp:t>또 빠지고<hp:deleteEnd Id="1"/>또 남고</hp:t>'
    inserted = "<hp:t><hp:insertBegin/>더하고<hp:insertEnd/></hp:t>"
    assert text_of(read, paragraph(pen), paragraph(tracked, inserted)) == "가나다\n\n남고또 남고더하고"


def test_a_footnote_is_in_parentheses_and_page_furniture_is_left_out(read: Read) -> None:
    sub = "<hp:subList>{}</hp:subList>"
    note = f"<hp:ctrl><hp:footNote>{sub.format(paragraph('풀이'))}</hp:footNote></hp:ctrl>"
    furniture = "".join(
        f"<hp:ctrl><hp:{name}>{sub.format(paragraph('쪽'))}</hp:{name}></hp:ctrl>"
        for name in ("header", "footer", "hiddenComment")
    )
    number = "<hp:ctrl><hp:autoNum num='3'/></hp:ctrl><hp:ctrl><hp:pageNum/></hp:ctrl>"
    assert text_of(read, paragraph("말", note, furniture, number, "끝")) == "말 (풀이)끝"


def test_composed_numbers_and_private_glyphs(read: Read) -> None:
    composed = '<hp:compose composeText="\U000f028d\U000f0293"/>'
    circled = '<hp:compose composeText="①"/>'
    text = text_of(
        read, paragraph(composed, " 항"), paragraph(circled, "하나"), paragraph("\U000f0852법\U000f0853\U000f080f")
    )
    assert text == "(51) 항\n\n①하나\n\n“법”"


def test_the_order_of_sections_is_the_spine_s(read: Read) -> None:
    sections = [section(paragraph(name)) for name in ("하나", "둘", "셋")]
    spine = package(*(f"Contents/section{n}.xml" for n in (2, 0, 1)), title="규정집")
    (document,) = read("문서.hwpx", packed(*sections, Contents__content_hpf=spine))
    assert document.text == "셋\n\n하나\n\n둘"
    assert document.title == "규정집"
    (relative,) = read("문서.hwpx", packed(*sections, Contents__content_hpf=package("section1.xml", "section0.xml")))
    assert relative.text == "둘\n\n하나"


def test_without_a_spine_sections_are_in_the_order_of_their_numbers(read: Read) -> None:
    (document,) = read("문서.hwpx", packed(*(section(paragraph(f"절{n}")) for n in range(12))))
    assert document.text.split("\n\n") == [f"절{n}" for n in range(12)]


@pytest.mark.parametrize("title", ["", "제목 없음", "빈 문서 1", "Untitled", "학칙.hwp"])
def test_a_default_title_is_replaced_by_the_file_name(read: Read, title: str) -> None:
    spine = package("Contents/section0.xml", title=title)
    (document,) = read("학칙 모음.hwpx", packed(section(paragraph("가")), Contents__content_hpf=spine))
    assert document.title == "학칙 모음"


def test_namespaces_of_other_editions_are_accepted(read: Read) -> None:
    (document,) = read("문서.hwpx", packed(section(paragraph("가", style=1), year="2024")))
    assert document.text == "가"
    assert document.blocks[0].style == "규정명"


def test_encrypted_files_are_refused_with_advice(read: Read) -> None:
    manifest = (
        '<odf:manifest xmlns:odf="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><odf:file-entry '
        'odf:full-path="Contents/section0.xml"><odf:encryption-data/></odf:file-entry></odf:manifest>'
    )
    with pytest.raises(ParseFailed, match=r"encrypted.*password"):
        read("문서.hwpx", packed("\x00\x01 not xml", **{"META-INF__manifest_xml": manifest}))


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (section(paragraph("가"))[:-30], "section0.xml is damaged"),
        ('<!DOCTYPE sec [<!ENTITY a "b">]>' + section(paragraph("&amp;")).partition("?>")[2], "type declaration"),
        (section(), "no text"),
    ],
)
def test_damaged_and_hostile_sections_are_refused(read: Read, broken: str, reason: str) -> None:
    with pytest.raises(ParseFailed, match=reason):
        read("문서.hwpx", packed(broken))


def test_a_zip_without_sections_is_refused(read: Read) -> None:
    with pytest.raises(ParseFailed, match="no section"):
        read("문서.hwpx", packed())


def test_endlessly_nested_tables_are_cut_off(read: Read) -> None:
    deep = paragraph("바닥")
    for _ in range(40):
        deep = paragraph("층", table((deep,)))
    text = text_of(read, deep)
    assert "층" in text
    assert "바닥" not in text


NUMBERED = """<hh:head xmlns:hh="http://www.hancom.co.kr/hwpml/2011/head"><hh:refList>
<hh:numberings>
<hh:numbering id="1" start="0"><hh:paraHead level="1" numFormat="DIGIT" start="1">제^1장</hh:paraHead>
<hh:paraHead level="2" numFormat="DIGIT" start="1">제^1장 제^2절</hh:paraHead></hh:numbering>
<hh:numbering id="2"><hh:paraHead level="2" numFormat="HANGUL_SYLLABLE" start="1">^2.</hh:paraHead>
<hh:paraHead level="1" numFormat="CIRCLED_DIGIT" start="19">^1</hh:paraHead>
<hh:paraHead level="3" numFormat="DIGIT" start="1"/></hh:numbering>
</hh:numberings>
<hh:bullets><hh:bullet id="1" char="□"/></hh:bullets>
<hh:paraProperties>
<hh:paraPr id="0"><hh:heading type="NONE" idRef="0" level="0"/></hh:paraPr>
<hh:paraPr id="1"><hh:heading type="OUTLINE" idRef="0" level="0"/></hh:paraPr>
<hh:paraPr id="2"><hh:switch><hh:case><hh:heading type="OUTLINE" idRef="0" level="1"/></hh:case></hh:switch></hh:paraPr>
<hh:paraPr id="3"><hh:heading type="NUMBER" idRef="2" level="0"/></hh:paraPr>
<hh:paraPr id="4"><hh:heading type="NUMBER" idRef="2" level="1"/></hh:paraPr>
<hh:paraPr id="5"><hh:heading type="NUMBER" idRef="2" level="2"/></hh:paraPr>
<hh:paraPr id="6"><hh:heading type="BULLET" idRef="1" level="0"/></hh:paraPr>
<hh:paraPr id="7"><hh:heading type="NUMBER" idRef="9" level="9"/></hh:paraPr>
</hh:paraProperties></hh:refList></hh:head>"""


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([1, 1, 2, 2, 1, 2], ["제1장", "제2장", "제2장 제1절", "제2장 제2절", "제3장", "제3장 제1절"]),
        ([2, 1], ["제1장 제1절", "제1장"]),  # a level without one above it counts in the first of these
        ([3, 0, 3, 3, 4, 3, 4], ["⑲", "", "⑳", "21", "가.", "22", "가."]),
        ([3, 1, 3], ["⑲", "제1장", "⑳"]),
        ([5, 6, 7, 6], ["", "□", "", "□"]),
        ([4] * 15, [*(f"{syllable}." for syllable in "가나다라마바사아자차카타파하"), "15."]),
    ],
)
def test_numbers_and_bullets_stand_before_their_paragraphs(shapes: list[int], expected: list[str], read: Read) -> None:
    outline = '<hp:secPr outlineShapeIDRef="1"/>'
    parts = [paragraph(outline, shape=0), *(paragraph("글", shape=shape) for shape in shapes)]
    [document] = read("a.hwpx", packed(section(*parts), Contents__header_xml=NUMBERED))
    assert [document.text[block.start : block.end] for block in document.blocks] == [
        f"{each} 글".strip() for each in expected
    ]


def test_an_empty_paragraph_counts_and_has_no_text(read: Read) -> None:
    parts = [paragraph("글", shape=4), paragraph("", shape=4), paragraph(table((paragraph("표", shape=4),)), shape=4)]
    [document] = read("a.hwpx", packed(section(*parts, paragraph("끝", shape=4)), Contents__header_xml=NUMBERED))
    assert [document.text[block.start : block.end] for block in document.blocks] == ["가. 글", "라. 표", "마. 끝"]
