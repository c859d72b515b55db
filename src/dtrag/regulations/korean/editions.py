"""The edition that a regulation's text is: its date, dates of single articles, and the regulations that it repeals.

Also since when each provision has its text. A mark (`<개정 2019. 3. 1.>`) dates the text of its paragraph (항) or
article; a text without marks is as old as the last amendment of its regulation before the first mark in it.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta

from dtrag.core.documents import Chunk
from dtrag.core.editions import Edition, folded_name
from dtrag.core.provisions import Amendment
from dtrag.core.text.patterns import explained
from dtrag.regulations.korean.amendments import (
    amendments,
    dates,
    effective_date,
    effective_dates,
    heading_before,
    paragraph_texts,
)
from dtrag.regulations.korean.catalog import article_label, article_number, deletions

LONGEST_SENTENCE = 600
"""Characters of a sentence of an addendum that is read."""
MOST_LISTED = 60
"""Articles of a range (제12조부터 제14조까지)."""
_OWN_HEADING = re.compile(
    r"(?:^|\s)제\s?\d{1,3}\s?조\s?[(（](?=시행|다른|경과|적용|폐지|일반|특례|준용)[^()（）]{0,60}[)）]"
)
_SENTENCE_END = re.compile(r"(?<=다\.)\s|\n")
_PROVISION = explained(
    r"(?P<article>제\s?\d{1,4}\s?조(?:\s?의\s?\d{1,3}(?!\s?[항호\d]))?)"
    r"|(?P<appendix>별\s?[표지](?:\s?제)?\s?\d{0,3}(?:호)?(?:의\s?\d{1,2})?)",
    finds=("제3조의2", "별표 1"),
    refuses="제3항",
)
_TO = re.compile(r"^(?:제?\s?\d{1,3}\s?[항호]\s?)*\s?(?:부터|내지|[~∼-])\s?$")
_TAKES_EFFECT = explained(
    r"(?P<day>\d{4}\s?(?:년\s?\d{1,2}\s?월\s?\d{1,2}\s?일|[.\-/]\s{0,2}\d{1,2}\s?[.\-/]\s{0,2}\d{1,2}\s?\.?))"
    r"\s?(?:자로|자부터|부터|부로|에|로)?\s?(?:각각\s?)?(?P<verb>시행|적용)(?:한다|하며|하고|된다)",
    finds="2020. 3. 1.부터 시행한다",
    refuses="2020. 3. 1. 시행하지",
)
_LIST_ITEM = explained(
    r"(?m)^\s*\d{1,2}\.\s(?P<subject>[^:\n]{2,120}?)(?:의\s?(?:개정|신설|삭제)\s?규정)?\s?[:：]\s?(?P<day>\d{4}[^\n]{5,20})$",
    finds="1. 제3조의 개정규정: 2020년 3월 1일",
    refuses="1. 제3조: 공포한 날",
)
_AMENDED = ("개정", "신설", "삭제", "규정")
_QUOTED = re.compile(r"[「『｢“\"]([^」』｣”\"\n]{2,60})[」』｣”\"]")
_RULE = "(?:규정|규칙|세칙|지침|요령|내규|기준|학칙)"
_REPEALS = re.compile(rf"(?:이\s?{_RULE}의?\s?시행과\s?동시에\s?)?(?:각각\s?|모두\s?)?폐지(?:한다|하고|하며|된다)")
_UNQUOTED = re.compile(
    rf"(?:종전의\s?|^|\s)((?:[가-힣A-Za-z]{{1,20}}\s){{0,5}}[가-힣A-Za-z]{{0,20}}{_RULE})(?:은|는|을|를)"
)
_OWN_REPEAL = re.compile(
    rf"이\s?{_RULE}(?:은|는|을|를)[^.\n]{{0,20}}?(?P<day>\d{{4}}[^\n]{{4,20}}?)\s?(?:자로|부로|부터|에)\s?폐지"
)
DECIDED_BEFORE = timedelta(days=183)
"""A mark may have the day of the decision: then the text takes effect with the next addendum, within half a year."""
_WITHOUT_TEXT = re.compile(r"(?:[<〈(（\[][^<>〈〉()（）\[\]]*[>〉)）\]]|삭\s?제|\W)*")
_REWRITTEN = re.compile(r"전\s?[부면문]\s?개정")


def edition_of(name: str, code: str, preface: str, chunks: Sequence[Chunk], text: str = "") -> Edition:
    """The edition with these passages of `text`. `preface` is what is between the name and the first article."""
    addenda = list(_addenda(chunks))
    day = effective_date(addenda, preface)
    folded = folded_name(name)
    if day is None:
        return Edition(folded, code)
    effective_from = date.fromisoformat(day)
    newest = [addendum for addendum, heading in addenda if day in effective_dates(addendum, heading)]
    later: dict[str, date] = {}
    for addendum, _ in addenda:
        later.update((label, own) for label, own in article_dates(addendum).items() if own > effective_from)
    amended_last = {label for label, marked in _last_amended(chunks).items() if marked >= day}
    article_days = {label: own for label, own in later.items() if label not in amended_last}
    for addendum in newest:
        article_days |= {label: own for label, own in article_dates(addendum).items() if own > effective_from}
    proven = unchanged_since(text, chunks, addenda)
    article_days = {label: own for label, own in proven.items() if own < effective_from} | article_days
    # Of an addendum with several dates it is unknown which of them a repeal belongs to.
    repealing = [addendum for addendum, heading in addenda if effective_dates(addendum, heading) == (day,)]
    repealed = dict.fromkeys(name for addendum in repealing for name in repealed_names(addendum) if name != folded)
    ends_on = next((end for addendum in newest if (end := _own_repeal(addendum)) and end > effective_from), None)
    return Edition(folded, code, effective_from, article_days, tuple(repealed), ends_on=ends_on)


def article_dates(addendum: str) -> dict[str, date]:
    """Label of a provision -> its own date in an addendum: `다만, 제12조의 개정규정은 2025년 1월 1일부터 시행한다.`"""
    by_label: dict[str, date] = {}
    text = _OWN_HEADING.sub(" ", addendum)
    for sentence in _sentences(text):
        start = 0
        for match in _TAKES_EFFECT.finditer(sentence):
            subject, start = sentence[start : match.start()], match.end()
            if any(word in subject for word in _AMENDED) and (written := dates(match["day"])):
                by_label.update(dict.fromkeys(_labels(subject), date.fromisoformat(written[0])))
    for item in _LIST_ITEM.finditer(text):
        if written := dates(item["day"]):
            by_label.update(dict.fromkeys(_labels(item["subject"]), date.fromisoformat(written[0])))
    return by_label


def repealed_names(addendum: str) -> list[str]:
    """Folded names of the regulations that an addendum repeals: `「연구비관리지침」은 폐지한다.`"""
    names: list[str] = []
    for sentence in _sentences(_OWN_HEADING.sub(" ", addendum)):
        match = _REPEALS.search(sentence)
        if match is None:
            continue
        before = sentence[: match.end()]
        quoted = [name[1] for name in _QUOTED.finditer(before)]
        names += quoted or [name[1] for name in _UNQUOTED.finditer(before) if not name[1].startswith("이 ")]
    return [folded_name(name) for name in names]


def _own_repeal(addendum: str) -> date | None:
    match = _OWN_REPEAL.search(addendum)
    written = dates(match["day"]) if match else ()
    return date.fromisoformat(written[0]) if written else None


def _addenda(chunks: Sequence[Chunk]) -> Iterator[tuple[str, str]]:
    """Text and heading of each addendum, its pieces joined."""
    pieces: dict[object, list[Chunk]] = {}
    for chunk in chunks:
        if chunk.metadata.get("kind") == "addendum":
            pieces.setdefault(chunk.metadata.get("occurrence", 1), []).append(chunk)
    for group in pieces.values():
        yield "\n".join(chunk.text for chunk in group), str(group[0].metadata.get("article_title") or "")


def _last_amended(chunks: Sequence[Chunk]) -> dict[str, str]:
    """Label of a provision -> newest date of its amendment marks."""
    marked: dict[str, str] = {}
    for chunk in chunks:
        label = str(chunk.metadata.get("article") or "")
        own = [mark.date for mark in amendments(chunk.text) if mark.date]
        if label and own:
            marked[label] = max(marked.get(label, ""), *own)
    return marked


def _sentences(text: str) -> Iterator[str]:
    return (sentence[:LONGEST_SENTENCE] for sentence in _SENTENCE_END.split(text) if sentence.strip())


def _labels(subject: str) -> Iterator[str]:
    """The labels of the provisions that a text names; a range has all of its articles."""
    previous: tuple[tuple[int, int], int] | None = None
    for match in _PROVISION.finditer(subject):
        if match["appendix"]:
            yield " ".join(match["appendix"].split())
            previous = None
            continue
        number = article_number("".join(match["article"].split()))
        if number is None:
            continue
        if previous is not None and _TO.match(subject[previous[1] : match.start()]):
            first, last = previous[0][0] + 1, number[0]
            yield from (f"제{middle}조" for middle in range(first, min(last, first + MOST_LISTED)))
        yield article_label(number)
        previous = number, match.end()


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
