"""Quotations of provisions: an article whole if it is short, else its best paragraphs, items and their provisos.

An article is read as a tree by the marks of its lines: ① above 1., above 가.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from dtrag.core.documents import SearchResult
from dtrag.core.text.line_kinds import is_terminated, marker_of
from dtrag.core.text.sentences import AnalysedSentence, Preceding, sentences_after
from dtrag.pipeline.answer.candidates import NEARLY, has_words
from dtrag.pipeline.answer.quotes import Quote, Span

WHOLE = 400
"""Characters up to which an article is quoted whole; the paragraphs of a longer one fill about as many. The median
article of a regulation book has 107, nine of ten have at most 340."""


@dataclass(slots=True)
class _Part:
    """The units under one mark: `units` are its own, `above` are the parts that contain it, `below` those in it."""

    units: list[int]
    above: tuple[_Part, ...] = ()
    below: list[_Part] = field(default_factory=list)

    def whole(self) -> frozenset[int]:
        """Its units and those of all parts in it."""
        return frozenset(self.units).union(*(part.whole() for part in self.below))

    def headed(self) -> frozenset[int]:
        """Its own units and those of the parts that contain it."""
        return frozenset(self.units).union(*(part.units for part in self.above))


def whole(place: int, passage: SearchResult) -> Quote:
    """All of a passage as one quotation."""
    return Quote(place, 0, len(passage.text), passage.text, 1.0)


def of_provision(
    place: int,
    passage: SearchResult,
    scores: Mapping[int, float],
    preceding: Preceding | None = None,
    limit: int = WHOLE,
) -> list[Quote]:
    """The quotations of a provision: all of it if it has at most `limit` characters, else its best parts or rows.

    `scores` are the probabilities of its sentences by their offset. The best one is marked, with the items below it if
    it is their heading.
    """
    units = sentences_after(preceding, passage.text, passage.start)
    scored = [number for number, unit in enumerate(units) if unit.start in scores]
    best = max(scored, key=lambda number: scores[units[number].start])
    part_of = {number: part for part in list(_parts(units)) for number in part.units}
    is_heading = units[best].kind != "row" and part_of[best].below and not is_terminated(units[best].text)
    marked = units[best].start, units[max(part_of[best].whole()) if is_heading else best].end
    if units[best].kind != "row" and sum(map(_length, units)) <= limit:
        return [whole(place, passage).with_mark(marked)]
    likely = [number for number in scored if scores[units[number].start] >= NEARLY * scores[units[best].start]]
    ranked = sorted(likely, key=lambda number: -scores[units[number].start])
    spans = _spans(units, _chosen(units, part_of, ranked, limit))
    quotes = [Quote(place, start, end, passage.text[start:end], scores[units[best].start]) for start, end in spans]
    return [quote.with_mark(marked) for quote in quotes]


def _length(unit: AnalysedSentence) -> int:
    return len(unit.display) + 1 if has_words(unit) else 0


def _chosen(
    units: Sequence[AnalysedSentence], part_of: Mapping[int, _Part], ranked: Sequence[int], limit: int
) -> Collection[int]:
    """The best parts of an article, as many as `limit` characters hold, but at least the best sentence.

    Of each sentence in `ranked` the largest part around it that there is space for, below the parts that contain it.
    """
    chosen: frozenset[int] = frozenset()
    for number in ranked:
        part = part_of[number]
        around = [each.whole() | each.headed() for each in (*part.above, part)]
        for more in (*around, part.headed(), part.whole(), frozenset({number})):
            if sum(_length(units[each]) for each in chosen | more) <= limit:
                chosen |= more
                break
    return chosen or {ranked[0]}


def _parts(units: Sequence[AnalysedSentence]) -> Iterator[_Part]:
    """The parts of an article in order; each sentence and row without a mark above it is a part of its own."""
    kinds: list[str] = []
    path: list[_Part] = []
    for number, unit in enumerate(units):
        marker = None if unit.kind in {"row", "header"} else marker_of(unit.text)
        if marker is None and path:
            path[-1].units.append(number)
            continue
        if marker is not None:
            depth = 0 if marker.kind == "circled" else kinds.index(marker.kind) if marker.kind in kinds else len(kinds)
            del kinds[depth:], path[depth:]
        part = _Part([number], tuple(path))
        if path:
            path[-1].below.append(part)
        if marker is not None:
            kinds.append(marker.kind)
            path.append(part)
        yield part


def _spans(units: Sequence[AnalysedSentence], chosen: Collection[int]) -> Iterator[Span]:
    """The spans of neighbouring chosen units, without a lead-in or a header at their end."""
    run: list[AnalysedSentence] = []
    shown = [number for number, unit in enumerate(units) if has_words(unit)]
    for before, number in pairwise([-1, *shown, -1]):
        if number in chosen:
            run = [*run, units[number]] if before in chosen else [units[number]]
        elif run:
            last = max((place for place, unit in enumerate(run) if unit.quotable), default=-1)
            if last >= 0:
                yield run[0].start, run[last].end
            run = []
