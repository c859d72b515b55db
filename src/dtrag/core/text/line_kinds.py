"""Lines of a text, the units they form, and what one line is by its own characters: heading, caption, list item, …

Each function sees one line only; units.py decides with the lines around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from dtrag.core.documents import ContextKind
from dtrag.core.text.patterns import DIGITS, explained

LONGEST_HEADING = 60
"""Width in cells of a heading that only its form tells (a Hangul syllable takes two cells)."""
MOST_HEADING_WORDS = 9
LONGEST_FORM_TITLE = 80
LONGEST_ENTRY = 240
"""Characters of a line in a table of contents."""

_WIDE = re.compile("[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60]")
_TERMINATED = re.compile(r"[.!?。？！…;][\"'”’)\]>〉]*$")
_CONTENTS = explained(
    r"(?:\.{3,}|…{2,}|·{3,}|‥{2,}|(?:\s?[.·]\s){3,}[.·]?|_{4,}|-{4,})\s*(?:[ivxlc]{1,6}|\d{1,4})$",
    finds="총칙 ..... 3",
    refuses=("총칙 .. 3", "총칙 ..."),
)
_NUMERALS = frozenset("0123456789ivxlcIVXLC")
_NAMES_UNIT = re.compile(r"단위|[Uu](?:nits?|NITS?)|\((?:[A-Za-z]+ ){0,2}in ")
_CONTENTS_TITLE = re.compile(r"[<\[(]?\s*(?:목\s*차|차\s*례|(?:table of )?contents)\s*[>\])]?$", re.I)
_LISTED = re.compile(r"\S\s+\d{1,4}$")
_PAGE = explained(
    r"[-–—]\s*\d{1,4}\s*[-–—]$|\d{1,4}(?:\s*/\s*\d{1,4})?$"
    r"|(?:page|p\.|쪽|페이지)\s?\d{1,4}(?:\s?(?:of|/)\s?\d{1,4})?$|\d{1,4}\s?(?:쪽|페이지|page)$"
    r"|.{0,70}(?:\s{2,}|\t|[|·•]\s?|\[)page\s\d{1,4}(?:\s?(?:of|/)\s?\d{1,4})?\]?$",
    flags=re.I,
    finds=("- 12 -", "page 3 of 9"),
    refuses="3쪽 참조",
)
_LETTER = re.compile(r"[^\W_]")
_RULE = re.compile(r"[-=_~*+|:#─━═│┼┬┴├┤┌┐└┘.\s]{3,}$")
_DIVISION = explained(
    r"제\s?\d{1,4}\s?(?:편|장|절|관|조)(?:\s?의\s?\d{1,3})?"
    r"(?:\s*[(（][^()（）]{0,60}[)）]|(?<!조)(?:\s+\S{1,20}){0,4})?(?:\s*[<〈\[][^<>〈〉\[\]]{0,80}[>〉\]])*$",
    finds="제2장 학생",
    refuses="제2조에 따라",
)
_ARTICLE_ONLY = explained(
    r"제\s?\d{1,4}\s?조(?:\s?의\s?\d{1,3})?\s*(?:[(（][^()（）]{0,60}[)）])?(?:\s*[<〈\[][^<>〈〉\[\]]{0,80}[>〉\]])*$",
    finds=("제3조(목적)", "제5조의2 <삭제>"),
    refuses="제3조(목적) 이 규정은",
)
_FORM_NUMBER = r"제?\s?\d{1,3}(?:-\d{1,3})?\s?호?(?:\s?의\s?\d{1,2})?"
_FORM = explained(
    rf"[\[<〈【(「]?\s*(?:별지|별표|별첨|붙임|첨부|서식|양식)\s*(?:{_FORM_NUMBER})?\s*(?:서식|양식)?\s*[\]>〉】)」]"
    rf"|(?:별지|별표)\s*{_FORM_NUMBER}(?:\s*(?:서식|양식))?(?=\s|[<〈(\[]|$)",
    finds=("[별지 제1호 서식]", "별표 3"),
    refuses="별표 3에 따라",
)
_FORM_TITLE = explained(
    r"[가-힣ㆍ·\s]{0,22}(?:신청서|신청원|원서|확인서|서약서|동의서|계획서|보고서|증명서|추천서|평가서|명세서|청구서|승낙서"
    r"|위임장|대장|명부|조서|각서|의뢰서|통지서|신고서|요청서|허가서|서식|양식)\s*(?:\([^()]{0,20}\))?$",
    finds=("휴학 신청서", "서약서(교원용)"),
    refuses="신청서를 낸다",
)
_CAPTION = explained(
    r"[<〈\[【(]?\s*(?:표|그림|도표|사진|table|figure|fig\.?|chart|exhibit)\s?\d{1,3}(?:[-.]\d{1,3})?\s*"
    r"(?:[\]>〉】)]|[.:](?:\s|$)|\s+(?=\S))",
    flags=re.I,
    finds=("<표 1>", "Figure 2: Costs"),
    refuses="표 1의",
)
_CAPTION_MARKED = re.compile(r"[<〈\[【(]|[^\d]{1,8}\d{1,3}(?:[-.]\d{1,3})?\s*[.:\]>〉】)]")
_UNIT = explained(
    r"[(\[（<]\s*(?:금액\s?)?(?:단위|units?)\s*[:：]\s*[^()\[\]（）<>\n]{1,40}(?:\([^()\n]{1,20}\)[^()\[\]\n]{0,10})?[)\]）>]"
    r"|(?:금액\s?)?(?:단위|units?)\s*[:：]\s*[^()\[\]（）<>|\n]{1,40}$"
    r"|\((?:(?:all )?(?:amounts|figures|prices|fees|costs|values|rates|weights|sizes) )?in\s[^()\n]{2,40}\)",
    flags=re.I,
    finds=("(단위: 원)", "(in thousands)"),
    refuses="단위: 원 | 비고",
)
_NUMBERED = explained(
    r"(?:\d{1,2}(?:\.\d{1,2}){1,3}\.?|[IVX]{1,5}\.|[Ⅰ-Ⅻ]\.?|(?:chapter|section|part|appendix)\s\w+[.:]?)\s+",
    flags=re.I,
    finds=("1.2 Scope", "Chapter 3 Leave"),
    refuses="1. Scope",
)
_END_INSIDE = re.compile(r"[.!?。？！…][\"'”’)\]>〉]*(?:\s|$)")
_KEY_VALUE = re.compile(r"(?:[A-Z][\w/-]*(?: [\w/-]+){0,2}|[가-힣][가-힣\s]{0,11})\s?[:：]\s*\S")
_TOPIC = re.compile(r"[가-힣](?:은|는|을|를|에게|에서|으로|까지|부터)(?:\s|$)")
_PREDICATE = re.compile(r"(?:다|요|까|함|됨|음|임|것|바람|바랍니다|하기|하지)[)\]]?$")
_LETTERS = "가나다라마바사아자차카타파하거너더러머버서어저처커터퍼허"
_MARKER = explained(
    r"(?P<bullet>[-–—•·▪◦○●■□▶▷►◆◇☞☐☑✓✔※*∙ㆍ‣])[ \t]+(?=\S)|(?P<touching>[•▪◦○●■□▶▷►◆◇☞☐☑✓✔※‣])(?=\S)"
    r"|(?P<circled>[①-⑳㉑-㉟㊱-㊿])[ \t]*"
    r"|(?P<number>\d{1,3})\.(?!\d|[ \t]?\d{1,2}\.)(?:[ \t]*(?=[^\s\d])|[ \t]+(?=\S)|$)"
    r"|\((?P<round>\d{1,3})\)[ \t]*(?=\S)|(?P<half>\d{1,3})\)[ \t]*(?=\S)"
    rf"|(?P<letter>[{_LETTERS}])\.(?:[ \t]+(?=\S)|$)"
    rf"|\((?P<roundletter>[{_LETTERS}])\)[ \t]*(?=\S)"
    rf"|(?P<halfletter>[{_LETTERS}])\)[ \t]*(?=\S)"
    r"|(?P<latin>[a-zA-Z])[.)][ \t]+(?=\S)|\((?P<roundlatin>[a-zA-Z])\)[ \t]*(?=\S)"
    r"|\((?P<roman>[ivx]{2,5})\)[ \t]*(?=\S)",
    finds=("• 대상", "(iv) fees"),
    refuses=("3.5 days", "-5 degrees"),
)
_LEAD_IN = explained(
    r"다음\s?(?:의\s)?각\s?(?:호|목|항|조|사항)|(?:다음|아래)(?:과|와)?\s?같(?:다|습니다|이|은|으며|고)"
    r"|(?:다음|아래)의?\s?(?:사항|서류|표|항목|내용|경우|업무|절차|순서|기준|요건|자료|물품)"
    r"|(?:^|\s)(?:다음|아래)(?:의|에)?\s(?!(?:날|달|해|주|번|학기|호)(?:[에의은는까부로,\s]|$))[가-힣]"
    r"|\bas follows\b|\b(?:the )?following\b(?! (?:days?|weeks?|months?|years?|mornings?|terms?|seasons?|pages?)\b)"
    r"|\b(?:listed|shown|given|set out|see|in the table) below\b|\bbelow(?=\s*[.:]?$)",
    flags=re.I,
    finds=("다음 각 호", "as follows"),
    refuses=("다음 날에", "the following day"),
)


_ENTRY = explained(
    r"(?:\(?\d{1,2}[.)]|\d{1,2}(?:\.\d{1,2}){1,3}\.?"
    r"|[IVX]{1,5}\.|[Ⅰ-Ⅻ]\.?|제\s?\d{1,3}\s?[장절편조]|[가-하]\.|chapter \d+|\d{1,2}(?=\s\D))"
    r"\s*\D.{0,70}\s\d{1,3}$",
    flags=re.I,
    finds="1.2 Scope 14",
    refuses="1.2 Scope",
)
_CONTINUED = re.compile(r"계속|이어서|\bcont(?:inued|['’]d|\.)", re.I)
_ITEMS = re.compile(r"다음\s?(?:의\s)?각\s?(?:호|목)")


def width(text: str) -> int:
    """Width in cells: a Hangul syllable and other wide characters take two."""
    return len(text) if text.isascii() else len(text) + len(_WIDE.findall(text))


def is_hangul(character: str) -> bool:
    """Whether it is a Hangul syllable."""
    return character != "" and "가" <= character <= "힣"


def is_terminated(line: str) -> bool:
    """Whether the line ends like a sentence."""
    return _TERMINATED.search(line[-6:]) is not None


def is_contents(line: str) -> bool:
    """Whether it is an entry of a table of contents: dots that lead to a page number."""
    return line[-1] in _NUMERALS and len(line) <= LONGEST_ENTRY and _CONTENTS.search(line) is not None


def is_contents_title(line: str) -> bool:
    """Whether it is the title of a table of contents."""
    return _CONTENTS_TITLE.match(line) is not None


def ends_in_page_number(line: str) -> bool:
    """Whether it may be an entry below the title of a table of contents."""
    return line[-1].isdigit() and _LISTED.search(line) is not None and not is_terminated(line)


def is_page_mark(line: str) -> bool:
    """Whether it is the header or footer of a page: a page number, alone or after a short title."""
    return _PAGE.match(line) is not None


def is_rule(line: str) -> bool:
    """Whether it only draws a line, between the rows of a table for example, or has no letter and no figure."""
    return _RULE.match(line) is not None or _LETTER.search(line) is None


def is_form_title(line: str) -> bool:
    """Whether it is the name of a form or an appendix (`[별지 제1호 서식]`, `휴학 신청서`)."""
    if len(line) > LONGEST_FORM_TITLE or is_terminated(line):
        return False
    return (_FORM.match(line) is not None and not _PREDICATE.search(line)) or _FORM_TITLE.match(line) is not None


def is_caption(line: str) -> bool:
    """Whether it is the caption of a table or a figure."""
    if not _CAPTION.match(line) or width(line) > 2 * LONGEST_HEADING:
        return False
    return _CAPTION_MARKED.match(line) is not None or not (is_terminated(line) or _PREDICATE.search(line))


def is_division(line: str) -> bool:
    """Whether it is the head of a chapter or an article without its text."""
    return _ARTICLE_ONLY.match(line) is not None or (
        _DIVISION.match(line) is not None and not is_terminated(line) and not _PREDICATE.search(line)
    )


def is_heading(line: str) -> bool:
    """Whether it is a heading for certain, whatever follows."""
    return (line.startswith("#") and line.lstrip("#").startswith(" ")) or (
        is_division(line) or is_form_title(line) or is_caption(line) or is_contents_title(line)
    )


def may_be_heading(line: str) -> bool:
    """Whether it is a heading if a text, a list or a table follows: short, without an end, a verb, a number."""
    if len(line) > LONGEST_FORM_TITLE:
        return False
    numbered = _NUMBERED.match(line)
    bare = line[numbered.end() :] if numbered else line
    if marker := _MARKER.match(bare):
        bare = bare[marker.end() :]
    if not bare or width(bare) > LONGEST_HEADING or len(bare.split()) > MOST_HEADING_WORDS:
        return False
    if is_terminated(bare) or bare[-1] in ",-–—/(" or any(character.isdigit() for character in bare):
        return False
    if _KEY_VALUE.match(bare) or "@" in bare or "|" in bare or _TOPIC.search(bare) or _PREDICATE.search(bare):
        return False
    return not bare[0].islower()


def ends_in_predicate(line: str) -> bool:
    """Whether a line of Korean ends like a sentence or a note, without a full stop."""
    return _PREDICATE.search(line) is not None


def has_sentence_end(line: str) -> bool:
    """Whether a sentence ends in the line."""
    return _END_INSIDE.search(line) is not None


def is_key_value(line: str) -> bool:
    """Whether it begins with a short name and a colon, as the lines of a letter's head do."""
    return _KEY_VALUE.match(line) is not None


def unit_span(line: str) -> tuple[int, int] | None:
    """Where the line names the unit of a table's values: `(단위: 천원)`, `(unit: kg)`."""
    match = _UNIT.search(line) if _NAMES_UNIT.search(line) else None
    return (match.start(), match.start() + len(match[0].rstrip())) if match else None


def introduces(sentence: str) -> bool:
    """Whether the sentence introduces a list or a table, if one follows."""
    return ends_in_colon(sentence) or _LEAD_IN.search(sentence) is not None


def announces_table(sentence: str) -> bool:
    """Whether it introduces a table that need not follow at once; "다음 각 호" introduces a list."""
    return _ITEMS.search(sentence) is None and _LEAD_IN.search(sentence) is not None


def ends_in_colon(sentence: str) -> bool:
    """Whether something must follow."""
    return sentence.endswith((":", "："))


def says_something(sentence: str) -> bool:
    """Whether a sentence that introduces a list or table also states something that may be asked: a figure."""
    stated = any(character.isdigit() for character in _ITEMS.sub("", sentence)) and is_terminated(sentence)
    return stated and not ends_in_colon(sentence) and _ITEMS.search(sentence) is None


def is_entry(line: str) -> bool:
    """Whether it may be an entry of a table of contents without dots: a number, a title, a page."""
    return line[-1].isdigit() and len(line) <= LONGEST_FORM_TITLE and _ENTRY.match(line) is not None


def page_of(entry: str) -> int:
    """The page number at the end of an entry."""
    return int(DIGITS.findall(entry)[-1])


def is_continuation(caption: str) -> bool:
    """Whether a caption says that a table goes on."""
    return _CONTINUED.search(caption) is not None


def refers_to_items(sentence: str) -> bool:
    """Whether it introduces a list even where the list itself is not in the text."""
    return ends_in_colon(sentence) or _ITEMS.search(sentence) is not None


@dataclass(frozen=True, slots=True)
class Marker:
    """The mark of a list item: its kind, its place in the sequence (0 for bullets), and its length with the blanks."""

    kind: str
    number: int
    length: int


def marker_of(line: str) -> Marker | None:
    """The mark with which the line begins, if any."""
    match = _MARKER.match(line)
    if match is None:
        return None
    kind = match.lastgroup or ""
    sign = match[kind]
    if kind in {"bullet", "touching"}:
        return Marker(f"bullet{sign}", 0, match.end())
    if kind == "circled":
        return Marker(kind, ord(sign) - ord("①") + 1, match.end())
    if kind in {"letter", "roundletter", "halfletter"}:
        return Marker(kind, _LETTERS.index(sign) + 1, match.end())
    if kind in {"latin", "roundlatin"}:
        return Marker(f"{kind}{sign.isupper()}", ord(sign.lower()) - ord("a") + 1, match.end())
    return Marker(kind, int(sign) if sign.isdecimal() else 0, match.end())


UnitKind = Literal["sentence", "item", "row", "heading", "lead_in", "header", "unit", "contents", "page", "mark"]
QUOTABLE: frozenset[UnitKind] = frozenset({"sentence", "item", "row"})

_QUOTE_PREFIX = re.compile(r"(?:>[ \t]?)+")


@dataclass(frozen=True, slots=True)
class ContextSpan:
    """`[start, end)` of a text that belongs to a quoted unit: header or unit of a row, or the lead-in of an item."""

    kind: ContextKind
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Unit:
    """`[start, end)` of the text, its kind, and the spans that a quotation of it needs, in their order in the text."""

    start: int
    end: int
    kind: UnitKind
    context: tuple[ContextSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class TextUnits:
    """The units of a text in order. `words_broken`: its lines end inside words, as Korean ones may.

    `continued`: the text begins with a table or a list: its header, unit or lead-in may be in the text before.
    """

    units: tuple[Unit, ...]
    words_broken: bool = False
    continued: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line without blanks around it; `raw` has those before it.

    `gap`: an empty line precedes; `marker`: the mark of a list item with which it begins.
    """

    start: int
    end: int
    text: str
    raw: str
    gap: bool
    marker: Marker | None

    @property
    def indent(self) -> int:
        return len(self.raw) - len(self.text)


def lines_of(text: str) -> Iterator[Line]:
    """The lines that are not blank, without the `>` of quoted mail before them."""
    offset, gap = 0, True
    for line in text.split("\n"):
        prefix = _QUOTE_PREFIX.match(line)
        begin = prefix.end() if prefix else 0
        body = line[begin:]
        stripped = body.strip()
        if stripped:
            start = offset + begin + body.index(stripped[0])
            yield Line(start, start + len(stripped), stripped, body.rstrip(), gap, marker_of(stripped))
            gap = False
        else:
            gap = True
        offset += len(line) + 1
