"""Amendments and effective dates in the text of regulations: `<개정 2019. 3. 1.>`, `이 규정은 … 시행한다`.

And when a provision was last amended, by its marks and by its editions.

Dates are ISO strings (`2019-03-01`), which sort in the order of time.
"""

from __future__ import annotations

import calendar
import datetime
import itertools
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dtrag.core.provisions import Amendment, RegulationText
from dtrag.core.text.patterns import DIGITS, PARAGRAPH, explained

LONGEST_MARK = 1_500
"""Characters of a mark: some list fifty amendments."""
LONGEST_CLAUSE = 160
"""Characters between the subject of a sentence (이 규정은) and 시행."""
LONGEST_HISTORY_LINE = 200
LONGEST_HEADING = 200
_DATE_PATTERN = (
    r"(?<![\d.])(?:19|20)\d{2}(?:\s?년\s?\d{1,2}\s?월\s?\d{1,2}\s?일|\s?[.,]\s{0,2}\d{1,2}\s?\.\s{0,2}\d{1,2}"
    r"|\s\d{1,2}\.\s\d{1,2}|\s?-\s?\d{1,2}\s?-\s?\d{1,2}|\s?/\s?\d{1,2}\s?/\s?\d{1,2})(?!\d)"
)
_DATE = re.compile(_DATE_PATTERN)
_KIND_PATTERN = (
    r"(?:조\s?번호|단서\s?조항|단서|제목|조문|전\s?문|전\s?부|전\s?면|일\s?부|(?:규정|학칙|세칙|지침)?\s?명칭|후단|각\s?호)?\s?"
    r"(?:개\s?정|신\s?설|삭\s?제|폐\s?지|변\s?경|삽\s?입|이\s?동|제\s?정|시\s?행)"
)
_MARK = explained(
    rf"(?:(?P<before>전\s?문\s?개\s?정|개\s?정|신\s?설|삭\s?제|폐\s?지)\s?)?"
    rf"[<〈(（\[【「〔](?P<content>[^<>〈〉()（）\[\]【】「」〔〕]{{2,{LONGEST_MARK}}})[>〉)）\]】」〕]",
    finds="<개정 2020. 3. 1.>",
    refuses="<가>",
)
_TOKEN = explained(
    rf"(?P<date>{_DATE_PATTERN})|(?P<whole>(?:본\s?조|조(?=\s?[신개삭]))\s?)?(?P<kind>{_KIND_PATTERN})"
    r"|종전(?:의)?|제\s?\d{1,4}\s?[조항호](?:\s?의\s?\d{1,3})?|에서|으로|일자|일부로|[항호목은는로을를와과및일자]|[\s,，.;:ㆍ·]+",
    finds=("종전의", "제3조"),
    refuses="제3장",
)
_ALONE = frozenset({"삭제", "전문개정"})
"""Kinds that need no date (<삭제>); (변경), (이동) and the like are ordinary words in brackets."""
_OF_ARTICLE = frozenset({"전문개정", "전부개정", "전면개정", "제목개정", "조번호개정", "이동", "폐지"})
_HEADING = re.compile(r"제\s*+\d{1,4}\s*+조|부\s*+칙|별\s*+[표지첨]|서\s*+식")
_RULE = r"(?:규정|세칙|학칙|정관|규칙|기준|지침|내규|요령|준칙|강령|요강|규약|헌장|(?<!방)법|법률|영|조례|회칙|편람)"
_WHOLE_RULE = explained(
    rf"(?<![가-힣])[이본]\s?(?:(?:변경|개정|일부\s?개정|전부\s?개정|전면\s?개정|신설|제정)\s?)?[가-힣]{{0,12}}?{_RULE}[은는]\s"
    rf"(?P<clause>(?:(?!다\.\s).){{0,{LONGEST_CLAUSE}}}?)(?:시행|적용)",
    finds="이 규정은 2020년 3월 1일부터 시행",
    refuses="이 규정의 시행",
)
_WITHOUT_SUBJECT = re.compile(
    rf"(?:^|[)）.:]\s?|시행일[은:]?\s)(?P<clause>{_DATE_PATTERN})\s?\.?\s?(?:자로|부터|부로|에|로)\s?(?:시행|적용|한다)"
)
_AFTER_PROMULGATION = re.compile(r"(?:공포|공고|고시|발령)\s?후\s?(\d{1,3})\s?(년|개월|월|일)")
_ON_PROMULGATION = re.compile(r"(?:공포|공고|고시|발령|인가|승인|의결|등기)[가-힣\s]{0,8}[날일]\s?(?:로부터|부터|에)")
_PARENTHESES = re.compile(r"[(（][^()（）]{0,80}[)）]")
_FIRST_HEAD = re.compile(r"(?m)^[ \t#*_]*+제\s?\d{1,4}\s?[조장편절관]")
_REPEALED_NAME = re.compile(r"[【\[(（<〈]\s?폐\s?지")
_DATED_LINE = re.compile(rf"(?m)^[ \t]*+(?:\d{{1,3}}\.\s[ \t]*+)?(?:{_DATE_PATTERN})[^\n]{{0,60}}$")


def dates(text: str) -> tuple[str, ...]:
    """The dates in the text: `2019. 3. 1.`, `2019-3-1`, `2019년 3월 1일`. Impossible ones are left out."""
    return tuple(iso for match in _DATE.finditer(text) if (iso := _iso(match.group())))


def amendments(text: str, heading: str = "") -> tuple[Amendment, ...]:
    """The amendment marks of an article, in its order; `heading` is the line with its number and title.

    `paragraph` is the 항 whose text a mark ends, None for marks of the whole article: those that name it, and one in
    the last line alone.
    """
    entries = [Amendment(kind, date) for _, kind, date, _ in _marks(heading)]
    starts = _paragraph_starts(text)
    last_line = text.rstrip().rfind("\n") + 1
    for position, kind, date, whole in _marks(text):
        place = bisect_right(starts, position)
        of_article = whole or not place or kind in _OF_ARTICLE or position == last_line
        entries.append(Amendment(kind, date, None if of_article else circled_number(text[starts[place - 1]])))
    return tuple(dict.fromkeys(entries))


def heading_before(text: str, start: int) -> str:
    """The line with the number and the title of the provision whose text starts here."""
    before = text[max(0, start - LONGEST_HEADING) : start]
    heads = list(_HEADING.finditer(before))
    return before[heads[-1].start() :] if heads else ""


def paragraph_texts(text: str) -> dict[int, str]:
    """The text of each marked paragraph (항) of an article by its number; of two with one number the first."""
    starts = _paragraph_starts(text)
    texts: dict[int, str] = {}
    for start, end in itertools.pairwise([*starts, len(text)]):
        texts.setdefault(circled_number(text[start]), text[start:end])
    return texts


def amended_after(text: str, day: str) -> list[tuple[int, int, int, str]]:
    """Span, number and last amendment of each paragraph (항) of an article that was amended after the day."""
    starts = _paragraph_starts(text)
    amended = (
        (start, end, max((date for _, _, date, _ in _marks(text[start:end]) if date), default=""))
        for start, end in itertools.pairwise([*starts, len(text)])
    )
    return [(start, end, circled_number(text[start]), date) for start, end, date in amended if date > day]


def text_of_day(text: str, day: str) -> str:
    """The text of an article with blanks in place of the paragraphs (항) that were amended after the day.

    Their numbers and marks stay.
    """
    for start, end, _, _ in amended_after(text, day):
        spans = [(start, start + 1)]
        spans += [mark.span() for mark in _MARK.finditer(text, start, end) if _tokens(mark["content"]) is not None]
        blank = "".join(letter if letter == "\n" else " " for letter in text[start:end])
        for first, last in spans:
            blank = blank[: first - start] + text[first:last] + blank[last - start :]
        text = text[:start] + blank + text[end:]
    return text


def mark_spans(text: str) -> Iterator[tuple[int, int]]:
    """The spans [start, end) of the amendment marks: `<개정 2019. 3. 1.>`, `[본조신설 2020. 1. 1.]`.

    Not those of deletions (`삭제 <2020. 1. 1.>`), which are all that remains of a text, and no titles: `(시행일)`.
    """
    for match in _MARK.finditer(text):
        tokens = _tokens(match["content"]) or []
        kinds = {match["before"], *(kind for kind, _, _ in tokens)} - {None}
        is_mark = any(date for _, date, _ in tokens) or not kinds.isdisjoint(_ALONE)
        if kinds and is_mark and "삭제" not in kinds:
            yield match.span()


def history(preface: str) -> tuple[Amendment, ...]:
    """The history of a regulation, from the lines between its name and 제1조 (`제정 2001. 3. 1.`)."""
    entries: list[Amendment] = []
    for line in preface.split("\n"):
        if len(line) <= LONGEST_HISTORY_LINE and not line.rstrip().endswith("다."):
            tokens = ((match["kind"], match["date"], False) for match in _TOKEN.finditer(line))
            entries += [Amendment(kind, date) for kind, date, _ in _dated(tokens) if date]
    return tuple(dict.fromkeys(entries))


def preface(text: str) -> str:
    """What precedes the first article or chapter of a regulation: its name and its history."""
    head = _FIRST_HEAD.search(text)
    return text[: head.start()] if head else ""


def is_repealed(preface: str) -> bool:
    """Whether the name or the history says that the whole regulation is abolished (폐지): 복학규정【폐지】."""
    name = preface.strip().partition("\n")[0]
    return bool(_REPEALED_NAME.search(name)) or any(entry.kind == "폐지" for entry in history(preface))


def effective_dates(text: str, heading: str = "") -> tuple[str, ...]:
    """The dates on which an addendum (부칙) makes the whole regulation effective, in the order of the text.

    Dates of single articles (다만, 제5조는 …) and of transitional provisions are left out. `heading` is what follows
    부칙, such as `<제12호, 2020. 3. 1.>`: the date of 공포한 날부터, and of an addendum without any other.
    """
    folded = " ".join(text.split())
    promulgated = dates(heading)[-1:]
    clauses = sorted(
        (match.start("clause"), match["clause"])
        for pattern in (_WHOLE_RULE, _WITHOUT_SUBJECT)
        for match in pattern.finditer(folded)
    )
    effective = [date for _, clause in clauses for date in _clause_dates(clause, promulgated)]
    if not effective and not clauses:
        effective = [dates(match.group())[0] for match in _DATED_LINE.finditer(text) if dates(match.group())]
    return tuple(dict.fromkeys(effective or ([] if clauses else promulgated)))


def effective_date(addenda: Iterable[tuple[str, str]], preface: str = "") -> str | None:
    """The newest date on which a regulation became effective; `addenda` are pairs of text and heading.

    Without one, the newest date of its history.
    """
    past = history(preface)
    effective = [date for text, heading in addenda for date in effective_dates(text, heading)]
    effective += [entry.date for entry in past if entry.date and entry.kind == "시행"]
    return max(effective or [entry.date for entry in past if entry.date], default=None)


def _marks(text: str) -> Iterator[tuple[int, str, str | None, bool]]:
    """Position, kind, date of each amendment in brackets, and whether the mark names the whole article (본조신설)."""
    for match in _MARK.finditer(text):
        tokens = _tokens(match["content"])
        if tokens is None:
            continue
        before = (
            [(match["before"], None, False)] if match["before"] and all(kind is None for kind, _, _ in tokens) else []
        )
        for kind, date, whole in _dated(iter([*before, *tokens])):
            if date or kind in _ALONE:
                yield match.start(), kind, date, whole


def _tokens(content: str) -> list[tuple[str | None, str | None, bool]] | None:
    """Kinds and dates of a mark; None when it contains anything else, and is thus not a mark."""
    tokens: list[tuple[str | None, str | None, bool]] = []
    position = 0
    while position < len(content):
        match = _TOKEN.match(content, position)
        if match is None:
            return None
        position = match.end()
        if match["date"] or match["kind"]:
            tokens.append((match["kind"], match["date"], bool(match["whole"])))
    return tokens


def _dated(tokens: Iterator[tuple[str | None, str | None, bool]]) -> Iterator[tuple[str, str | None, bool]]:
    """Pairs of kind and date: a kind has the dates after it, kinds in a row share them (제목개정, 개정 2025. 5. 1.).

    A date before the first kind belongs to that kind (2005. 3. 1. 신설).
    """
    kinds: list[tuple[str, bool]] = []
    leading: list[str] = []
    has_dates = False
    for kind, date, whole in tokens:
        if kind is not None:
            if has_dates:
                kinds, has_dates = [], False
            kinds.append(("".join(kind.split()), whole))
            for early in leading:
                yield kinds[0][0], early, whole
                has_dates = True
            leading = []
        elif date is not None and (iso := _iso(date)):
            if not kinds:
                leading.append(iso)
            for name, of_article in kinds:
                yield name, iso, of_article
                has_dates = True
    if not has_dates:
        yield from ((name, None, whole) for name, whole in kinds)


def _clause_dates(clause: str, promulgated: tuple[str, ...]) -> tuple[str, ...]:
    """The date of one sentence about the whole regulation."""
    if written := dates(_PARENTHESES.sub(" ", clause)):
        return written[-1:]
    if (later := _AFTER_PROMULGATION.search(clause)) and promulgated:
        return (_later(promulgated[0], int(later[1]), later[2]),)
    return dates(clause)[-1:] or (promulgated if _ON_PROMULGATION.search(clause) else ())


def _later(iso: str, count: int, unit: str) -> str:
    """The date so many years, months or days after another."""
    date = datetime.date.fromisoformat(iso)
    if unit == "일":
        return (date + datetime.timedelta(days=count)).isoformat()
    months = date.year * 12 + date.month - 1 + count * (12 if unit == "년" else 1)
    year, month = divmod(months, 12)
    return date.replace(
        year=year, month=month + 1, day=min(date.day, calendar.monthrange(year, month + 1)[1])
    ).isoformat()


def _iso(date: str) -> str | None:
    year, month, day = (int(number) for number in DIGITS.findall(date))
    try:
        return datetime.date(year, month, day).isoformat()
    except ValueError:
        return None


def _paragraph_starts(text: str) -> list[int]:
    return [match.start() for match in PARAGRAPH.finditer(text) if _begins_paragraph(text, match.start())]


def _begins_paragraph(text: str, position: int) -> bool:
    """Whether a circled number begins a line, or follows the end of a sentence or a bracket."""
    before = text[max(0, position - 40) : position].rstrip(" \t\u3000*")
    return not before or before[-1] in "\n.>〉)）]】"


def circled_number(mark: str) -> int:
    """The number of ①, ㉑ or ㊱."""
    for first, number in (("㊱", 36), ("㉑", 21), ("①", 1)):
        if mark >= first:
            return ord(mark) - ord(first) + number
    raise ValueError(mark)


@dataclass(frozen=True, slots=True)
class ProvisionDays:
    """Days in ISO form. `written`: since when its text is as it is, at the latest; None if unknown.

    `amended`: its last amendment; None without any that is known. `paragraphs`: the last amendment of each 항, of its
    own or of the whole article; None without any.
    """

    written: str | None
    amended: str | None
    paragraphs: Mapping[int, str | None]

    def amended_in(self, paragraph: int | None) -> str | None:
        """The last amendment of this paragraph; of the whole provision if there is none with this number."""
        return self.paragraphs.get(paragraph, self.amended) if paragraph is not None else self.amended


def provision_days(editions: Sequence[RegulationText], label: str) -> ProvisionDays:
    """The days of a provision; `editions` are those of its work until the one that is read, the oldest first.

    An amendment is a mark (`<개정 2020. 3. 1.>`) or a text that differs from the edition before. Without any, the text
    exists at least since the oldest date of the addenda.
    """
    newest = editions[-1]
    provisions = [provision for provision in newest.provisions if provision.label == label]
    marks = [
        mark
        for provision in provisions
        for mark in amendments(
            newest.text[provision.start : provision.end], heading_before(newest.text, provision.start)
        )
    ]
    texts = [text_of(edition, label) for edition in editions]
    whole = [mark.date for mark in marks if mark.date]
    amended = max([*whole, *_changed_on(editions, texts)], default=None)
    parts = [paragraph_texts(text) for text in texts]
    paragraphs = {
        number: max(
            [mark.date for mark in marks if mark.date and mark.paragraph in {None, number}]
            + _changed_on(editions, [part.get(number, "") for part in parts]),
            default=None,
        )
        for number in parts[-1]
    }
    return ProvisionDays(amended or _enacted_on(editions[0]), amended, paragraphs)


def deletion_days(remains: str) -> ProvisionDays:
    """The days of a deleted provision, from what remains of it (`삭제 <2020. 1. 1.>`)."""
    day = max((mark.date for mark in amendments(remains) if mark.date), default=None)
    return ProvisionDays(day, day, {})


def text_of(regulation: RegulationText, label: str) -> str:
    """The text of the provisions with this label; "" when there are none."""
    provisions = [provision for provision in regulation.provisions if provision.label == label]
    return "\n".join(regulation.text[provision.start : provision.end] for provision in provisions)


def _changed_on(editions: Sequence[RegulationText], texts: Sequence[str]) -> list[str]:
    """The day of the edition since which the text is what it is in the newest one; [] if it never changed."""
    newest = "".join(texts[-1].split())
    for place in range(len(editions) - 1, 0, -1):
        if "".join(texts[place - 1].split()) != newest:
            since = editions[place].effective_from
            return [since.isoformat()] if since is not None else []
    return []


def _enacted_on(regulation: RegulationText) -> str | None:
    """The oldest date on which an addendum makes the regulation effective."""
    addenda = [provision for provision in regulation.provisions if provision.kind == "addendum"]
    texts = [(regulation.text[provision.start : provision.end], provision.title) for provision in addenda]
    return min((day for text, title in texts for day in effective_dates(text, title)), default=None)
