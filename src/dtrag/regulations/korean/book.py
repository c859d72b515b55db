"""Finds the regulations in a document: where each begins and ends, its name and its code; tables of contents.

A regulation begins at a line that may be a name and is followed by 제1조, with only history, headings of
chapters and the like in between. Style names, heading levels, the table of contents and the ending of the name are used
as evidence where a 제1조 may also belong to the preceding text (an addendum or a form).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dtrag.core.text.patterns import explained
from dtrag.regulations.korean.heads import (
    LONGEST_NAME,
    DocumentLine,
    addendum_head,
    appendix_head,
    article_head,
    cites,
    division_head,
    has_name_ending,
    is_abolished,
    is_history,
    is_name_style,
    may_be_name,
)

LONGEST_PREAMBLE = 40
"""Lines between a name and its 제1조: the headings of a part and a chapter, and a history of amendments."""
MOST_PROSE = 3
"""How many of them may be neither history nor heading (a motto, a sentence of introduction)."""
LONGEST_COVER_LINE = 20
"""Characters of a line of a cover, such as the name of a part below its number."""
_NUMBER = re.compile(r"\s*제\s*\d+\s*[편장절관]")
COVER_LINES = 10
"""Lines of a cover (`제 3 편`, `제 1 장 일반 행정`) before the contents table of a part."""


@dataclass(frozen=True, slots=True)
class Span:
    """Lines `[first, last)` of one regulation; `body` is the first line after the name (`first` if there is none).

    `headings` are those of the book above it, outermost first: `제3편 행정`, `제1장 일반 행정`.
    """

    first: int
    body: int
    last: int
    name: str
    code: str
    headings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Start:
    first: int
    body: int
    name: str
    code: str = ""
    level: int = 0
    alive: bool = True


def find_regulations(lines: Sequence[DocumentLine], contents: Contents, fallback: str) -> list[Span]:
    """The spans in order; `fallback` names a text whose 제1조 has no name line before it."""
    starts = _starts(lines, contents, fallback)
    edges = _edges(lines, contents)
    seen: dict[str, int] = {}
    spans: list[Span] = []
    headings: dict[int, str] = {}
    for index, start in enumerate(starts):
        key = folded(start.name)
        code = start.code or contents.code(start.name, seen.get(key, 0))
        seen[key] = seen.get(key, 0) + 1
        if not start.alive:
            continue
        last = _cover_above(lines, starts[index + 1].first, start.body) if index + 1 < len(starts) else len(lines)
        edge = bisect_right(edges, start.body)
        last = min(last, edges[edge]) if edge < len(edges) else last
        headings = _headings(lines, contents, range(spans[-1].last if spans else 0, start.first), headings)
        spans.append(Span(start.first, start.body, last, start.name, code, tuple(headings.values())))
    return spans


def _headings(
    lines: Sequence[DocumentLine], contents: Contents, between: range, above: Mapping[int, str]
) -> dict[int, str]:
    """The headings in effect after the lines between two regulations, by rank; `above` are those before them.

    A cover lists all chapters of a part, and the first one again at the end: the last heading counts.
    """
    for index in between:
        head = None if index in contents.rows else division_head(lines[index].text)
        if head is None:
            continue
        rank, heading = head
        below = lines[index + 1].text if index + 1 in between else ""
        if (
            not _NUMBER.sub("", heading, count=1).strip()
            and len(below) <= LONGEST_COVER_LINE
            and division_head(below) is None
        ):
            heading = f"{heading} {below}"  # 제 3 편 | 행 정
        above = {**{higher: text for higher, text in above.items() if higher < rank}, rank: _unspaced(heading)}
    return dict(above)


def _unspaced(heading: str) -> str:
    """`제 3 편  행 정` as `제3편 행정`."""
    number, name = _NUMBER.match(heading), _NUMBER.sub("", heading, count=1).split()
    joined = ("" if all(len(word) == 1 for word in name) else " ").join(name)
    return f"{''.join(number[0].split()) if number else ''} {joined}".strip()


def _starts(lines: Sequence[DocumentLine], contents: Contents, fallback: str) -> list[_Start]:
    starts: list[_Start] = []
    floor = level = 0
    for index, line in enumerate(lines):
        if line.table or index in contents.rows:
            continue
        if index > floor and is_abolished(line.text) and _is_stub(lines, index, contents):
            name, code = split_label(lines[index - 1].text)
            starts.append(_Start(index - 1, index, name, code, alive=False))
            floor = index + 1
        elif _is_first_article(line):
            start = _named_start(lines, index, floor, level, contents)
            if start is None and not any(start.alive for start in starts):
                start = _unnamed_start(lines, index, fallback)
            if start is not None:
                starts.append(start)
                level = start.level or level
                floor = index + 1
    return starts


def _is_stub(lines: Sequence[DocumentLine], index: int, contents: Contents) -> bool:
    above = lines[index - 1]
    if above.table or index - 1 in contents.rows or not may_be_name(above.text):
        return False
    name, _ = split_label(above.text)
    return (contents.knows(name) or has_name_ending(name)) and not _has_articles(lines, index)


def _has_articles(lines: Sequence[DocumentLine], index: int) -> bool:
    """Whether 제1조 follows the history that begins at `index`: an abolished regulation whose text is still there."""
    for line in lines[index + 1 : index + LONGEST_PREAMBLE]:
        if _is_first_article(line):
            return True
        if not (is_history(line.text) or division_head(line.text)):
            return False
    return False


def _is_first_article(line: DocumentLine) -> bool:
    head = article_head(line.text) if line.text.startswith("제") else None
    if head is None or head.number != 1 or head.minor:
        return False
    return bool(head.title) or line.level > 0 or (head.tail[:1].isspace() and not cites(head.tail))


def _named_start(
    lines: Sequence[DocumentLine], index: int, floor: int, level: int, contents: Contents
) -> _Start | None:
    """The regulation whose name is above the 제1조 at `index`, at the line `floor` or below it; None without a name.

    `level` is the heading level of the names so far in this document (0: none was a heading).
    """
    prose = 0
    for above in range(index - 1, max(floor, index - LONGEST_PREAMBLE) - 1, -1):
        line = lines[above]
        if line.table or above in contents.rows:
            continue
        if _is_stop(line):
            return None
        if division_head(line.text) is not None:
            continue
        name, code = split_label(line.text)
        named_by_level = 0 < line.level <= (level or line.level) and (
            line.level < lines[index].level or not lines[index].level
        )
        if may_be_name(name) and (named_by_level or _is_name(line, name, contents)):
            return _Start(above, above + 1, name, code, line.level)
        if not is_history(line.text):
            prose += 1
            if prose > MOST_PROSE:
                return None
    return None


def _unnamed_start(lines: Sequence[DocumentLine], index: int, fallback: str) -> _Start:
    """The first 제1조 of a text without evidence for a name: the short line right above it, else `fallback`."""
    above = lines[index - 1] if index else None
    if above is None or above.table or is_history(above.text) or division_head(above.text):
        return _Start(index, index, fallback)
    name, code = split_label(above.text)
    return _Start(index - 1, index, name, code) if may_be_name(name) else _Start(index, index, fallback)


def _is_stop(line: DocumentLine) -> bool:
    if addendum_head(line.text) or appendix_head(line.text):
        return True
    return line.text.startswith("제") and article_head(line.text) is not None


def _is_name(line: DocumentLine, name: str, contents: Contents) -> bool:
    return contents.knows(name) or has_name_ending(name) or is_name_style(line.style)


def _cover_above(lines: Sequence[DocumentLine], first: int, floor: int) -> int:
    """The first heading of the next part (`제2편 학사`) above a name: it does not belong to the regulation before."""
    while first - 1 > floor and not lines[first - 1].table and division_head(lines[first - 1].text):
        first -= 1
    return first


def _edges(lines: Sequence[DocumentLine], contents: Contents) -> list[int]:
    """Lines at which a contents table, with the cover before it, ends the regulation above."""
    edges = []
    rows = sorted(contents.rows)
    for row in rows:
        if row - 1 in contents.rows:
            continue
        edge = row
        while edge > 0 and row - edge < COVER_LINES and _is_cover(lines[edge - 1]):
            edge -= 1
        edges.append(edge)
    return edges


def _is_cover(line: DocumentLine) -> bool:
    if division_head(line.text):
        return True
    return len(line.text) <= LONGEST_COVER_LINE and (line.table or line.level > 0) and article_head(line.text) is None


_ENTRY = explained(
    r"(?P<name>[^\s|].{0,80}?)[\s|]*(?P<gone>[【\[(<]\s*폐\s*지\s*[】\])>])?"
    r"(?:[\s|]+|[\s|]*[.·…․‥]{3,}[\s|]*)(?P<code>\d{1,2}(?:-\d{1,4}){1,3})(?=[\s|]|$)",
    finds="교원인사규정 2-1-1",
    refuses="교원인사규정2-1-1",
)
_PAGE_ROW = re.compile(r"(?P<name>\S.{0,80}?)\s*(?:[.·…․‥]\s?){4,}\s*(?:\d{1,4}|-\s*\d{1,4}\s*-)$")
_DOTS = re.compile(r"[\s·․ㆍ・‧•.,\-‐-―~｢｣「」『』]+")
_LABEL = explained(
    r"^\s*(?:(?P<before>\d{1,2}(?:-\d{1,4}){1,3})[.\s]\s*)?(?P<name>.*?)\s*(?:[【\[(<]\s*폐\s*지\s*[】\])>])?\s*$",
    finds="2-1-1. 교원인사규정 [폐지]",
    refuses=(),
)
_CODE_AFTER = re.compile(r"(?:\s*[(\[（【<]\s*|\s)(\d{1,2}(?:-\d{1,4}){1,3})\s*[)\]）】>]?$")
LONGEST_ROW = 400
"""Characters of a row with three entries; longer lines are not searched for entries."""
FEWEST_ENTRIES = 3
"""Minimum number of rows that look like entries for a table of contents."""


def folded(name: str) -> str:
    """The name without blanks, middle dots and hyphens, whose use varies."""
    return _DOTS.sub("", name).casefold()


def split_label(text: str) -> tuple[str, str]:
    """Name and code of a title line: `3-2-23 휴학규정`, `휴학규정 (3-2-23)`, `휴학규정【폐지】`; "" without a code."""
    text = text.strip(" *#_")
    code = ""
    if len(text) > LONGEST_ROW:
        return text, code
    if after := _CODE_AFTER.search(text):
        code, text = after[1], text[: after.start()]
    match = _LABEL.match(text)
    if match is None:
        return text, code
    return " ".join(match["name"].split()), code or match["before"] or ""


@dataclass(slots=True)
class Contents:
    """`codes`: folded name -> its codes in order; `rows`: indexes of the lines that are entries of a contents table."""

    codes: dict[str, list[str]] = field(default_factory=dict)
    rows: frozenset[int] = frozenset()

    def knows(self, name: str) -> bool:
        """Whether the table of contents contains the name."""
        return folded(name) in self.codes

    def code(self, name: str, occurrence: int) -> str:
        """The code of the `occurrence`-th (from 0) regulation of that name; "" when it has none."""
        codes = self.codes.get(folded(name), [])
        return codes[min(occurrence, len(codes) - 1)] if codes else ""


def read_contents(lines: Sequence[DocumentLine]) -> Contents:
    """The entries of all contents tables of the book, which repeats them before each part."""
    codes: dict[str, list[str]] = {}
    rows: list[int] = []
    for index, line in enumerate(lines):
        entries = list(_entries(line.text))
        if not entries:
            continue
        if not _is_title(lines, index):
            rows.append(index)
        for name, code in entries:
            codes_of_name = codes.setdefault(folded(name), [])
            if code and code not in codes_of_name:
                codes_of_name.append(code)
    if sum(map(len, codes.values())) < FEWEST_ENTRIES and len(rows) < FEWEST_ENTRIES:
        return Contents()
    return Contents(codes, frozenset(rows))


def _is_title(lines: Sequence[DocumentLine], index: int) -> bool:
    """Whether the line is the title of the regulation that begins right below it: `휴학규정 3-2-23`, then 제1조."""
    if lines[index].table or index + 1 == len(lines):
        return False
    below = lines[index + 1]
    return not below.table and (_is_head(below.text) or is_history(below.text)) and not any(_entries(below.text))


def _is_head(text: str) -> bool:
    return article_head(text) is not None or division_head(text) is not None


def _entries(text: str) -> Iterator[tuple[str, str]]:
    if len(text) > LONGEST_ROW or not (text[-1].isdigit() or "|" in text or text[-1] == "-"):
        return
    if match := _PAGE_ROW.match(text):
        if len(match["name"]) <= LONGEST_NAME and not _is_head(text):
            yield match["name"], ""
        return
    place, entries = 0, []
    while (place := len(text) - len(text[place:].lstrip(" |"))) < len(text):
        match = _ENTRY.match(text, place)  # a row has nothing but entries: a search would try every start
        if match is None:
            return
        place = match.end()
        entries.append((match["name"].strip(), match["code"]))
    yield from entries
