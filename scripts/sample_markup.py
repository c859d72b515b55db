"""Reads the little of Markdown that the sample documents are written in: headings, list items, tables, paragraphs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_HEADING = re.compile(r"(#{1,6}) (.+)")
_BULLET = re.compile(r"- (.+)")
_NUMBERED = re.compile(r"\d+\. .+")
_RULE = re.compile(r"\|(?:\s*:?-{3,}:?\s*\|)+")


@dataclass(frozen=True, slots=True)
class Heading:
    """`level` is the number of `#`, 1..6."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Adjacent lines, joined by a space."""

    text: str


@dataclass(frozen=True, slots=True)
class Item:
    """One list item: a bullet without its dash, or a numbered line as it stands."""

    text: str
    numbered: bool


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells, the header row first."""

    rows: tuple[tuple[str, ...], ...]


Element = Heading | Paragraph | Item | Table


def read_markup(source: str) -> Iterator[Element]:
    """The elements of a sample's text in order. Raises `ValueError` for a table whose rows differ in length."""
    for group in re.split(r"\n\s*\n", source.strip()):
        lines = [line.strip() for line in group.splitlines()]
        if lines[0].startswith("|"):
            yield _table(lines)
        elif heading := _HEADING.fullmatch(lines[0]):
            yield Heading(len(heading[1]), heading[2])
            if len(lines) > 1:
                raise ValueError(f"a blank line is missing below the heading {lines[0]!r}")
        elif _BULLET.match(lines[0]) or _NUMBERED.match(lines[0]):
            yield from (_item(line) for line in lines)
        else:
            yield Paragraph(" ".join(lines))


def _item(line: str) -> Item:
    if bullet := _BULLET.fullmatch(line):
        return Item(bullet[1], numbered=False)
    if _NUMBERED.fullmatch(line):
        return Item(line, numbered=True)
    raise ValueError(f"a list item must be on one line: {line!r}")


def _table(lines: list[str]) -> Table:
    rows = tuple(
        tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines if not _RULE.fullmatch(line)
    )
    if len({len(row) for row in rows}) != 1:
        raise ValueError(f"the rows of the table that begins with {lines[0]!r} differ in length")
    return Table(rows)
