"""The sample book of the invented university: the same regulations and articles from every format."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtrag.adapters.parsers.formats import format_of
from dtrag.core.documents import ChunkedDocument
from dtrag.regulations.korean.structure import split
from tests.book_formats import as_markdown, book, office_parts, write_docx, write_pdf
from tests.book_formats import provisions as provisions_of
from tests.office_files import hml, odt
from tests.ole_writer import hwp

FOLDER = Path(__file__).parents[2] / "examples" / "hanbit-university"
Provision = tuple[str, str, tuple[str, ...], dict[str, object], str]

pytestmark = [
    pytest.mark.skipif(not (FOLDER / "regulations.hwpx").exists(), reason="make the samples first"),
]


def provisions(name: str) -> list[Provision]:
    """Code, name, breadcrumb, metadata and the text without white space, which differs between the formats."""
    found: list[Provision] = []
    for document in format_of(name).load()(FOLDER / name, name):
        for one in split(document) or ():
            for chunk in one.chunks:
                text = "".join(chunk.text.split())
                found.append((one.document.part, one.document.title, chunk.breadcrumb, dict(chunk.metadata), text))
    return found


def test_both_formats_give_the_same() -> None:
    from_hwpx, from_markdown = provisions("regulations.hwpx"), provisions("regulations.md")
    assert from_hwpx == from_markdown
    articles = [row for row in from_hwpx if row[3]["kind"] == "article"]
    assert len(articles) >= 40
    assert len({row[0] for row in articles}) >= 5


def regulations(path: Path) -> list[ChunkedDocument]:
    return [one for document in format_of(path.name).load()(path, path.name) for one in split(document) or ()]


def test_other_formats_give_the_same_provisions(tmp_path: Path) -> None:
    originals = regulations(FOLDER / "regulations.hwpx")
    expected = provisions_of(originals)
    assert len(expected) >= 100
    parts = list(book(originals))
    (tmp_path / "book.md").write_text(as_markdown(parts), "utf-8")
    write_docx(parts, tmp_path / "book.docx")
    for name, write in (("book.odt", odt), ("book.hml", hml), ("book.hwp", hwp)):
        (tmp_path / name).write_bytes(write(office_parts(parts)))
    # Running headers, page numbers, lines and paragraphs broken at the margins, and tables without lines.
    for name, between_words in (("between.pdf", True), ("inside.pdf", False)):
        write_pdf(parts, tmp_path / name, header="한빛대학교 규정집", between_words=between_words)
    for path in sorted(tmp_path.iterdir()):
        read = provisions_of(regulations(path))
        assert read.keys() == expected.keys(), path.name
        assert read == expected, path.name
