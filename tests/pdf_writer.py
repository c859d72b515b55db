"""Writes small PDF files: texts at positions, with Helvetica or a font for Korean that has a map to Unicode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

PAGE = (595, 842)
"""A4, in points."""


@dataclass(frozen=True)
class Placed:
    """A text whose first character is at `x`, `y` (from the bottom left)."""

    x: float
    y: float
    text: str
    size: float = 10


def write_pdf(pages: Sequence[Sequence[Placed]]) -> bytes:
    """A PDF file with these texts on its pages, one operator each, in their order."""
    characters = sorted({character for page in pages for placed in page for character in placed.text})
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    objects += [
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        b"<< /Type /Font /Subtype /Type0 /BaseFont /Batang /Encoding /Identity-H /DescendantFonts [5 0 R]"
        b" /ToUnicode 6 0 R >>",
        b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Batang /DW 1000 /W [" + _widths(characters) + b"]"
        b" /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>",
        _stream(_unicode_map(characters)),
    ]
    kids = []
    for page in pages:
        objects.append(_stream("\n".join(map(_shown, page)).encode("latin-1")))
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {PAGE[0]} {PAGE[1]}] /Contents {len(objects)} 0 R "
            "/Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> >>".encode()
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>".encode()
    data, places = b"%PDF-1.7\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(data))
        data += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    trailer = f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(data)}\n%%EOF\n"
    return data + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{trailer}".encode()


def _shown(placed: Placed) -> str:
    if placed.text.isascii():
        text = "(" + placed.text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)") + ")"
        return f"BT /F1 {placed.size} Tf 1 0 0 1 {placed.x} {placed.y} Tm {text} Tj ET"
    return f"BT /F2 {placed.size} Tf 1 0 0 1 {placed.x} {placed.y} Tm <{placed.text.encode('utf-16-be').hex()}> Tj ET"


def _widths(characters: Sequence[str]) -> bytes:
    return " ".join(f"{ord(c)} [500]" for c in characters if ord(c) < 256).encode()


def _unicode_map(characters: Sequence[str]) -> bytes:
    pairs = "\n".join(f"<{ord(c):04x}> <{ord(c):04x}>" for c in characters)
    return (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Own def /CMapType 2 def\n"
        "1 begincodespacerange <0000> <ffff> endcodespacerange\n"
        f"{len(characters)} beginbfchar\n{pairs}\nendbfchar\nendcmap end end"
    ).encode()


def _stream(body: bytes) -> bytes:
    return f"<< /Length {len(body)} >>\nstream\n".encode() + body + b"\nendstream"
