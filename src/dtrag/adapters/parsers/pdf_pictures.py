"""Pages of a PDF that are pictures of text: which these are, and their text by recognition (extra `ocr`: pypdfium2)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import IO

from pypdf import PageObject
from pypdf.generic import ArrayObject, ContentStream, DictionaryObject, StreamObject

from dtrag.adapters.parsers import ocr
from dtrag.adapters.parsers.page_margins import PageLine, PageText
from dtrag.core.statements import stated
from dtrag.errors import ParseFailed

FEWEST_LETTERS = 25
"""Letters from which a page has a text of its own; a scanned page may have a stamp or the number of the page."""
COVERED, COVERED_BARE = 0.5, 0.02
"""Share of a page that pictures cover, if it is a scanned page with a few letters, and if it has none."""
OUTLINES = 100
"""Filled or drawn paths of a page without letters, from which these may be the outlines of letters."""
DEEPEST_FORM = 4
Matrix = tuple[float, float, float, float]
_PAINTS = {b"f", b"F", b"f*", b"B", b"B*", b"b", b"b*", b"S", b"s"}


def needs_ocr(page: PageObject, lines: Sequence[PageLine]) -> bool:
    """Whether a page has too few letters for a text, but pictures or outlines that may have one."""
    letters = sum(len("".join(line.text.split())) for line in lines)
    if letters >= FEWEST_LETTERS:
        return False
    try:
        painted = list(_painted(page, page.get("/Contents"), (1, 0, 0, 1), DEEPEST_FORM))
        area = abs(float(page.mediabox.width) * float(page.mediabox.height))
    except Exception:  # noqa: BLE001 - a boundary with an alternative: recognition looks at a page without letters
        return letters == 0
    outlines = painted.count(0.0)
    return sum(painted) >= (COVERED if letters else COVERED_BARE) * area or (not letters and outlines >= OUTLINES)


def _painted(page: PageObject, contents: object, matrix: Matrix, depth: int, holder: object = None) -> Iterator[float]:
    """The area of each picture in square points, and 0 for each path."""
    contents = contents.get_object() if hasattr(contents, "get_object") else contents
    if not isinstance(contents, ArrayObject | StreamObject):
        return
    owner = holder if isinstance(holder, DictionaryObject) else page
    resources = owner.get("/Resources", DictionaryObject()).get_object()
    objects = resources.get("/XObject", DictionaryObject()).get_object()
    stack = []
    for operands, operator in ContentStream(contents, page.pdf).operations:
        if operator == b"q":
            stack.append(matrix)
        elif operator == b"Q" and stack:
            matrix = stack.pop()
        elif operator == b"cm":
            matrix = _times(operands, matrix)
        elif operator == b"INLINE IMAGE":
            yield _area(matrix)
        elif operator in _PAINTS:
            yield 0.0
        elif operator == b"Do" and operands[0] in objects:
            drawn = objects[operands[0]].get_object()
            if drawn.get("/Subtype") == "/Image":
                yield _area(matrix)
            elif depth and drawn.get("/Subtype") == "/Form":
                inner = _times(drawn.get("/Matrix", [1, 0, 0, 1]), matrix)
                yield from _painted(page, drawn, inner, depth - 1, drawn)


def _times(first: Sequence[object], second: Matrix) -> Matrix:
    a, b, c, d = (float(str(value)) for value in first[:4])
    e, f, g, h = second
    return a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h


def _area(matrix: Matrix) -> float:
    return abs(matrix[0] * matrix[3] - matrix[1] * matrix[2])


def recognised(file: IO[bytes], numbers: Sequence[int]) -> dict[int, PageText]:
    """The pages with these numbers from 1, rendered and recognised. Raises `ParseFailed`."""
    import pypdfium2

    ocr.check_count(len(numbers))
    file.seek(0)
    with pypdfium2.PdfDocument(file.read()) as document:
        return {number: _recognised(document[number - 1]) for number in numbers}


def _recognised(page: object) -> PageText:
    width, height = page.get_size()  # type: ignore[attr-defined]
    dpi = min(ocr.DPI, 72 * math.sqrt(ocr.MAX_PIXELS / max(1.0, width * height)))
    if dpi < ocr.MIN_DPI:
        text = "it has a scanned page of {width} x {height} points, which is too large"
        raise ParseFailed(stated("ocr_page_large", text, width=round(width), height=round(height)))
    bitmap = page.render(scale=dpi / 72, grayscale=True)  # type: ignore[attr-defined]
    return ocr.recognise(bitmap.to_numpy().reshape(bitmap.height, -1)[:, : bitmap.width].copy(), dpi)
