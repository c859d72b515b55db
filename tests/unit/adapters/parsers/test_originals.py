"""Where a text is on the pages of a PDF: boxes that hold exactly its letters, or none."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Sequence
from itertools import count

import pypdfium2
import pytest
import pytest_asyncio
from PIL import Image
from tests.pdf_writer import Placed, write_pdf

from dtrag.adapters.parsers.originals import MAX_PIXELS, WIDTH, letters_of
from dtrag.adapters.parsers.process import ParserProcess
from dtrag.core.originals import Box, SoughtText, sought_on_pages
from dtrag.core.page_starts import stored_page_starts
from dtrag.errors import MissingExtra, ParseFailed


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def reader() -> AsyncIterator[ParserProcess]:
    process = ParserProcess()
    yield process
    await process.close()


pytestmark = pytest.mark.asyncio(loop_scope="module")


def in_boxes(pdf: bytes, page: int, boxes: Sequence[Box]) -> str:
    """The letters that are in the boxes, as another look at the page reads them."""
    shown = pypdfium2.PdfDocument(pdf)[page - 1]
    width, height = shown.get_size()
    text = shown.get_textpage()
    return "".join(
        letters_of(text.get_text_bounded(left * width, height - bottom * height, right * width, height - top * height))
        for left, top, right, bottom in boxes
    )


def column(x: float, lines: Sequence[str]) -> list[Placed]:
    return [Placed(x, y, line) for y, line in zip(count(780, -14), lines, strict=False)]


LEFT = ["The boiler is", "looked after on", "Monday, and the", "garden on Tues-", "day by the warden."]
RIGHT = ["휴학은 두 학기까지", "할 수 있으며, 학과장", "의 승인을 받아야 한다.", "The boiler is", "replaced in May."]


@pytest.mark.parametrize(
    ("quoted", "lines"),
    [
        ("looked after on Monday, and the garden on Tuesday", 4),
        ("휴학은 두 학기까지 할 수 있으며, 학과장의 승인을", 3),
        ("학기까지 | 할 수", 2),
        ("Monday", 1),
    ],
)
async def test_boxes_hold_exactly_the_quotation(reader: ParserProcess, quoted: str, lines: int) -> None:
    pdf = write_pdf([column(60, LEFT) + column(320, RIGHT)])
    pages, [boxes] = await reader.places(pdf, [SoughtText(1, "", quoted, "")])
    assert (pages, len(boxes)) == (1, lines)
    assert in_boxes(pdf, 1, boxes) == letters_of(quoted)
    in_right_column = quoted[0] in "휴학"
    assert all((left > 0.5) == (right > 0.5) == in_right_column for left, _, right, _ in boxes)
    assert [box[1] for box in boxes] == sorted(box[1] for box in boxes)


async def test_surroundings_tell_apart_what_is_there_twice(reader: ParserProcess) -> None:
    pdf = write_pdf([column(60, LEFT) + column(320, RIGHT)])
    sought = [
        SoughtText(1, "", "The boiler is", " looked after"),
        SoughtText(1, "승인을 받아야 한다. ", "The boiler is", ""),
        SoughtText(1, "", "The boiler is", ""),
        SoughtText(1, "", "The boilers are", ""),
        SoughtText(1, "", "…", ""),
        SoughtText(1, "", "학과자", ""),
    ]
    _, boxes = await reader.places(pdf, sought)
    assert [len(each) for each in boxes] == [1, 1, 0, 0, 0, 0]
    assert boxes[0][0][0] < 0.5 < boxes[1][0][0]


async def test_a_text_on_two_pages_has_boxes_on_both(reader: ParserProcess) -> None:
    pdf = write_pdf([column(60, ["The kettle", "boils water"]), column(60, ["in the hall", "at noon."])])
    text = "The kettle boils water in the hall at noon."
    starts = stored_page_starts({"page": 1, "page_breaks": "23:2"}, 0)
    sought = sought_on_pages(starts, text, 0, text.index("boils"), text.index(" at"))
    assert [(each.page, each.quoted.strip()) for each in sought] == [(1, "boils water"), (2, "in the hall")]
    pages, boxes = await reader.places(pdf, sought)
    assert pages == 2
    assert [in_boxes(pdf, each.page, found) for each, found in zip(sought, boxes, strict=True)] == [
        "boilswater",
        "inthehall",
    ]


async def test_boxes_follow_the_rotation_of_the_page(reader: ParserProcess) -> None:
    pdf = write_pdf([[Placed(60, 780, "The kettle boils")]])
    _, [[upright]] = await reader.places(pdf, [SoughtText(1, "", "kettle", "")])
    rotated = pdf.replace(b"/MediaBox", b"/Rotate 90 /MediaBox")
    _, [[turned]] = await reader.places(rotated, [SoughtText(1, "", "kettle", "")])
    assert turned == pytest.approx((1 - upright[3], upright[0], 1 - upright[1], upright[2]), abs=1e-5)


async def test_pictures_have_a_bounded_size(reader: ParserProcess) -> None:
    a4 = write_pdf([[Placed(60, 780, "The kettle boils")]])
    for size, at_most in ((b"0 0 595 842", WIDTH), (b"0 0 14000 14000", WIDTH), (b"0 0 2 14000", MAX_PIXELS)):
        png = await reader.picture(a4.replace(b"0 0 595 842", size), 1)
        with Image.open(io.BytesIO(png)) as picture:
            assert picture.format == "PNG"
            assert picture.width <= at_most + 1
            assert picture.width * picture.height <= 1.01 * MAX_PIXELS


async def test_what_cannot_be_shown_has_a_reason(reader: ParserProcess) -> None:
    pdf = write_pdf([[Placed(60, 780, "The kettle boils")]])
    for number in (0, 2):
        with pytest.raises(ParseFailed, match="it has the pages 1 to 1"):
            await reader.picture(pdf, number)
    with pytest.raises(ParseFailed, match="the PDF is damaged"):
        await reader.picture(b"%PDF-1.7 nothing", 1)
    assert await reader.picture(pdf, 1)


async def test_without_the_extra_the_error_names_it(reader: ParserProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'dtrag\[originals\]'"):
        await reader.picture(b"", 1)
