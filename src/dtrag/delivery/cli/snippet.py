"""The part of a passage that shows best why it was found, and which of its characters the query names."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dtrag.core.text import normalise, terms

LENGTH = 240
"""Characters: three lines of an 80-column terminal."""
_WORD = re.compile(r"제\s?\d{1,4}\s?조(?:의\s?\d{1,3})?|[가-힣]+|[^\W가-힣]+(?:[._+#/&'’-]+[^\W가-힣]+)*")
_HANGUL = re.compile(r"[가-힣]+")


@dataclass(frozen=True, slots=True)
class Snippet:
    """A stretch of text on one line, with the spans `[start, end)` in it that match the query."""

    text: str
    matches: tuple[tuple[int, int], ...]


def snippet(passage: str, query: str, length: int = LENGTH) -> Snippet:
    """At most about `length` characters around the densest matches; an ellipsis stands where something is left out."""
    text = " ".join(passage.split())
    matches = _matches(text, frozenset(terms(query)))
    start = _best_start(text, matches, length)
    end = min(len(text), start + length)
    if end < len(text):
        end = max(text.rfind(" ", start + length // 2, end), start + length // 2)
    before, after = "… " if start else "", " …" if end < len(text) else ""
    shift = len(before) - start
    inside = tuple((first + shift, last + shift) for first, last in matches if start <= first and last <= end)
    return Snippet(before + text[start:end] + after, inside)


def _matches(text: str, wanted: frozenset[str]) -> list[tuple[int, int]]:
    """Words that share a term with the query; of Hangul the pairs of syllables, joined where they touch."""
    found: list[tuple[int, int]] = []
    for word in _WORD.finditer(text):
        if _HANGUL.fullmatch(word.group()):
            run = word.group()
            width = min(2, len(run))
            spans = [
                (word.start() + at, word.start() + at + width)
                for at in range(len(run) - width + 1)
                if normalise(run[at : at + width]) in wanted
            ]
        else:
            spans = [word.span()] if wanted.intersection(terms(word.group())) else []
        for start, end in spans:
            if found and start <= found[-1][1]:
                found[-1] = (found[-1][0], end)
            else:
                found.append((start, end))
    return found


def _best_start(text: str, matches: list[tuple[int, int]], length: int) -> int:
    """Where the window with the most different matched words begins, a little before the first of them."""
    if len(text) <= length or not matches:
        return 0
    best, best_count = 0, 0
    for first, _ in matches:
        inside = {
            text[start:end].lower() for start, end in matches if first <= start and end <= first + length * 3 // 4
        }
        if len(inside) > best_count:
            best, best_count = first, len(inside)
    if best < length // 4:
        return 0
    blank = text.rfind(" ", 0, best - length // 8)
    return blank + 1
