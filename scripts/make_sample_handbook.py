"""Makes the PDF and the DOCX of `examples/tarrowby-handbook/` from the texts in `sample_handbook/` beside this script.

The other two parts of the handbook (Markdown and HTML) are written by hand. The PDF is the same byte for byte
everywhere, the DOCX wherever python-docx and zlib are the same. Run: python scripts/make_sample_handbook.py
"""

from __future__ import annotations

import argparse
import io
import zipfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import docx

from sample_archive import write_archive
from sample_markup import Element, Heading, Item, Table, read_markup
from sample_pdf import render_pdf

TEXTS = Path(__file__).resolve().parent / "sample_handbook"
SAMPLE = Path(__file__).resolve().parents[1] / "examples" / "tarrowby-handbook"
PDF_NAME = "information-security"
DOCX_NAME = "equipment-and-remote-work"
AUTHOR = "Tarrowby Instruments, People Operations"
WRITTEN = datetime(2024, 9, 1)
"""Date of both files; without a time zone, as the core properties of a DOCX are."""


def elements_of(name: str) -> list[Element]:
    """The elements of one text; the first is its title."""
    return list(read_markup((TEXTS / f"{name}.md").read_text(encoding="utf-8")))


def title_of(elements: Sequence[Element]) -> str:
    """The text of the first heading."""
    first = elements[0]
    if not isinstance(first, Heading):
        raise ValueError("a part of the handbook begins with its title: # ...")
    return first.text


def make_pdf(folder: Path) -> Path:
    """Writes the PDF into `folder`."""
    elements = elements_of(PDF_NAME)
    path = folder / f"{PDF_NAME}.pdf"
    date = WRITTEN.strftime("D:%Y%m%d%H%M%SZ")
    path.write_bytes(render_pdf(elements, title=title_of(elements), author=AUTHOR, date=date))
    return path


def make_docx(folder: Path) -> Path:
    """Writes the DOCX into `folder`: built by python-docx, packed again without the time of day."""
    elements = elements_of(DOCX_NAME)
    document = docx.Document()
    properties = document.core_properties
    properties.title, properties.author, properties.last_modified_by = title_of(elements), AUTHOR, AUTHOR
    properties.created = properties.modified = WRITTEN
    properties.comments, properties.language = "", "en"
    for element in elements:
        if isinstance(element, Heading):
            document.add_heading(element.text, level=element.level)
        elif isinstance(element, Item):
            text = element.text.split(". ", 1)[1] if element.numbered else element.text
            document.add_paragraph(text, style="List Number" if element.numbered else "List Bullet")
        elif isinstance(element, Table):
            _add_table(document, element)
        else:
            document.add_paragraph(element.text)
    packed = io.BytesIO()
    document.save(packed)
    path = folder / f"{DOCX_NAME}.docx"
    with zipfile.ZipFile(packed) as archive:
        write_archive(path, [(name, archive.read(name)) for name in archive.namelist()])
    return path


def _add_table(document: docx.document.Document, table: Table) -> None:
    grid = document.add_table(rows=0, cols=len(table.rows[0]), style="Table Grid")
    for number, cells in enumerate(table.rows):
        for cell, text in zip(grid.add_row().cells, cells, strict=True):
            cell.paragraphs[0].add_run(text).bold = number == 0


def main() -> None:
    """Writes both files, by default in their place in `examples/`."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--output", type=Path, default=SAMPLE, help="folder to write to")
    folder: Path = options.parse_args().output
    for path in (make_pdf(folder), make_docx(folder)):
        print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
