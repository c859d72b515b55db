"""Text recognition (OCR) of pages by the `tesseract` command: words with their confidence, lines and tables.

Ruled lines are removed from the bitmap before: tesseract takes a ruled table for a picture, and its cells vanish.
The command gets the page on stdin and writes to a pipe, so that the parser process still writes no file.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.util
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dtrag.adapters.parsers.decoding import clean_line
from dtrag.adapters.parsers.page_margins import PageLine, PageText
from dtrag.core.page_starts import PageStart, page_ranges
from dtrag.core.recognised_text import OcrWord
from dtrag.core.statements import stated
from dtrag.errors import ParseFailed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dtrag.adapters.parsers.pdf_tables import Placed

    Grey = NDArray[np.uint8]
    Mask = NDArray[np.bool_]

PREFERRED = ("kor", "eng")
"""Languages that are read where they are installed; without them every installed one."""
PAGE_SECONDS = 60
"""Longest time for a page, which takes one to five seconds."""
MAX_PAGES = 1_000
"""Pages of one file that are recognised: about an hour."""
MAX_PIXELS = 18_000_000
"""A page of A3 at 300 dpi has 17.4 million; a larger bitmap is reduced."""
MIN_DPI, MAX_DPI = 70, 1_200
DPI = 300
"""Resolution at which pages are rendered, and that of a picture that does not give its own."""
RULE = 0.35
"""Length of a ruled line in inches, at least: no stroke of a letter below 25 points is as long."""
RULE_WIDTH = 0.05
"""Width of a ruled line in inches, at most; a stroke of a letter across it is higher and stays."""
BLUR = 0.01
"""Width of the blurred edge of a line in inches."""
LAYOUT = "6"
"""One block of lines: the other layouts of tesseract lose lines beside a table, this one alone keeps rows together."""
PARAGRAPH = 1.0
"""Distance of two lines as a share of their height, from which on a paragraph begins."""
COLUMNS, LINE, WORD = 12, "4", "5"
"""Of the table that tesseract writes: columns of a row, and the levels of rows that are lines and words."""

LIBRARIES = ("PIL", "pypdfium2")
"""What the extra `ocr` installs: decoders of pictures, and a renderer of PDF pages."""

_WORD = re.compile(r"\S+")
_languages = ""
page_done: Callable[[], None] = lambda: None  # noqa: E731 - replaced by the parser process
"""Called after each page, so that the parser process can report that it works."""


def configure(setting: str, on_page: Callable[[], None]) -> None:
    """Recognise as the setting `ocr` says, and call `on_page` after each page."""
    global _languages, page_done
    _languages, page_done = setting, on_page


def is_off() -> bool:
    """Whether the setting `ocr` is off."""
    return _languages == "off"


@functools.cache
def tesseract() -> str | None:
    """The path of the command, if it is installed."""
    return shutil.which("tesseract")


@functools.cache
def installed_languages() -> tuple[str, ...]:
    """The languages that the command has, without scripts and the model of orientation."""
    command = tesseract()
    if command is None:
        return ()
    listed = subprocess.run([command, "--list-langs"], capture_output=True, timeout=PAGE_SECONDS, check=False)
    names = listed.stdout.decode("utf-8", "replace").split("\n")[1:]
    return tuple(name for name in map(str.strip, names) if name.isidentifier() and name != "osd")


def languages(setting: str = "") -> str:
    """The languages that are read, as in `kor+eng`; "" if recognition is impossible."""
    installed = installed_languages()
    setting = setting or _languages
    chosen = PREFERRED if setting in ("", "auto") else tuple(setting.split("+"))
    usable = [name for name in chosen if name in installed]
    return "+".join(usable or installed)


def is_usable() -> bool:
    """Whether pages can be recognised: the command with a language, and the extra `ocr`."""
    return not is_off() and bool(languages()) and all(map(importlib.util.find_spec, LIBRARIES))


def not_read(pages: Sequence[int]) -> ParseFailed:
    """The error of pages that only recognition can read, which is off or not installed."""
    where = page_ranges(pages)
    if is_off():
        return ParseFailed(
            stated("ocr_off", "no text on page {pages}, only a picture, and OCR is off (setting ocr)", pages=where)
        )
    text = (
        "no text on page {pages}, only a picture. OCR (text recognition) reads it after: apt-get install tesseract-ocr "
        "tesseract-ocr-kor (elsewhere: tesseract with the languages kor and eng); pip install 'dtrag[ocr]'"
    )
    return ParseFailed(stated("ocr_missing", text, pages=where))


def check_count(pages: int) -> None:
    """Raise `ParseFailed` for more pages than are recognised."""
    if pages > MAX_PAGES:
        text = "it has {pages} pages that only OCR (text recognition) reads; more than {limit} are refused, split it"
        raise ParseFailed(stated("ocr_pages", text, pages=f"{pages:,}", limit=f"{MAX_PAGES:,}"))


@dataclass(frozen=True, slots=True)
class RecognisedWord:
    """A recognised word: its place in pixels from the top left, and its confidence in percent."""

    text: str
    left: int
    right: int
    confidence: int


@dataclass(slots=True)
class RecognisedLine:
    """A recognised line: its upper and lower edge in pixels, and its words from the left."""

    top: int
    bottom: int
    words: list[RecognisedWord] = field(default_factory=list)


def recognise(grey: Grey, dpi: float) -> PageText:
    """The text of a page from its bitmap. Raises `ParseFailed` when tesseract fails."""
    from dtrag.adapters.parsers.pdf_tables import find_tables

    dpi = min(max(dpi, MIN_DPI), MAX_DPI)
    lines = list(_lines(_output(without_rules(grey, dpi), dpi)))
    page_done()
    scale, height = 72 / dpi, grey.shape[0]
    confidences: dict[str, int] = {}
    for word in (word for line in lines for word in line.words):
        confidences[word.text] = min(word.confidence, confidences.get(word.text, 100))
    placed = [text for line in lines for text in _placed(line, height, scale)]
    page_lines: list[PageLine] = []
    for before, line in zip([None, *lines], lines, strict=False):
        if before is not None and line.top - before.bottom > PARAGRAPH * (line.bottom - line.top):
            page_lines.append(PageLine("", 0.0, (height - before.bottom) * scale))
        text = " ".join(word.text for word in line.words)
        page_lines.append(PageLine(text, 0.0, (height - line.bottom) * scale))
    return PageText(page_lines, list(find_tables(placed)), confidences)


def _placed(line: RecognisedLine, height: int, scale: float) -> Iterator[Placed]:
    from dtrag.adapters.parsers.pdf_tables import Placed

    size = (line.bottom - line.top) * scale
    for word in line.words:
        yield Placed(word.left * scale, word.right * scale, (height - line.bottom) * scale, size, word.text)


def ocr_words(text: str, starts: Sequence[PageStart], pages: Mapping[int, Mapping[str, int]]) -> tuple[OcrWord, ...]:
    """The words of the recognised pages in a document's text, each with its confidence.

    A word that is several times on a page has the lowest of its confidences, and one that joins others (a word broken
    at the margin, a cell) the lowest of theirs.
    """
    words: list[OcrWord] = []
    for number, (start, page) in enumerate(starts):
        if page in pages:
            end = starts[number + 1][0] if number + 1 < len(starts) else len(text)
            words += [
                (match.start(), match.end(), _confidence(match[0], pages[page]))
                for match in _WORD.finditer(text, start, end)
                if match[0] != "|"
            ]
    return tuple(words)


def _confidence(word: str, confidences: Mapping[str, int]) -> int:
    known = confidences.get(word)
    if known is not None:
        return known
    return min((value for part, value in confidences.items() if part in word or word in part), default=0)


def without_rules(grey: Grey, dpi: float) -> Grey:
    """The bitmap without its long thin dark lines, horizontal and vertical, and without their blurred edges."""
    import numpy as np

    dark = grey < (int(grey.min()) + int(np.median(grey))) // 2
    upright = np.ascontiguousarray(dark.T)
    rules = _rules(dark, upright, dpi) | _rules(upright, dark, dpi).T
    if not rules.any():
        return grey
    blur = max(1, round(BLUR * dpi))
    return np.where(rules | (_grown(rules, blur, blur) & ~dark), np.uint8(255), grey)


def _rules(dark: Mask, upright: Mask, dpi: float) -> Mask:
    """The pixels of horizontal lines where these are thin; `upright` is the transposed bitmap.

    A line that is not quite level is a stair of runs, of which the first, the last and the ragged edges are short.
    """

    least, most, blur = round(RULE * dpi), max(2, round(RULE_WIDTH * dpi)), max(1, round(BLUR * dpi))
    closed = dark.copy()
    closed[:, 1:-1] |= dark[:, :-2] & dark[:, 2:]  # a speck of paper does not end a line
    long = _in_runs(closed, least, dark.shape[1])
    if not long.any():
        return long
    crossing = _in_runs(upright, least, upright.shape[1]).T
    thin = _in_runs(upright, 1, most).T
    return dark & ((long & crossing) | (thin & _grown(long & (thin | crossing), least, blur)))


def _grown(mask: Mask, across: int, down: int) -> Mask:
    """The mask and what is at most that many pixels beside, above or below it."""
    import numpy as np

    for axis, distance in ((1, across), (0, down)):
        size = mask.shape[axis]
        sums = np.concatenate([np.zeros_like(mask.take([0], axis), np.int32), mask.cumsum(axis, np.int32)], axis)
        places = np.arange(size)
        after = sums.take(np.minimum(places + distance + 1, size), axis)
        mask = after > sums.take(np.maximum(places - distance, 0), axis)
    return mask


def _in_runs(dark: Mask, least: int, most: int) -> Mask:
    """The pixels in horizontal runs of `least` to `most` dark pixels."""
    import numpy as np

    height, width = dark.shape
    flat = np.zeros((height, width + 1), np.int8)
    flat[:, :width] = dark
    changes = np.flatnonzero(np.diff(flat.ravel(), prepend=0))
    starts, ends = changes[::2], changes[1::2]
    lengths = ends - starts
    chosen = (lengths >= least) & (lengths <= most)
    marks = np.zeros(height * (width + 1), np.int8)
    marks[starts[chosen]] = 1
    marks[ends[chosen]] = -1
    return np.cumsum(marks, dtype=np.int8).reshape(height, width + 1)[:, :width].astype(bool)


def _output(grey: Grey, dpi: float) -> str:
    command = tesseract()
    assert command is not None  # noqa: S101 - the readers check `languages` before
    bitmap = b"P5 %d %d 255\n" % (grey.shape[1], grey.shape[0]) + grey.tobytes()
    try:
        done = subprocess.run(
            [
                *(command, "stdin", "stdout", "-l", languages(), "--dpi", f"{dpi:.0f}", "--psm", LAYOUT),
                *("-c", "tessedit_create_tsv=1", "-c", "tessedit_create_txt=1"),
            ],
            input=bitmap,
            capture_output=True,
            timeout=PAGE_SECONDS,
            preexec_fn=_ends_with_parent if sys.platform == "linux" else None,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        text = "it has a page that text recognition did not read within {seconds} s"
        raise ParseFailed(stated("ocr_slow", text, seconds=PAGE_SECONDS)) from error
    if done.returncode:
        text = "it has a page that text recognition could not read (tesseract: {code})"
        raise ParseFailed(stated("ocr_failed", text, code=done.returncode))
    return done.stdout.decode("utf-8", "replace")


def _ends_with_parent() -> None:
    with contextlib.suppress(AttributeError):
        ctypes.pythonapi.prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG


def _lines(output: str) -> Iterator[RecognisedLine]:
    """The lines of the page in reading order, from the table of words and the text that follows it.

    The table has the syllables of Korean one by one: only the text says where blanks are between them.
    """
    rows = output.split("\n")
    table = [columns for columns in (row.split("\t") for row in rows) if len(columns) == COLUMNS][1:]
    text, position = "\n".join(rows[len(table) + 1 :]), 0
    line: RecognisedLine | None = None
    for columns in table:
        left, top, width, height = map(int, columns[6:10])
        if columns[0] == LINE:
            if line is not None and line.words:
                yield line
            line = RecognisedLine(top, top + height)
        word = clean_line(columns[11])
        if columns[0] != WORD or line is None or not word:
            continue
        place = text.find(columns[11].strip(), position)
        is_joined = bool(line.words) and place == position
        position = position if place < 0 else place + len(columns[11].strip())
        confidence = max(0, int(float(columns[10])))
        if is_joined:
            before = line.words[-1]
            line.words[-1] = RecognisedWord(
                before.text + word, before.left, left + width, min(before.confidence, confidence)
            )
        else:
            line.words.append(RecognisedWord(word, left, left + width, confidence))
    if line is not None and line.words:
        yield line
