"""Quotations of provisions: an article whole if it is short, else its best paragraphs, items and their provisos.

An article is read as a tree by the marks of its lines: ① above 1., above 가.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from dtrag.core.answers.passage_confidence import Confidence
from dtrag.core.documents import SearchResult
from dtrag.core.statements import Statement, stated
from dtrag.core.text.analysis import language
from dtrag.core.text.line_kinds import is_terminated, marker_of
from dtrag.core.text.sentences import AnalysedSentence, Preceding, sentences_after
from dtrag.pipeline.answer.candidates import NEARLY, Quote, Span, has_words
from dtrag.ports import NamedPassages

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


MAX_CHOICES = 10
"""Provisions in the answer that asks which one was meant."""
_PARAGRAPHS = "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳"
_PARAGRAPH = re.compile(rf"(?:(?<=[.>〉)\]\n])|^)[ \t]*([{_PARAGRAPHS}])")


def quoted_whole(named: NamedPassages, passages: Sequence[SearchResult]) -> list[Quote]:
    """The passages of the named provisions as quotations; only the named paragraph (항) if the text has its mark."""
    pieces = [(place, passage) for place, passage in enumerate(passages) if passage.chunk_id in named.chunk_ids]
    all_of_it = [whole(place, passage) for place, passage in pieces]
    if named.paragraph is None or len(named.names) != 1:
        return all_of_it
    return _paragraph(pieces, named.paragraph) or all_of_it


def _paragraph(pieces: Sequence[tuple[int, SearchResult]], number: int) -> list[Quote]:
    """The spans of one paragraph, which may begin in one piece and end in another."""
    quotes: list[Quote] = []
    is_inside = False
    for place, passage in pieces:
        text, start = passage.text, 0 if is_inside else None
        for match in _PARAGRAPH.finditer(text):
            if start is not None:
                quotes += _quote(place, text, start, match.start())
                start = None
            if _PARAGRAPHS.index(match[1]) + 1 == number:
                start = match.start(1)
        is_inside = start is not None
        if start is not None:
            quotes += _quote(place, text, start, len(text))
    return quotes


def _quote(place: int, text: str, start: int, end: int) -> list[Quote]:
    quoted = text[start:end].rstrip()
    return [Quote(place, start, start + len(quoted), quoted, 0.0)] if quoted else []


def judged(named: NamedPassages) -> Confidence:
    """The confidence of an answer that is the text which the question names."""
    reason = stated("names_provision", "The question names {provisions}.", provisions=", ".join(named.names))
    return Confidence(1.0, "answer", (reason,))


def unanswered(question: str, named: NamedPassages) -> tuple[str, Statement] | None:
    """The answer to a question that names no existing provision, or one of several, and its reason; else None."""
    korean = language(question) == "ko"
    if named.absent:
        return _absent(named, korean=korean)
    if not named.choices:
        return None
    listed = "\n".join(f"- {choice}" for choice in named.choices[:MAX_CHOICES])
    more = len(named.choices) - MAX_CHOICES
    if korean:
        end = f"\n외 {more:,}개" if more > 0 else ""
        text = f"어느 규정을 말씀하시나요? 해당하는 조항이 {len(named.choices):,}개입니다.\n{listed}{end}"
    else:
        end = f"\nand {more:,} more" if more > 0 else ""
        text = f"Which regulation do you mean? {len(named.choices):,} of them have it.\n{listed}{end}"
    several = "The question may mean {count} provisions; name the regulation."
    return text, stated("several_provisions", several, count=f"{len(named.choices):,}")


def _absent(named: NamedPassages, *, korean: bool) -> tuple[str, Statement]:
    if named.deleted:
        on = f" ({named.deleted_on})" if named.deleted_on else ""
        text = f"{named.absent}: 삭제된 조항입니다{on}." if korean else f"{named.absent} was deleted{on}."
        deleted = "{provision} has been deleted (삭제){on}."
        return text, stated("provision_deleted", deleted, provision=named.absent, on=on)
    existing = named.existing.replace(" to ", "~") if korean else named.existing
    text = (
        f"{named.absent}: 이 규정에 없는 조항입니다. 있는 조항: {existing}."
        if korean
        else f"There is no {named.absent}. The regulation has {existing}."
    )
    absent = "There is no {provision}. The regulation has {existing}."
    return text, stated("no_provision", absent, provision=named.absent, existing=named.existing)
