"""The units of a text: what can be quoted (sentences, list items, table rows) and what cannot be quoted alone.

Headings, captions, lead-ins of lists, headers and units of tables, entries of a table of contents and page numbers are
not sentences. A row goes with its header and unit, an item with its lead-in: these are its `context`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from dtrag.core.text import line_kinds
from dtrag.core.text.analysis import ends_in_abbreviation
from dtrag.core.text.line_kinds import ContextSpan, Line, TextUnits, Unit, UnitKind, is_hangul, lines_of
from dtrag.core.text.line_wrapping import breaks_words, continues, margin
from dtrag.core.text.patterns import explained
from dtrag.core.text.tables import Table, tables_in

FEWEST_ENTRIES = 3
"""Lines that look like entries of a table of contents, from which on they are ones."""
LINES_OF_MARGIN = 3
"""Lines of a paragraph that show where its margin is, whatever the width of other lines."""
LINES_BELOW_HEADING = 6
"""Lines below a line that are looked at to decide whether it is a heading."""
SENTENCES_BETWEEN = 2
"""Sentences between a table and the one that announces it, at most."""
GAP_FULL = 0.8
"""Share of the margin that a line has at least if it continues behind an empty line."""

_BOUNDARY = explained(
    r"""(?<=[.!?。？！…])(?P<closing>["'”’)\]]*(?:\s*[<〈][^<>〈〉\n]{0,120}[>〉])*)\s+(?:>[>\s]*)?"""
    r"""(?=["'“‘(\[]?[A-Z0-9가-힣一-鿿①-⑳])"""
    r"""|(?<=\S)(?:\s+|(?<![조항,ㆍ·(“"\s]))(?=[①-⑳㉑-㉟](?![항호]))""",
    finds=("끝. 다음", "목적 ② 범위"),
    refuses=("제1조 ②항", "e.g. this"),
)
_MARK_ONLY = re.compile(r"(?:[①-⑳㉑-㉟]|\(?\d{1,3}[.)]|\(?[가-하a-z][.)]|[Ⅰ-Ⅻ]\.|[IVX]{1,5}\.|[-–—•·▪◦○●■□*])$")
_PAIRS = re.compile(r"([^:;|\n]{1,40}): [^;\n]*; [^:;\n]{1,40}: ")


@dataclass(frozen=True, slots=True)
class _Level:
    """An open list: the kind of its marks, their indent, and the unit that introduces it, if any."""

    kind: str
    indent: int
    lead: ContextSpan | None


def units_of(text: str) -> TextUnits:
    """The units of `text`, a passage or a longer part of a document."""
    lines = list(lines_of(text))
    reader = _UnitReader(text, lines)
    reader.read()
    first = next((unit for unit in reader.units if unit.kind not in {"page", "mark"}), None)
    continued = (
        first is not None
        and (first.kind in {"row", "item", "header"})
        and not _PAIRS.match(text, first.start, first.end)
    )
    joints = [(lines[number].text, lines[number + 1].text) for number in reader.continued_lines]
    return TextUnits(tuple(reader.units), breaks_words(joints, reader.margin), continued)


def _entries(lines: Sequence[Line]) -> set[int]:
    """Lines of a table of contents without dots: three entries or more, with pages that do not fall."""
    entries: set[int] = set()
    run: list[int] = []
    for number, line in enumerate([*lines, None]):
        goes_on = line is not None and line_kinds.is_entry(line.text)
        if (
            goes_on
            and line is not None
            and run
            and line_kinds.page_of(line.text) < line_kinds.page_of(lines[run[-1]].text)
        ):
            goes_on = False
        if goes_on:
            run.append(number)
            continue
        entries.update(run if len(run) >= FEWEST_ENTRIES else ())
        run = []
    return entries


def _margins(lines: Sequence[Line], rows: Collection[int]) -> dict[int, int]:
    """The margin of each line in a run of lines without an empty line, if it has enough lines to show one."""
    margins: dict[int, int] = {}
    run: list[int] = []
    for number in range(len(lines) + 1):
        if number < len(lines) and number not in rows and not (run and lines[number].gap):
            run.append(number)
            continue
        if len(run) >= LINES_OF_MARGIN and (own := margin([lines[place].text for place in run])):
            margins.update(dict.fromkeys(run, own))
        run = [number] if number < len(lines) and number not in rows else []
    return margins


def _is_ending(before: str, line: str) -> bool:
    """Whether `다.` at the beginning of a line ends the verb of the line before; after the item 나. it is a mark."""
    return line.startswith("다.") and is_hangul(before[-1]) and not before.startswith("나")


class _UnitReader:
    """Goes over the lines once and collects units; lists that are open are on a stack."""

    def __init__(self, text: str, lines: Sequence[Line]) -> None:
        self._text = text
        self._lines = lines
        self._tables = dict(tables_in(lines))
        rows = {number for first, last in self._tables.items() for number in range(first, last)}
        self.margin = margin([line.text for number, line in enumerate(lines) if number not in rows])
        self._margins = _margins(lines, rows)
        self._levels: list[_Level] = []
        self._seen: dict[str, int] = {}
        self._contents = self._marked = False
        self._pairs = _first_names(lines)
        self._entries = _entries(lines)
        self._table_above: Table | None = None
        self.units: list[Unit] = []
        self.continued_lines: list[int] = []

    def read(self) -> None:
        number = 0
        while number < len(self._lines):
            if number in self._tables:
                self._table(number, self._tables[number])
                number = self._tables[number]
                continue
            kind = self._kind_of_line(number)
            if kind is not None:
                self._add(self._lines[number].start, self._lines[number].end, kind)
                number += 1
                continue
            last = self._flow(number, self.continued_lines)
            self._paragraph(number, last)
            number = last
        self._close()

    def _kind_of_line(self, number: int) -> UnitKind | None:
        """The kind of a line that is a unit of its own, whatever the lines around it are."""
        line = self._lines[number].text
        if (kind := self._kind_of_layout(number)) is not None:
            return kind
        if _is_mark(line):
            self._open_mark(number)
            return "mark"
        if self._is_item(number):
            return "heading" if self._is_numbered_heading(number) else None
        span = line_kinds.unit_span(line)
        if span is not None and span[1] - span[0] >= len(line) - 2:
            return "unit"
        if line_kinds.is_heading(line) or self._is_loose_heading(number):
            return "heading"
        return "row" if (match := _PAIRS.match(line)) and self._pairs.get(match[1], 0) > 1 else None

    def _kind_of_layout(self, number: int) -> UnitKind | None:
        """The kind of a line that belongs to the layout of a page: of a table of contents, a header or a footer."""
        line = self._lines[number].text
        if line_kinds.is_rule(line):
            return "mark"
        if line_kinds.is_contents_title(line):
            self._contents = True
            return "heading"
        listed = self._contents and line_kinds.ends_in_page_number(line)
        if listed or number in self._entries or line_kinds.is_contents(line):
            return "contents"
        self._contents = False
        return "page" if line_kinds.is_page_mark(line) else None

    def _open_mark(self, number: int) -> None:
        """Begins a list item whose mark is on a line of its own."""
        marker = self._lines[number].marker
        if marker is not None:
            self._enter(marker, self._lines[number].indent)
            self._marked = True

    def _is_loose_heading(self, number: int) -> bool:
        """Whether a line that may be a heading is one: it does not go on, and text, a list or a table follows."""
        line = self._lines[number]
        above = self._lines[number - 1] if number and not line.gap else None
        if not line_kinds.may_be_heading(line.text) or (above and continues(above.text, line.text, self.margin)):
            return False
        end = min(len(self._lines), number + 1 + LINES_BELOW_HEADING)
        for following in range(number + 1, end):
            below = self._lines[following]
            if not below.gap and continues(line.text, below.text, self.margin):
                return False
            if self._is_text(following) or following in self._entries or line_kinds.is_contents(below.text):
                return True
            if not line_kinds.is_heading(below.text) and not line_kinds.may_be_heading(below.text):
                return False
        if end < len(self._lines):
            return False
        return len(self._lines) == 1 or (
            line.gap
            and any(
                unit.kind == "sentence" and line_kinds.is_terminated(self._text[unit.start : unit.end])
                for unit in self.units
            )
        )

    def _is_numbered_heading(self, number: int) -> bool:
        """Whether a line with a mark is a heading: a table or a paragraph is below, and no other item is beside it."""
        line = self._lines[number]
        marker = line.marker
        if marker is None or marker.kind.startswith("bullet") or marker.kind == "circled":
            return False
        if not line_kinds.may_be_heading(line.text) or number + 1 >= len(self._lines):
            return False
        below = number + 1
        while below < len(self._lines) and self._is_note(below):
            below += 1
        if below in self._tables:
            return True
        if below > number + 1 or below >= len(self._lines) or self._is_item(below) or not line.gap:
            return False
        if not self._lines[below].gap and continues(line.text, self._lines[below].text, self.margin):
            return False
        before = self._lines[number - 1].marker if number else None
        alone = before is None or before.kind != marker.kind or not self._lines[number - 1].gap
        return alone and self._is_text(below)

    def _is_note(self, number: int) -> bool:
        """Whether a line between a title and its table belongs to the table: a unit, a remark in brackets, a rule."""
        line = self._lines[number].text
        return number not in self._tables and (
            (line[0] in "([（" and line[-1] in ")]）") or line_kinds.is_rule(line) or line_kinds.is_caption(line)
        )

    def _is_text(self, number: int) -> bool:
        """Whether a heading may be above this line: a table, a list, a sentence or a paragraph begins."""
        if number in self._tables or self._is_item(number):
            return True
        last = self._flow(number, [])
        end = self._lines[last - 1].text
        return last - number > 1 or line_kinds.is_terminated(end) or line_kinds.ends_in_colon(end)

    def _is_item(self, number: int) -> bool:
        """Whether the line begins a list item rather than a line of a paragraph that begins with a number."""
        line = self._lines[number]
        marker = line.marker
        if marker is None:
            return False
        if marker.number in {0, 1} or marker.kind == "circled" or line.gap or number == 0:
            return True
        before, above = self._lines[number - 1].text, self._lines[number - 1].marker
        return (
            marker.number == self._seen.get(marker.kind, 0) + 1
            or (above is not None and above.kind == marker.kind)
            or line_kinds.is_terminated(before)
            or line_kinds.ends_in_colon(before)
            or number - 1 in self._tables
        )

    def _flow(self, first: int, continued: list[int]) -> int:
        """One past the last line of the paragraph or list item that begins at line `first`.

        Lines that go on in the next one are added to `continued`.
        """
        last = first + 1
        while last < len(self._lines):
            line, before = self._lines[last], self._lines[last - 1]
            if last in self._tables or line_kinds.is_rule(line.text) or line_kinds.is_heading(line.text):
                break
            is_ending = _is_ending(before.text, line.text)
            if (line.gap or self._is_item(last)) and not is_ending and not self._goes_on_below_gap(last):
                break
            if line_kinds.is_key_value(line.text) and not line.text[0].islower() and not self._is_open(before.text):
                break
            if not is_ending and not line.gap and (_is_mark(line.text) or not self._goes_on(first, before, line)):
                break
            continued.append(last - 1)
            last += 1
        return last

    def _goes_on_below_gap(self, number: int) -> bool:
        """Whether a text continues across an empty line: each of its lines is a paragraph in the file."""
        line, before = self._lines[number], self._lines[number - 1]
        if not line.gap or not self.margin or self._is_item(number) or line_kinds.may_be_heading(before.text):
            return False
        open_end = (
            is_hangul(before.text[-1]) and is_hangul(line.text[0]) and not line_kinds.ends_in_predicate(before.text)
        )
        if not open_end and not (before.text[-1].isalpha() and line.text[0].islower()):
            return False
        wide = line_kinds.width(before.text) >= self.margin * GAP_FULL
        return wide and not line_kinds.may_be_heading(line.text) and self._is_prose(number)

    def _is_prose(self, number: int) -> bool:
        """Whether the lines from here to the next empty line end a sentence somewhere."""
        return line_kinds.has_sentence_end(self._lines[number].text)

    def _goes_on(self, first: int, before: Line, line: Line) -> bool:
        if line_kinds.is_page_mark(line.text) or line_kinds.is_contents(line.text):
            return False
        marker = self._lines[first].marker
        hanging = marker is not None and line.indent >= self._lines[first].indent + 2
        if hanging and not line_kinds.is_terminated(before.text):
            return True
        return continues(before.text, line.text, self._margins.get(first, self.margin))

    def _is_open(self, line: str) -> bool:
        return line[-1] in ",(" or (bool(self.margin) and line_kinds.width(line) + 8 > self.margin)

    def _paragraph(self, first: int, last: int) -> None:
        """The sentences of a paragraph or of a list item."""
        marker = self._lines[first].marker if self._is_item(first) else None
        start, end = self._lines[first].start, self._lines[last - 1].end
        if marker is not None:
            self._enter(marker, self._lines[first].indent)
        if marker is not None or self._marked:
            context = self._leads()
            kind: UnitKind = "item" if context or marker is None or marker.kind != "circled" else "sentence"
        else:
            if not (self._levels and self._lines[first].indent > self._levels[-1].indent):
                self._levels.clear()
            lead = self._introduction(only_colon=True)
            context, kind = (lead,) if lead is not None else (), "sentence"
        self._marked = False
        for piece_start, piece_end in _sentences(self._text, start, end):
            if line_kinds.is_division(self._text[piece_start:piece_end]):
                self._levels.clear()
                self._add(piece_start, piece_end, "heading")
                continue
            circled = line_kinds.marker_of(self._text[piece_start:piece_end])
            if circled is not None and circled.kind == "circled" and piece_start > start:
                self._enter(circled, self._lines[first].indent)
                context = self._leads()
            self.units.append(Unit(piece_start, piece_end, kind, context))

    def _leads(self) -> tuple[ContextSpan, ...]:
        return tuple(level.lead for level in self._levels if level.lead is not None)

    def _enter(self, marker: line_kinds.Marker, indent: int) -> None:
        """Closes the lists that a mark ends, or opens the list that it begins."""
        self._seen[marker.kind] = marker.number
        same = [depth for depth, level in enumerate(self._levels) if level.kind == marker.kind]
        beside = [depth for depth in same if self._levels[depth].indent == indent]
        numbered = marker.number > 1 or marker.kind == "circled"
        above = [depth for depth in same if numbered or self._levels[depth].indent > indent]
        if beside or above:
            del self._levels[(beside or above)[-1] + 1 :]
            return
        while self._levels and indent < self._levels[-1].indent:
            self._levels.pop()
        self._levels.append(_Level(marker.kind, indent, self._introduction(indent=indent)))

    def _introductions(self) -> list[ContextSpan]:
        """The caption or lead-in above a table, and the title above a remark in brackets."""
        spans: list[ContextSpan] = []
        place = len(self.units) - 1
        while place >= 0 and len(spans) < 2:
            unit = self.units[place]
            text = self._text[unit.start : unit.end]
            if unit.kind in {"page", "mark", "unit"}:
                place -= 1
                continue
            if unit.kind != "heading" or line_kinds.is_division(text):
                break
            spans.append(ContextSpan("lead_in", unit.start, unit.end))
            place -= 1
            if text[0] != "(":
                break
        if not spans and (above := self._introduction()) is not None:
            spans.append(above)
        elif (announcement := self._announcement(place)) is not None:
            spans.append(announcement)
        return spans

    def _announcement(self, place: int) -> ContextSpan | None:
        """The sentence that announces the table, with other sentences or a caption between both; it becomes a lead-in.

        ("The following limits apply. Ask Finance about other cities.", then the table.)
        """
        for at in range(place, max(-1, place - SENTENCES_BETWEEN - 1), -1):
            unit = self.units[at]
            if unit.kind != "sentence":
                return None
            text = self._text[unit.start : unit.end]
            if line_kinds.announces_table(text):
                if not line_kinds.says_something(text):
                    self.units[at] = replace(unit, kind="lead_in")
                return ContextSpan("lead_in", unit.start, unit.end)
        return None

    def _introduction(self, *, only_colon: bool = False, indent: int = 0) -> ContextSpan | None:
        """The unit right above, if it introduces what follows; a sentence that does so becomes a lead-in."""
        place = len(self.units) - 1
        while place >= 0 and self.units[place].kind in {"page", "mark", "unit"}:
            place -= 1
        if place < 0:
            return None
        unit = self.units[place]
        text = self._text[unit.start : unit.end]
        if unit.kind == "heading":
            fits = line_kinds.ends_in_colon(text) if only_colon else not line_kinds.is_division(text)
            return ContextSpan("lead_in", unit.start, unit.end) if fits else None
        if unit.kind == "lead_in" and not only_colon:
            return ContextSpan("lead_in", unit.start, unit.end)
        if unit.kind not in {"sentence", "item"}:
            return None
        nested = unit.kind == "item" and bool(self._levels) and indent > self._levels[-1].indent
        opens = line_kinds.ends_in_colon(text) if only_colon else line_kinds.introduces(text)
        if not opens and not (nested and not line_kinds.is_terminated(text)):
            return None
        if not line_kinds.says_something(text):
            self.units[place] = replace(unit, kind="lead_in")
        return ContextSpan("lead_in", unit.start, unit.end)

    def _table(self, first: int, last: int) -> None:
        """The rows of a table with its headers, its unit, its caption or lead-in."""
        above = self._introductions()
        unit = self._unit_around(first, last)
        self._levels.clear()
        table = Table(self._text, self._lines[first:last], [*above, *([unit] if unit is not None else [])])
        if self._continues_table(table):
            table.continue_from(self._table_above)
        self.units += table.units()
        self._table_above = table

    def _continues_table(self, table: Table) -> bool:
        """Whether the table is the rest of the one above: nothing but a page break or a caption is between them."""
        for unit in reversed(self.units):
            if unit.kind in {"row", "header"}:
                break
            between = self._text[unit.start : unit.end]
            if unit.kind not in {"page", "mark", "unit"} and not line_kinds.is_continuation(between):
                return False
        return self._table_above is not None

    def _unit_around(self, first: int, last: int) -> ContextSpan | None:
        """The unit of the values that a line above the table names, or the line below it."""
        above = [line for line in self._lines[max(0, first - 2) : first] if not line_kinds.is_terminated(line.text)]
        for line in (*reversed(above), *self._lines[last : last + 1]):
            span = line_kinds.unit_span(line.text)
            if span is not None:
                return ContextSpan("unit", line.start + span[0], line.start + span[1])
        return None

    def _close(self) -> None:
        """A sentence at the end that introduces items is a lead-in, although its items are in the next passage."""
        if self.units and self.units[-1].kind in {"sentence", "item"}:
            unit = self.units[-1]
            if line_kinds.refers_to_items(self._text[unit.start : unit.end]):
                self.units[-1] = replace(unit, kind="lead_in")

    def _add(self, start: int, end: int, kind: UnitKind) -> None:
        if kind not in {"page", "mark", "unit"}:
            self._levels.clear()
        self.units.append(Unit(start, end, kind))


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The sentences of a paragraph; marks such as ① or 1. belong to the next one, amendment marks to the one before."""
    begin = start
    for match in _BOUNDARY.finditer(text, start, end):
        stop = match.end("closing") if match["closing"] else match.start()
        if stop <= begin or _is_mark(text[begin:stop].strip()):
            continue
        if match["closing"] is not None and _is_abbreviated(text, begin, match.start()):
            continue
        yield begin, stop
        begin = match.end()
    if begin < end:
        yield begin, end


def _is_mark(piece: str) -> bool:
    return _MARK_ONLY.match(piece) is not None


def _is_abbreviated(text: str, start: int, end: int) -> bool:
    """Whether no sentence ends here; 다. in a broken line is the end of a verb, at the beginning it is a list mark."""
    if "가" <= text[end - 2] <= "힣" and end - 2 > start:
        return False
    return ends_in_abbreviation(text, start, end)


def _first_names(lines: Sequence[Line]) -> dict[str, int]:
    """How many lines of the form `name: value; name: value` begin with each name: rows of a list of values."""
    names: dict[str, int] = {}
    for line in lines:
        if "; " in line.text and (match := _PAIRS.match(line.text)):
            names[match[1]] = names.get(match[1], 0) + 1
    return names
