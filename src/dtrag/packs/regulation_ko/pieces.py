"""Cuts a long provision at the boundaries of its own structure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dtrag.core.text.token_counts import KOREAN_CHARACTERS_PER_TOKEN

_ORDER: tuple[re.Pattern[str], ...] = (
    re.compile(r"(?m)^[ \t]*(?=[①-⑳㉑-㉟㊱-㊿]|\(\d{2,3}\))|(?<=[.>〉)\]])[ ](?=[①-⑳])"),  # paragraphs (항)
    re.compile(r"(?m)^[ \t]*(?=\d{1,3}\.|\d{1,3}\))"),  # items (호)
    re.compile(r"(?m)^"),  # sub-items, rows of a table
    re.compile(r"(?<=[.?!])[ ]+"),  # sentences
    re.compile(r"[ ]+"),
)


def cut(text: str, start: int, end: int, max_tokens: int) -> list[tuple[int, int]]:
    """Spans of at most `max_tokens` each (tokens as counted here), in order, without overlap and without outer blanks.

    They cover everything between `start` and `end` except white space. A span is cut at paragraphs if that is enough,
    else at items, lines, sentences or blanks, and inside a word only when it has none of them.
    """
    budget = max(1, max_tokens) * KOREAN_CHARACTERS_PER_TOKEN
    return [span for span in (_stripped(text, *s) for s in _cut(text, start, end, budget, 0)) if span[0] < span[1]]


def _cut(text: str, start: int, end: int, budget: int, level: int) -> Iterator[tuple[int, int]]:
    if end - start <= budget:
        yield start, end
        return
    if level == len(_ORDER):
        for at in range(start, end, budget):
            yield at, min(at + budget, end)
        return
    edges = [start, *_edges(text, start, end, level), end]
    for first, last in _packed(edges, budget):
        yield from _cut(text, first, last, budget, level + 1)


def _edges(text: str, start: int, end: int, level: int) -> list[int]:
    return [match.end() for match in _ORDER[level].finditer(text, start, end) if start < match.end() < end]


def _packed(edges: Sequence[int], budget: int) -> Iterator[tuple[int, int]]:
    """Neighbouring parts, merged as long as they fit the budget."""
    first = edges[0]
    for index in range(1, len(edges)):
        if edges[index] - first > budget and edges[index - 1] > first:
            yield first, edges[index - 1]
            first = edges[index - 1]
    yield first, edges[-1]


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end
