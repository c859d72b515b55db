"""The protocol between the service and its parser process: frames of a 4-byte length and that many bytes of JSON.

Never pickle: what a parser returns for a hostile file is data. The process sends that it is ready; then for each
`ParserRequest` any number of replies with documents, and at the end one that says that the file is done or failed.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any, TypedDict

from dtrag.core.documents import Block, ParsedDocument
from dtrag.core.originals import Box, SoughtText

Row = list[Any]
"""A document as JSON values: see `to_row`."""


class ParserRequest(TypedDict, total=False):
    """A file to parse, or a PDF in base64 and what is asked of it: the `picture` of a page, or where texts are.

    `cpu_seconds` is its share of processor time.
    """

    path: str
    name: str
    pdf: str
    picture: int
    sought: Sequence[SoughtText]
    cpu_seconds: int


class ParserReply(TypedDict, total=False):
    """One of: `ready`; `documents`; `done`; or `failed` with the reason, a `Statement`.

    What is asked of a PDF comes with `done`: `picture`, a PNG in base64; or `pages`, their number, and `boxes`, those
    of each text. `spent`: the process must not be reused.
    """

    ready: bool
    documents: list[Row]
    done: bool
    failed: dict[str, object]
    spent: bool
    picture: str
    pages: int
    boxes: list[list[Box]]


LENGTH = struct.Struct(">I")
MAX_FRAME_BYTES = 512 << 20
"""A longer frame is not one of the other side's."""
MAX_TEXT = 64_000_000
"""Characters of one document; its frame then stays below `MAX_FRAME_BYTES` in any script."""


def pack(message: ParserRequest | ParserReply) -> bytes:
    """The message as a frame. Characters are not escaped, which halves Korean text."""
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return LENGTH.pack(len(body)) + body


def unpack(body: bytes) -> dict[str, object]:
    """The JSON object in the body of a frame. Raises `ValueError` for anything else."""
    message = json.loads(body.decode("utf-8", "surrogatepass"))
    if not isinstance(message, dict):
        raise ValueError("a message is an object")
    return message


def to_row(document: ParsedDocument) -> Row:
    """A document as JSON values: fields in the order of the class."""
    return [
        document.title,
        document.text,
        document.content_type,
        [[b.start, b.end, b.kind, b.level, b.style] for b in document.blocks],
        document.part,
        document.category_path,
        dict(document.metadata),
        document.page_starts,
        document.ocr_words,
    ]


def from_row(row: Row) -> ParsedDocument:
    """The inverse of `to_row`. Raises `TypeError` or `ValueError` for a row of another shape."""
    title, text, content_type, blocks, part, category_path, metadata, page_starts, ocr_words = row
    return ParsedDocument(
        title=title,
        text=text,
        content_type=content_type,
        blocks=tuple(Block(*block) for block in blocks),
        part=part,
        category_path=None if category_path is None else tuple(category_path),
        metadata=metadata,
        page_starts=tuple((offset, number) for offset, number in page_starts),
        ocr_words=tuple((start, end, confidence) for start, end, confidence in ocr_words),
    )
