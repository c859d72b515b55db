"""Binary HWP 5 with unhwp (extra `hwp`), native code that runs only in the parser process.

Other Hangul documents are read under this name, too: HWPX and HWPML by their first bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dtrag.adapters.parsers import hwpml, hwpx
from dtrag.adapters.parsers.blocks import RowSpans, TextBuilder, title_of
from dtrag.adapters.parsers.formats import HWP3_MAGIC, OLE_MAGIC, ZIP_MAGICS, extra_missing, format_of
from dtrag.core.documents import ParsedDocument
from dtrag.core.statements import stated
from dtrag.errors import ParseFailed

Node = dict[str, Any]
"""An object of the JSON that unhwp makes of a document."""
INCOMPLETE = stated("file_damaged", "{what}", what="it is not a complete HWP file")
BODY_STYLE = "Normal"
"""unhwp gives no names of styles; a document with styles is one whose paragraphs are not broken at the margin."""


def parse(path: Path, name: str) -> Iterator[ParsedDocument]:
    """The one document in the file. Raises `ParseFailed` (encrypted, for distribution only, damaged)."""
    data = path.read_bytes()
    if data.startswith(ZIP_MAGICS):
        yield from hwpx.parse(path, name)
        return
    if b"<" in data[:8]:
        yield from hwpml.parse(path, name)
        return
    if data.startswith(HWP3_MAGIC):
        text = "it is of HWP 3 (Hangul 97 and before); open it in Hangul and save it as HWPX"
        raise ParseFailed(stated("file_hwp3", text))
    if not data.startswith(OLE_MAGIC):
        raise ParseFailed(stated("file_not_label", "it is something else, not a {label} file", label="HWP"))
    document = _document(data, name)
    builder = TextBuilder()
    for section in document["sections"]:
        for block in section["content"]:
            if "Table" in block:
                builder.add("\n".join(_rows(block["Table"], 0)), "table")
            elif "Paragraph" in block:
                style = block["Paragraph"]["style"]
                head = style.get("head") or {}
                level = int(head["level"]) + 1 if head.get("kind") == "Outline" else int(style["heading_level"])
                text = _text(block["Paragraph"])
                builder.add(text, "heading" if level else "paragraph", min(6, level), BODY_STYLE)
    title = hwpx.usable_title(document["metadata"].get("title"))
    yield builder.document(title=title_of(title, name), content_type=format_of(name).content_type)


def _document(data: bytes, name: str) -> Node:
    try:
        import unhwp
    except ModuleNotFoundError as error:
        raise extra_missing(format_of(name)) from error
    try:
        with unhwp.parse_bytes(data) as result:
            document: Node = json.loads(result.json)
    except unhwp.UnhwpError as error:
        if error.kind in (unhwp.ErrorKind.ENCRYPTED, unhwp.ErrorKind.DISTRIBUTION_RESTRICTED):
            raise ParseFailed(hwpx.LOCKED) from error
        raise ParseFailed(INCOMPLETE) from error
    # Beside the protected text, such a file has a page for old programs, which says that it cannot be read.
    if document["metadata"]["is_distribution"]:
        raise ParseFailed(hwpx.LOCKED)
    if document["skipped_sections"]:
        raise ParseFailed(INCOMPLETE)
    return document


def _text(paragraph: Node) -> str:
    """The characters of a paragraph; a footnote follows its mark in parentheses."""
    pieces = []
    for piece in paragraph["content"]:
        kind, value = next(iter(piece.items())) if isinstance(piece, dict) else (piece, {})
        if kind == "LineBreak":
            pieces.append("\n")
        elif kind == "Footnote":
            pieces.append(f" ({value if isinstance(value, str) else value.get('text', '')})")
        elif kind in ("Text", "Link", "Equation"):
            pieces.append(str(value.get("text") or value.get("script") or ""))
    return "\n".join(filter(None, map(hwpx.clean, "".join(pieces).split("\n"))))


def _rows(table: Node, depth: int) -> Iterator[str]:
    spans = RowSpans()
    for row in table["rows"]:
        if text := spans.row(_cells(row, depth)):
            yield text


def _cells(row: Node, depth: int) -> Iterator[tuple[str, int, int]]:
    for cell in row["cells"]:
        texts = [_text(paragraph) for paragraph in cell["content"]]
        if depth < hwpx.MAX_DEPTH:
            texts += [text for table in cell.get("nested_tables") or () for text in _rows(table, depth + 1)]
        text = " ".join(texts).replace("\n", " ").replace(" | ", " ").strip()
        yield text, int(cell["colspan"]), int(cell["rowspan"])
