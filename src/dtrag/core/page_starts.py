"""Pages of a PDF: where each begins in the text, and the page of a position.

A passage stores them in its metadata: `page` is the page of its first character; `page_breaks` are the pages that begin
inside it, as `offset:page` in characters of the passage, such as `350:4 1200:5`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

PageStart = tuple[int, int]
"""Offset of the first character of a page, and the number of the page from 1."""

_BREAK = re.compile(r"\b(\d{1,9}):(\d{1,9})\b")


def page_starts_within(starts: Sequence[PageStart], start: int, end: int) -> tuple[PageStart, ...]:
    """The pages of `text[start:end]`, counted from `start`: the first is the page on which it begins."""
    first = max(0, bisect_right(starts, start, key=itemgetter(0)) - 1)
    last = bisect_left(starts, end, lo=first, key=itemgetter(0))
    return tuple((max(0, offset - start), number) for offset, number in starts[first:last])


def page_metadata(starts: Sequence[PageStart], start: int, end: int) -> dict[str, str | int]:
    """What the passage `text[start:end]` stores; empty for a text without pages."""
    pages = page_starts_within(starts, start, end)
    if not pages or pages[0][0] > 0:
        return {}
    breaks = " ".join(f"{offset}:{number}" for offset, number in pages[1:])
    return {"page": pages[0][1], **({"page_breaks": breaks} if breaks else {})}


def stored_page_starts(metadata: Mapping[str, Any], start: int) -> list[PageStart]:
    """The pages of a passage that begins at `start`, from its metadata; empty if they are unknown."""
    page = metadata.get("page")
    if not isinstance(page, int):
        return []
    breaks = _BREAK.findall(str(metadata.get("page_breaks", "")))
    return [(start, page), *((start + int(offset), int(number)) for offset, number in breaks)]


def page_at(metadata: Mapping[str, Any], offset: int = 0) -> int | None:
    """The page of a character of the passage with this metadata; None if it is unknown.

    Passages that were stored without `page_breaks` have one page for all characters.
    """
    page = metadata.get("page")
    if not isinstance(page, int):
        return None
    for start, number in _BREAK.findall(str(metadata.get("page_breaks", ""))):
        if int(start) > offset:
            break
        page = int(number)
    return page


def page_ranges(pages: Sequence[int]) -> str:
    """`1-3, 7` of ascending numbers; `…` after ten ranges."""
    ranges: list[list[int]] = []
    for page in pages:
        if ranges and ranges[-1][-1] == page - 1:
            ranges[-1][1:] = [page]
        else:
            ranges.append([page])
    shown = ", ".join("-".join(map(str, each)) for each in ranges[:10])
    return shown + (", …" if len(ranges) > 10 else "")
