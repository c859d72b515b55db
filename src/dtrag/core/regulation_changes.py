"""What changed between two texts of a regulation, and citations that are older than what they cite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from dtrag.core.response import response

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ProvisionChange:
    """A provision that differs."""

    __pydantic_config__ = response("ProvisionChangeShape")

    label: str
    """Such as 제21조, 별표 1 or 부칙."""
    title: str
    """Its title; empty without one."""
    change: Literal["amended", "added", "deleted"]
    """What happened to it."""
    before: str
    """The earlier text; empty if added."""
    after: str
    """The later text; empty if deleted."""
    before_spans: tuple[Span, ...]
    """Changed parts of `before`, in code points."""
    after_spans: tuple[Span, ...]
    """Changed parts of `after`, in code points."""


@dataclass(frozen=True, slots=True)
class RegulationDiff:
    """What changed in a regulation between two days or two files."""

    __pydantic_config__ = response("DifferenceResponse")

    regulation: str
    """Its name."""
    before: str
    """The first day, such as 2024-03-01."""
    after: str
    """The second day."""
    changes: tuple[ProvisionChange, ...]
    """The provisions that differ, in the order of the newer text."""
    unchanged: int
    """Number of the other provisions."""
    document_ids: tuple[str, ...] = ()
    """The editions that were compared."""


@dataclass(frozen=True, slots=True)
class StaleCitation:
    """A citation that is older than what it cites."""

    __pydantic_config__ = response("StaleCitationShape")

    source: str
    """The provision that cites."""
    source_amended: str | None
    """Day of its last amendment; null if unknown."""
    target: str
    """The cited provision."""
    target_amended: str | None
    """Day of its last amendment or repeal; null if unknown."""
    change: Literal["amended", "repealed"]
    """What happened to the target."""
    text: str
    """The citation, verbatim."""


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
