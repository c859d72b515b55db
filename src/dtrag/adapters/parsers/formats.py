"""The formats that can be read: one table, and what a file's first bytes say about its name.

A format is one module of this package with `parse(path, name) -> Iterator[ParsedDocument]`; the module is imported
when the first file of that format comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Literal, cast

from dtrag.core.documents import ParsedDocument
from dtrag.core.statements import Statement, stated
from dtrag.errors import ParseFailed

Container = Literal["text", "pdf", "zip", "ole", "any"]
Parse = Callable[[Path, str], Iterator[ParsedDocument]]


@dataclass(frozen=True, slots=True)
class Format:
    """A row of the table. `streams`: read line by line in constant memory, so that a file may be of any size.

    `extra`: the optional part of the package that the module needs.
    """

    module: str
    suffixes: tuple[str, ...]
    content_type: str
    label: str
    container: Container = "text"
    streams: bool = False
    extra: str = ""

    def load(self) -> Parse:
        """The `parse` function of the format's module. Raises `ParseFailed` when the extra is not installed."""
        try:
            return cast("Parse", import_module(f"{__package__}.{self.module}").parse)
        except ModuleNotFoundError as error:
            if not self.extra:
                raise
            raise extra_missing(self) from error


def extra_missing(chosen: Format) -> ParseFailed:
    """The error of a format whose library is not installed."""
    text = "{label} files need an optional part; install it with: pip install 'dtrag[{extra}]'"
    return ParseFailed(stated("format_extra", text, label=chosen.label, extra=chosen.extra))


_OPEN = "application/vnd.oasis.opendocument"
_OFFICE = "application/vnd.openxmlformats-officedocument"
FORMATS: tuple[Format, ...] = (
    Format("markdown", (".md", ".markdown"), "text/markdown", "Markdown"),
    Format("text", (".txt", ".text"), "text/plain", "plain text"),
    Format("html", (".html", ".htm", ".xhtml"), "text/html", "HTML"),
    Format("pdf", (".pdf",), "application/pdf", "PDF", "pdf"),
    Format("docx", (".docx",), f"{_OFFICE}.wordprocessingml.document", "DOCX", "zip"),
    Format("pptx", (".pptx",), f"{_OFFICE}.presentationml.presentation", "PPTX", "zip"),
    Format("odf", (".odt",), f"{_OPEN}.text", "ODT", "zip"),
    Format("hwpx", (".hwpx",), "application/hwp+zip", "HWPX", "zip"),
    Format("hwp", (".hwp",), "application/vnd.hancom.hwp", "HWP", "any", extra="hwp"),
    Format("hwpml", (".hml",), "application/vnd.hancom.hml", "HWPML"),
    Format("eml", (".eml",), "message/rfc822", "EML"),
    Format("sheets", (".xlsx", ".xlsm"), f"{_OFFICE}.spreadsheetml.sheet", "XLSX", "zip", extra="spreadsheets"),
    Format("sheets", (".xls",), "application/vnd.ms-excel", "XLS", "ole", extra="spreadsheets"),
    Format("odf", (".ods",), f"{_OPEN}.spreadsheet", "ODS", "zip"),
    Format("csv", (".csv", ".tsv"), "text/csv", "CSV", streams=True),
    Format("jsonl", (".jsonl", ".ndjson"), "application/json", "JSON lines", streams=True),
    Format("paths", (".json",), "application/json", "JSON"),
    Format("paths", (".xml",), "application/xml", "XML"),
    Format("pictures", (".png",), "image/png", "PNG", "any"),
    Format("pictures", (".jpg", ".jpeg"), "image/jpeg", "JPEG", "any"),
    Format("pictures", (".tif", ".tiff"), "image/tiff", "TIFF", "any"),
)
BY_SUFFIX = {suffix: row for row in FORMATS for suffix in row.suffixes}

SAVE_AS = {
    ".doc": stated("file_old_doc", "it is an old binary Word file; open it in Word or LibreOffice and save it as DOCX"),
}
"""Suffixes we recognise only to say what to do: a file of these is reported with that advice, not passed over."""

OLE_MAGIC = bytes.fromhex("d0cf11e0a1b11ae1")
HWP3_MAGIC = b"HWP Document File"
PDF_MAGIC = b"%PDF-"
ZIP_MAGICS = (b"PK\x03\x04", b"PK\x05\x06")
PROTECTED = {b"SCDSA00": "SoftCamp", b"\x9b DRMONE": "Fasoo", b"<MARKANY_DOCUMENTSAFER>": "MarkAny"}
"""First bytes of files, of any name, that a product for document security has encrypted, and its maker."""
PDF_HEADER_WINDOW = 1024
"""Readers accept junk before `%PDF-` within the first 1,024 bytes (ISO 32000-1, annex H.3.4.1)."""


def suffix_of(name: str) -> str:
    """The lower-case suffix of a display name, which may come from another operating system."""
    return PurePosixPath(name.replace("\\", "/")).suffix.lower()


def knows(name: str) -> bool:
    """Whether a file of this name is read, or at least answered with advice."""
    suffix = suffix_of(name)
    return suffix in BY_SUFFIX or suffix in SAVE_AS


def is_picture(name: str) -> bool:
    """Whether a file of this name has text for OCR (text recognition) only."""
    return BY_SUFFIX[suffix_of(name)].module == "pictures" if suffix_of(name) in BY_SUFFIX else False


def format_of(name: str) -> Format:
    """The format that the suffix of `name` stands for. Raises `ParseFailed`."""
    suffix = suffix_of(name)
    if suffix in SAVE_AS:
        raise ParseFailed(SAVE_AS[suffix])
    if suffix not in BY_SUFFIX:
        known = ", ".join(BY_SUFFIX)
        if not suffix:
            raise ParseFailed(
                stated("file_suffix_missing", "files without a suffix cannot be read; known: {known}", known=known)
            )
        raise ParseFailed(
            stated(
                "file_format_unknown", "files named {suffix} cannot be read; known: {known}", suffix=suffix, known=known
            )
        )
    return BY_SUFFIX[suffix]


def check_content(path: Path, chosen: Format) -> None:
    """Raise `ParseFailed` when the file is empty or its first bytes contradict the format that its name promises."""
    with path.open("rb") as file:
        head = file.read(PDF_HEADER_WINDOW + len(PDF_MAGIC))
    if not head:
        raise ParseFailed(stated("file_empty", "no text in it: the file is empty"))
    for magic, maker in PROTECTED.items():
        if head.startswith(magic):
            text = "it is encrypted by document security of {maker}; decrypt it there first"
            raise ParseFailed(stated("file_protected", text, maker=maker))
    is_ole = head.startswith((OLE_MAGIC, HWP3_MAGIC))
    if is_ole and chosen.container not in ("ole", "any"):
        raise ParseFailed(_binary_office_reason(chosen))
    if chosen.container == "pdf":
        if PDF_MAGIC not in head:
            raise _other_kind(head, chosen)
    elif head.startswith(PDF_MAGIC):
        raise ParseFailed(stated("file_is_pdf", "it is a PDF file, not {label}; name it .pdf", label=chosen.label))
    if (chosen.container == "zip" and not head.startswith(ZIP_MAGICS)) or (chosen.container == "ole" and not is_ole):
        raise _other_kind(head, chosen)
    if chosen.container == "text" and head.startswith(ZIP_MAGICS):
        raise ParseFailed(stated("file_is_zip", "it is a zip archive, not {label}", label=chosen.label))


def _binary_office_reason(chosen: Format) -> Statement:
    if chosen.module == "hwpx":
        return stated("file_is_hwp", "it is a binary HWP file, not HWPX; name it .hwp")
    if chosen.container == "zip":
        return stated(
            "file_old_or_encrypted",
            "it is an old binary or an encrypted file; open it and save it as {label} without a password",
            label=chosen.label,
        )
    return stated(
        "file_is_office",
        "it is a binary office file (HWP, DOC, XLS …), not {label}; save it as HWPX, DOCX or PDF",
        label=chosen.label,
    )


def _other_kind(head: bytes, chosen: Format) -> ParseFailed:
    label = chosen.label
    if head.startswith(ZIP_MAGICS):
        return ParseFailed(stated("file_zip_not_label", "it is a zip archive, not a {label} file", label=label))
    if head.startswith(PDF_MAGIC):
        return ParseFailed(stated("file_pdf_not_label", "it is a PDF file, not a {label} file", label=label))
    return ParseFailed(stated("file_not_label", "it is something else, not a {label} file", label=label))
