"""JSON and XML as text: each leaf with its name, below the path of the object or element that it is in.

`servers.0: name: web; port: 80` is an object in a list; a text of several lines is a paragraph of its own. An XML file
that is an HWPML document is read as one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dtrag.adapters.parsers.archive import parse_xml
from dtrag.adapters.parsers.blocks import TextBuilder, paragraphs, title_of
from dtrag.adapters.parsers.decoding import clean, clean_line, decode
from dtrag.adapters.parsers.formats import format_of
from dtrag.adapters.parsers.hwpml import document_of, is_hwpml, with_characters
from dtrag.core.documents import ParsedDocument
from dtrag.core.statements import stated
from dtrag.errors import ParseFailed

Element = Any  # lxml elements: their stubs do not know that their attributes are strings
MAX_PATH = 120
"""Characters of a path, which is cut at its beginning."""
LONGEST_VALUE = 2_000
"""Characters of a value beside others; a longer one is a paragraph of its own."""

Tree = str | Sequence[tuple[str, "Tree"]]
"""A leaf, or the names and values of an object, list or element, in the order of the file."""


def parse(path: Path, name: str) -> Iterator[ParsedDocument]:
    """One document; its title is `title` of the outermost object, or the file's name. Raises `ParseFailed`."""
    chosen = format_of(name)
    data = path.read_bytes()
    builder = TextBuilder()
    if chosen.content_type == "application/json":
        value = _of_json(_json(data))
        tree = [("", value)] if isinstance(value, str) else value
    else:
        root = parse_xml(with_characters(data))
        if is_hwpml(root):
            yield document_of(root, name)
            return
        tree = [(_name(root), _of_xml(root))]
    _add(builder, "", tree)
    title = next((text for key, text in tree if key == "title" and isinstance(text, str)), None)
    yield builder.document(title=title_of(title, name), content_type=chosen.content_type)


def _json(data: bytes) -> Any:
    try:
        return json.loads(decode(data))
    except json.JSONDecodeError as error:
        text = "it is not JSON: line {line} cannot be read; JSON lines are named .jsonl"
        raise ParseFailed(stated("json_damaged", text, line=error.lineno)) from error
    except ValueError as error:  # numbers of more than 4,300 digits
        raise ParseFailed(stated("json_damaged_number", "it is not JSON: a number is too long")) from error


def _of_json(value: Any) -> Tree:
    if isinstance(value, dict):
        return [(str(key), _of_json(item)) for key, item in value.items()]
    if isinstance(value, list):
        if not any(isinstance(item, dict | list) for item in value):
            return ", ".join(map(_of_scalar, value))
        return [(str(number), _of_json(item)) for number, item in enumerate(value)]
    return _of_scalar(value)


def _of_scalar(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _of_xml(element: Element) -> Tree:
    """Attributes and children; an element with text between its children is a leaf."""
    children = [child for child in element if isinstance(child.tag, str)]
    attributes = [(f"@{key.rpartition('}')[2]}", str(value)) for key, value in element.attrib.items()]
    is_mixed = children and any((part or "").strip() for part in (element.text, *(child.tail for child in children)))
    if not children or is_mixed:
        text = "".join(element.itertext())
        return [*attributes, ("", text)] if attributes else text
    repeated = Counter(map(_name, children))
    seen: Counter[str] = Counter()
    pairs: list[tuple[str, Tree]] = list(attributes)
    for child in children:
        name = _name(child)
        seen[name] += 1
        pairs.append((f"{name}.{seen[name]}" if repeated[name] > 1 else name, _of_xml(child)))
    return pairs


def _name(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _add(builder: TextBuilder, path: str, pairs: Sequence[tuple[str, Tree]]) -> None:
    leaves: list[str] = []

    def flush() -> None:
        if leaves:
            builder.add("; ".join(leaves) if not path else f"{path[-MAX_PATH:]}: {'; '.join(leaves)}")
            leaves.clear()

    for key, value in pairs:
        name = clean_line(key)
        below = f"{path}.{name}" if path and name else path or name
        if not isinstance(value, str):
            flush()
            if not path:
                builder.add(name, "heading", 1)
            _add(builder, below, value)
        elif "\n" in value.strip() or len(value) > LONGEST_VALUE:
            flush()
            text = clean(value).text
            builder.add(f"{below[-MAX_PATH:]}:")
            for block in paragraphs(text):
                builder.add(text[block.start : block.end])
        elif value.strip():
            leaves.append(f"{name}: {clean_line(value)}" if name else clean_line(value))
    flush()
