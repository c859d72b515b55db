"""JSON lines: one document a line, `{"id", "title", "text", "category_path"?, "metadata"?}`; only `text` is required.

A file may have millions of lines: lines are read one at a time, and a line that cannot be used fails alone. The
end of the file reports how many lines failed, and why.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from dtrag.adapters.parsers.blocks import MAX_TITLE, paragraphs, with_tags
from dtrag.adapters.parsers.decoding import SAMPLE_BYTES, clean, clean_line, utf16_of
from dtrag.core.documents import ParsedDocument, Scalar
from dtrag.core.statements import stated
from dtrag.errors import ParseFailed

MAX_LINE_BYTES = 32 << 20
SHOWN_FAILURES = 5
TITLE_FROM_TEXT = 80
"""A document without a title is called by its first words, up to this many characters."""


class _Unusable(Exception):
    """Why a line gives no document."""


def parse(path: Path, name: str) -> Iterator[ParsedDocument]:
    """The good lines in order; then `ParseFailed` with a summary if there were others."""
    failures: list[str] = []
    failed = total = 0
    seen: set[int] = set()  # hashes, not ids: 64 bits suffice for millions, and the set stays small
    with path.open("rb") as file:
        if utf16_of(file.read(SAMPLE_BYTES)) is not None:
            raise ParseFailed(stated("jsonl_encoding", "JSON lines must be in UTF-8; this file is in UTF-16 or UTF-32"))
        file.seek(0)
        for number, line in _lines(file):
            if line is not None and not line.strip():
                continue
            total += 1
            try:
                document = _document(line, number)
                if hash(document.part) in seen:
                    raise _Unusable(f"the id {document.part[:40]!r} occurs twice")
                seen.add(hash(document.part))
            except _Unusable as unusable:
                failed += 1
                if failed <= SHOWN_FAILURES:
                    failures.append(f"line {number}: {unusable}")
                continue
            yield document
    if failed:
        more = "; …" if failed > SHOWN_FAILURES else ""
        shown = f"{'; '.join(failures)}{more}"
        text = "{failed} of {total} lines: {lines}"
        raise ParseFailed(stated("jsonl_lines_failed", text, failed=f"{failed:,}", total=f"{total:,}", lines=shown))


def _lines(file: IO[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """Number (from 1) and bytes of each line; None for a line longer than `MAX_LINE_BYTES`, which is passed over."""
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) <= MAX_LINE_BYTES:
            yield number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(MAX_LINE_BYTES)
        yield number, None


def _document(line: bytes | None, number: int) -> ParsedDocument:
    record = _record(line)
    text = record.get("text")
    if not isinstance(text, str):
        raise _Unusable("text is missing" if text is None else "text is not a string")
    cleaned = clean(text)
    body = cleaned.text.strip()
    if not body:
        raise _Unusable("text is empty")
    metadata = _metadata(record.get("metadata"))
    identifier = _identifier(record.get("id"))
    if identifier:
        metadata["id"] = identifier
    return ParsedDocument(
        title=_title(record.get("title"), body),
        text=body,
        content_type="application/json",
        blocks=paragraphs(body),
        part=identifier or f"line-{number}",
        category_path=_category_path(record.get("category_path")),
        metadata=with_tags(metadata, cleaned.tag_characters),
    )


def _record(line: bytes | None) -> dict[str, object]:
    if line is None:
        raise _Unusable(f"longer than {MAX_LINE_BYTES >> 20} MiB")
    try:
        text = line.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        try:
            text = line.decode("cp949")
        except UnicodeDecodeError:
            raise _Unusable("neither UTF-8 nor CP949") from None
    try:
        record = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise _Unusable("nested too deeply") from None
    except ValueError:
        raise _Unusable("not JSON") from None
    if not isinstance(record, dict):
        raise _Unusable("not an object")
    return record


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _title(title: Any, body: str) -> str:
    if title is not None and not isinstance(title, str):
        raise _Unusable("title is not a string")
    shown = clean_line(title or "")[:MAX_TITLE].rstrip()
    if shown:
        return shown
    start = " ".join(body[: 4 * TITLE_FROM_TEXT].split())
    if len(start) <= TITLE_FROM_TEXT:
        return start
    return start[:TITLE_FROM_TEXT].rpartition(" ")[0] or start[:TITLE_FROM_TEXT]


def _identifier(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _Unusable("id is neither a string nor a whole number")
    return clean_line(str(value))


def _category_path(value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(element, str) for element in value):
        raise _Unusable("category_path is not a list of strings")
    path = tuple(clean_line(element) for element in value)
    if not all(path):
        raise _Unusable("category_path has an empty element")
    return path or None


def _metadata(value: Any) -> dict[str, Scalar]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _Unusable("metadata is not an object")
    scalars: dict[str, Scalar] = {}
    for key, scalar in value.items():
        if scalar is not None and not isinstance(scalar, str | int | float):
            raise _Unusable("metadata has a value that is neither text, number, truth value nor null")
        if isinstance(scalar, float) and not math.isfinite(scalar):
            raise _Unusable("metadata has an infinite number")
        scalars[clean_line(key)] = clean(scalar).text if isinstance(scalar, str) else scalar
    return scalars
