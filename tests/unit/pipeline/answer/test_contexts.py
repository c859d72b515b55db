"""Quotations and their contexts are exact in every format, and rows and items have header, unit and lead-in."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import docx
import pytest

from dtrag.adapters.parsers.formats import format_of
from dtrag.core.documents import Citation, ParsedDocument, SearchResult
from dtrag.core.text.sentences import Preceding, beginning_of, begins_inside, sentences_after
from dtrag.ingestion.chunking import split
from dtrag.pipeline.answer.candidates import Quote
from dtrag.pipeline.answer.citations import citation_of, cite
from tests.pdf_writer import Placed, write_pdf

INTRODUCTION = "Staff who travel are paid back what they spend. Receipts are needed above 10 EUR."
ITEMS = ("a signed form", "all receipts")
LEAD = "The following documents are needed:"
HEADER = ("Grade", "City", "Rate")
ROWS = [(f"Grade {number}", "Paris" if number % 2 else "Rome", f"{100 + number}") for number in range(1, 161)]
UNIT = "(unit: EUR)"
QUOTED_ROW = "Grade 37 | Paris | 137"


def markdown() -> bytes:
    rows = "\n".join(f"| {' | '.join(row)} |" for row in [HEADER, ("---",) * 3, *ROWS])
    items = "\n".join(f"- {item}" for item in ITEMS)
    return f"# Travel\n\n{INTRODUCTION}\n\n{LEAD}\n\n{items}\n\n{UNIT}\n\n{rows}\n".encode()


def html() -> bytes:
    rows = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in [HEADER, *ROWS])
    items = "".join(f"<li>{item}</li>" for item in ITEMS)
    body = f"<h1>Travel</h1><p>{INTRODUCTION}</p><p>{LEAD}</p><ul>{items}</ul><p>{UNIT}</p><table>{rows}</table>"
    return f"<html><body>{body}</body></html>".encode()


def word() -> bytes:
    document = docx.Document()
    document.add_heading("Travel", 1)
    for text in (INTRODUCTION, LEAD):
        document.add_paragraph(text)
    for item in ITEMS:
        document.add_paragraph(item, style="List Bullet")
    document.add_paragraph(UNIT)
    table = document.add_table(0, 3)
    for row in [HEADER, *ROWS]:
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def hwpx() -> bytes:
    space = "http://www.hancom.co.kr/hwpml/2011"

    def paragraph(inside: str) -> str:
        return f"<hp:p><hp:run>{inside}</hp:run></hp:p>"

    def text(words: str) -> str:
        return paragraph(f"<hp:t>{words}</hp:t>")

    rows = "".join(
        f"<hp:tr>{''.join(f'<hp:tc><hp:subList>{text(cell)}</hp:subList></hp:tc>' for cell in row)}</hp:tr>"
        for row in [HEADER, *ROWS]
    )
    body = "".join(map(text, (INTRODUCTION, LEAD, *(f"- {item}" for item in ITEMS), UNIT)))
    table = paragraph(f"<hp:tbl>{rows}</hp:tbl>")
    section = f'<hs:sec xmlns:hs="{space}/section" xmlns:hp="{space}/paragraph">{body}{table}</hs:sec>'
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("mimetype", "application/hwp+zip")
        archive.writestr("Contents/section0.xml", section)
    return buffer.getvalue()


def plain() -> bytes:
    rows = "\n".join(f"{row[0]:<12}{row[1]:<10}{row[2]:>6}" for row in [HEADER, *ROWS])
    items = "\n".join(f"- {item}" for item in ITEMS)
    return f"TRAVEL\n\n{INTRODUCTION}\n\n{LEAD}\n{items}\n\n{UNIT}\n{rows}\n".encode()


def values() -> bytes:
    return "\n".join(",".join(row) for row in [HEADER, *ROWS]).encode()


def pdf() -> bytes:
    pages: list[list[Placed]] = []
    page = [Placed(72, 780, "Travel", 16)]
    texts = [*re.split(r"(?<=above) ", INTRODUCTION), LEAD, *(f"- {item}" for item in ITEMS), UNIT]
    page += [Placed(72, 750 - 14 * number, text) for number, text in enumerate(texts)]
    y = 640.0
    for row in [HEADER, *ROWS]:
        if y < 80:
            pages.append([*page, Placed(290, 40, f"- {len(pages) + 1} -")])
            page, y = [], 780.0
        page += [Placed(x, y, cell) for x, cell in zip((72, 200, 330), row, strict=True)]
        y -= 14
    return write_pdf([*pages, [*page, Placed(290, 40, f"- {len(pages) + 1} -")]])


FORMATS = {
    "a.pdf": pdf,
    "a.md": markdown,
    "a.html": html,
    "a.docx": word,
    "a.hwpx": hwpx,
    "a.txt": plain,
    "a.csv": values,
}


def parsed(path: Path, name: str, data: bytes) -> ParsedDocument:
    path.write_bytes(data)
    (document,) = format_of(name).load()(path, name)
    return document


def passages_of(document: ParsedDocument) -> Iterator[tuple[SearchResult, Preceding | None]]:
    """The passages of a document as an answer gets them, each with what precedes it."""
    chunks = split(document).chunks
    for chunk in chunks:
        before = [(earlier.start, earlier.text) for earlier in reversed(chunks[: chunk.ordinal])]
        inside = chunk.start > 0 and begins_inside(chunk.text)
        passage = SearchResult(f"c{chunk.ordinal}", chunk.text, "Title", start=chunk.start, end=chunk.end)
        yield passage, beginning_of(chunk.start, before) if inside else None


def citations(document: ParsedDocument) -> list[Citation]:
    """A citation of every unit that can be quoted."""
    return [
        citation_of(1, passage, unit.start, unit.end, preceding)
        for passage, preceding in passages_of(document)
        for unit in sentences_after(preceding, passage.text, passage.start)
        if unit.quotable
    ]


def assert_exact(citation: Citation, document: ParsedDocument) -> None:
    assert document.text[citation.start : citation.end] == citation.quote
    assert "\n" not in citation.display
    for context in citation.context:
        assert document.text[context.start : context.end] == context.text


@pytest.mark.parametrize("name", FORMATS)
def test_every_quotation_and_every_context_is_exact_in_every_format(name: str, tmp_path: Path) -> None:
    document = parsed(tmp_path / "file", name, FORMATS[name]())
    assert len(split(document).chunks) > 1
    cited = citations(document)
    for citation in cited:
        assert_exact(citation, document)
    shown = {citation.display: citation for citation in cited}
    if name == "a.csv":
        assert "Grade: Grade 37; City: Paris; Rate: 137" in shown
        return
    assert QUOTED_ROW in shown
    rows = [citation for citation in cited if citation.display.startswith("Grade ")]
    assert len({citation.display for citation in rows}) == len(ROWS)
    for row in rows:
        context = {context.kind: " ".join(context.text.split()) for context in row.context}
        assert context["header"].replace("| ", "") == "Grade City Rate"
        assert context["unit"] == UNIT
    assert all(citation.display not in {LEAD, UNIT, "Travel", "Grade | City | Rate"} for citation in cited)
    item = shown["- all receipts"]
    assert [(context.kind, context.text) for context in item.context] == [("lead_in", LEAD)]
    assert shown["Staff who travel are paid back what they spend."].context == ()


def test_the_answer_shows_context_once_above_the_quotations_that_share_it() -> None:
    table = "(단위: 천원)\n\n구분 | 국내 | 국외\n교수 | 70 | 150\n직원 | 50 | 120"
    text = f"{table}\n\n위원은 다음 각 호와 같다.\n\n1. 총장\n\n2. 처장"
    passage = SearchResult("c", text, "T", start=100, metadata={"document_id": "d"})
    spans = [(text.index(row), text.index(row) + len(row)) for row in ("교수 | 70 | 150", "직원 | 50 | 120", "2. 처장")]
    shown, cited, _ = cite([Quote(0, start, end, text[start:end], 1.0) for start, end in spans], [passage])
    assert shown.split("\n") == [
        "(단위: 천원)",
        "구분 | 국내 | 국외",
        "교수 | 70 | 150 [1]",
        "직원 | 50 | 120 [2]",
        "위원은 다음 각 호와 같다.",
        "2. 처장 [3]",
    ]
    assert [(part.kind, part.text, part.start) for part in cited[0].context] == [
        ("unit", "(단위: 천원)", 100),
        ("header", "구분 | 국내 | 국외", 100 + text.index("구분")),
    ]


def test_cells_that_span_rows_are_repeated_so_that_a_row_is_complete(tmp_path: Path) -> None:
    table = (
        "<tr><th rowspan=2>Place<th colspan=2>Rate<tr><th>Day<th>Night<tr><td rowspan=2>Rome<td>1<td>2<tr><td>3<td>4"
    )
    document = parsed(
        tmp_path / "file", "a.html", f"<table><caption>Rates (unit: EUR)</caption>{table}</table>".encode()
    )
    assert document.text.split("\n") == [
        "Rates (unit: EUR)",
        "Place | Rate",
        "Place | Day | Night",
        "Rome | 1 | 2",
        "Rome | 3 | 4",
    ]
    row = next(citation for citation in citations(document) if citation.display == "Rome | 3 | 4")
    assert [(context.kind, context.text) for context in row.context] == [
        ("lead_in", "Rates (unit: EUR)"),
        ("unit", "(unit: EUR)"),
        ("header", "Place | Rate"),
        ("header", "Place | Day | Night"),
    ]
    assert cite([Quote(0, row.start, row.end, row.quote, 1.0)], [SearchResult("c", document.text)])[0].split("\n") == [
        "Rates (unit: EUR)",
        "Place | Rate / Place | Day | Night",
        "Rome | 3 | 4 [1]",
    ]


def test_merged_cells_of_word_and_hangul(tmp_path: Path) -> None:
    document = docx.Document()
    table = document.add_table(3, 3)
    for place, text in enumerate(["Place", "Month", "Rate", "Rome", "May", "10", "", "June", "20"]):
        table.cell(place // 3, place % 3).text = text
    table.cell(1, 0).merge(table.cell(2, 0))
    buffer = io.BytesIO()
    document.save(buffer)
    assert parsed(tmp_path / "file", "a.docx", buffer.getvalue()).text.split("\n")[1:] == [
        "Rome | May | 10",
        "Rome | June | 20",
    ]
    data = hwpx().decode("latin-1")  # the archive is stored without compression, so that cells can be replaced
    with zipfile.ZipFile(io.BytesIO(data.encode("latin-1"))) as archive:
        section = archive.read("Contents/section0.xml").decode()
    cell = "<hp:tc><hp:subList><hp:p><hp:run><hp:t>{}</hp:t></hp:run></hp:p></hp:subList>{}</hp:tc>"
    section = section.replace(
        cell.format("Grade 1", ""), cell.format("Grade 1", '<hp:cellSpan colSpan="1" rowSpan="2"/>')
    )
    section = section.replace(cell.format("Grade 2", ""), "")
    changed = io.BytesIO()
    with zipfile.ZipFile(changed, "w") as archive:
        archive.writestr("Contents/section0.xml", section)
    text = parsed(tmp_path / "file", "a.hwpx", changed.getvalue()).text
    assert "Grade 1 | Paris | 101\nGrade 1 | Rome | 102\nGrade 3 | Paris | 103" in text
