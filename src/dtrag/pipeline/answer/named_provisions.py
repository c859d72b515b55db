"""Answers to questions that name provisions by number (학칙 제21조): the whole text, or which ones could be meant."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dtrag.core.answers.confidence import Confidence
from dtrag.core.documents import SearchResult
from dtrag.core.statements import stated
from dtrag.core.text.analysis import language
from dtrag.pipeline.answer.quoted_provisions import whole
from dtrag.pipeline.answer.quotes import Quote
from dtrag.ports import NamedPassages

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
    return Confidence(1.0, "answer", reason)


def unanswered(question: str, named: NamedPassages) -> tuple[str, str] | None:
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


def _absent(named: NamedPassages, *, korean: bool) -> tuple[str, str]:
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
