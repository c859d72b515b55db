"""Originals: the files of documents as they were read, and where a text of the document is on their pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dtrag.core.page_starts import PageStart
from dtrag.core.response import response

Box = tuple[float, float, float, float]
"""Left, top, right and bottom, in shares of the width and height of the page."""
CONTEXT = 400
"""Characters before and after a text that tell apart several places of it."""


class SoughtText(NamedTuple):
    """A text that is looked for on a page, whose number counts from 1, and what is around it."""

    page: int
    before: str
    quoted: str
    after: str


@dataclass(frozen=True, slots=True)
class MarkedPage:
    """A page on which a text is."""

    __pydantic_config__ = response("MarkedPageShape")

    page: int
    """Its number, from 1."""
    boxes: tuple[Box, ...]
    """Where the text is, a box for each line: left, top, right and bottom in shares of the page (0 to 1). [] where its
    letters are not exactly so on the page, such as those of a scanned one."""


@dataclass(frozen=True, slots=True)
class OriginalPages:
    """The pages of an original, and those on which a text of the document is."""

    __pydantic_config__ = response("OriginalPagesShape")

    document_id: str
    """The document."""
    pages: int
    """Number of pages of its original."""
    marked: tuple[MarkedPage, ...]
    """The pages on which the text is, in order; [] without one."""


def sought_on_pages(starts: Sequence[PageStart], text: str, at: int, start: int, end: int) -> list[SoughtText]:
    """The part of the span `start` to `end` on each page. `text` begins at `at`; `starts` are the pages in it."""
    sought = []
    ends = [*(offset for offset, _ in starts[1:]), at + len(text)]
    for (offset, page), page_end in zip(starts, ends, strict=True):
        first, last = max(start, offset) - at, min(end, page_end) - at
        if first < last and text[first:last].strip():
            before, after = text[max(0, first - CONTEXT) : first], text[last : last + CONTEXT]
            sought.append(SoughtText(page, before, text[first:last], after))
    return sought
