"""Running headers, footers and page numbers of a paged document: lines that repeat at the same height of the page."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from dtrag.core.text.patterns import explained

if TYPE_CHECKING:
    from dtrag.adapters.parsers.pdf_tables import PageTable

EDGE_LINES = 2
"""Lines at the top and at the bottom of a page that may be a header or a footer."""
FEWEST_PAGES = 3
"""Pages in a row on which a header is repeated; for a page number alone, two are enough."""
WIDEST_GAP = 2
"""Distance of two of these pages: facing pages have headers of their own."""
MOST_NUMBERS = 4
_NUMBER = re.compile(r"\d{1,6}")
_PAGE_NUMBER = re.compile(r"[\W_]*(?:page|쪽|p\.)?\s?#(?:\s?(?:/|of)\s?#)?\s?쪽?[\W_]*", re.IGNORECASE)
_HEADING = explained(
    r"\s*(?:제?\s?\d+\s?[장절조관편항]|부\s*칙|[\[<(【]?\s*(?:별\s*[표지첨]|서\s*식)|[①-⑳]|\d{1,3}[.)]|[가-하][.)])",
    finds=("제3장", "[별표 1]"),
    refuses="제3호",
)

Key = tuple[str, int, tuple[str, ...]]
"""Text with `#` for numbers, height, and the numbers: each as it is written, or as its distance to that of the page."""


@dataclass(frozen=True, slots=True)
class PageLine:
    """A line of a page. `size` is that of its font, `height` its distance from the lower edge, both in points.

    With `is_table`, the text is all rows of a table, and `height` that of the first.
    """

    text: str
    size: float
    height: float
    is_table: bool = False


@dataclass(frozen=True, slots=True)
class PageText:
    """The lines of a page from the top and its tables; of a recognised page also the confidence of each word."""

    lines: Sequence[PageLine]
    tables: Sequence[PageTable] = ()
    confidences: Mapping[str, int] = field(default_factory=dict)


def without_margins(pages: Sequence[Sequence[PageLine]]) -> list[list[PageLine]]:
    """The pages without running headers, footers and page numbers.

    The only number that may change is that of the page. A line that could be a heading or an item of the text (제1장)
    is a header only if it is the first or the last line of its pages and its own number does not change.
    """
    keys = [{line: list(_keys(line, page, is_outermost)) for line, is_outermost in _edges(lines)}
            for page, lines in enumerate(pages)]  # fmt: skip
    pages_by_key: dict[Key, list[int]] = defaultdict(list)
    for page, edges in enumerate(keys):
        for key in {key for keys_of_line in edges.values() for key in keys_of_line}:
            pages_by_key[key].append(page)
    repeated = {key for key, on in pages_by_key.items() if _is_repeated(key, on)}
    return [
        [line for line in lines if line not in edges or repeated.isdisjoint(edges[line])]
        for lines, edges in zip(pages, keys, strict=True)
    ]


def _edges(lines: Sequence[PageLine]) -> Iterator[tuple[PageLine, bool]]:
    """The lines at the top and at the bottom, and whether each is the outermost one."""
    by_height = sorted((line for line in lines if line.text.strip()), key=lambda line: -line.height)
    for line in (*by_height[:EDGE_LINES], *by_height[EDGE_LINES:][-EDGE_LINES:]):
        yield line, line is by_height[0] or line is by_height[-1]


def _keys(line: PageLine, page: int, is_outermost: bool) -> Iterator[Key]:
    is_heading = _HEADING.match(line.text) is not None
    if is_heading and not is_outermost:
        return
    text, height = "".join(line.text.split()), round(line.height)
    numbers = tuple(_NUMBER.findall(text))
    text = _NUMBER.sub("#", text)
    yield text, height, numbers
    if len(numbers) <= MOST_NUMBERS:
        for place, number in list(enumerate(numbers))[is_heading:]:
            yield text, height, (*numbers[:place], f"page{int(number) - page:+}", *numbers[place + 1 :])


def _is_repeated(key: Key, pages: Sequence[int]) -> bool:
    text, _, numbers = key
    if _PAGE_NUMBER.fullmatch(text) and any(number.startswith("page") for number in numbers):
        return len(pages) > 1
    run = longest = 1
    for before, page in pairwise(pages):
        run = run + 1 if page - before <= WIDEST_GAP else 1
        longest = max(longest, run)
    return longest >= FEWEST_PAGES
