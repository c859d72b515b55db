"""Reads references to articles in any text, member by member: 제3조, 제5조제2항제1호 및 제3호, 제7조부터 제9조까지."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace

from dtrag.packs.regulation_ko import citation_patterns as patterns
from dtrag.packs.regulation_ko.catalog import Number
from dtrag.packs.regulation_ko.citation_patterns import AND, SPACE, TO, UNTIL

SUBITEMS = "가나다라마바사아자차카타파하"
LONGEST_TITLE = 80
"""Characters of a title in brackets behind an article."""
_CIRCLED = "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳"
_ARTICLE_WITHOUT_MARK = re.compile(
    rf"(\d{{1,3}}){SPACE}조(?:{SPACE}의{SPACE}(\d{{1,2}})(?!\d|{SPACE}[항호]))?(?![원각건직치])"
)
_SHORT_RANGE = re.compile(
    rf"제{SPACE}(\d{{1,4}}){SPACE}[~∼～〜\-－–]{SPACE}제?{SPACE}(\d{{1,4}}){SPACE}조(?![원각건직치])"
)
_SHORT_MEMBER = re.compile(
    rf"제?{SPACE}(\d{{1,4}})(?={SPACE}[,·ㆍ‧・]{SPACE}제?{SPACE}\d{{1,4}}{SPACE}(?:[,·ㆍ‧・]|조))"
)
_PARAGRAPH = re.compile(rf"{SPACE}(?:의{SPACE})?제?{SPACE}(?:(\d{{1,3}})|([①-⑳])){SPACE}항(?!목|공)")
_ITEM = re.compile(
    rf"{SPACE}(?:의{SPACE})?제?{SPACE}(?:(\d{{1,3}})|([①-⑳])){SPACE}호(?:{SPACE}의{SPACE}(\d{{1,2}})(?!\d))?"
    rf"(?!{SPACE}(?:서식|양식|안건|의안|의결|[관실선봉]))"
)
_JOINED = re.compile(rf"(?:{AND.pattern}|{SPACE}(?=제{SPACE}[\d①-⑳]{{1,3}}{SPACE}[항호]))")
_NO_TITLE = re.compile(
    r"^\s*(?:이하|단서|본문|전단|후단|단|다만|현행|구|신|안|신설|개정|제정|삭제|폐지|변경|이동|생략|참조|참고|상동|별지|별표|붙임|각\s?호|전문\s?개정|일부\s?개정|개정안)"
    r"(?![가-힣])|^\s*(?:이하|단서|다만)\s|참조|참고|제\s*\d|\d{4}|[pP]\.\s*\d|에\s한|제외\)?$|포함\)?$|같다|이라\s?한다|라\s?한다"
)
_OPENING = {"(": ")", "（": "）", "[": "]", "【": "】", "〔": "〕", "<": ">", "〈": "〉", "“": "”", "‘": "’"}


@dataclass(frozen=True, slots=True)
class Part:
    """항, 호 (with the number after 의) and 목 of an article; `until` ends a range of the innermost of them."""

    paragraph: int | None = None
    item: Number | None = None
    subitem: int | None = None
    until: int | None = None


WHOLE = Part()


@dataclass(frozen=True, slots=True)
class Member:
    """One cited article, range of articles (up to `until`), or part of an article. `title` is what brackets add."""

    start: int
    end: int
    number: Number
    until: Number | None = None
    title: str | None = None
    part: Part = WHOLE
    last_part: Part = WHOLE


def read_members(text: str, place: int, names: Container[int], *, after_name: bool) -> list[Member]:
    """The members of the list of articles that begins at `place`; empty if none begins there.

    A list ends before a position of `names`. Only directly after a name an article may lack 제.
    """
    members: list[Member] = []
    while True:
        read = _members_at(text, place, without_mark=after_name or bool(members))
        if not read:
            return members
        members += read
        joined = AND.match(text, members[-1].end)
        if joined is None or joined.end() in names:
            return members
        place = joined.end()


def read_parts(text: str, place: int, *, needs_mark: bool = False) -> list[tuple[int, int, Part]]:
    """Start, end and part for each member of a list of 항, 호 and 목 at `place`."""
    if needs_mark and not text.startswith("제", place):
        return []
    parts: list[tuple[int, int, Part]] = []
    before = WHOLE
    while True:
        read = _part(text, place, before)
        if read is None:
            return parts
        end, before = read
        start = patterns.BLANKS.match(text, place)
        parts.append((start.end() if start else place, end, before))
        joined = _JOINED.match(text, end) or TO.match(text, end)
        if joined is None or patterns.ARTICLE.match(text, joined.end()):
            return parts
        place = joined.end()


def numbers_of(first: Number, last: Number) -> tuple[Number, Number]:
    """The ends of a range in order."""
    return (first, last) if first <= last else (last, first)


def _members_at(text: str, place: int, *, without_mark: bool) -> list[Member]:
    short = _SHORT_RANGE.match(text, place)
    if short:
        return [Member(place, short.end(), (int(short[1]), 0), (int(short[2]), 0))]
    listed = list(_short_list(text, place))
    if listed:
        place = listed[-1].end
        joined = AND.match(text, place)
        place = joined.end() if joined else place
    head = _head(text, place, without_mark=without_mark or bool(listed))
    if head is None:
        return []
    number, end = head
    title, end = _title(text, end)
    parts = read_parts(text, end)
    if not parts:
        members = [Member(place, end, number, title=title)]
    else:
        members = [
            Member(place if index == 0 else start, stop, number, title=title if index == 0 else None, part=part)
            for index, (start, stop, part) in enumerate(parts)
        ]
    members[-1] = _until(text, members[-1])
    return listed + members


def _short_list(text: str, place: int) -> Iterator[Member]:
    """제3, 5조: the members before the last one."""
    if not text.startswith("제", place):
        return
    while match := _SHORT_MEMBER.match(text, place):
        yield Member(place, match.end(), (int(match[1]), 0))
        joined = AND.match(text, match.end())
        if joined is None:
            return
        place = joined.end()


def _head(text: str, place: int, *, without_mark: bool) -> tuple[Number, int] | None:
    match = patterns.ARTICLE.match(text, place)
    if match is None and without_mark:
        match = _ARTICLE_WITHOUT_MARK.match(text, place)
    return ((int(match[1]), int(match[2] or 0)), match.end()) if match else None


def _title(text: str, place: int) -> tuple[str | None, int]:
    """The title in brackets behind an article, and where it ends; other remarks in brackets are no titles."""
    blanks = patterns.BLANKS.match(text, place)
    start = blanks.end() if blanks else place
    closing = _OPENING.get(text[start : start + 1])
    if closing is None:
        return None, place
    depth = 0
    for position in range(start, min(len(text), start + LONGEST_TITLE)):
        depth += (text[position] == text[start]) - (text[position] == closing)
        if depth == 0:
            title = text[start + 1 : position]
            is_title = title.strip() and "\n" not in title and not _NO_TITLE.search(title)
            return (title.strip(), position + 1) if is_title else (None, place)
    return None, place


def _until(text: str, member: Member) -> Member:
    """The member as a range, if one ends after it."""
    to = TO.match(text, member.end)
    head = _head(text, to.end(), without_mark=True) if to else None
    if to is None or head is None:
        return member
    last, end = head
    _, end = _title(text, end)
    parts = read_parts(text, end)[:1]
    end = parts[0][1] if parts else end
    until = UNTIL.match(text, end)
    if until is None and "에서" in to[0]:  # 제3조에서 제5조를 준용한다
        return member
    return replace(member, end=until.end() if until else end, until=last, last_part=parts[0][2] if parts else WHOLE)


def _part(text: str, place: int, before: Part) -> tuple[int, Part] | None:
    """One part and where it ends; 호 alone is of the 항 before, 목 alone of the 호 before."""
    end = place
    paragraph, item, subitem = before.paragraph, before.item, None
    level = ""
    if match := _PARAGRAPH.match(text, end):
        paragraph, item, level, end = _number(match), None, "paragraph", match.end()
    if match := _ITEM.match(text, end):
        item, level, end = (_number(match), int(match[3] or 0)), "item", match.end()
    if (match := patterns.SUBITEM.match(text, end)) and match[1] in SUBITEMS:
        subitem, level, end = SUBITEMS.index(match[1]) + 1, "subitem", match.end()
    if not level:
        return None
    until = None
    if to := TO.match(text, end):
        pattern = {"paragraph": _PARAGRAPH, "item": _ITEM, "subitem": patterns.SUBITEM}[level]
        last = pattern.match(text, to.end())
        is_range = "에서" not in to[0] or (last is not None and UNTIL.match(text, last.end()))
        if last and is_range and (level != "paragraph" or not _ITEM.match(text, last.end())):
            until = SUBITEMS.find(last[1]) + 1 if level == "subitem" else _number(last)
            end = last.end()
    if closed := UNTIL.match(text, end):
        end = closed.end()
    return end, Part(paragraph, item, subitem, until)


def _number(match: re.Match[str]) -> int:
    return int(match[1]) if match[1] else _CIRCLED.index(match[2]) + 1
