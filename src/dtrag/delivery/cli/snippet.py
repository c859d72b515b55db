"""The part of a passage that shows best why it was found, on one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dtrag.delivery.cli.console import safe

LENGTH = 240
"""Characters: three lines of an 80-column terminal."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """A stretch of text on one line, with the spans `[start, end)` in it that match the query."""

    text: str
    matches: tuple[tuple[int, int], ...]


def snippet(passage: str, highlights: Sequence[tuple[int, int]], length: int = LENGTH) -> Snippet:
    """At most about `length` characters around the densest highlights; an ellipsis stands where something is left out.

    `highlights` are spans of the passage: sorted, disjoint. What would steer a terminal is left out.
    """
    text, places = _on_one_line(passage)
    moved = [(places[start], places[end]) for start, end in highlights]
    matches = [(start, end) for start, end in moved if start < end]
    start = _best_start(text, matches, length)
    end = min(len(text), start + length)
    if end < len(text):
        end = max(text.rfind(" ", start + length // 2, end), start + length // 2)
    before, after = "… " if start else "", " …" if end < len(text) else ""
    shift = len(before) - start
    inside = tuple((first + shift, last + shift) for first, last in matches if start <= first and last <= end)
    return Snippet(before + text[start:end] + after, inside)


def _on_one_line(passage: str) -> tuple[str, list[int]]:
    """The passage with single blanks, and for each place in it (and its end) the place on the line."""
    kept: list[str] = []
    places: list[int] = []
    for character in passage:
        places.append(len(kept))
        if character.isspace():
            if kept and kept[-1] != " ":
                kept.append(" ")
        elif safe(character):
            kept.append(character)
    text = "".join(kept).rstrip()
    return text, [min(place, len(text)) for place in [*places, len(kept)]]


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
