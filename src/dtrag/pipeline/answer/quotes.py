"""Quotations of passages, before they are numbered."""

from __future__ import annotations

from dataclasses import dataclass, replace

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Quote:
    """A text of a passage: `passage` counts from 0, `start` and `end` are offsets into the passage's text.

    `score` in (0, 1] is the probability that it is the one that answers, if one of the passages' sentences does.
    `marked` is the sentence that answers, inside the quotation, when the quotation is more than that sentence.
    `further`: it is of another provision than the answer before it, and shown on one line with its label.
    """

    passage: int
    start: int
    end: int
    text: str
    score: float
    marked: Span | None = None
    further: bool = False

    def with_mark(self, sentence: Span) -> Quote:
        """The quotation, with this sentence marked if it is inside."""
        inside = self.start <= sentence[0] and sentence[1] <= self.end
        return replace(self, marked=sentence) if inside and sentence != (self.start, self.end) else self
