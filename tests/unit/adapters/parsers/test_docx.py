"""DOCX: what Word shows, with headings, lists and tables in their places."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import docx
import pytest
from docx.oxml import parse_xml

from dtrag.core.documents import ParsedDocument
from dtrag.errors import ParseFailed

Read = Callable[[str, bytes], list[ParsedDocument]]
NAMESPACE = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def saved(document: Any) -> bytes:
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def append(document: Any, xml: str) -> None:
    """Put raw WordprocessingML at the end of the body."""
    element = parse_xml(xml.replace(">", f" {NAMESPACE}>", 1))
    document.element.body.insert_element_before(element, "w:sectPr")


def test_headings_lists_tables_in_order(read: Read) -> None:
    document = docx.Document()
    document.add_heading("Handbook", 0)
    document.add_heading("Leave", 2)
    document.add_paragraph("Twenty days\ta year.")
    document.add_paragraph("first", style="List Bullet")
    document.add_paragraph("second", style="List Number")
    table = document.add_table(2, 2)
    for cell, text in zip(table._cells, ["Grade", "Days", "A", "20"], strict=True):
        cell.text = text
    table.cell(1, 1).add_table(1, 1).cell(0, 0).text = "inner"
    document.add_paragraph("after")
    [parsed] = read("a.docx", saved(document))
    assert parsed.title == "Handbook"
    assert [(b.kind, b.level, parsed.text[b.start : b.end]) for b in parsed.blocks] == [
        ("heading", 1, "Handbook"),
        ("heading", 2, "Leave"),
        ("paragraph", 0, "Twenty days\ta year."),
        ("list", 0, "- first\n1. second"),
        ("table", 0, "Grade | Days\nA | 20 inner"),
        ("paragraph", 0, "after"),
    ]


def test_hidden_and_deleted_text_is_dropped_and_insertions_are_kept(read: Read) -> None:
    document = docx.Document()
    document.core_properties.title = "Properties' title"
    paragraph = document.add_paragraph("seen ")
    paragraph.add_run("HIDDEN").font.hidden = True
    paragraph.add_run("too").font.hidden = False
    deleted = "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"
    append(document, f"<w:p><w:ins><w:r><w:t>inserted</w:t></w:r></w:ins>{deleted}</w:p>")
    control = "<w:p><w:r><w:t>in a control</w:t><w:br/><w:t>next</w:t></w:r></w:p>"
    append(document, f"<w:sdt><w:sdtContent>{control}</w:sdtContent></w:sdt>")
    [parsed] = read("a.docx", saved(document))
    assert parsed.title == "Properties' title"
    assert parsed.text == "seen too\n\ninserted\n\nin a control\nnext"
    assert parsed.metadata == {"hidden_runs": 1}


def test_korean_heading_styles_and_outline_levels(read: Read) -> None:
    document = docx.Document()
    style = document.styles.add_style("제목 3", 1)
    child = document.styles.add_style("House style", 1)
    child.base_style = style
    document.add_paragraph("장학 규정", style=child)
    append(document, '<w:p><w:pPr><w:outlineLvl w:val="1"/></w:pPr><w:r><w:t>By outline</w:t></w:r></w:p>')
    numbering = '<w:numPr><w:ilvl w:val="1"/><w:numId w:val="1"/></w:numPr>'
    append(document, f"<w:p><w:pPr>{numbering}</w:pPr><w:r><w:t>item</w:t></w:r></w:p>")
    [parsed] = read("a.docx", saved(document))
    assert [(b.kind, b.level, b.style) for b in parsed.blocks] == [
        ("heading", 3, "House style"),
        ("heading", 2, ""),
        ("list", 0, ""),
    ]


def test_circular_styles_terminate(read: Read) -> None:
    document = docx.Document()
    one, two = document.styles.add_style("One", 1), document.styles.add_style("Two", 1)
    one.base_style, two.base_style = two, one
    document.add_paragraph("text", style=one)
    assert read("a.docx", saved(document))[0].text == "text"


def test_no_text(read: Read) -> None:
    with pytest.raises(ParseFailed, match="no text"):
        read("a.docx", saved(docx.Document()))


def with_numbering(*levels: str, more: str = "") -> Any:
    """A document with list 1 of these levels; list 2 is of the same kind, and begins again at 5."""
    document = docx.Document()
    part = document.part.numbering_part.element
    for each in list(part):
        part.remove(each)
    numbered = "".join(f'<w:lvl w:ilvl="{n}">{level}</w:lvl>' for n, level in enumerate(levels))
    part.append(parse_xml(f'<w:abstractNum {NAMESPACE} w:abstractNumId="7">{numbered}{more}</w:abstractNum>'))
    again = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride>'
    for number, override in ((1, ""), (2, again), (3, "")):
        kind = f'<w:abstractNumId w:val="7"/>{override}'
        part.append(parse_xml(f'<w:num {NAMESPACE} w:numId="{number}">{kind}</w:num>'))
    return document


def form(text: str, kind: str = "decimal", *, start: int = 1, more: str = "") -> str:
    return f'<w:start w:val="{start}"/><w:numFmt w:val="{kind}"/><w:lvlText w:val="{text}"/>{more}'


@pytest.mark.parametrize(
    ("levels", "places", "expected"),
    [
        ([form("%1."), form("%1.%2")], "00110110", "1. 2. 2.1 2.2 3. 3.1 3.2 4."),
        ([form("제%1조"), form("%2.", "ganada")], "0110", "제1조 가. 나. 제2조"),
        (
            [form("Article %1", "upperRoman"), form("%1.%2", more="<w:isLgl/>")],
            "00110",
            "Article.I Article.II 2.1 2.2 Article.III",
        ),
        ([form("%1)", "lowerLetter", start=26)], "000", "z) 27) 28)"),
        ([form("%1."), form("%1.%2")], "100", "1.1 1. 2."),
        ([form("\uf0b7", "bullet"), form("%1.", "none")], "010", "- - -"),
        ([form("%1.")], "05", "1. -"),
        ([form("x" * 4_000_000)], "0", "x" * 40),
    ],
)
def test_numbers_of_lists(levels: list[str], places: str, expected: str, read: Read) -> None:
    document = with_numbering(*levels)
    for place in places:
        numbering = f'<w:numPr><w:ilvl w:val="{place}"/><w:numId w:val="1"/></w:numPr>'
        append(document, f"<w:p><w:pPr>{numbering}</w:pPr><w:r><w:t>text</w:t></w:r></w:p>")
    [parsed] = read("a.docx", saved(document))
    lines = [line.strip().removesuffix(" text").replace(" ", ".") for line in parsed.text.splitlines()]
    assert " ".join(lines) == expected


def test_lists_of_one_kind_count_on_and_headings_and_cells_are_numbered(read: Read) -> None:
    heading = '<w:pStyle w:val="Heading1"/>'
    document = with_numbering(form("%1."), more="")
    rows = "".join(
        f'<w:p><w:pPr>{style}<w:numPr><w:ilvl w:val="0"/><w:numId w:val="{number}"/></w:numPr></w:pPr>{run}</w:p>'
        for style, number, run in (
            (heading, 1, "<w:r><w:t>heading</w:t></w:r>"),
            ("", 3, "<w:r><w:t>of the same kind</w:t></w:r>"),
            ("", 1, ""),
            ("", 2, "<w:r><w:t>begins again</w:t></w:r>"),
            ("", 2, "<w:r><w:t>goes on</w:t></w:r>"),
            ("", 0, "<w:r><w:t>no list</w:t></w:r>"),
        )
    )
    append(document, f"<w:sdt><w:sdtContent>{rows}</w:sdtContent></w:sdt>")
    cell = (
        '<w:p><w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr></w:pPr><w:r><w:t>cell</w:t></w:r></w:p>'
    )
    append(document, f"<w:tbl><w:tr><w:tc>{cell}</w:tc><w:tc><w:p><w:r><w:t>x</w:t></w:r></w:p></w:tc></w:tr></w:tbl>")
    [parsed] = read("a.docx", saved(document))
    assert parsed.text.split("\n\n") == [
        "1. heading",
        "2. of the same kind\n5. begins again\n6. goes on",
        "no list",
        "7. cell | x",
    ]


def test_styles_say_which_level_of_a_list_a_paragraph_has(read: Read) -> None:
    linked = '<w:pStyle w:val="Clause"/>' + form("%1.%2")
    document = with_numbering(form("%1."), linked)
    style = document.styles.add_style("Clause", 1)
    style.element.append(parse_xml(f'<w:pPr {NAMESPACE}><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr>'))
    for _ in range(2):
        document.add_paragraph("text", style=style)
    [parsed] = read("a.docx", saved(document))
    assert [line.strip() for line in parsed.text.splitlines()] == ["1.1 text", "1.2 text"]
