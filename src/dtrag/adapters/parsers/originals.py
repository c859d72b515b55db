"""Pages of a stored PDF: as a picture, and where a text is on them (extra `originals`: pillow and pypdfium2)."""

from __future__ import annotations

import ctypes
import functools
import io
import itertools
import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from dtrag.core.originals import Box, SoughtText
from dtrag.core.statements import stated
from dtrag.errors import ParseFailed

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage, PdfTextPage

WIDTH, MAX_PIXELS = 1_600, 4_000_000
"""Of a picture: its width in pixels, unless it would have more of them."""
MAX_CHARACTERS = 200_000
"""Of a page, that a text is looked for in."""
MAX_BOXES = 500
Rectangle = tuple[float, float, float, float]
"""Left, bottom, right and top, in points from the bottom left of the page."""
_DEVICE = 1_000_000
"""Width and height of the page in the units in which boxes are computed."""


def picture(pdf: bytes, number: int) -> bytes:
    """The page with this number from 1, as a PNG. Raises `ParseFailed`."""
    import pypdfium2

    with pypdfium2.PdfDocument(pdf) as document:
        page = _page(document, number)
        width, height = (max(1.0, side) for side in page.get_size())
        scale = min(WIDTH / width, math.sqrt(MAX_PIXELS / (width * height)))
        file = io.BytesIO()
        page.render(scale=scale).to_pil().save(file, "PNG")
        return file.getvalue()


def places(pdf: bytes, sought: Sequence[SoughtText]) -> tuple[int, list[list[Box]]]:
    """The number of pages, and for each text the boxes of its lines on its page, [] where it is not exactly once.

    Raises `ParseFailed`.
    """
    import pypdfium2

    with pypdfium2.PdfDocument(pdf) as document:
        return len(document), [_boxes(_page(document, text.page), text) for text in sought]


def _page(document: PdfDocument, number: int) -> PdfPage:
    if not 1 <= number <= len(document):
        raise ParseFailed(stated("original_page", "it has the pages 1 to {pages}", pages=len(document)))
    return document[number - 1]


def _boxes(page: PdfPage, sought: SoughtText) -> list[Box]:
    text_page = page.get_textpage()
    letters, indices = _letters(text_page)
    quoted = letters_of(sought.quoted)
    start = position(letters, letters_of(sought.before), quoted, letters_of(sought.after))
    if start is None:
        return []
    first, last = indices[start], indices[start + len(quoted) - 1]
    if first in indices[start - 1 : start] or last in indices[start + len(quoted) : start + len(quoted) + 1]:
        return []  # it begins or ends inside of a character, such as a syllable
    count = text_page.count_rects(first, last - first + 1)
    lines = itertools.islice(_lines(map(text_page.get_rect, range(count))), MAX_BOXES)
    return [box for line in lines if (box := _shares(page, line)) is not None]


def _lines(rectangles: Iterable[Rectangle]) -> Iterator[Rectangle]:
    """Rectangles beside each other as one: some files place each character by itself."""
    line: Rectangle | None = None
    for left, bottom, right, top in rectangles:
        if line is not None:
            height = max(top - bottom, line[3] - line[1])
            is_beside = min(top, line[3]) - max(bottom, line[1]) > height / 2 and -height < left - line[2] < height
            if is_beside:
                line = min(left, line[0]), min(bottom, line[1]), max(right, line[2]), max(top, line[3])
                continue
            yield line
        line = left, bottom, right, top
    if line is not None:
        yield line


def _letters(text_page: PdfTextPage) -> tuple[str, list[int]]:
    """The letters and figures of a page, and for each the index of its character there."""
    from pypdfium2 import raw

    pieces: list[str] = []
    indices: list[int] = []
    for index in range(min(MAX_CHARACTERS, text_page.count_chars())):
        letters = _letters_of_character(raw.FPDFText_GetUnicode(text_page, index))
        pieces.append(letters)
        indices += [index] * len(letters)
    return "".join(pieces), indices


@functools.lru_cache(maxsize=4_096)
def _letters_of_character(code: int) -> str:
    return letters_of(chr(code))


def letters_of(text: str) -> str:
    """Letters and figures only, decomposed: hyphens at ends of lines and separators of cells are in one text only."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKD", text)))


def position(letters: str, before: str, quoted: str, after: str) -> int | None:
    """Where `quoted` is in `letters`: of several places the one whose surroundings agree most; None if none does."""
    if not quoted:
        return None
    places = [
        (_common(reversed(before), letters[:at][::-1]) + _common(after, letters[at + len(quoted) :]), at)
        for at in _occurrences(letters, quoted)
    ]
    best = max(places, default=(0, None))
    return best[1] if [agreeing for agreeing, _ in places].count(best[0]) == 1 else None


def _occurrences(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _common(first: Iterator[str] | str, second: str) -> int:
    """Characters that both begin with."""
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


def _shares(page: PdfPage, rectangle: Rectangle) -> Box | None:
    """A rectangle of the page in shares of its picture; None outside of it."""
    left, bottom, right, top = rectangle
    corners = [_device(page, x, y) for x, y in ((left, top), (right, bottom))]  # a page may be rotated
    shares = [[min(max(0.0, side / _DEVICE), 1.0) for side in corner] for corner in corners]
    (left, right), (top, bottom) = map(sorted, zip(*shares, strict=True))
    return (left, top, right, bottom) if left < right and top < bottom else None


def _device(page: PdfPage, x: float, y: float) -> tuple[int, int]:
    from pypdfium2 import raw

    across, down = ctypes.c_int(), ctypes.c_int()
    raw.FPDF_PageToDevice(page, 0, 0, _DEVICE, _DEVICE, 0, x, y, ctypes.byref(across), ctypes.byref(down))
    return across.value, down.value
