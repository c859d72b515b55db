"""Text read by OCR: the confidence of a passage, and its figures that have to be checked.

A passage stores it in its metadata: `ocr_confidence` is the mean confidence of its words in percent; `ocr_uncertain`
are its figures below the bar as `offset:length:confidence` in characters of the passage, such as `35:6:41 120:2:58`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

OcrWord = tuple[int, int, int]
"""Start and end of a word in the text, and its confidence in percent."""
FIGURE_BAR = 90
"""Confidence in percent below which a figure is uncertain: 151 of 160 figures read wrong on drawn pages, and 94 of 595
read right; with 85 it is 146 and 52 (`bench/regulations/ocr.py`)."""

_AMBIGUOUS = re.compile(r"\d\.\d{3}(?!\d)")
"""`50.000`: a comma that was read as a point, or the reverse, whatever the confidence."""
_UNCERTAIN = re.compile(r"\b(\d{1,9}):(\d{1,9}):(\d{1,3})\b")


def words_within(words: Sequence[OcrWord], start: int, end: int) -> tuple[OcrWord, ...]:
    """The words of `text[start:end]`, counted from `start`."""
    first = bisect_left(words, start, key=itemgetter(0))
    last = bisect_left(words, end, lo=first, key=itemgetter(0))
    return tuple((begin - start, stop - start, confidence) for begin, stop, confidence in words[first:last])


def ocr_metadata(words: Sequence[OcrWord], text: str, start: int, end: int) -> dict[str, str | int]:
    """What the passage `text[start:end]` stores; empty for a passage that was not read by OCR."""
    if not words:
        return {}
    inside = words_within(words, start, end)
    if not inside:
        return {}
    figures = " ".join(
        f"{begin}:{stop - begin}:{confidence}"
        for begin, stop, confidence in inside
        if is_uncertain(text[start + begin : start + stop], confidence)
    )
    mean = round(sum(confidence for _, _, confidence in inside) / len(inside))
    return {"ocr_confidence": mean, **({"ocr_uncertain": figures} if figures else {})}


def is_uncertain(word: str, confidence: int) -> bool:
    return (confidence < FIGURE_BAR and any(map(str.isdigit, word))) or _AMBIGUOUS.search(word) is not None


def uncertain_figures(metadata: Mapping[str, Any], start: int, end: int) -> Iterator[OcrWord]:
    """The uncertain figures in the characters from `start` to `end` of the passage with this metadata."""
    for offset, length, confidence in _UNCERTAIN.findall(str(metadata.get("ocr_uncertain", ""))):
        begin, stop = int(offset), int(offset) + int(length)
        if begin < end and stop > start:
            yield begin, stop, int(confidence)
