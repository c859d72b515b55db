"""Pictures of pages (PNG, JPEG, TIFF with several pages) by text recognition, decoded with Pillow (extra `ocr`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dtrag.adapters.parsers import ocr
from dtrag.adapters.parsers.blocks import title_of
from dtrag.adapters.parsers.formats import format_of
from dtrag.adapters.parsers.page_margins import PageText
from dtrag.adapters.parsers.pdf import paged_document
from dtrag.core.documents import ParsedDocument
from dtrag.core.statements import stated
from dtrag.errors import ParseFailed

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_PIXELS = 80_000_000
"""A page of A3 at 600 dpi has 70 million; decoded they take 320 MB."""
WIDTH = 8.27
"""Inches of A4, the width that a picture without a resolution is taken to have."""
NO_TEXT = stated("ocr_no_text", "no text in it: OCR (text recognition) found none")


def parse(path: Path, name: str) -> Iterator[ParsedDocument]:
    """One document with the metadata `pages`, `ocr_pages` and `ocr_languages`. Raises `ParseFailed`."""
    if not ocr.is_usable():
        raise ocr.not_read([1])
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None  # `_grey` refuses them, with a reason
    chosen = format_of(name)
    pages: dict[int, PageText] = {}
    with path.open("rb") as file, Image.open(file, formats=(chosen.label,)) as image:
        count = getattr(image, "n_frames", 1) if chosen.label == "TIFF" else 1
        ocr.check_count(count)
        for number in range(count):
            if number:
                image.seek(number)
            pages[number + 1] = ocr.recognise(*_grey(image))
    yield paged_document(
        pages,
        title=title_of(None, name),
        content_type=chosen.content_type,
        metadata={"pages": count},
        no_text=NO_TEXT,
    )


def _grey(image: Image) -> tuple[ocr.Grey, float]:
    """The bitmap of the current page, dark on light and upright, and its resolution."""
    import numpy as np
    from PIL import Image, ImageOps

    if image.width * image.height > MAX_PIXELS:
        text = "it has a picture of {width} x {height} pixels; more than {limit} million are refused"
        facts = {"width": image.width, "height": image.height, "limit": MAX_PIXELS // 1_000_000}
        raise ParseFailed(stated("picture_large", text, **facts))
    dpi = float(image.info.get("dpi", (0, 0))[0])
    image.draft("L", None)
    if image.mode.startswith("I"):
        upright: Image.Image = Image.fromarray((np.asarray(image) >> 8).clip(0, 255).astype(np.uint8))
    else:
        if image.has_transparency_data:
            colours = image.convert("RGBA")
            paper = Image.new("RGBA", colours.size, "white")
            paper.alpha_composite(colours)
            upright = paper.convert("L")
        else:
            upright = image.convert("L")
        upright = ImageOps.exif_transpose(upright)
    if not ocr.MIN_DPI < dpi <= ocr.MAX_DPI:
        dpi = upright.width / WIDTH
    factor = 1
    while upright.width * upright.height > ocr.MAX_PIXELS * factor * factor:
        factor += 1
    grey = np.asarray(upright.reduce(factor) if factor > 1 else upright)
    return grey, dpi / factor
