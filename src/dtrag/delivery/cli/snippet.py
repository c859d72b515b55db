"""The excerpt of a passage with the most matching words, on one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dtrag.delivery.cli.console import safe

LENGTH = 240
"""Characters: three lines of an 80-column terminal."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """An excerpt on one line, with the spans `[start, end)` in it that match the query."""

    text: str
    matches: tuple[tuple[int, int], ...]


def snippet(passage: str, highlights: Sequence[tuple[int, int]], length: int = LENGTH) -> Snippet:
    """About `length` characters around the densest highlights, with ellipses where text was cut.

    `highlights` are sorted, disjoint spans of the passage. Control characters are removed.
    """
    text, positions = _on_one_line(passage)
    moved = [(positions[start], positions[end]) for start, end in highlights]
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
    """The passage with single spaces, and for each of its positions (and its end) the position on the line."""
    characters: list[str] = []
    positions: list[int] = []
    for character in passage:
        positions.append(len(characters))
        if character.isspace():
            if characters and characters[-1] != " ":
                characters.append(" ")
        elif safe(character):
            characters.append(character)
    text = "".join(characters).rstrip()
    return text, [min(position, len(text)) for position in [*positions, len(characters)]]


def _best_start(text: str, matches: list[tuple[int, int]], length: int) -> int:
    """Start of the window with the most distinct matching words, slightly before the first of them."""
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
