"""The table of formats, and files whose content is not what their name says."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from dtrag.adapters.parsers import formats
from dtrag.errors import ParseFailed

OLE = formats.OLE_MAGIC + bytes(600)


def test_every_row_has_its_module_and_every_suffix_one_row() -> None:
    suffixes = [suffix for row in formats.FORMATS for suffix in row.suffixes]
    assert len(suffixes) == len(set(suffixes))
    for row in formats.FORMATS:
        assert find_spec(f"dtrag.adapters.parsers.{row.module}") is not None


@pytest.mark.parametrize(
    "name",
    ["a.MD", "한글 이름.hwpx", "x/y.PDF", "C:\\docs\\b.Docx", "c.ndjson", "old.hwp", "b.XLSX", "mail.eml", "old.doc"],
)
def test_known_names(name: str) -> None:
    assert formats.knows(name)


@pytest.mark.parametrize("name", ["a", "a.exe", "md", ".pdf", "a.pdf.zip", ""])
def test_unknown_names(name: str) -> None:
    assert not formats.knows(name)
    with pytest.raises(ParseFailed, match="cannot be read"):
        formats.format_of(name)


def test_old_binary_formats_get_advice() -> None:
    with pytest.raises(ParseFailed, match="DOCX"):
        formats.format_of("a.doc")


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(formats, "import_module", absent)
    with pytest.raises(ParseFailed, match=r"XLSX files need an optional part; .* pip install 'dtrag\[spreadsheets\]'"):
        formats.format_of("a.xlsx").load()


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.hwpx", OLE, "name it .hwp"),
        ("a.hwpx", b"HWP Document File V3.00 \x1a\x01", "name it .hwp"),
        ("a.docx", OLE, "save it as DOCX"),
        ("a.xlsx", OLE, "an encrypted file; open it and save it as XLSX"),
        ("a.xls", b"PK\x03\x04rest", "zip archive, not a XLS"),
        ("a.hwp", b"%PDF-1.7 rest", "PDF file, not HWP"),
        ("a.txt", OLE, "binary office file"),
        ("a.pdf", OLE, "binary office file"),
        ("a.pdf", b"PK\x03\x04rest", "zip archive, not a PDF"),
        ("a.pdf", b"hello", "not a PDF"),
        ("a.docx", b"%PDF-1.7 rest", "PDF file, not DOCX; name it .pdf"),
        ("a.docx", b"SCDSA002\0\0", "encrypted by document security of SoftCamp"),
        ("a.pdf", b"\x9b DRMONE  This Document", "encrypted by document security of Fasoo"),
        ("a.hwp", b"<MARKANY_DOCUMENTSAFER>\xc6", "encrypted by document security of MarkAny"),
        ("a.docx", b"hello", "not a DOCX"),
        ("a.html", b"%PDF-1.4\n<html>polyglot</html>", "PDF file, not HTML"),
        ("a.md", b"PK\x03\x04rest", "zip archive, not Markdown"),
        ("a.md", b"", "empty"),
    ],
)
def test_content_that_contradicts_the_name(name: str, data: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(ParseFailed, match=reason):
        formats.check_content(path, formats.format_of(name))


def test_a_pdf_may_begin_with_a_few_other_bytes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\n\njunk\n%PDF-1.4\n")
    formats.check_content(path, formats.format_of("a.pdf"))
