"""Writes a small PDF by hand: A4 pages, Helvetica, headings in bold, lists and simple tables.

Content streams are left uncompressed, so the file is the same byte for byte on every machine and can be read in an
editor. Lengths are in points. A line is one string that contains its spaces, so that extraction returns the words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sample_markup import Element, Heading, Item, Table

PAGE_WIDTH, PAGE_HEIGHT = 595, 842
MARGIN = 64
LEADING = 1.35
"""Distance of base lines in letter heights."""
BODY = 10.5
_HEADING_SIZES = {1: 20.0, 2: 14.0, 3: 11.5}
_REGULAR, _BOLD = "F1", "F2"
_BOLD_WIDENS = 1.08
"""Helvetica-Bold is at most this much wider over a line of English text; only used to break lines in time."""
_WIDTHS = (
    "278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556 556 278 278 "
    "584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 556 833 722 778 667 778 722 667 611 722 667 944 "
    "667 667 611 278 278 278 469 556 333 556 556 500 556 556 278 556 556 222 222 500 222 833 556 556 556 556 333 500 "
    "278 556 500 722 500 500 500 334 260 334 584"
)
_ADVANCE = {chr(32 + index): int(width) / 1000 for index, width in enumerate(_WIDTHS.split())}
"""Advance widths of Helvetica for printable ASCII, in letter heights; readers have the font, so it is not embedded."""


@dataclass(slots=True)
class _Pages:
    """The drawing commands of each page, and the height at which the next line goes."""

    pages: list[list[str]] = field(default_factory=list)
    y: float = 0.0

    def need(self, height: float) -> None:
        """Start a page unless `height` remains on this one, so that no paragraph is split between pages."""
        if not self.pages or self.y - height < MARGIN:
            self.pages.append([])
            self.y = PAGE_HEIGHT - MARGIN

    def line(self, text: str, size: float, font: str = _REGULAR, indent: float = 0.0) -> None:
        """One line of text, and down to the next."""
        self.y -= size * LEADING
        self.place(text, size, font, MARGIN + indent)

    def place(self, text: str, size: float, font: str, x: float) -> None:
        """Text at the current height."""
        self.pages[-1].append(f"BT /{font} {size:g} Tf {x:g} {self.y:.2f} Td ({_escaped(text)}) Tj ET")

    def rule(self) -> None:
        """A thin line across the page, below the text just placed."""
        y = self.y - 4
        self.pages[-1].append(f"0.5 w {MARGIN} {y:.2f} m {PAGE_WIDTH - MARGIN} {y:.2f} l S")


def render_pdf(elements: Iterable[Element], *, title: str, author: str, date: str) -> bytes:
    """The PDF file. `date` is a PDF date such as `D:20240901000000Z`. Raises `KeyError` for a letter beyond ASCII."""
    pages = _Pages()
    for element in elements:
        _draw(pages, element)
    return _file(["\n".join(page) for page in pages.pages], title=title, author=author, date=date)


def wrapped(text: str, size: float, width: float) -> Iterator[str]:
    """Lines of at most `width`, broken between words."""
    line = ""
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if line and sum(_ADVANCE[letter] for letter in longer) * size > width:
            yield line
            longer = word
        line = longer
    if line:
        yield line


def _draw(pages: _Pages, element: Element) -> None:
    width = PAGE_WIDTH - 2 * MARGIN
    if isinstance(element, Heading):
        size = _HEADING_SIZES[element.level]
        lines = list(wrapped(element.text, size * _BOLD_WIDENS, width))
        pages.need(size * 3 + 4 * BODY * LEADING)  # a heading does not stand alone at the end of a page
        pages.y -= size
        for line in lines:
            pages.line(line, size, _BOLD)
        pages.y -= size * 0.3
    elif isinstance(element, Table):
        _draw_table(pages, element, width)
    else:
        indent = 14.0 if isinstance(element, Item) else 0.0
        text = f"- {element.text}" if isinstance(element, Item) and not element.numbered else element.text
        lines = list(wrapped(text, BODY, width - indent))
        pages.need(len(lines) * BODY * LEADING)
        for line in lines:
            pages.line(line, BODY, indent=indent)
        pages.y -= BODY * (0.2 if isinstance(element, Item) else 0.7)


def _draw_table(pages: _Pages, table: Table, width: float) -> None:
    column = width / len(table.rows[0])
    pages.need((len(table.rows) + 1) * BODY * 1.8)
    for number, cells in enumerate(table.rows):
        font = _REGULAR if number else _BOLD
        grid = [list(wrapped(cell, BODY * _BOLD_WIDENS, column - 8)) for cell in cells]
        for depth in range(max(map(len, grid))):
            pages.y -= BODY * LEADING
            for index, lines in enumerate(grid):
                if depth < len(lines):
                    pages.place(lines[depth], BODY, font, MARGIN + index * column)
        pages.rule()
        pages.y -= BODY * 0.5
    pages.y -= BODY * 0.7


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


def _file(streams: list[str], *, title: str, author: str, date: str) -> bytes:
    first_page = 6
    kids = " ".join(f"{first_page + 2 * number} 0 R" for number in range(len(streams)))
    bodies = [
        "<< /Type /Catalog /Pages 2 0 R /Lang (en) /ViewerPreferences << /DisplayDocTitle true >> >>",
        f"<< /Type /Pages /Count {len(streams)} /Kids [{kids}] /MediaBox [0 0 {PAGE_WIDTH} {PAGE_HEIGHT}] "
        f"/Resources << /Font << /{_REGULAR} 3 0 R /{_BOLD} 4 0 R >> >> >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /Encoding /WinAnsiEncoding >>",
        f"<< /Title ({_escaped(title)}) /Author ({_escaped(author)}) /CreationDate ({date}) /ModDate ({date}) >>",
    ]
    for number, stream in enumerate(streams):
        bodies.append(f"<< /Type /Page /Parent 2 0 R /Contents {first_page + 2 * number + 1} 0 R >>")
        bodies.append(f"<< /Length {len(stream) + 1} >>\nstream\n{stream}\nendstream")
    text = "%PDF-1.4\n"
    offsets = []
    for number, body in enumerate(bodies, start=1):
        offsets.append(len(text))
        text += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    text += (
        f"xref\n0 {len(bodies) + 1}\n0000000000 65535 f \n{table}trailer\n<< /Size {len(bodies) + 1} /Root 1 0 R "
        f"/Info 5 0 R >>\nstartxref\n{len(text)}\n%%EOF\n"
    )
    return text.encode("ascii")
