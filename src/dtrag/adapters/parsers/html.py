"""HTML with lxml: the visible text of a page as headings, paragraphs, lists and tables.

Scripts, styles, navigation and form controls are skipped. Elements hidden by their own attributes are dropped and
counted (`hidden_elements`): hidden text is a way to inject instructions into a document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from dtrag.adapters.parsers.blocks import DEEPEST_INDENT, RowSpans, TextBuilder, title_of
from dtrag.adapters.parsers.decoding import decode
from dtrag.core.documents import BlockKind, ParsedDocument
from dtrag.core.statements import stated
from dtrag.errors import ParseFailed

SKIPPED = frozenset(
    "script style noscript template svg math head nav iframe object embed canvas audio video "
    "button select input textarea option datalist".split()
)
HEADINGS = {f"h{level}": level for level in range(1, 7)}
BLOCKS = frozenset(
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure "
    "footer form header hgroup hr html legend main p section summary".split()
)
CELLS = ("td", "th")
LISTS = ("ul", "ol")
MAX_ATTRIBUTES = 2_000
"""Of one element. libxml2 passes over all of them for each further one: 10,000 take .2 s, 40,000 take 12 s."""
TOO_DEEP = stated("html_nesting", "its HTML is nested too deeply")

_HIDING_STYLE = re.compile(r"(?:display:none|visibility:hidden|font-size:0(?:\.0+)?(?:[a-z%]*)(?:;|!|$))")
_DECLARED = re.compile(rb"""<meta[^>]{0,200}charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{2,40})""", re.IGNORECASE)
_PROLOGUE_BYTES = 4_096
_TAG = re.compile(r"<[A-Za-z]")
_IN_TAG = re.compile(r"""(>)|[\s/]([^\s/>"'=])|"[^"]*"|'[^']*'""")
_SPACE = re.compile(r"[^\S\n]*\n[^\S\n]*|[^\S\n]+")


def parse(path: Path, name: str) -> Iterator[ParsedDocument]:
    """One document; its title is `<title>`, or the first heading."""
    data = path.read_bytes()
    declared = _DECLARED.search(data[:_PROLOGUE_BYTES])
    text = decode(data, declared[1].decode("ascii") if declared else None)
    builder = TextBuilder()
    title, hidden = read_into(builder, text)
    yield builder.document(
        title=title_of(title or builder.first_heading, name),
        content_type="text/html",
        metadata={"hidden_elements": hidden} if hidden else {},
    )


def read_into(builder: TextBuilder, markup: str) -> tuple[str | None, int]:
    """Add the visible text of `markup`; returns the `<title>`, and how many hidden elements were dropped."""
    _refuse_attributes(markup)
    data = markup.replace("\x00", "").encode("utf-8", "ignore")
    # `huge_tree` still limits the depth to 2,048; without it, text after the first 10 MB would be dropped silently.
    parser = etree.HTMLParser(encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True, huge_tree=True)
    try:
        root = etree.fromstring(data, parser) if data.strip() else None
    except etree.XMLSyntaxError as error:
        if not any(entry.level_name == "FATAL" for entry in parser.error_log):
            return None, 0  # nothing but comments
        raise ParseFailed(TOO_DEEP) from error
    if any(entry.level_name == "FATAL" for entry in parser.error_log):
        raise ParseFailed(TOO_DEEP)
    if root is None:
        return None, 0
    walk = _HtmlWalk(builder)
    walk.over(root)
    title = root.find(".//head/title")
    return (title.text if title is not None else None), walk.hidden


def _refuse_attributes(markup: str) -> None:
    """Raises `ParseFailed` for an element with too many attributes. One pass over the text."""
    position = 0
    while tag := _TAG.search(markup, position):
        position, count = len(markup), 0
        for token in _IN_TAG.finditer(markup, tag.end()):
            if token[1]:
                position = token.end()
                break
            count += token[2] is not None
            if count > MAX_ATTRIBUTES:
                text = "it has an element with more than {limit} attributes"
                raise ParseFailed(stated("html_attributes", text, limit=f"{MAX_ATTRIBUTES:,}"))


def is_hidden(element: etree._Element) -> bool:
    """Whether the element's own attributes hide it."""
    if element.get("hidden") is not None:
        return True
    style = element.get("style")
    return bool(style) and _HIDING_STYLE.search("".join((style or "").lower().split())) is not None


def _count(number: str | None) -> int:
    return int(number) if number and number.isascii() and number.isdecimal() and len(number) < 6 else 1


class _HtmlWalk:
    """Walks the tree without recursion; text accumulates until a block begins or ends."""

    def __init__(self, builder: TextBuilder) -> None:
        self._builder = builder
        self._run: list[str] = []
        self._tables = 0
        self._rows: list[str] = []
        self._cells: list[tuple[str, int, int]] = []
        self._spans = RowSpans()
        self._span = (1, 1)
        self._lists: list[int | None] = []
        self._items: list[str] = []
        self._marker = ""
        self._preformatted = 0
        self.hidden = 0

    def over(self, root: etree._Element) -> None:
        walker = etree.iterwalk(root, events=("start", "end"))
        for event, element in walker:
            tag = element.tag if isinstance(element.tag, str) else ""
            if event == "start":
                if tag in SKIPPED or is_hidden(element):
                    self.hidden += tag not in SKIPPED
                    walker.skip_subtree()
                    continue
                self._start(tag, element)
                self._run.append(element.text or "")
            else:
                if tag not in SKIPPED and not is_hidden(element):
                    self._end(tag)
                self._run.append(element.tail or "")
        self._flush()

    def _start(self, tag: str, element: etree._Element) -> None:
        if tag == "br":
            self._run.append("\x00")
        elif tag == "img":
            self._run.append(element.get("alt") or "")
        elif self._tables:
            self._tables += tag == "table"
            if tag in CELLS and self._tables == 1:
                self._run = []
                self._span = (_count(element.get("colspan")), _count(element.get("rowspan")))
            elif tag in BLOCKS or tag in HEADINGS or tag in CELLS or tag == "li":
                self._run.append(" ")
        elif tag == "table":
            self._flush()
            self._tables = 1
            self._spans = RowSpans()
        elif tag in LISTS:
            self._flush()
            start = element.get("start", "1")
            self._lists.append((int(start) if start.isdecimal() else 1) if tag == "ol" else None)
        elif tag == "li":
            self._flush()
            number = self._lists[-1] if self._lists else None
            self._marker = "- " if number is None else f"{number}. "
            if number is not None:
                self._lists[-1] = number + 1
        elif tag == "pre":
            self._flush()
            self._preformatted += 1
        elif tag in BLOCKS or tag in HEADINGS:
            self._flush()

    def _end(self, tag: str) -> None:
        if self._tables:
            self._end_in_table(tag)
        elif tag in HEADINGS:
            self._flush("heading", HEADINGS[tag])
        elif tag in LISTS:
            self._flush()
            if self._lists:
                self._lists.pop()
            if not self._lists:
                items, self._items = self._items, []
                self._builder.add("\n".join(items), "list")
        elif tag == "pre":
            self._flush("code")
            self._preformatted = max(0, self._preformatted - 1)
        elif tag in BLOCKS or tag == "li":
            self._flush()

    def _end_in_table(self, tag: str) -> None:
        if tag == "table":
            self._tables -= 1
            if self._tables == 0:
                self._end_row()
                rows, self._rows = self._rows, []
                self._builder.add("\n".join(rows), "table")
        elif self._tables == 1 and tag in (*CELLS, "caption"):
            self._cells.append((" ".join("".join(self._run).replace("\x00", " ").split()), *self._span))
            self._run, self._span = [], (1, 1)
            if tag == "caption":
                self._end_row()
        elif self._tables == 1 and tag == "tr":
            self._end_row(of_spans=True)

    def _end_row(self, *, of_spans: bool = False) -> None:
        """`of_spans`: also a row without cells of its own is one of those that cells above it span."""
        cells, self._cells, self._run = self._cells, [], []
        if row := self._spans.row(cells) if cells or of_spans else "":
            self._rows.append(row)

    def _flush(self, kind: BlockKind = "paragraph", level: int = 0) -> None:
        text = "".join(self._run)
        self._run = []
        if not self._preformatted:
            text = " ".join(text.split())
        text = text.replace("\x00", "\n")
        if not text.strip():
            return
        if self._lists and kind != "heading":
            indent = "  " * min(len(self._lists) - 1, DEEPEST_INDENT)
            self._items.append(indent + (self._marker or "  ") + text.strip().replace("\n", f"\n{indent}  "))
            self._marker = ""
        else:
            self._builder.add(text, kind, level)
