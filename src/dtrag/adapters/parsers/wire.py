"""How the two sides of the parser process talk: frames of a 4-byte length and that many bytes of JSON.

Never pickle: what a parser says about a hostile file is data. Requests: `{"path", "name", "cpu_seconds"}`. Replies:
`{"ready": true}` once, then for each request any number of `{"documents": […]}` and at the end either `{"done": true}`
or `{"failed": reason, "spent": bool}`; `spent` = the process is not to be used again.
"""

from __future__ import annotations

import json
import struct
from typing import Any

from dtrag.core.documents import Block, ParsedDocument

LENGTH = struct.Struct(">I")
MAX_FRAME_BYTES = 512 << 20
"""A longer frame means that the other side has gone mad."""
MAX_TEXT = 64_000_000
"""Characters of one document; its frame then stays below `MAX_FRAME_BYTES` in any script."""


def pack(message: Any) -> bytes:
    """A frame. Characters are sent as they are, which halves Korean text against escapes."""
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return LENGTH.pack(len(body)) + body


def unpack(body: bytes) -> dict[str, Any]:
    """The message in a frame's body. Raises `ValueError` when it is none."""
    message = json.loads(body.decode("utf-8", "surrogatepass"))
    if not isinstance(message, dict):
        raise ValueError("a message is an object")
    return message


def to_row(document: ParsedDocument) -> list[Any]:
    """A document as JSON values: fields in the order of the class."""
    return [
        document.title,
        document.text,
        document.content_type,
        [[b.start, b.end, b.kind, b.level, b.style] for b in document.blocks],
        document.part,
        document.category_path,
        dict(document.metadata),
    ]


def from_row(row: list[Any]) -> ParsedDocument:
    """The document that `to_row` was given. Raises `TypeError` or `ValueError` when the row has another shape."""
    title, text, content_type, blocks, part, category_path, metadata = row
    return ParsedDocument(
        title=title,
        text=text,
        content_type=content_type,
        blocks=tuple(Block(*block) for block in blocks),
        part=part,
        category_path=None if category_path is None else tuple(category_path),
        metadata=metadata,
    )
