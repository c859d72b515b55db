# ruff: noqa: E501 - markup is on one line
"""Spreadsheets, presentations, OpenDocument, HWP and HWPML, e-mail, JSON and XML: what is read of each."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable, Iterable
from email.message import EmailMessage
from pathlib import Path

import docx
import pytest
from python_calamine import PasswordError
from tests.office_files import (
    Cell,
    hml,
    odt,
    open_document,
    open_table,
    packed,
    pptx,
    shape,
    slide_table,
    xlsx,
    xlsx_rows,
)
from tests.ole_writer import hwp as hwp_file
from tests.ole_writer import ole, xls

from dtrag.adapters.parsers import eml, hwp, rows, sheets
from dtrag.adapters.parsers.formats import format_of
from dtrag.core.documents import ParsedDocument
from dtrag.errors import ParseFailed

Read = Callable[[str, bytes], list[ParsedDocument]]
TABLE: list[Cell] = [
    (0, 0, 2, 1, "구분"),
    (0, 1, 1, 2, "인원"),
    (1, 1, 1, 1, "남"),
    (1, 2, 1, 1, "여"),
    (2, 0, 1, 1, "가"),
    (2, 1, 1, 1, "10"),
    (2, 2, 1, 1, "20"),
]
TABLE_TEXT = "구분 | 인원\n구분 | 남 | 여\n가 | 10 | 20"


def outline(document: ParsedDocument) -> list[tuple[str, int, str]]:
    """Kind, level and text of each block."""
    return [(block.kind, block.level, document.text[block.start : block.end]) for block in document.blocks]


def sentences(document: ParsedDocument) -> list[str]:
    return [text for kind, _, text in outline(document) if kind == "paragraph"]


# --- Spreadsheets


def test_a_sheet_has_a_header_of_merged_cells_and_ranges_as_headings(read: Read) -> None:
    cells = xlsx_rows(
        [["2026년 현황"], [], ["학과", "인원", "", "비고"], ["", "남", "여"], ["컴퓨터", 10.0, 0.1 + 0.2, "a"]]
    )
    cells += '<row r="6"><c r="B6"><v>3</v></c><c r="C6"><f>B6*2</f><v>6</v></c><c r="D6" s="1"><v>46000.395833333</v></c></row>'
    cells += '<row r="7"><c r="A7" t="b"><v>1</v></c><c r="D7" s="1"><v>46000</v></c></row>'
    data = xlsx({"현황": cells}, merges=["A1:D1", "A3:A4", "B3:C3", "D3:D4", "A5:A6"])
    [document] = read("a.xlsx", data)
    assert outline(document) == [
        ("heading", 1, "현황"),
        ("heading", 2, "A1:D7"),
        ("paragraph", 0, "2026년 현황"),
        ("paragraph", 0, "학과: 컴퓨터; 인원 남: 10; 인원 여: 0.3; 비고: a"),
        ("paragraph", 0, "학과: 컴퓨터; 인원 남: 3; 인원 여: 6; 비고: 2025-12-09 09:30"),
        ("paragraph", 0, "학과: TRUE; 비고: 2025-12-09"),
    ]
    assert document.metadata == {"rows": 4, "first_row": 1}


def test_hidden_sheets_are_named_and_empty_ones_left_out(read: Read) -> None:
    shown, hidden = xlsx_rows([["이름", "값"], ["가", 1]]), xlsx_rows([["secret", "x"], ["k", 2]])
    [document] = read("a.xlsx", xlsx({"A": shown, "B": hidden, "C": ""}, hidden=["B"]))
    assert [text for kind, level, text in outline(document) if level == 1] == ["A", "B (hidden)"]
    assert document.metadata["hidden_sheets"] == 1


def test_old_workbooks_are_read_alike(read: Read) -> None:
    merges = struct.pack("<HHHHH", 1, 1, 2, 0, 0)
    [document] = read("a.xls", xls({"시트": [["이름", "값"], ["가", 1.0], ["", 2.5]]}, merges=merges))
    assert sentences(document) == ["이름: 가; 값: 1", "이름: 가; 값: 2.5"]
    assert document.text.startswith("시트\n\nA2:B3")


def test_open_sheets_have_merged_repeated_and_typed_cells(read: Read) -> None:
    values = (
        '<table:table-row table:number-rows-repeated="2"><table:table-cell table:number-columns-repeated="2" '
        'office:value-type="float" office:value="2.50"/><table:table-cell office:value-type="date" '
        'office:date-value="2026-11-28T09:30:00"/><table:table-cell table:number-columns-repeated="16000"/></table:table-row>'
        '<table:table-row table:number-rows-repeated="1048000"><table:table-cell table:number-columns-repeated="16384"/>'
        '</table:table-row><table:table-row><table:table-cell office:value-type="boolean" office:boolean-value="true"/>'
        '<table:table-cell office:value-type="percentage" office:value="0.25"><text:p>25%</text:p></table:table-cell>'
        "</table:table-row>"
    )
    body = open_table(TABLE, "표").replace("</table:table>", f"{values}</table:table>")
    hidden = open_table([(0, 0, 1, 1, "k"), (1, 0, 1, 1, "v")], "H").replace(
        "<table:table ", '<table:table table:style-name="x" '
    )
    styles = '<style:style style:name="x"><style:table-properties table:display="false"/></style:style>'
    [document] = read("a.ods", open_document("spreadsheet", body + hidden, styles, "제목"))
    assert document.title == "제목"
    assert outline(document)[:2] == [("heading", 1, "표"), ("heading", 2, "A3:C1048006")]
    assert sentences(document) == [
        "구분: 가; 인원 남: 10; 인원 여: 20",
        *["구분: 2.5; 인원 남: 2.5; 인원 여: 2026-11-28 09:30"] * 2,
        "구분: TRUE; 인원 남: 25%",
        "k",
        "v",
    ]
    assert document.metadata["hidden_sheets"] == 1
    with pytest.raises(ParseFailed, match="not a ODT file"):
        read("a.odt", open_document("presentation", ""))


@pytest.mark.parametrize(
    ("cells", "header"),
    [
        (["구분", "2024", "2025"], True),
        (["구분", "2025", "2024"], True),
        (["서울", "2024"], False),
        (["서울", "2024", "2026"], False),
        (["a", "b"], True),
        (["a", "a"], False),
        (["a", ""], False),
        (["a", "1,000"], False),
    ],
)
def test_headers_name_columns(cells: list[str], header: bool) -> None:
    assert rows.is_header(cells) is header


def test_large_sheets_are_several_documents_whose_headings_name_their_cells(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "ROWS_PER_DOCUMENT", 4)
    monkeypatch.setattr(rows, "ROWS_PER_RANGE", 2)
    first, second = read(
        "a.xlsx", xlsx({"S": xlsx_rows([["name", "n"], *(list[str | float]((f"r{k}", k)) for k in range(5))])})
    )
    assert (first.part, second.part) == ("rows-1-4", "rows-5-5")
    assert [text for kind, _, text in outline(first) if kind == "heading"] == ["S", "A2:B3", "A4:B5"]
    assert outline(second) == [("heading", 1, "S"), ("heading", 2, "A6:B6"), ("paragraph", 0, "name: r4; n: 4")]


def test_names_of_columns_and_values() -> None:
    assert [rows.column_name(column) for column in (0, 25, 26, 701, 702, 16_383)] == [
        "A",
        "Z",
        "AA",
        "ZZ",
        "AAA",
        "XFD",
    ]
    assert [rows.shown(value) for value in (1e300, 1e18, -0.5, 12, " a\nb ")] == [
        "1e+300",
        "1" + "0" * 18,
        "-0.5",
        "12",
        "a b",
    ]


def test_too_many_columns_and_no_rows(read: Read) -> None:
    wide = xlsx({"S": '<row r="1"><c r="A1"><v>1</v></c><c r="XFD1"><v>2</v></c></row>'})
    with pytest.raises(ParseFailed, match="its sheet S has more than 2,000 columns"):
        read("a.xlsx", wide)
    with pytest.raises(ParseFailed, match="no rows"):
        read("a.xlsx", xlsx({"S": ""}))
    with pytest.raises(ParseFailed, match="document type declaration"):
        read("a.xlsx", packed({"xl/workbook.xml": "<!DOCTYPE x><workbook/>"}))


def test_a_password_of_a_workbook_is_named(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(file: object) -> None:
        raise PasswordError

    monkeypatch.setattr(sheets, "load_workbook", locked)
    with pytest.raises(ParseFailed, match="encrypted"):
        read("a.xlsx", xlsx({"S": ""}))


# --- Presentations and texts


def test_slides_are_sections_with_tables_and_notes(read: Read) -> None:
    group = f"<p:grpSp>{shape('', 'in a group')}</p:grpSp>"
    second = (
        '<mc:AlternateContent xmlns:mc="m"><mc:Fallback>' + shape("", "again") + "</mc:Fallback></mc:AlternateContent>"
    )
    items = shape("body", "one", "two").replace("<a:p>", '<a:p><a:pPr lvl="1"/>', 1)
    slides = [
        shape("ctrTitle", "시작") + shape("", "text") + shape("sldNum", "1") + second,
        slide_table(TABLE) + group + items,
    ]
    [document] = read("a.pptx", pptx(slides, hidden=[2], notes={1: "say this"}))
    assert outline(document) == [
        ("heading", 1, "Slide 1: 시작"),
        ("paragraph", 0, "text"),
        ("heading", 2, "Notes"),
        ("paragraph", 0, "say this"),
        ("heading", 1, "Slide 2 (hidden)"),
        ("table", 0, TABLE_TEXT),
        ("paragraph", 0, "in a group"),
        ("list", 0, "- one\ntwo"),
    ]
    assert document.metadata == {"slides": 2, "hidden_slides": 1}
    with pytest.raises(ParseFailed, match="not a PPTX"):
        read("a.pptx", packed({"word/document.xml": "<a/>"}))


def test_open_texts_have_headings_lists_tables_boxes_and_notes(read: Read) -> None:
    body = (
        '<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes><text:h text:outline-level="2">제1장</text:h>'
        "<text:p>가<text:s/>나<text:tab/><text:line-break/>다<office:annotation><text:p>comment</text:p></office:annotation>"
        '<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>주석</text:p></text:note-body></text:note>'
        '<text:span text:style-name="hid">hidden</text:span><draw:frame><draw:text-box><text:p>box</text:p></draw:text-box>'
        "</draw:frame></text:p><text:list><text:list-item><text:p>one</text:p><text:list><text:list-item><text:p>two</text:p>"
        "</text:list-item></text:list></text:list-item></text:list><text:section>" + open_table(TABLE) + "</text:section>"
    )  # fmt: skip
    styles = '<style:style style:name="hid"><style:text-properties text:display="none"/></style:style>'
    [document] = read("a.odt", open_document("text", body, styles))
    assert document.title == "제1장"
    assert outline(document) == [
        ("heading", 2, "제1장"),
        ("paragraph", 0, "가 나\t\n다 (주석)"),
        ("paragraph", 0, "box"),
        ("list", 0, "- one\n  - two"),
        ("table", 0, TABLE_TEXT),
    ]
    assert document.metadata == {"hidden_runs": 1}
    locked = packed({"META-INF/manifest.xml": "<m><encryption-data/></m>", "content.xml": "x"})
    with pytest.raises(ParseFailed, match="encrypted"):
        read("a.odt", locked)


# --- Hangul


@pytest.mark.parametrize("name", ["a.hml", "a.hwp", "a.xml"])
def test_hangul_in_one_xml_file(name: str, tmp_path: Path, read: Read) -> None:
    data = hml([("제1장 총칙", 1), "본문", TABLE], "규정")
    note = "<FOOTNOTE><PARALIST><P><TEXT><CHAR>주석</CHAR></TEXT></P></PARALIST></FOOTNOTE>"
    box = (
        "<RECTANGLE><SHAPEOBJECT><CAPTION><PARALIST><P><TEXT><CHAR>그림 1</CHAR></TEXT></P></PARALIST></CAPTION></SHAPEOBJECT>"
        "<DRAWINGOBJECT><DRAWTEXT><PARALIST><P><TEXT><CHAR>상자</CHAR></TEXT></P></PARALIST></DRAWTEXT></DRAWINGOBJECT></RECTANGLE>"
    )
    data = data.replace("본문</CHAR>".encode(), f"본<TAB/>문</CHAR>{note}{box}".encode())
    path = tmp_path / "input"
    path.write_bytes(data)
    [document] = format_of(name).load()(path, name)
    assert (document.title, document.content_type) == ("규정", "application/vnd.hancom.hml")
    assert [(block.kind, block.style) for block in document.blocks][:2] == [("heading", "장"), ("paragraph", "바탕글")]
    assert [text for _, _, text in outline(document)] == ["제1장 총칙", "본 문 (주석)", "그림 1", "상자", TABLE_TEXT]
    with pytest.raises(ParseFailed, match="not a HWPML file"):
        read("a.hml", b"<a/>")


def test_numbers_of_paragraphs_of_hangul_in_one_xml_file(read: Read) -> None:
    numbering = (
        b'<NUMBERINGLIST><NUMBERING Id="3"><PARAHEAD Level="1" Start="1" NumFormat="HangulSyllable">^1.</PARAHEAD>'
        b'</NUMBERING></NUMBERINGLIST><BULLETLIST><BULLET Id="1" Char="\xe2\x96\xa1"/></BULLETLIST>'
        b'<PARASHAPE Id="8" HeadingType="Number" Heading="3" Level="0"/>'
        b'<PARASHAPE Id="9" HeadingType="Bullet" Heading="1" Level="0"/>'
    )
    section = b'<P><TEXT><SECDEF OutlineShape="3"/></TEXT></P>'
    data = hml(["one", "two", ("three", 1)]).replace(b"<PARASHAPELIST>", b"<PARASHAPELIST>" + numbering, 1)
    data = data.replace(b'"0" Style="0"><TEXT CharShape="0"><CHAR>one', b'"8"><TEXT><CHAR>one')
    data = data.replace(b'"0" Style="0"><TEXT CharShape="0"><CHAR>two', b'"9"><TEXT><CHAR>two')
    [document] = read("a.hml", data.replace(b"<SECTION>", b"<SECTION>" + section, 1))
    assert [text for _, _, text in outline(document)] == ["가. one", "□ two", "나. three"]


CHARACTERS = b'<!DOCTYPE HWPML [\n\t<!ENTITY nbsp\t"&#160;">\n]>'


@pytest.mark.parametrize("name", ["a.hml", "a.hwp", "a.xml"])
def test_hangul_of_the_national_law_information_center(name: str, tmp_path: Path) -> None:
    """It declares a character, has the title again in a header, and pictures of many megabytes."""
    header = b"<HEADER><PARALIST><P><TEXT><CHAR>in the margin</CHAR></TEXT></P></PARALIST></HEADER>"
    picture = b"<TAIL><BINDATA>" + b"A" * (11 << 20) + b"</BINDATA></TAIL></HWPML>" if name != "a.xml" else b"</HWPML>"
    data = hml(["first;second"], "title").replace(b";", b"&nbsp;").replace(b"<CHAR>", header + b"<CHAR>", 1)
    path = tmp_path / "input"
    path.write_bytes(data.replace(b"?>", b"?>" + CHARACTERS, 1).replace(b"</HWPML>", picture))
    [document] = format_of(name).load()(path, name)
    assert (document.title, document.text) == ("title", "first second")


@pytest.mark.parametrize(
    "declared",
    [
        b'<!DOCTYPE HWPML [<!ENTITY a "text">]>',
        b'<!DOCTYPE HWPML [<!ENTITY a "&#160;"><!ENTITY b "&a;&a;">]>',
        b'<!DOCTYPE HWPML SYSTEM "a.dtd">',
        CHARACTERS + b'<!DOCTYPE HWPML [<!ENTITY a "text">]>',
        b" " * 1_024 + CHARACTERS,
    ],
)
def test_other_declarations_of_hangul_are_refused(declared: bytes, read: Read) -> None:
    with pytest.raises(ParseFailed, match="document type declaration"):
        read("a.hml", hml(["text"]).replace(b"?>", b"?>" + declared, 1))


def test_binary_hangul_has_headings_and_tables(read: Read) -> None:
    long = "가나다라마바사 " * 300
    [document] = read(
        "a.hwp", hwp_file([("제1장 총칙", 1), "제1조(목적) 이 규정은 <b> | *a* 을 정한다.", TABLE, ("절", 2), long])
    )
    assert outline(document) == [
        ("heading", 1, "제1장 총칙"),
        ("paragraph", 0, "제1조(목적) 이 규정은 <b> | *a* 을 정한다."),
        ("table", 0, TABLE_TEXT),
        ("heading", 2, "절"),
        ("paragraph", 0, long.strip()),
    ]
    [plain] = read("a.hwp", hwp_file(["압축하지 않은 글"], flags=0))
    assert plain.text == "압축하지 않은 글"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (hwp_file(["가"], flags=3), "encrypted or for distribution only"),
        (hwp_file(["이 문서는 상위 버전의 배포용 문서입니다."], flags=5), "encrypted or for distribution only"),
        (ole({"Workbook": b"x"}), "not a complete HWP file"),
        (hwp_file(["가" * 5_000])[:3_000], "not a complete HWP file"),
        (b"HWP Document File V3.00 \x1a\x01\x02\x03\x04\x05", "HWP 3 .Hangul 97 and before.; open it in Hangul"),
        (b"hello", "not a HWP file"),
        (b"<a/>", "not a HWPML file"),
    ],
)
def test_hangul_files_that_are_refused(data: bytes, reason: str, read: Read) -> None:
    with pytest.raises(ParseFailed, match=reason):
        read("a.hwp", data)


def test_hangul_without_the_library(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "unhwp", None)
    with pytest.raises(ParseFailed, match=r"pip install 'dtrag\[hwp\]'"):
        read("a.hwp", hwp_file(["가"]))


def test_pieces_of_paragraphs_of_binary_hangul() -> None:
    pieces = [
        {"Text": {"text": "가"}},
        "LineBreak",
        {"Equation": {"script": "x"}},
        {"Footnote": "주"},
        {"Image": {"id": "1"}},
    ]
    assert hwp._text({"content": pieces}) == "가\nx (주)"
    inner = {"rows": [{"cells": [{"content": [{"content": pieces[:1]}], "colspan": 1, "rowspan": 1}]}]}
    outer = {"rows": [{"cells": [{"content": [], "nested_tables": [inner], "colspan": 1, "rowspan": 1}]}]}
    assert list(hwp._rows(outer, 0)) == ["가"]


# --- E-mail


def mail(subject: str = "회의 안내", text: str = "첫 문단\n\n둘째 문단") -> EmailMessage:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = subject, "Kim <kim@example.org>", "lee@example.org"
    message["Date"] = "Sat, 28 Nov 2026 10:00:00 +0900"
    message.set_content(text)
    return message


def parsed(tmp_path: Path, data: bytes) -> list[ParsedDocument]:
    path = tmp_path / "input"
    path.write_bytes(data)
    return list(eml.parse(path, "mail.eml"))


def test_a_message_lists_its_attachments_which_are_documents(tmp_path: Path) -> None:
    message = mail()
    message.add_alternative("<p>as html</p>", subtype="html")
    message.add_attachment("# 제목\n\n글", filename="노트.md")
    message.add_attachment(b"\x00", maintype="audio", subtype="mpeg", filename="a.mp3")
    sheet = xlsx({"S": xlsx_rows([["a", "b"], ["x", 1]])})
    message.add_attachment(sheet, maintype="application", subtype="octet-stream", filename="C:\\표.xlsx")
    message.add_attachment(b"%PDF-1.4 broken", maintype="application", subtype="pdf", filename="b.pdf")
    message.add_attachment(
        b'{"text": "one", "title": "t", "category_path": ["HR"]}\n{}\n', maintype="a", subtype="b", filename="c.jsonl"
    )
    inner = mail("안쪽", "inner text")
    inner.add_attachment("attached text", filename="t.txt")
    message.add_attachment(inner)
    first, *others = parsed(tmp_path, bytes(message))
    assert (first.title, first.part, first.content_type) == ("회의 안내", "", "message/rfc822")
    head, *body = sentences(first)
    assert body == ["첫 문단", "둘째 문단"]
    assert head.split("\n")[:4] == [
        "Subject: 회의 안내",
        "From: Kim <kim@example.org>",
        "To: lee@example.org",
        "Date: 2026-11-28 10:00:00+09:00",
    ]
    listed = head.split("\n")[4:]
    assert listed[0] == "Attachment: 노트.md"
    assert listed[1] == "Attachment: a.mp3 (not read: files of its kind are not read)"
    assert listed[2] == "Attachment: 표.xlsx"
    assert listed[3].startswith("Attachment: b.pdf (not read: the PDF is damaged")
    assert listed[4].startswith("Attachment: c.jsonl (not read: 1 of 2 lines")
    assert [(document.title, document.part) for document in others] == [
        ("회의 안내 › 노트.md", "attachment-1"),
        ("회의 안내 › 표.xlsx", "attachment-3"),
        ("회의 안내 › c.jsonl › t", "attachment-5/line-1"),
        ("회의 안내 › 6.eml", "attachment-6"),
        ("회의 안내 › 6.eml › 안쪽 › t.txt", "attachment-6/attachment-1"),
    ]
    assert others[2].category_path is None
    assert "a: x; b: 1" in others[1].text


def test_html_is_read_where_there_is_no_plain_text(tmp_path: Path) -> None:
    message = mail(text="")
    message.add_alternative("<h1>제목</h1><p>글</p>", subtype="html")
    [document] = parsed(tmp_path, bytes(message))
    assert outline(document)[1:] == [("heading", 1, "제목"), ("paragraph", 0, "글")]
    raw = b"Subject: =?euc-kr?B?sKE=?=\r\nDate: not a day\r\nContent-Type: text/plain; charset=euc-kr\r\n\r\n\xb0\xa1"
    [document] = parsed(tmp_path, raw)
    assert sentences(document) == ["Subject: 가\nDate: not a day", "가"]
    [document] = parsed(tmp_path, b"Subject: =?nonsense?B?sKE=?=\r\n\r\ntext")
    assert document.title


def test_limits_of_attachments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = mail("0")
    for depth in range(1, 6):
        outer = mail(str(depth))
        outer.add_attachment(bytes(deep), maintype="application", subtype="octet-stream", filename="m.eml")
        deep = outer
    documents = parsed(tmp_path, bytes(deep))
    assert len(documents) == 1 + eml.MAX_DEPTH
    assert "more than 3 messages in each other" in documents[-1].text
    monkeypatch.setattr(eml, "MAX_ATTACHMENTS", 2)
    monkeypatch.setattr(eml, "MAX_CHARACTERS", 3)
    message = mail()
    for number in range(5):
        message.add_attachment("abcd", filename=f"{number}.txt")
    first, second = parsed(tmp_path, bytes(message))
    assert second.part == "attachment-1"
    assert "1.txt (not read: the attachments before it have too much text)" in first.text
    assert "3 more (not read)" in first.text


# --- JSON and XML


def test_values_of_json_have_their_paths(read: Read) -> None:
    value = {
        "title": "서버 목록",
        "n": 1.50,
        "servers": [
            {"name": "web", "ports": [80, 443], "tls": {"on": True, "until": None}},
            {"name": "db", "note": "a\n\nb"},
        ],
    }
    [document] = read("a.json", json.dumps(value).encode())
    assert document.title == "서버 목록"
    assert outline(document) == [
        ("paragraph", 0, "title: 서버 목록; n: 1.5"),
        ("heading", 1, "servers"),
        ("paragraph", 0, "servers.0: name: web; ports: 80, 443"),
        ("paragraph", 0, "servers.0.tls: on: true; until: null"),
        ("paragraph", 0, "servers.1: name: db"),
        ("paragraph", 0, "servers.1.note:"),
        ("paragraph", 0, "a"),
        ("paragraph", 0, "b"),
    ]
    assert read("a.json", b'"text"')[0].text == "text"
    for bad, reason in (
        (b'{"a": 1}\n{"b"', "line 2 cannot be read; JSON lines"),
        (b"[" + b"9" * 5_000 + b"]", "too long"),
    ):
        with pytest.raises(ParseFailed, match=reason):
            read("a.json", bad)
    with pytest.raises(ParseFailed, match="no text"):
        read("a.json", b"[]")


def test_elements_of_xml_have_their_paths(read: Read) -> None:
    data = "<c xmlns='u'><book id='1'><t>A</t><p>Some <b>bold</b> text</p></book><book><t lang='ko'>나</t></book><!-- x --></c>"
    [document] = read("a.xml", data.encode())
    assert outline(document) == [
        ("heading", 1, "c"),
        ("paragraph", 0, "c.book.1: @id: 1; t: A; p: Some bold text"),
        ("paragraph", 0, "c.book.2.t: @lang: ko; 나"),
    ]
    with pytest.raises(ParseFailed, match="document type declaration"):
        read("a.xml", b"<!DOCTYPE c [<!ENTITY x 'y'>]><c>&x;</c>")


# --- Tables with merged cells, in every format that has tables


def random_table(draw: random.Random) -> list[Cell]:
    """Cells that cover a grid, some of several rows and columns."""
    height, width = draw.randint(2, 8), draw.randint(2, 6)
    taken: set[tuple[int, int]] = set()
    cells: list[Cell] = []
    for row in range(height):
        for column in range(width):
            if (row, column) in taken:
                continue
            right = draw.choice((1, 1, 1, 2, 3))
            free = 1
            while free < right and column + free < width and (row, column + free) not in taken:
                free += 1
            down = min(draw.choice((1, 1, 1, 2, 3)), height - row)
            taken |= {(row + r, column + c) for r in range(down) for c in range(free)}
            cells.append((row, column, down, free, f"{draw.choice('가나다라마')}{draw.randint(1, 999)}"))
    return cells


def expected_rows(cells: Iterable[Cell]) -> list[list[str]]:
    """Texts of each row, from left to right; a cell of several rows is in each that has a cell of its own."""
    lines: dict[int, list[tuple[int, str]]] = {}
    for row, column, down, _, text in cells:
        for below in range(down):
            lines.setdefault(row + below, []).append((column, text))
    return [[text for _, text in sorted(lines[row])] for row in sorted({cell[0] for cell in cells})]


def as_docx(cells: list[Cell], path: Path) -> bytes:
    document = docx.Document()
    height, width = (
        max(row + down for row, _, down, _, _ in cells),
        max(column + right for _, column, _, right, _ in cells),
    )
    table = document.add_table(height, width)
    for row, column, down, right, text in cells:
        table.cell(row, column).merge(table.cell(row + down - 1, column + right - 1)).text = text
    document.save(str(path))
    return path.read_bytes()


def as_html(cells: list[Cell]) -> bytes:
    rows_ = (
        "".join(f"<td rowspan={c[2]} colspan={c[3]}>{c[4]}</td>" for c in cells if c[0] == row)
        for row in range(max(cell[0] + cell[2] for cell in cells))
    )
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows_)}</table>".encode()


def as_xlsx(cells: list[Cell]) -> bytes:
    grid = [[""] * 20 for _ in range(max(row + down for row, _, down, _, _ in cells))]
    merges = []
    for row, column, down, right, text in cells:
        grid[row][column] = text
        if down > 1 or right > 1:
            merges.append(f"{rows.column_name(column)}{row + 1}:{rows.column_name(column + right - 1)}{row + down}")
    return xlsx({"S": xlsx_rows(grid)}, merges=merges)


def test_merged_cells_are_the_same_in_every_format(tmp_path: Path, read: Read) -> None:
    draw = random.Random(26)
    share: dict[str, list[bool]] = {}
    for _ in range(40):
        cells = random_table(draw)
        expected = expected_rows(cells)
        files = {
            "a.hwp": hwp_file([cells]),
            "a.hml": hml([cells]),
            "a.odt": odt([cells]),
            "a.pptx": pptx([slide_table(cells)]),
            "a.docx": as_docx(cells, tmp_path / "table.docx"),
            "a.html": as_html(cells),
        }
        for name, data in files.items():
            [document] = read(name, data)
            [table] = [text for kind, _, text in outline(document) if kind == "table"]
            read_rows = [line.split(" | ") for line in table.split("\n")]
            assert len(read_rows) == len(expected), (name, cells)
            equal = [
                a == b for one, two in zip(expected, read_rows, strict=True) for a, b in zip(one, two, strict=False)
            ]
            missing = sum(abs(len(one) - len(two)) for one, two in zip(expected, read_rows, strict=True))
            share.setdefault(name, []).extend([*equal, *[False] * missing])
        for name, data in {"a.xlsx": as_xlsx(cells), "a.ods": open_document("spreadsheet", open_table(cells))}.items():
            text = read(name, data)[0].text
            share.setdefault(name, []).extend(cell[4] in text for cell in cells)
    shares = {name: sum(equal) / len(equal) for name, equal in share.items()}
    assert min(shares.values()) >= 0.95, shares
