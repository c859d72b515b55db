"""What changed between two texts of a regulation, and citations that are older than what they cite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ProvisionChange:
    """One provision that differs. `before` is "" for an added one, `after` for a deleted one.

    The spans are the changed parts of the two texts, in code points.
    """

    label: str
    title: str
    change: Literal["amended", "added", "deleted"]
    before: str
    after: str
    before_spans: tuple[Span, ...]
    after_spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class RegulationDiff:
    """The differences of a regulation between `before` and `after`: days (2024-03-01) or names of files.

    `changes` are in the order of the newer text; `unchanged` counts the other provisions.
    """

    regulation: str
    before: str
    after: str
    changes: tuple[ProvisionChange, ...]
    unchanged: int
    document_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StaleCitation:
    """A citation of a provision that was amended or repealed after the citing provision was last amended.

    The days are those of the last amendments, None if unknown (of a repealed target).
    """

    source: str
    source_amended: str | None
    target: str
    target_amended: str | None
    change: Literal["amended", "repealed"]
    text: str


def pieces(text: str, spans: Sequence[Span]) -> Iterator[tuple[str, bool]]:
    """The text in pieces, each with whether it changed."""
    position = 0
    for start, end in spans:
        if start > position:
            yield text[position:start], False
        yield text[start:end], True
        position = end
    if position < len(text):
        yield text[position:], False
