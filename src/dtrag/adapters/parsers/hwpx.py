"""Reads HWPX (KS X 6101: a zip of OWPML XML): paragraphs with their style names, headings, and tables in place.

Text stays in reading order: a table inside the run of a paragraph splits the paragraph, text boxes and captions become
paragraphs, a footnote follows its mark in parentheses. Headers, footers, page numbers, hidden comments, form buttons
and tracked deletions are dropped. Numbers that the word processor computes (numbered paragraph shapes) are not stored
in the file and are not reconstructed. Tags are matched by local name: namespaces changed between the editions of the
standard, local names did not.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from dtrag.adapters.parsers.archive import SafeArchive, open_archive, parse_xml
from dtrag.adapters.parsers.blocks import TextBuilder, title_of
from dtrag.adapters.parsers.owpml import Element, Piece, Styles, local_name, paragraph_pieces, read_styles
from dtrag.core.documents import ParsedDocument
from dtrag.core.statements import stated
from dtrag.errors import ParseFailed

CONTENT_TYPE = "application/hwp+zip"
PACKAGE = "Contents/content.hpf"
HEADER = "Contents/header.xml"
MANIFEST = "META-INF/manifest.xml"
SMALL_PART_BYTES = 64 << 20
"""Limit of a part that is read whole (the header of a 1,500-page book has 5.5 MB); sections are streamed."""

_SECTION = re.compile(r"^Contents/section(\d+)\.xml$", re.IGNORECASE)
_NO_TITLE = re.compile(r"^(?:제목\s*없음|빈\s*문서.*|untitled.*|.*\.hwpx?)$", re.IGNORECASE)


def parse(path: Path, name: str) -> Iterator[ParsedDocument]:
    """The one document in the file. Raises `ParseFailed` (encrypted, for distribution only, not HWPX, damaged)."""
    with open_archive(path) as archive:
        entries = set(archive.names())
        _refuse_locked(archive)
        package = _xml(archive, PACKAGE) if PACKAGE in entries else None
        parts = _parts(package)
        sections = [part for part in parts if _SECTION.match(part) and part in entries] or _sections_by_number(entries)
        if not sections:
            raise ParseFailed(
                stated(
                    "hwpx_no_section",
                    "it has no section, so it is not an HWPX document; save it as HWPX in Hangul again",
                )
            )
        styles = read_styles(_xml(archive, HEADER)) if HEADER in entries else Styles({}, {})
        builder = TextBuilder()
        for section in sections:
            for piece in _pieces(archive, section, styles):
                builder.add(piece.text, piece.kind, piece.level if piece.kind == "heading" else 0, piece.style)
    yield builder.document(title=title_of(_title(package), name), content_type=CONTENT_TYPE)


def _refuse_locked(archive: SafeArchive) -> None:
    if MANIFEST not in archive:
        return
    if any(local_name(element) == "encryption-data" for element in _xml(archive, MANIFEST).iter()):
        raise ParseFailed(
            stated(
                "hwpx_encrypted",
                "it is encrypted or for distribution only; open it in Hangul, remove the password or the protection "
                "(보안 > 문서 암호 변경/해제), and save it as HWPX",
            )
        )


def _xml(archive: SafeArchive, name: str) -> Element:
    return parse_xml(archive.read(name, SMALL_PART_BYTES))


def _parts(package: Element | None) -> list[str]:
    """Names of the parts in the order of the spine of `content.hpf`; [] without one."""
    if package is None:
        return []
    items = {item.get("id"): item.get("href", "") for item in package.iter("{*}item")}
    order = [items.get(reference.get("idref"), "") for reference in package.iter("{*}itemref")]
    # Some programs write paths relative to the root of the archive, some relative to the folder of content.hpf.
    return [href if href.startswith("Contents/") else posixpath.join("Contents", href) for href in order if href]


def _sections_by_number(entries: set[str]) -> list[str]:
    numbered = [(int(match[1]), entry) for entry in entries if (match := _SECTION.match(entry))]
    return [entry for _, entry in sorted(numbered)]


def _pieces(archive: SafeArchive, section: str, styles: Styles) -> Iterator[Piece]:
    """The pieces of one section, read as a stream: only one top-level paragraph is in memory at a time."""
    with archive.open(section) as stream:
        events = etree.iterparse(
            stream, events=("end",), tag="{*}p", resolve_entities=False, no_network=True, load_dtd=False
        )
        checked = False
        try:
            for _, paragraph in events:
                checked = checked or _refuse_doctype(paragraph)
                parent = paragraph.getparent()
                if parent is None or local_name(parent) != "sec":
                    continue
                yield from paragraph_pieces(paragraph, styles)
                paragraph.clear()
                while paragraph.getprevious() is not None:
                    del parent[0]
        except etree.XMLSyntaxError as error:
            raise ParseFailed(
                stated(
                    "hwpx_part_damaged",
                    "its part {part} is damaged: line {line} is not well-formed",
                    part=section,
                    line=error.lineno or 0,
                )
            ) from error


def _refuse_doctype(element: Element) -> bool:
    """A declaration can only precede the root, so one check is enough. Raises `ParseFailed`."""
    if element.getroottree().docinfo.doctype:
        raise ParseFailed(stated("xml_doctype", "the XML has a document type declaration, which is refused"))
    return True


def _title(package: Element | None) -> str | None:
    """The title of the metadata, unless it is a word processor's default."""
    if package is None:
        return None
    titles = (" ".join((element.text or "").split()) for element in package.iter("{*}title"))
    return next((title for title in titles if title and not _NO_TITLE.match(title)), None)
