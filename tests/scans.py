"""Pictures of pages as a scanner gives them, drawn with a Korean font; tests that read them need tesseract."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont

from dtrag.adapters.parsers import ocr

FONT = Path("/usr/share/fonts/truetype/nanum/NanumMyeongjo.ttf")
needs_tesseract = pytest.mark.skipif(
    "kor" not in ocr.installed_languages() or not FONT.is_file(),
    reason="needs tesseract with kor, and the font Nanum: apt-get install tesseract-ocr-kor fonts-nanum",
)
DPI = 150


def drawn(lines: Sequence[str], table: Sequence[Sequence[str]] = (), dpi: int = DPI) -> Image.Image:
    """A page of A4 with the lines in 11 points and a ruled table below them."""
    scale = dpi / 72
    image = Image.new("L", (round(595 * scale), round(842 * scale)), 255)
    draw, font = ImageDraw.Draw(image), ImageFont.truetype(str(FONT), round(11 * scale))
    for number, line in enumerate(lines):
        draw.text((60 * scale, (60 + 18 * number) * scale), line, font=font, fill=0)
    for y, row in enumerate(table):
        for x, text in enumerate(row):
            left, top = (60 + 115 * x) * scale, (80 + 18 * len(lines) + 22 * y) * scale
            draw.rectangle((left, top, left + 115 * scale, top + 22 * scale), outline=0, width=round(scale))
            draw.text((left + 6 * scale, top + 4 * scale), text, font=font, fill=0)
    return image


def saved(images: Sequence[Image.Image], kind: str, dpi: int = DPI) -> bytes:
    """The pages as a file of the kind: PNG, JPEG, TIFF or PDF."""
    buffer = io.BytesIO()
    resolution = {"resolution": dpi} if kind == "PDF" else {"dpi": (dpi, dpi)}
    several = {"save_all": True, "append_images": images[1:]} if len(images) > 1 else {}
    images[0].save(buffer, kind, **resolution, **several)
    return buffer.getvalue()
