"""The table of contents of a regulation book: names and their codes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dtrag.core.text.patterns import explained
from dtrag.regulations.korean.document_lines import DocumentLine
from dtrag.regulations.korean.heads import LONGEST_NAME, article_head, division_head, is_history

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
    end = 0
    entries = []
    for match in _ENTRY.finditer(text):
        if text[end : match.start()].strip(" |"):
            return
        end = match.end()
        entries.append((match["name"].strip(), match["code"]))
    if not text[end:].strip(" |"):
        yield from entries
