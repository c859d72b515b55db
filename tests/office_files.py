"""Writes small office files of the kinds that are read, with the parts that the readers look at: for tests."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

_SPREADSHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"


Cell = tuple[int, int, int, int, str]
"""Row, column, rows and columns spanned, text."""
Part = str | tuple[str, int] | list[Cell]
"""A paragraph; a heading of a level; or the cells of a table, row by row."""


def packed(parts: Mapping[str, str | bytes]) -> bytes:
    """A zip archive of these entries."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def relations(targets: Iterable[tuple[str, str]]) -> str:
    """A part of relations: kind and target of rId1, rId2 …"""
    rows = (
        f'<Relationship Id="rId{number}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(targets, 1)
    )
    return f'<Relationships xmlns="{_RELATIONS}">{"".join(rows)}</Relationships>'


def xlsx(
    sheets: Mapping[str, str], *, hidden: Iterable[str] = (), merges: Sequence[str] = (), dimension: str = ""
) -> bytes:
    """A workbook of sheets whose `<row>` elements are given."""
    states = dict.fromkeys(hidden, ' state="hidden"')
    rows = "".join(
        f'<sheet name={quoteattr(name)} sheetId="{number}" r:id="rId{number}"{states.get(name, "")}/>'
        for number, name in enumerate(sheets, 1)
    )
    merged = "".join(f'<mergeCell ref="{merge}"/>' for merge in merges)
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_TYPES}"><Default Extension="xml" ContentType="a/xml"/></Types>',
        "_rels/.rels": relations([("officeDocument", "xl/workbook.xml")]),
        "xl/workbook.xml": f'<workbook xmlns="{_SPREADSHEET}" xmlns:r="{_OFFICE}"><sheets>{rows}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": relations(
            [("worksheet", f"worksheets/sheet{n}.xml") for n in range(1, len(sheets) + 1)] + [("styles", "styles.xml")]
        ),
        "xl/styles.xml": f'<styleSheet xmlns="{_SPREADSHEET}"><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="22"/>'
        "</cellXfs></styleSheet>",
    }
    for number, body in enumerate(sheets.values(), 1):
        parts[f"xl/worksheets/sheet{number}.xml"] = (
            f'<worksheet xmlns="{_SPREADSHEET}">{dimension}<sheetData>{body}</sheetData>'
            f"{f'<mergeCells>{merged}</mergeCells>' if merged else ''}</worksheet>"
        )
    return packed(parts)


def xlsx_rows(rows: Sequence[Sequence[str | float]]) -> str:
    """`<row>` elements of texts and numbers from A1 on."""
    from dtrag.adapters.parsers.rows import column_name

    def cell(reference: str, value: str | float) -> str:
        if isinstance(value, str):
            return f'<c r="{reference}" t="inlineStr"><is><t>{escape(value)}</t></is></c>' if value else ""
        return f'<c r="{reference}"><v>{value}</v></c>'

    return "".join(
        f'<row r="{number}">{"".join(cell(f"{column_name(c)}{number}", value) for c, value in enumerate(row))}</row>'
        for number, row in enumerate(rows, 1)
    )


def _grid(cells: list[Cell]) -> list[list[Cell | None]]:
    """The rows of a table; None where a cell from above or from the left covers the place."""
    height = max(row + spanned for row, _, spanned, _, _ in cells)
    width = max(column + spanned for _, column, _, spanned, _ in cells)
    rows: list[list[Cell | None]] = [[None] * width for _ in range(height)]
    for cell in cells:
        rows[cell[0]][cell[1]] = cell
    return rows


_OASIS = "urn:oasis:names:tc:opendocument:xmlns:"
_NAMES = "".join(
    f' xmlns:{prefix}="{_OASIS}{name}:1.0"'
    for prefix, name in {
        "office": "office", "style": "style", "text": "text", "table": "table", "draw": "drawing"
    }.items()
)  # fmt: skip


def open_document(kind: str, body: str, styles: str = "", title: str = "") -> bytes:
    """An ODT (`kind` text) or ODS (spreadsheet) of the XML of its body and of its automatic styles."""
    return packed(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "content.xml": f"<office:document-content{_NAMES}><office:automatic-styles>{styles}"
            f"</office:automatic-styles><office:body><office:{kind}>{body}</office:{kind}></office:body>"
            "</office:document-content>",
            "meta.xml": f'<office:document-meta{_NAMES} xmlns:dc="http://purl.org/dc/elements/1.1/"><office:meta>'
            f"<dc:title>{escape(title)}</dc:title></office:meta></office:document-meta>",
        }
    )


def open_table(cells: list[Cell], name: str = "T") -> str:
    """A table of a text or a sheet."""

    def cell(place: Cell | None) -> str:
        if place is None:
            return "<table:covered-table-cell/>"
        _, _, rows, columns, text = place
        spans = f'table:number-rows-spanned="{rows}" table:number-columns-spanned="{columns}"'
        return f"<table:table-cell {spans}><text:p>{escape(text)}</text:p></table:table-cell>"

    rows = (f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in _grid(cells))
    return f"<table:table table:name={quoteattr(name)}>{''.join(rows)}</table:table>"


def odt(parts: Iterable[Part], title: str = "") -> bytes:
    """A text of paragraphs, headings and tables."""
    body = []
    for part in parts:
        if isinstance(part, str):
            body.append(f'<text:p text:style-name="P1">{escape(part)}</text:p>')
        elif isinstance(part, list):
            body.append(open_table(part))
        else:
            body.append(f'<text:h text:outline-level="{part[1]}" text:style-name="H">{escape(part[0])}</text:h>')
    return open_document("text", "".join(body), title=title)


def hml(parts: Iterable[Part], title: str = "") -> bytes:
    """A HWPML document of paragraphs, headings and tables."""

    def paragraph(inside: str, level: int = 0) -> str:
        return f'<P ParaShape="{level}" Style="{level}"><TEXT CharShape="0">{inside}</TEXT></P>'

    def char(text: str) -> str:
        return f"<CHAR>{escape(text)}</CHAR>"

    def table(cells: list[Cell]) -> str:
        rows = "".join(
            "<ROW>"
            + "".join(
                f'<CELL RowSpan="{cell[2]}" ColSpan="{cell[3]}"><PARALIST>{paragraph(char(cell[4]))}</PARALIST></CELL>'
                for cell in row
                if cell is not None
            )
            + "</ROW>"
            for row in _grid(cells)
        )
        return f"<TABLE><SHAPEOBJECT/>{rows}</TABLE>"

    body = "".join(
        paragraph(char(part))
        if isinstance(part, str)
        else paragraph(table(part))
        if isinstance(part, list)
        else paragraph(char(part[0]), part[1])
        for part in parts
    )
    shapes = "".join(f'<PARASHAPE Id="{n}" HeadingType="Outline" Level="{n - 1}"/>' for n in range(1, 4))
    styles = "".join(f'<STYLE Id="{n}" Name="{name}"/>' for n, name in enumerate(("바탕글", "장", "절", "항")))
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><HWPML Version="2.8"><HEAD><DOCSUMMARY><TITLE>{escape(title)}</TITLE>'
        f"</DOCSUMMARY><MAPPINGTABLE><PARASHAPELIST>{shapes}</PARASHAPELIST><STYLELIST>{styles}</STYLELIST>"
        f"</MAPPINGTABLE></HEAD><BODY><SECTION>{body}</SECTION></BODY></HWPML>"
    ).encode()


_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
_PRESENTATION = "http://schemas.openxmlformats.org/presentationml/2006/main"


def shape(kind: str, *paragraphs: str) -> str:
    """A shape with paragraphs, in a placeholder of a kind ("" for none)."""
    place = f'<p:ph type="{kind}"/>' if kind else ""
    texts = "".join(f"<a:p><a:r><a:t>{escape(text)}</a:t></a:r></a:p>" for text in paragraphs)
    return f"<p:sp><p:nvSpPr><p:nvPr>{place}</p:nvPr></p:nvSpPr><p:txBody>{texts}</p:txBody></p:sp>"


def slide_table(cells: list[Cell]) -> str:
    """A table on a slide; covered cells are marked."""
    width = len(_grid(cells)[0])
    covered = {
        (cell[0] + down, cell[1] + right): "vMerge" if down else "hMerge"
        for cell in cells
        for down in range(cell[2])
        for right in range(cell[3])
        if down or right
    }
    rows = []
    for number, row in enumerate(_grid(cells)):
        out = ""
        for column in range(width):
            cell = row[column]
            mark = f'{covered[number, column]}="1"' if cell is None else f'rowSpan="{cell[2]}" gridSpan="{cell[3]}"'
            text = "" if cell is None else escape(cell[4])
            out += f"<a:tc {mark}><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>"
        rows.append(f"<a:tr>{out}</a:tr>")
    table = f"<a:graphic><a:graphicData><a:tbl>{''.join(rows)}</a:tbl></a:graphicData></a:graphic>"
    return f"<p:graphicFrame>{table}</p:graphicFrame>"


def pptx(slides: Sequence[str], *, hidden: Iterable[int] = (), notes: Mapping[int, str] | None = None) -> bytes:
    """A presentation of slides with these shapes; `hidden` and `notes` by number, from 1."""
    names = f'xmlns:a="{_DRAWING}" xmlns:p="{_PRESENTATION}" xmlns:r="{_OFFICE}"'
    ids = "".join(f'<p:sldId id="{255 + n}" r:id="rId{n}"/>' for n in range(1, len(slides) + 1))
    parts = {
        "ppt/presentation.xml": f"<p:presentation {names}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(
            ("slide", f"slides/slide{n}.xml") for n in range(1, len(slides) + 1)
        ),
    }
    for number, shapes in enumerate(slides, 1):
        state = ' show="0"' if number in hidden else ""
        tree = f"<p:cSld><p:spTree>{shapes}</p:spTree></p:cSld>"
        parts[f"ppt/slides/slide{number}.xml"] = f"<p:sld {names}{state}>{tree}</p:sld>"
        if notes and number in notes:
            parts[f"ppt/slides/_rels/slide{number}.xml.rels"] = relations(
                [("notesSlide", f"../notesSlides/n{number}.xml")]
            )
            body = f"{shape('sldNum', str(number))}{shape('body', notes[number])}"
            parts[f"ppt/notesSlides/n{number}.xml"] = (
                f"<p:notes {names}><p:cSld><p:spTree>{body}</p:spTree></p:cSld></p:notes>"
            )
    return packed(parts)
