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
        ("list", 0, "- first\n- second"),
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
