"""The marked sentences of an answer as Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def in_bold(text: str, marked: Sequence[tuple[int, int]]) -> str:
    """The text with its marked spans, in order and disjoint, in bold."""
    pieces, position = list[str](), 0
    for start, end in marked:
        pieces += [text[position:start], "**", text[start:end], "**"]
        position = end
    return "".join((*pieces, text[position:]))
