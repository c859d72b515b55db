"""EML with the standard library: the message, and each attachment as a document of its own.

The plain text of a message is preferred to its HTML. An attachment is read by the reader of its kind, in this process
and without touching the disk; the message lists all of them, with the reason of those that could not be read.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from email import message_from_bytes, policy
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import Message
from email.utils import parsedate_to_datetime
from pathlib import Path, PosixPath
from typing import IO, Any

from dtrag.adapters.parsers.blocks import MAX_TITLE, TextBuilder, paragraphs, title_of
from dtrag.adapters.parsers.decoding import clean, clean_line, decode
from dtrag.adapters.parsers.formats import FORMATS, check_content, format_of, knows
from dtrag.adapters.parsers.html import read_into
from dtrag.adapters.parsers.worker import reason_for
from dtrag.core.documents import ParsedDocument
from dtrag.core.statements import stated
from dtrag.errors import ParseFailed

MAX_DEPTH = 3
"""Messages in messages."""
MAX_ATTACHMENTS = 100
"""Of a message and the messages in it; those beyond are counted."""
MAX_CHARACTERS = 32_000_000
"""Of all attachments together; those beyond are not read."""
MAX_HEADER = 2_000
HEADERS = ("Subject", "From", "To", "Cc", "Date")


def parse(path: Path, name: str) -> Iterator[ParsedDocument]:
    """The message, then its attachments with the parts `attachment-1`, `attachment-2/attachment-1` …"""
    yield from _Reader().read(message_from_bytes(path.read_bytes(), policy=policy.compat32), name, 0)


class _InMemory(PosixPath):
    """The path of a file that is only in memory, for the readers: the parser process may not write files."""

    data = b""

    def open(self, mode: str = "r", *_: Any, encoding: str | None = None, **options: Any) -> IO[Any]:  # type: ignore[override]
        binary = io.BytesIO(self.data)
        newline, errors = options.get("newline"), options.get("errors")
        return binary if "b" in mode else io.TextIOWrapper(binary, encoding, errors, newline)

    def read_bytes(self) -> bytes:
        return self.data


@dataclass
class _Reader:
    """Counts what has been read of the attachments, over all depths."""

    attachments: int = 0
    characters: int = 0

    def read(self, message: Message, name: str, depth: int) -> Iterator[ParsedDocument]:
        """The documents of a message. Raises `ParseFailed`."""
        bodies: list[Message] = []
        files: list[Message] = []
        _sort(message, bodies, files)
        title = title_of(_header(message, "Subject"), name)
        documents: list[ParsedDocument] = []
        listed: list[str] = []
        for number, file in enumerate(files, 1):
            if self.attachments == MAX_ATTACHMENTS:
                listed.append(f"{len(files) - number + 1:,} more (not read)")
                break
            self.attachments += 1
            file_name = _file_name(file, number)
            try:
                for document in self._attached(file, file_name, depth):
                    self.characters += len(document.text)
                    documents.append(_of_attachment(document, title, file_name, number))
                listed.append(file_name)
            except MemoryError:
                raise
            except Exception as error:  # noqa: BLE001 - as in the process: a hostile attachment fails alone
                reason = error if isinstance(error, ParseFailed) else reason_for(error, None, 0)
                listed.append(f"{file_name} (not read: {reason})")
        builder = TextBuilder()
        lines = [f"{header}: {value}" for header in HEADERS if (value := _header(message, header))]
        lines += [f"Attachment: {item}" for item in listed]
        builder.add("\n".join(lines))
        for body in bodies:
            _add_body(builder, body)
        yield builder.document(
            title=title,
            content_type="message/rfc822",
            metadata={"attachments": len(files)} if files else {},
        )
        yield from documents

    def _attached(self, file: Message, name: str, depth: int) -> Iterator[ParsedDocument]:
        if self.characters > MAX_CHARACTERS:
            raise ParseFailed(stated("eml_text_long", "the attachments before it have too much text"))
        message = file.get_payload(0) if file.get_content_type() == "message/rfc822" and file.is_multipart() else None
        if not isinstance(message, Message):
            if not knows(name):
                raise ParseFailed(stated("eml_kind", "files of its kind are not read"))
            chosen, path = format_of(name), _InMemory(name.replace("\0", "") or "file")
            path.data = _bytes(file)
            check_content(path, chosen)
            if chosen.module != "eml":
                yield from chosen.load()(path, name)
                return
            message = message_from_bytes(path.data, policy=policy.compat32)
        if depth == MAX_DEPTH:
            raise ParseFailed(stated("eml_depth", "more than {limit} messages in each other", limit=MAX_DEPTH))
        yield from self.read(message, name, depth + 1)


def _sort(part: Message, bodies: list[Message], files: list[Message]) -> None:
    """Appends the parts of a message that are its text, and those that are files."""
    kind = part.get_content_type()
    payload = part.get_payload() if part.is_multipart() else []
    children = [child for child in payload if isinstance(child, Message)] if isinstance(payload, list) else []
    if kind == "message/rfc822" and children:
        files.append(part)
    elif kind == "multipart/alternative" and children:
        plain = [child for child in children if child.get_content_type() == "text/plain" and _bytes(child).strip()]
        _sort(plain[0] if plain else children[-1], bodies, files)
    elif part.is_multipart():
        for child in children:
            _sort(child, bodies, files)
    elif kind in ("text/plain", "text/html") and not part.get_filename() and not _is_attachment(part):
        bodies.append(part)
    else:
        files.append(part)


def _is_attachment(part: Message) -> bool:
    return part.get_content_disposition() == "attachment"


def _bytes(part: Message) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _add_body(builder: TextBuilder, body: Message) -> None:
    text = decode(_bytes(body), body.get_content_charset())
    if body.get_content_type() == "text/html":
        read_into(builder, text)
        return
    text = clean(text).text
    for block in paragraphs(text):
        builder.add(text[block.start : block.end])


def _header(message: Message, name: str) -> str:
    """A header on one line; a date in ISO 8601, with the offset of its time zone."""
    value = _decoded(message.get(name, ""))
    if name == "Date":
        try:
            return parsedate_to_datetime(value).isoformat(" ")
        except (ValueError, TypeError, OverflowError):
            return value
    return value


def _decoded(value: object) -> str:
    try:
        text = str(make_header(decode_header(str(value))))
    except (HeaderParseError, LookupError, ValueError):
        text = str(value)
    return clean_line(text)[:MAX_HEADER]


def _file_name(part: Message, number: int) -> str:
    """Its name, or a number and the suffix of its kind."""
    try:
        name = _decoded(part.get_filename() or "").replace("\\", "/").rpartition("/")[2]
    except (LookupError, ValueError, TypeError):  # names in pieces that do not fit
        name = ""
    suffixes = (row.suffixes[0] for row in FORMATS if row.content_type == part.get_content_type())
    return name[-MAX_TITLE:] or f"{number}{next(suffixes, '')}"


def _of_attachment(document: ParsedDocument, title: str, name: str, number: int) -> ParsedDocument:
    """The document of an attachment: below the message, and in its category."""
    shown = f"{title} › {name}"
    if document.part and document.title not in shown:
        shown = f"{shown} › {document.title}"
    part = f"attachment-{number}" + (f"/{document.part}" if document.part else "")
    return replace(document, title=shown[:MAX_TITLE], part=part, category_path=None)
