"""Scanned pages of Korean regulations with a ruled table: characters and cells that OCR reads, and sure figures.

python bench/regulations/ocr.py [--dpi 150 200 300] [--font FILE]
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from pathlib import Path
from random import Random
from unittest.mock import patch

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from dtrag.adapters.parsers import ocr
from dtrag.core.recognised_text import is_uncertain

SAMPLE = Path(__file__).parents[2] / "examples" / "hanbit-university" / "regulations.md"
FONT = "/usr/share/fonts/truetype/nanum/NanumMyeongjo.ttf"
SCANS = {"clean": (0.0, 0.0), "noise": (0.0, 12.0), "turned": (0.4, 0.0), "turned, noise": (-0.3, 12.0)}
"""Degrees by which a page is turned, and the standard deviation of its noise."""
NAMES = "총장 교수 부교수 조교수 강사 직원 조교 학생 외빈 기타".split()
LINES = 12


def cells(random: Random) -> list[list[str]]:
    """A table of amounts, days and shares."""
    names = random.sample(NAMES, 6)
    draw = random.randrange
    rows = [[name, f"{draw(10, 400)},000원", f"{draw(1, 99)}일", f"{draw(1, 99)}%"] for name in names]
    return [["구분", "금액", "기간", "비율"], *rows]


def drawn(lines: list[str], table: list[list[str]], dpi: int, scan: str, font: str = FONT) -> Image.Image:
    """A page of A4 with the lines in 11 points and the table below them, as a scanner gives it."""
    turn, noise = SCANS[scan]
    scale = dpi / 72
    image = Image.new("L", (round(595 * scale), round(842 * scale)), 255)
    draw, letters = ImageDraw.Draw(image), ImageFont.truetype(font, round(11 * scale))
    for number, line in enumerate(lines):
        draw.text((60 * scale, (60 + 18 * number) * scale), line, font=letters, fill=20)
    for y, row in enumerate(table):
        for x, text in enumerate(row):
            left, top = (60 + 115 * x) * scale, (80 + 18 * len(lines) + 22 * y) * scale
            draw.rectangle((left, top, left + 115 * scale, top + 22 * scale), outline=20, width=max(1, round(scale)))
            draw.text((left + 6 * scale, top + 4 * scale), text, font=letters, fill=20)
    image = image.rotate(turn, Image.Resampling.BICUBIC, fillcolor=255)
    if noise:
        grey = np.asarray(image.filter(ImageFilter.GaussianBlur(0.2 * scale)), np.float32)
        grey += np.random.default_rng(1).normal(0, noise, grey.shape)
        image = Image.fromarray(grey.clip(0, 255).astype(np.uint8))
    return image


def distance(a: str, b: str) -> int:
    """The Levenshtein distance."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def measured(text: list[str], table: list[list[str]], image: Image.Image, dpi: int) -> Counter[str]:
    """Counts of one page; blanks between words do not count."""
    page = ocr.recognise(np.asarray(image), dpi)
    read = "".join("".join(line.text for line in page.lines).split())
    expected = "".join("".join([*text, *(cell for row in table for cell in row)]).split())
    in_rows = Counter(cell.strip() for each in page.tables for row in each.rows for cell in row.split("|"))
    in_table = Counter(cell for row in table for cell in row)
    known = {*" ".join(text).split(), *in_table}
    counts = Counter(characters=len(expected), errors=distance(read, expected), cells=in_table.total())
    counts["read"] = (in_rows & in_table).total()
    for word, confidence in page.confidences.items():
        if re.search(r"\d", word):
            sure = "unsure" if is_uncertain(word, confidence) else "sure"
            counts[f"{'right' if word in known else 'wrong'} figures, {sure}"] += 1
    return counts


def main() -> None:
    """Print the figures by resolution and scan, with and without the removal of ruled lines."""
    options = argparse.ArgumentParser()
    options.add_argument("--dpi", type=int, nargs="+", default=[150, 200, 300])
    options.add_argument("--font", default=FONT)
    arguments = options.parse_args()
    paragraphs = [line for line in SAMPLE.read_text("utf-8").split("\n") if line and not line.startswith(("#", "|"))]
    lines = [piece.strip() for line in paragraphs for piece in re.findall(r".{1,40}(?:\s|$)", line)]
    totals: dict[str, Counter[str]] = {}
    for number in range(2 * len(arguments.dpi) * len(SCANS)):
        dpi, scan = arguments.dpi[number // (2 * len(SCANS))], list(SCANS)[number % len(SCANS)]
        text, table = lines[LINES * number :][:LINES], cells(Random(number))
        image = drawn(text, table, dpi, scan, arguments.font)
        for way in ("removed", "kept"):
            with patch.object(ocr, "without_rules", ocr.without_rules if way == "removed" else lambda grey, _: grey):
                counts = measured(text, table, image, dpi)
            for name in (f"{dpi} dpi, lines {way}", f"{scan}, lines {way}", f"all, lines {way}"):
                totals.setdefault(name, Counter()).update(counts)
    for name, sums in totals.items():
        accuracy = 1 - sums["errors"] / sums["characters"]
        print(f"{name}: accuracy {accuracy:.3f}, cells {sums['read'] / sums['cells']:.3f}, {dict(sums)}")


if __name__ == "__main__":
    main()
