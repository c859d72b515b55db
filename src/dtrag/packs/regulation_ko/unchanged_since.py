"""Since when each provision of a regulation has the text that it has: what its marks and addenda prove.

A mark (`<개정 2019. 3. 1.>`) dates the text of its paragraph (항) or article. A text without marks is as old as the
last amendment of its regulation before the first mark in it: which provisions the earlier ones changed is unknown.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import date, timedelta

from dtrag.core.documents import Chunk
from dtrag.core.provisions import Amendment
from dtrag.packs.regulation_ko.amendments import amendments, effective_dates, heading_before, paragraph_texts
from dtrag.packs.regulation_ko.catalog import article_number
from dtrag.packs.regulation_ko.deletions import deletions

DECIDED_BEFORE = timedelta(days=183)
"""A mark may have the day of the decision: then the text takes effect with the next addendum, within half a year."""
_WITHOUT_TEXT = re.compile(r"(?:[<〈(（\[][^<>〈〉()（）\[\]]*[>〉)）\]]|삭\s?제|\W)*")
_REWRITTEN = re.compile(r"전\s?[부면문]\s?개정")


def unchanged_since(text: str, chunks: Sequence[Chunk], addenda: Sequence[tuple[str, str]]) -> dict[str, date]:
    """Label of a provision -> the day since which its text, or one of its paragraphs, is proven to be the same.

    `chunks` are the passages of the regulation `text`, `addenda` pairs of text and heading. Without a date of an
    addendum nothing is proven.
    """
    effective = sorted({day for addendum in addenda for day in effective_dates(*addendum)})
    if not effective:
        return {}
    provisions: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        label = str(chunk.metadata.get("article") or "")
        if label and chunk.metadata.get("kind") != "addendum":
            provisions.setdefault(label, []).append(chunk)
    marks = {
        label: [mark for chunk in pieces for mark in amendments(chunk.text, heading_before(text, chunk.start))]
        for label, pieces in provisions.items()
    }
    deleted = [mark for deletion in deletions(text) for mark in amendments(text[deletion.start : deletion.end])]
    marked = [mark.date for mark in itertools.chain(deleted, *marks.values()) if mark.date]
    before = effective[: bisect_left(effective, min(marked))] if marked else effective
    unmarked = max([*before[-1:], *_rewritten(addenda), effective[0]])
    return {
        label: date.fromisoformat(max(since, effective[0]))
        for label, pieces in provisions.items()
        if (since := _since(label, pieces, marks[label], effective, unmarked)) is not None
    }


def _since(
    label: str, pieces: Sequence[Chunk], marks: Sequence[Amendment], effective: Sequence[str], unmarked: str
) -> str | None:
    """The day of the oldest paragraph that is known to be unchanged; of a provision in pieces, of all of them."""
    dated = [mark.date for mark in marks if mark.date]
    if any(mark.date is None and mark.kind != "삭제" for mark in marks):
        return None
    number = article_number(label)
    if not dated:
        # Appendices are often replaced without a mark, and 제5조의2 was inserted at some time.
        return unmarked if number is not None and not number[1] else None
    paragraphs = paragraph_texts(pieces[0].text) if len(pieces) == 1 and number is not None else {}
    present = [paragraph for paragraph, text in paragraphs.items() if not _WITHOUT_TEXT.fullmatch(text, 1)]
    first = min(dated) if number is not None and number[1] else unmarked
    return min(
        (
            max((_effective(day, effective) for day in own), default=first)
            for paragraph in present
            for own in [[mark.date for mark in marks if mark.date and mark.paragraph in {None, paragraph}]]
        ),
        default=_effective(max(dated), effective),
    )


def _effective(mark: str, effective: Sequence[str]) -> str:
    """The day on which an amendment with this mark took effect."""
    place = bisect_left(effective, mark)
    latest = (date.fromisoformat(mark) + DECIDED_BEFORE).isoformat()
    return effective[place] if place < len(effective) and effective[place] <= latest else mark


def _rewritten(addenda: Iterable[tuple[str, str]]) -> list[str]:
    """Days on which the whole regulation was rewritten (전부개정)."""
    return [
        day
        for text, heading in addenda
        for part in ([text] if _REWRITTEN.search(heading) else filter(_REWRITTEN.search, text.split("\n")))
        for day in effective_dates(part, heading)
    ]
