"""Lines and units of a text as values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from dtrag.core.documents import ContextKind
from dtrag.core.text.line_kinds import Marker, marker_of

UnitKind = Literal["sentence", "item", "row", "heading", "lead_in", "header", "unit", "contents", "page", "mark"]
QUOTABLE: frozenset[UnitKind] = frozenset({"sentence", "item", "row"})

_QUOTE_PREFIX = re.compile(r"(?:>[ \t]?)+")


@dataclass(frozen=True, slots=True)
class ContextSpan:
    """`[start, end)` of a text that belongs to a quoted unit: header or unit of a row, or the lead-in of an item."""

    kind: ContextKind
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Unit:
    """`[start, end)` of the text, its kind, and the spans that a quotation of it needs, in their order in the text."""

    start: int
    end: int
    kind: UnitKind
    context: tuple[ContextSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class TextUnits:
    """The units of a text in order. `words_broken`: its lines end inside words, as Korean ones may.

    `continued`: the text begins with a table or a list: its header, unit or lead-in may be in the text before.
    """

    units: tuple[Unit, ...]
    words_broken: bool = False
    continued: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line without blanks around it; `raw` has those before it.

    `gap`: an empty line precedes; `marker`: the mark of a list item with which it begins.
    """

    start: int
    end: int
    text: str
    raw: str
    gap: bool
    marker: Marker | None

    @property
    def indent(self) -> int:
        return len(self.raw) - len(self.text)


def lines_of(text: str) -> Iterator[Line]:
    """The lines that are not blank, without the `>` of quoted mail before them."""
    offset, gap = 0, True
    for line in text.split("\n"):
        prefix = _QUOTE_PREFIX.match(line)
        begin = prefix.end() if prefix else 0
        body = line[begin:]
        stripped = body.strip()
        if stripped:
            start = offset + begin + body.index(stripped[0])
            yield Line(start, start + len(stripped), stripped, body.rstrip(), gap, marker_of(stripped))
            gap = False
        else:
            gap = True
        offset += len(line) + 1
