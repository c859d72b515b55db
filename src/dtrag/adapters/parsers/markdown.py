"""Markdown with markdown-it: the text as a reader sees it, with the blocks that the marks stood for.

Inline marks are dropped (links become their text, images their alternative text), so that quotations read well. A
list is one block of `- item` lines, a table one block of `cell | cell` lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from dtrag.adapters.parsers.blocks import DEEPEST_INDENT, TextBuilder, title_of
from dtrag.adapters.parsers.decoding import clean, decode
from dtrag.core.documents import ParsedDocument
from dtrag.core.statements import stated
from dtrag.errors import ParseFailed

MAX_NESTING = 100
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_TITLE_LINE = re.compile(r"^title[ \t]*:[ \t]*(.+?)[ \t]*$", re.MULTILINE | re.IGNORECASE)
_PROVISION = re.compile(r"제\s?\d+\s?[편장절관조]|[①-⑳]|[가-하]\.\s")
"""Beginnings of Korean provisions, which are written line under line without the empty line that Markdown asks for."""
_LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)


def parse(path: Path, name: str) -> Iterator[ParsedDocument]:
    """One document; its title is the front matter's, or the first heading."""
    cleaned = clean(decode(path.read_bytes()))
    source, title = split_front_matter(cleaned.text)
    builder = TextBuilder()
    builder.tag_characters = cleaned.tag_characters
    rules = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING}).enable(["table", "strikethrough"])
    tokens = rules.parse(source)
    if any(token.nesting == 1 and token.level >= MAX_NESTING - 1 for token in tokens):
        raise ParseFailed(
            stated("markdown_nesting", "its lists or quotations are nested more than {limit} deep", limit=MAX_NESTING)
        )
    _Walk(builder).over(tokens)
    yield builder.document(title=title_of(title or builder.first_heading, name), content_type="text/markdown")


def split_front_matter(text: str) -> tuple[str, str | None]:
    """The text without its `---` block at the top, and the `title:` in that block."""
    block = _FRONT_MATTER.match(text)
    if block is None or ":" not in block[1]:
        return text, None
    line = _TITLE_LINE.search(block[1])
    return text[block.end() :], line[1].strip("\"'") if line else None


def inline_text(tokens: Sequence[Token]) -> str:
    """What inline tokens say to a reader."""
    pieces: list[str] = []
    for place, token in enumerate(tokens):
        if token.type in ("text", "code_inline"):
            pieces.append(token.content)
        elif token.type == "softbreak":
            following = tokens[place + 1].content if place + 1 < len(tokens) else ""
            pieces.append("\n" if _PROVISION.match(following) else " ")
        elif token.type == "hardbreak" or (token.type == "html_inline" and _LINE_BREAK.match(token.content)):
            pieces.append("\n")
        elif token.type == "image":
            pieces.append(inline_text(token.children or ()))
    return "".join(pieces)


class _Walk:
    """Goes over the flat list of tokens once; what is inside a list or a table is collected until it closes."""

    def __init__(self, builder: TextBuilder) -> None:
        self._builder = builder
        self._lists: list[int | None] = []  # number of the last item of each open list; None = bullets
        self._items: list[str] = []
        self._marker = ""
        self._rows: list[list[str]] = []
        self._in_table = False
        self._heading = 0

    def over(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            if token.type == "inline":
                self._text(inline_text(token.children or ()))
            elif token.type in ("fence", "code_block"):
                self._code(token.content)
            elif token.type == "html_block":
                self._html(token.content)
            elif token.type == "heading_open":
                self._heading = int(token.tag[1:])
            elif token.type in ("bullet_list_open", "ordered_list_open"):
                self._lists.append(-1 if token.type.startswith("ordered") else None)
            elif token.type == "list_item_open":
                self._item(token)
            elif token.type in ("bullet_list_close", "ordered_list_close"):
                self._close_list()
            elif token.type.startswith(("table", "tr", "th_", "td_")):
                self._table(token.type)

    def _text(self, text: str) -> None:
        if self._in_table:
            self._rows[-1][-1] = " ".join(text.split())
        elif self._lists:
            self._line(text)
        elif self._heading:
            self._builder.add(text, "heading", self._heading)
        else:
            self._builder.add(text)
        self._heading = 0

    def _code(self, text: str) -> None:
        if self._lists:
            self._line(text)
        else:
            self._builder.add(text, "code")

    def _html(self, markup: str) -> None:
        from dtrag.adapters.parsers.html import read_into

        if self._lists:
            nested = TextBuilder()
            read_into(nested, markup)
            if len(nested):
                self._line(nested.document(title="", content_type="").text)
        else:
            read_into(self._builder, markup)

    def _item(self, token: Token) -> None:
        """Start an item with its number as written, which may have gaps; a repeated number (1. 1. 1.) is counted on."""
        last = self._lists[-1]
        if last is None:
            self._marker = "- "
            return
        number = self._lists[-1] = max(int(token.info), last + 1)
        self._marker = f"{number}{token.markup} "

    def _line(self, text: str) -> None:
        indent = "  " * min(len(self._lists) - 1, DEEPEST_INDENT)
        first, *others = text.strip().split("\n")
        self._items.append(f"{indent}{self._marker or '  '}{first}")
        self._items.extend(f"{indent}  {line}" for line in others)
        self._marker = ""

    def _close_list(self) -> None:
        self._lists.pop()
        if not self._lists:
            self._builder.add("\n".join(self._items), "list")
            self._items = []

    def _table(self, kind: str) -> None:
        if kind == "table_open":
            self._in_table = True
        elif kind == "tr_open":
            self._rows.append([])
        elif kind in ("th_open", "td_open"):
            self._rows[-1].append("")
        elif kind == "table_close":
            rows, self._rows, self._in_table = self._rows, [], False
            text = "\n".join(" | ".join(row) for row in rows if any(row))
            if self._lists:
                self._line(text)
            else:
                self._builder.add(text, "table")
