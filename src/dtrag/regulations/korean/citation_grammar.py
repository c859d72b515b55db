"""The grammar of citations, member by member with spans: 제3조, 제5조제2항제1호 및 제3호, 제7조부터 제9조까지.

Also lists and ranges of appendices (별지 제1호 내지 제6호 서식) and of divisions (제7장 제2절 및 제3절).
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace

from dtrag.regulations.korean import citation_patterns as patterns
from dtrag.regulations.korean.catalog import Number
from dtrag.regulations.korean.citation_patterns import AND, TO, UNTIL

SUBITEMS = "가나다라마바사아자차카타파하"
LONGEST_TITLE = 80
"""Characters of a title in brackets behind an article."""
MOST_MEMBERS = 200
"""Members of one list, and articles of one range."""
_CIRCLED = "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳"
_OPENING = {"(": ")", "（": "）", "[": "]", "【": "】", "〔": "〕", "<": ">", "〈": "〉", "“": "”", "‘": "’"}
_CLOSING = frozenset(">〉]】」)")
_RANKS = "편장절관"


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


@dataclass(frozen=True, slots=True)
class Labelled:
    """One cited appendix (별표 1) or division (제7장 제2절), or a range of them up to `last`."""

    start: int
    end: int
    label: str
    last: str = ""


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
        parts.append((_after_blanks(text, place), end, before))
        joined = patterns.JOINED.match(text, end) or TO.match(text, end)
        if joined is None or patterns.ARTICLE.match(text, joined.end()):
            return parts
        place = joined.end()


def read_appendices(text: str, place: int) -> list[Labelled]:
    """The list of appendices that begins at `place`: 별표 1 및 2, 별지 제1호 내지 제6호 서식."""
    match = patterns.APPENDIX.match(text, place) or patterns.OTHER_APPENDIX.match(text, place)
    if match is None:
        return []
    kind, form = match[1], match[3]
    label = "".join(part for part in match.groups() if part)
    members = [Labelled(place, place + len(match.group().rstrip()), " ".join(label.split()))]
    while match[2]:
        last = members[-1]
        is_closed = text[last.end : last.end + 1] in _CLOSING
        to = patterns.TO.match(text, last.end + is_closed)
        joined = to or patterns.AND.match(text, last.end)
        further = patterns.FURTHER_APPENDIX.match(text, joined.end()) if joined else None
        if joined is None or further is None or (is_closed and not further["kind"]):
            break
        if further["kind"] and (not to or further["kind"] != kind):
            break
        if not to and form and not further["form"]:
            break
        written = " ".join(f"{kind} {further['number']}{further['form'] or ''}".split())
        until = patterns.UNTIL.match(text, further.end()) if to else None
        end = until.end() if until else further.end()
        if to:
            members[-1] = replace(last, end=end, last=written)
        else:
            members.append(Labelled(joined.end(), end, written))
    return members


def read_divisions(text: str, place: int) -> list[Labelled]:
    """The list of divisions that begins at `place`: 제10장, 제7장 제2절 및 제3절, 제2장부터 제4장까지."""
    read = _division(text, place)
    if read is None:
        return []
    chain, end = read
    members = [Labelled(place, end, " ".join(chain))]
    while True:
        to = patterns.TO.match(text, end)
        joined = to or patterns.AND.match(text, end)
        further = _division(text, joined.end()) if joined else None
        if joined is None or further is None:
            return members
        written, end = further
        outer = [part for part in chain if _RANKS.index(part[-1]) < _RANKS.index(written[0][-1])]
        label = " ".join((*outer, *written))
        if to:
            until = patterns.UNTIL.match(text, end)
            end = until.end() if until else end
            members[-1] = replace(members[-1], end=end, last=label)
        else:
            members.append(Labelled(joined.end(), end, label))


def _division(text: str, place: int) -> tuple[list[str], int] | None:
    """제7장 제2절 as its parts, from the outermost on, and where it ends."""
    chain: list[str] = []
    end = place
    while match := patterns.DIVISION.match(text, _after_blanks(text, end) if chain else end):
        if chain and _RANKS.index(match[2]) <= _RANKS.index(chain[-1][-1]):
            break
        chain.append(f"제{int(match[1])}{match[2]}")
        end = match.end()
    return (chain, end) if chain else None


def _after_blanks(text: str, place: int) -> int:
    match = patterns.BLANKS.match(text, place)
    return match.end() if match else place


def _members_at(text: str, place: int, *, without_mark: bool) -> list[Member]:
    short = patterns.SHORT_RANGE.match(text, place)
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
    while match := patterns.SHORT_MEMBER.match(text, place):
        yield Member(place, match.end(), (int(match[1]), 0))
        joined = AND.match(text, match.end())
        if joined is None:
            return
        place = joined.end()


def _head(text: str, place: int, *, without_mark: bool) -> tuple[Number, int] | None:
    match = patterns.ARTICLE.match(text, place)
    if match is None and without_mark:
        match = patterns.ARTICLE_WITHOUT_MARK.match(text, place)
    return ((int(match[1]), int(match[2] or 0)), match.end()) if match else None


def _title(text: str, place: int) -> tuple[str | None, int]:
    """The title in brackets behind an article, and where it ends; other remarks in brackets are no titles."""
    start = _after_blanks(text, place)
    closing = _OPENING.get(text[start : start + 1])
    if closing is None:
        return None, place
    depth = 0
    for position in range(start, min(len(text), start + LONGEST_TITLE)):
        depth += (text[position] == text[start]) - (text[position] == closing)
        if depth == 0:
            title = text[start + 1 : position]
            is_title = title.strip() and "\n" not in title and not patterns.NO_TITLE.search(title)
            return (title.strip(), position + 1) if is_title else (None, place)
    return None, place


def _until(text: str, member: Member) -> Member:
    """The member as a range, if one ends after it (제5조 내지 제7조 내지 제9조 is one)."""
    while to := TO.match(text, member.end):
        head = _head(text, to.end(), without_mark=True)
        if head is None:
            break
        last, end = head
        _, end = _title(text, end)
        parts = read_parts(text, end)[:1]
        end = parts[0][1] if parts else end
        until = UNTIL.match(text, end)
        if until is None and "에서" in to[0]:  # 제3조에서 제5조를 준용한다
            break
        last_part = parts[0][2] if parts else WHOLE
        member = replace(member, end=until.end() if until else end, until=last, last_part=last_part)
    return member


def _part(text: str, place: int, before: Part) -> tuple[int, Part] | None:
    """One part and where it ends; 호 alone is of the 항 before, 목 alone of the 호 before."""
    end = place
    paragraph, item, subitem = before.paragraph, before.item, None
    level = ""
    if match := patterns.PARAGRAPH.match(text, end):
        paragraph, item, level, end = _number(match), None, "paragraph", match.end()
    if match := patterns.ITEM.match(text, end):
        item, level, end = (_number(match), int(match[3] or 0)), "item", match.end()
    if (match := patterns.SUBITEM.match(text, end)) and match[1] in SUBITEMS:
        subitem, level, end = SUBITEMS.index(match[1]) + 1, "subitem", match.end()
    if not level:
        return None
    until = None
    if to := TO.match(text, end):
        pattern = {"paragraph": patterns.PARAGRAPH, "item": patterns.ITEM, "subitem": patterns.SUBITEM}[level]
        last = pattern.match(text, to.end())
        is_range = "에서" not in to[0] or (last is not None and UNTIL.match(text, last.end()))
        if last and is_range and (level != "paragraph" or not patterns.ITEM.match(text, last.end())):
            until = SUBITEMS.find(last[1]) + 1 if level == "subitem" else _number(last)
            end = last.end()
    if closed := UNTIL.match(text, end):
        end = closed.end()
    return end, Part(paragraph, item, subitem, until)


def _number(match: re.Match[str]) -> int:
    return int(match[1]) if match[1] else _CIRCLED.index(match[2]) + 1
