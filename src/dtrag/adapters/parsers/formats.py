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

Container = Literal["text", "pdf", "zip"]
Parse = Callable[[Path, str], Iterator[ParsedDocument]]


@dataclass(frozen=True, slots=True)
class Format:
    """A row of the table. `streams`: read line by line in constant memory, so that a file may be of any size."""

    module: str
    suffixes: tuple[str, ...]
    content_type: str
    label: str
    container: Container = "text"
    streams: bool = False

    def load(self) -> Parse:
        """The `parse` function of the format's module."""
        return cast("Parse", import_module(f"{__package__}.{self.module}").parse)


FORMATS: tuple[Format, ...] = (
    Format("markdown", (".md", ".markdown"), "text/markdown", "Markdown"),
    Format("text", (".txt", ".text"), "text/plain", "plain text"),
    Format("html", (".html", ".htm", ".xhtml"), "text/html", "HTML"),
    Format("pdf", (".pdf",), "application/pdf", "PDF", container="pdf"),
    Format(
        "docx",
        (".docx",),
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "DOCX",
        container="zip",
    ),
    Format("hwpx", (".hwpx",), "application/hwp+zip", "HWPX", container="zip"),
    Format("csv", (".csv", ".tsv"), "text/csv", "CSV", streams=True),
    Format("jsonl", (".jsonl", ".ndjson"), "application/json", "JSON lines", streams=True),
)
BY_SUFFIX = {suffix: row for row in FORMATS for suffix in row.suffixes}

SAVE_AS = {
    ".hwp": stated("file_old_hwp", "it is an old binary HWP file; open it in Hangul and save it as HWPX"),
    ".doc": stated("file_old_doc", "it is an old binary Word file; open it in Word or LibreOffice and save it as DOCX"),
}
"""Suffixes we recognise only to say what to do: a file of these is reported with that advice, not passed over."""

OLE_MAGIC = bytes.fromhex("d0cf11e0a1b11ae1")
HWP3_MAGIC = b"HWP Document File"
PDF_MAGIC = b"%PDF-"
ZIP_MAGICS = (b"PK\x03\x04", b"PK\x05\x06")
PDF_HEADER_WINDOW = 1024
"""Readers accept junk before `%PDF-` within the first 1,024 bytes (ISO 32000-1, annex H.3.4.1)."""


def suffix_of(name: str) -> str:
    """The lower-case suffix of a display name, which may come from another operating system."""
    return PurePosixPath(name.replace("\\", "/")).suffix.lower()


def knows(name: str) -> bool:
    """Whether a file of this name is read, or at least answered with advice."""
    suffix = suffix_of(name)
    return suffix in BY_SUFFIX or suffix in SAVE_AS


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
    if head.startswith(OLE_MAGIC) or head.startswith(HWP3_MAGIC):
        raise ParseFailed(_binary_office_reason(chosen))
    if chosen.container == "pdf":
        if PDF_MAGIC not in head:
            raise _other_kind(head, chosen)
    elif head.startswith(PDF_MAGIC):
        raise ParseFailed(stated("file_is_pdf", "it is a PDF file, not {label}; name it .pdf", label=chosen.label))
    if chosen.container == "zip" and not head.startswith(ZIP_MAGICS):
        raise _other_kind(head, chosen)
    if chosen.container == "text" and head.startswith(ZIP_MAGICS):
        raise ParseFailed(stated("file_is_zip", "it is a zip archive, not {label}", label=chosen.label))


def _binary_office_reason(chosen: Format) -> Statement:
    if chosen.module == "hwpx":
        return SAVE_AS[".hwp"]
    if chosen.module == "docx":
        return stated(
            "file_old_or_encrypted_doc",
            "it is an old binary Word file or an encrypted one; open it and save it as DOCX without a password",
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
