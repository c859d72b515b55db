"""Hostile and broken files, made here and sent through the parser process: each fails alone, with a reason, or is read.

One process object takes them all, and reads a good file after every one of them.
"""

from __future__ import annotations

import io
import re
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import docx
import pytest
from pypdf import PdfReader, PdfWriter

from dtrag.adapters.parsers import ocr
from dtrag.adapters.parsers.formats import OLE_MAGIC, format_of
from dtrag.adapters.parsers.process import ParserProcess
from dtrag.core.documents import ParsedDocument
from dtrag.core.originals import SoughtText
from dtrag.errors import ParseFailed
from dtrag.ingestion import chunking
from dtrag.regulations.korean import structure
from tests.growth import grows_linearly
from tests.hostile_files import GROWING
from tests.office_files import open_document, xlsx, xlsx_rows
from tests.ole_writer import hwp, xls

REFUSED = re.compile(
    "it is|its |no text|unsafe archive|the (?:file|archive|PDF|XML|picture)|something|line |it has|[0-9,]+ of "
)


@pytest.fixture(scope="module")
async def parser() -> AsyncIterator[ParserProcess]:
    made = ParserProcess(memory_mb=512, seconds=60, max_file_mb=64)
    yield made
    await made.close()


async def outcome(parser: ParserProcess, folder: Path, name: str, data: bytes) -> tuple[list[ParsedDocument], str]:
    """The documents of a hostile file and the reason why it failed ("" if it did not); then a good file is read."""
    path = folder / "input"
    path.write_bytes(data)
    documents: list[ParsedDocument] = []
    reason = ""
    try:
        async for document in parser.parse(path, name):
            documents.append(document)  # noqa: PERF401 - the documents before a failure count
    except ParseFailed as failed:
        reason = str(failed)
        assert REFUSED.match(reason), reason
        assert "Traceback" not in reason
        assert len(reason) < 300
    for document in documents:
        check(document)
    path.write_text("good")
    assert [document.text async for document in parser.parse(path, "good.txt")] == ["good"]
    return documents, reason


def check(document: ParsedDocument) -> None:
    """The text can be stored, and its blocks leave only white space out."""
    assert not {"\x00", "\r"} & set(document.text)
    document.text.encode("utf-8")
    position = 0
    for block in document.blocks:
        assert position <= block.start < block.end <= len(document.text)
        assert not document.text[position : block.start].strip()
        position = block.end
    assert not document.text[position:].strip()


# --- PDF, written by hand so that it can be wrong in chosen places


def pdf(objects: list[bytes], trailer: bytes = b"") -> bytes:
    out = b"%PDF-1.4\n"
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    end = b"trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF" % (size, trailer, len(out))
    return out + b"xref\n0 %d\n0000000000 65535 f \n" % size + table + end


def stream(data: bytes, entries: bytes = b"", length: int | None = None) -> bytes:
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(data) if length is None else length, entries, data)


def show(*lines: bytes) -> bytes:
    return b"BT /F1 12 Tf 14 TL 72 720 Td " + b" ".join(b"(%s) Tj T*" % line for line in lines) + b" ET"


def pages(*contents: bytes, kids: bytes | None = None, count: int | None = None) -> list[bytes]:
    numbers = [4 + 2 * index for index in range(len(contents))]
    kids = b" ".join(b"%d 0 R" % number for number in numbers) if kids is None else kids
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(contents) if count is None else count),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, content in zip(numbers, contents, strict=True):
        font = b"/Resources << /Font << /F1 3 0 R >> >>"
        objects.append(b"<< /Type /Page /Parent 2 0 R %s /Contents %d 0 R >>" % (font, number + 1))
        objects.append(content)
    return objects


GOOD_PDF = pdf(pages(stream(show(b"Leave infor-", b"mation here.")), stream(show(b"Second page."))))


def encrypted(user: str) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(GOOD_PDF)))
    writer.encrypt(user_password=user, owner_password="owner", algorithm="RC4-128")
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


async def test_good_pdf_has_pages(parser: ParserProcess, tmp_path: Path) -> None:
    [document], reason = await outcome(parser, tmp_path, "a.pdf", GOOD_PDF)
    assert reason == ""
    assert document.text == "Leave information here.\n\nSecond page."
    assert document.page_starts == ((0, 1), (25, 2))
    assert document.metadata == {"pages": 2}


PDFS = {
    "encrypted": (encrypted("secret"), "encrypted"),
    "cyclic page tree": (pdf(pages(stream(show(b"x")), kids=b"2 0 R 4 0 R", count=2)), "damaged"),
    "huge declared length": (pdf(pages(stream(show(b"x"), length=1 << 30))), "damaged"),
    "flate bomb": (pdf(pages(stream(zlib.compress(bytes(200 << 20), 9), b"/Filter /FlateDecode"))), "damaged"),
    "too many pages": (pdf(pages(stream(show(b"x")), kids=b"4 0 R " * 20_001, count=20_001)), "20,001 pages"),
    "scanned": (pdf(pages(stream(b"0 0 100 100 re f"))), "OCR"),
    "no pages": (pdf(pages()), "OCR"),
    "nothing but a header": (b"%PDF-1.7\n", "damaged"),
    "zip inside": (b"PK\x03\x04" + GOOD_PDF[9:], "zip archive"),
}


@pytest.mark.parametrize("case", PDFS)
async def test_hostile_pdf(case: str, parser: ParserProcess, tmp_path: Path) -> None:
    data, expected = PDFS[case]
    documents, reason = await outcome(parser, tmp_path, "a.pdf", data)
    assert documents == []
    assert expected in reason


MANY_TIMES = b" ".join([b"/X Do"] * 20)
FORM = b"/Type /XObject /Subtype /Form /BBox [0 0 600 800] /Resources << /XObject << /X %d 0 R >> >>"
DRAWN = PDFS | {
    "drawn for ever": (
        pdf(
            [
                b"<< /Type /Catalog /Pages 2 0 R >>",
                b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
                b"<< /Type /Page /Parent 2 0 R /Resources << /XObject << /X 5 0 R >> >> /Contents 4 0 R >>",
                stream(MANY_TIMES),
                *(stream(MANY_TIMES, FORM % number) for number in range(6, 14)),
                stream(b"0 0 600 800 re f", b"/Type /XObject /Subtype /Form /BBox [0 0 600 800]"),
            ]
        ),
        "",
    ),
    "a giant picture": (
        pdf(
            [
                b"<< /Type /Catalog /Pages 2 0 R >>",
                b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
                b"<< /Type /Page /Parent 2 0 R /Resources << /XObject << /X 5 0 R >> >> /Contents 4 0 R >>",
                stream(b"600 0 0 800 0 0 cm /X Do"),
                stream(
                    zlib.compress(bytes(1 << 20)),
                    b"/Type /XObject /Subtype /Image /Width 60000 /Height 60000 /BitsPerComponent 8"
                    b" /ColorSpace /DeviceRGB /Filter /FlateDecode",
                ),
            ]
        ),
        "",
    ),
}


@pytest.mark.parametrize("case", DRAWN)
async def test_a_page_of_a_hostile_pdf(case: str, parser: ParserProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a picture of a bounded size or a reason, and the next one is not concerned."""
    monkeypatch.setattr("dtrag.adapters.parsers.process.ASKED_SECONDS", 3)
    data, _ = DRAWN[case]
    sought = [SoughtText(1, "", "Leave information", "")]
    for asked in (parser.picture(data, 1), parser.places(data, sought)):
        try:
            answer = await asked
        except ParseFailed as failed:
            assert REFUSED.match(str(failed)) or str(failed).startswith("it took longer than 3 s"), failed
        else:
            assert len(answer) < 1 << 24
    assert (await parser.picture(GOOD_PDF, 1)).startswith(b"\x89PNG")
    assert [len(boxes) for boxes in (await parser.places(GOOD_PDF, sought))[1]] == [2]


async def test_pdf_whose_tables_of_objects_form_a_loop(parser: ParserProcess, tmp_path: Path) -> None:
    start = pdf(pages(stream(show(b"x")))).index(b"xref")
    documents, reason = await outcome(parser, tmp_path, "a.pdf", pdf(pages(stream(show(b"x"))), b"/Prev %d" % start))
    assert reason or documents[0].text == "x"


async def test_pdf_with_the_empty_password_is_read(parser: ParserProcess, tmp_path: Path) -> None:
    [document], _ = await outcome(parser, tmp_path, "a.pdf", encrypted(""))
    assert document.text.startswith("Leave information")


@pytest.mark.parametrize("tenths", range(10))
async def test_truncated_pdf(tenths: int, parser: ParserProcess, tmp_path: Path) -> None:
    documents, reason = await outcome(parser, tmp_path, "a.pdf", GOOD_PDF[: len(GOOD_PDF) * tenths // 10])
    assert bool(documents) != bool(reason)


# --- pictures


def png(width: int, height: int, data: bytes) -> bytes:
    def part(kind: bytes, body: bytes) -> bytes:
        return len(body).to_bytes(4) + kind + body + zlib.crc32(kind + body).to_bytes(4)

    head = part(b"IHDR", width.to_bytes(4) + height.to_bytes(4) + bytes([8, 0, 0, 0, 0]))
    return b"\x89PNG\r\n\x1a\n" + head + part(b"IDAT", zlib.compress(data, 9)) + part(b"IEND", b"")


def tiff(count: int, loop: bool = False) -> bytes:
    """Pages of one pixel; with `loop` the last is followed by the first."""
    fields = ((256, 4, 1), (257, 4, 1), (258, 4, 8), (259, 4, 1), (262, 4, 1), (273, 4, 8), (279, 4, 1))
    size = 2 + 12 * len(fields) + 4
    out = b"II*\0" + (12).to_bytes(4, "little") + b"\xff\0\0\0"
    for number in range(count):
        following = 12 + size * (number + 1) if number + 1 < count else 12 * loop
        out += len(fields).to_bytes(2, "little")
        out += b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in fields)
        out += following.to_bytes(4, "little")
    return out


PICTURES = {
    "bomb": ("a.png", png(60_000, 60_000, bytes(10 << 20)), "60000 x 60000 pixels"),
    "no size": ("a.png", png(0, 0, b""), "damaged|cannot be read"),
    "too little data": ("a.png", png(400, 400, bytes(9_000)), "damaged|cannot be read"),
    "nothing in it": ("a.png", png(300, 300, bytes([0, *[255] * 300]) * 300), "found none"),
    "half": ("a.png", png(300, 300, bytes(301 * 300))[:60], "damaged|cannot be read"),
    "something else": ("a.jpg", b"\xff\xd8\xff" + bytes(9_000), "damaged|cannot be read"),
    "another kind": ("a.tif", png(9, 9, bytes(90)), "damaged"),
    "many pages": ("a.tiff", tiff(10_000), "10,000 pages"),
    "pages in a loop": ("a.tiff", tiff(3, loop=True), "found none|damaged|cannot be read"),
}


@pytest.mark.parametrize("case", PICTURES)
async def test_hostile_picture(case: str, parser: ParserProcess, tmp_path: Path) -> None:
    name, data, expected = PICTURES[case]
    documents, reason = await outcome(parser, tmp_path, name, data)
    assert documents == []
    assert re.search(expected if ocr.is_usable() else "tesseract-ocr-kor", reason), reason


async def test_a_scanned_page_that_is_too_large(parser: ParserProcess, tmp_path: Path) -> None:
    entries = b"/Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8"
    resources = b"/Resources << /XObject << /I 5 0 R >> >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 1000000 1000000] /Contents 4 0 R %s >>" % resources,
        stream(b"1000000 0 0 1000000 0 0 cm /I Do"),
        stream(b"\x00", entries),
    ]
    documents, reason = await outcome(parser, tmp_path, "a.pdf", pdf(objects))
    assert documents == []
    assert ("too large" if ocr.is_usable() else "tesseract-ocr-kor") in reason


# --- DOCX and HWPX


def word(**changed: bytes) -> bytes:
    """A DOCX whose `document` (word/document.xml) or `extra` entry is replaced."""
    source = io.BytesIO()
    made = docx.Document()
    made.add_paragraph("body text")
    made.save(source)
    target = io.BytesIO()
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.namelist():
            data = changed["document"] if entry == "word/document.xml" and "document" in changed else old.read(entry)
            if entry == "word/_rels/document.xml.rels" and "relation" in changed:
                data = data.replace(b"</Relationships>", changed["relation"] + b"</Relationships>")
            new.writestr(entry, data)
    return target.getvalue()


def zipped(name: str | zipfile.ZipInfo, data: bytes, count: int = 0) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(name, data)
        for number in range(count):
            file.writestr(f"{number}", b"")
    return buffer.getvalue()


def link() -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo("word/document.xml")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    return entry


XXE = b'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><r>&x;</r>'
LAUGHS = b'<!DOCTYPE r [<!ENTITY a "ha">' + b"".join(
    b'<!ENTITY %c "%s">' % (ord("b") + n, b"&%c;" % (ord("a") + n) * 10) for n in range(9)
)
LAUGHS += b"]><r>&j;</r>"
ARCHIVES = {
    "zip bomb": (zipped("word/document.xml", bytes(100 << 20)), "unsafe archive"),
    "many entries": (zipped("word/document.xml", b"", 12_000), "unsafe archive"),
    "name that leads out": (zipped("../../evil", b"x"), "unsafe archive"),
    "absolute name": (zipped("/etc/evil", b"x"), "unsafe archive"),
    "symbolic link": (zipped(link(), b"/etc/passwd"), "unsafe archive"),
    "half an archive": (word()[:9_000], "damaged"),
}


@pytest.mark.parametrize("name", ["a.docx", "a.hwpx", "a.pptx", "a.odt", "a.xlsx"])
@pytest.mark.parametrize("case", ARCHIVES)
async def test_hostile_archive(case: str, name: str, parser: ParserProcess, tmp_path: Path) -> None:
    data, expected = ARCHIVES[case]
    documents, reason = await outcome(parser, tmp_path, name, data)
    assert documents == []
    assert expected in reason


@pytest.mark.parametrize("document", [XXE, LAUGHS, XXE[21:].decode().encode("utf-16")])
async def test_entities_are_refused(document: bytes, parser: ParserProcess, tmp_path: Path) -> None:
    documents, reason = await outcome(parser, tmp_path, "a.docx", word(document=document))
    assert documents == []
    assert "document type declaration" in reason


@pytest.mark.parametrize("document", [b"", b"<a", b"<a/>", b"<a>" * 100_000])
async def test_broken_xml(document: bytes, parser: ParserProcess, tmp_path: Path) -> None:
    documents, reason = await outcome(parser, tmp_path, "a.docx", word(document=document))
    assert documents == []
    assert reason


async def test_external_relations_are_not_followed(parser: ParserProcess, tmp_path: Path) -> None:
    kind = b"http://schemas.openxmlformats.org/officeDocument/2006/relationships/attachedTemplate"
    for target in (b"file:///etc/passwd", b"http://169.254.169.254/"):
        relation = b'<Relationship Id="rId99" Type="%s" Target="%s" TargetMode="External"/>' % (kind, target)
        [document], _ = await outcome(parser, tmp_path, "a.docx", word(relation=relation))
        assert document.text == "body text"


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("a.hwpx", "name it .hwp"),
        ("a.docx", "save it as DOCX"),
        ("a.doc", "save it as DOCX"),
        ("a.odt", "save it as ODT"),
    ],
)
async def test_old_binary_files(name: str, advice: str, parser: ParserProcess, tmp_path: Path) -> None:
    _, reason = await outcome(parser, tmp_path, name, OLE_MAGIC + bytes(4_000))
    assert advice in reason


# --- text

KOREAN = "학사 규정 제15조"
TEXTS = {
    "CP949": KOREAN.encode("cp949"),
    "UTF-16": KOREAN.encode("utf-16"),
    "UTF-16 without a mark": KOREAN.encode("utf-16-le"),
    "UTF-8 with a mark": KOREAN.encode("utf-8-sig"),
    "decomposed": unicodedata.normalize("NFD", KOREAN).encode(),
    "NUL": KOREAN[:3].encode() + b"\x00" + KOREAN[3:].encode(),
    "lone surrogate": KOREAN.encode() + b"\xed\xa0\x80",
}


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html"])
@pytest.mark.parametrize("case", TEXTS)
async def test_text_in_odd_encodings(case: str, name: str, parser: ParserProcess, tmp_path: Path) -> None:
    [document], _ = await outcome(parser, tmp_path, name, TEXTS[case])
    assert document.text == KOREAN


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.csv", "a.jsonl", "a.pdf", "a.docx", "a.hwpx"])
async def test_zero_bytes(name: str, parser: ParserProcess, tmp_path: Path) -> None:
    _, reason = await outcome(parser, tmp_path, name, b"")
    assert reason.startswith("no text in it")


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.csv", "a.jsonl"])
async def test_ten_megabytes_on_one_line(name: str, parser: ParserProcess, tmp_path: Path) -> None:
    documents, reason = await outcome(parser, tmp_path, name, b"word " * 2_000_000)
    if name in ("a.csv", "a.jsonl"):
        assert reason
    else:
        assert len(documents[0].text) == 10_000_000 - 1


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.html", b"<div>" * 100_000 + b"x", "nested too deeply"),
        ("a.md", b"> " * 100_000 + b"x", "nested"),
        ("a.jsonl", b'{"text": ' + b"[" * 100_000, "nested too deeply"),
        ("a.json", b"[" * 100_000, "nested too deeply"),
        ("a.xml", b"<a>" * 100_000, "damaged"),
        ("a.xml", XXE, "document type declaration"),
        ("a.hml", LAUGHS, "document type declaration"),
        ("a.csv", b"a," * 1_000_000 + b"\n" + b"1," * 1_000_000, "columns"),
        ("a.txt", bytes(range(256)) * 1_000, "encodings tried"),
        ("a.html", GOOD_PDF + b"<html><p>polyglot</p></html>", "PDF file, not HTML"),
    ],
)
async def test_hostile_text(name: str, data: bytes, expected: str, parser: ParserProcess, tmp_path: Path) -> None:
    documents, reason = await outcome(parser, tmp_path, name, data)
    assert documents == []
    assert expected in reason


# --- spreadsheets, e-mail and binary HWP

REPEATED = (
    '<table:table-row table:number-rows-repeated="1048576"><table:table-cell table:number-columns-repeated="16384">'
    "<text:p>x</text:p></table:table-cell></table:table-row>"
)
FAR = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
WIDE = '<dimension ref="A1:XFD1048576"/>'
MAIL = b"Subject: s\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
PIECE = b"--b\r\nContent-Type: text/plain\r\nContent-Disposition: attachment; filename=%d.txt\r\n\r\ntext\r\n"
INSIDE = b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n"
OFFICE = {
    "a sheet that says it is enormous": ("a.xlsx", xlsx({"S": xlsx_rows([["k", 1]])}, dimension=WIDE), ""),
    "two cells that are far apart": ("a.xlsx", xlsx({"S": FAR}), "more than 512 MiB of memory"),
    "merged cells over the whole sheet": (
        "a.xlsx",
        xlsx({"S": xlsx_rows([["k", 1]])}, merges=["A1:XFD1048576"] * 9_999),
        "",
    ),
    "half a workbook": ("a.xlsx", xlsx({"S": xlsx_rows([["k", 1]])})[:1_500], "damaged"),
    "no workbook": ("a.xlsx", zipped("a.txt", b"x"), "not a complete spreadsheet"),
    "entities of a workbook": ("a.xlsx", zipped("xl/workbook.xml", LAUGHS), "document type declaration"),
    "entities of a sheet": ("a.ods", zipped("content.xml", LAUGHS), "document type declaration"),
    "entities of a presentation": ("a.pptx", zipped("ppt/presentation.xml", XXE), "document type declaration"),
    "half an old workbook": ("a.xls", xls({"S": [["k", 1.0]]})[:1_200], "spreadsheet"),
    "an old workbook of another kind": ("a.xls", hwp(["text"]), "spreadsheet"),
    "cells of an open sheet repeated": (
        "a.ods",
        open_document("spreadsheet", "<table:table>" + REPEATED * 2_000 + "</table:table>"),
        "more than 2,000 columns",
    ),
    "10,000 attachments": ("a.eml", MAIL + b"".join(PIECE % n for n in range(10_000)) + b"--b--", ""),
    "10,000 parts in each other": ("a.eml", b"".join(INSIDE % (n, n) for n in range(10_000)), "nested too deeply"),
    "messages in messages": ("a.eml", b"Content-Type: message/rfc822\r\n\r\n" * 200 + b"Subject: s\r\n\r\ntext", ""),
    "half a message": ("a.eml", MAIL + PIECE % 1, ""),
    "HWP with a password": ("a.hwp", hwp(["text"], flags=3), "encrypted"),
    "half a HWP file": ("a.hwp", hwp(["text"])[:2_000], "not a complete HWP"),
    "HWP that unpacks to much": ("a.hwp", hwp(["가" * 200_000] * 500), "not a complete HWP"),
    "nothing but the container": ("a.hwp", OLE_MAGIC + bytes(4_000), "not a complete HWP"),
    "HWP is read in the process": ("a.hwp", hwp(["text"]), ""),
}


@pytest.mark.parametrize("case", OFFICE)
async def test_hostile_office_files(case: str, parser: ParserProcess, tmp_path: Path) -> None:
    name, data, expected = OFFICE[case]
    documents, reason = await outcome(parser, tmp_path, name, data)
    assert expected in reason
    assert bool(documents) == (not expected), reason
    assert len(documents) <= 101


# --- what costs much


def cut(path: Path, name: str) -> tuple[int, int]:
    """Passages of a file, and the characters that are stored with them. Read in this process."""
    passages = stored = 0
    try:
        for document in format_of(name).load()(path, name):
            for part in structure.split(document) or [chunking.split(document)]:
                passages += len(part.chunks)
                stored += sum(len(chunk.text) + sum(map(len, chunk.breadcrumb)) for chunk in part.chunks)
    except ParseFailed as failed:
        assert REFUSED.match(str(failed)), failed
    return passages, stored


@pytest.mark.parametrize("case", GROWING)
def test_time_and_passages_grow_with_the_size(case: str, tmp_path: Path) -> None:
    name, make = GROWING[case]
    sizes = (1_000, 4_000)
    for size in sizes:
        (tmp_path / f"{size}").write_bytes(make(size))
    small, large = (cut(tmp_path / f"{size}", name) for size in sizes)
    assert large[0] <= 5 * small[0] + 20
    assert large[1] <= 5 * small[1] + 20_000
    assert grows_linearly(lambda size: cut(tmp_path / f"{size}", name), sizes[0])


def test_headings_without_text_make_few_passages(tmp_path: Path) -> None:
    for case in ("headings without text", "HTML headings", "Word headings", "HWPX headings"):
        name, make = GROWING[case]
        (tmp_path / "file").write_bytes(make(5_000))
        assert cut(tmp_path / "file", name)[0] < 50, case
