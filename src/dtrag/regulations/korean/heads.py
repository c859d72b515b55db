"""The lines of a document, and what single lines are: heads of articles, divisions and appendices; names; history.

Each function sees one line only; provisions.py decides by the order of numbers whether a head is accepted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dtrag.core.documents import Block, ParsedDocument
from dtrag.core.text.patterns import explained
from dtrag.regulations.korean.catalog import ARTICLE_NUMBER

_FIRST_PARAGRAPH = re.compile(r"①\s*(?=[(（])")
_DIVISION = explained(
    r"제\s*(?:\d{1,3}|[IVX]{1,5}|[Ⅰ-Ⅻ]|[一二三四五六七八九十]{1,3})\s*([편장절관])(?:\s*의\s*\d+)?(?=[\s.:(（<\[]|$)",
    finds=("제3장 총칙", "제Ⅱ편"),
    refuses="제3장에",
)
_ADDENDUM = explained(
    r"[<〈\[(（【「]?\s*부\s*칙\s*[>〉\])）】」]?\s*\**\s*(?P<rest>$|[<〈\[(（【].*|①.*|\d{4}\s*[.년-].*|제\s*\d+\s*호.*)",
    finds=("부 칙", "부칙 <2020. 3. 1.>"),
    refuses="부칙에 따라",
)
_APPENDIX_WORD = r"(?:별\s*표|별\s*지|별\s*첨|서\s*식|양\s*식|붙\s*임)"
_APPENDIX_NUMBER = r"(?:\s*제?\s*\d+(?:\s*[-–의]\s*\d+)*\s*호?(?:\s*의\s*\d+)?(?:\s*\(\d+(?:-\d+)*\))?)"
_APPENDIX = explained(
    rf"(?:[■□◆●▣※]\s*)?(?:[<〈\[(（【「〔［]\s*(?P<inner>{_APPENDIX_WORD}{_APPENDIX_NUMBER}?\s*(?:(?:서\s*식|양\s*식)\s*(?:제?\s*\d+\s*호?)?)?)\s*[>〉\])）】」〕］]"
    rf"|(?P<bare>(?:별\s*표|별\s*지){_APPENDIX_NUMBER}\s*(?:서\s*식|양\s*식)?)(?=\s*[<〈\[(（【]|\s*$))(?P<rest>.*)$",
    finds=("[별표 1]", "별지 제1호 서식"),
    refuses="별표에 따라",
)
_PAIRS = {"(": ")", "（": "）", "[": "]", "【": "】", "〔": "〕"}
_MARK_WORDS = r"(?:전문|본조|제목|일부|단서|호|항|목)?\s*(?:개\s*정|신\s*설|삭\s*제|폐\s*지|변\s*경|이\s*동|제\s*정)"
_MARK = explained(
    rf"[<〈(（\[【「]\s*(?:{_MARK_WORDS}|\d{{4}}\s*\.|(?:종전|제)[^<>\[\]]{{0,80}}이동)[^<>〈〉()（）\[\]【】「」]*[>〉)）\]】」]",
    finds="<개정 2020. 3. 1.>",
    refuses="<표 1>",
)
_DATED = re.compile(r"\d{2,4}\s*[.년/-]\s*\d{1,2}")
_HISTORY_WORDS = re.compile(
    r"제\s*정|개\s*정|시\s*행|폐\s*지|공\s*포|변\s*경|신\s*설|인\s*가|소관|담당\s*부서|관리\s*부서"
)
_BRACKETED = re.compile(r"[<〈(（\[【「].*[>〉)）\]】」]\.?$")
_SENTENCE = re.compile(r"(?:[다함음임요]\.|[.。:;,])$|(?:한다|된다|있다|없다|는다|본다|바)$")
_LISTED = re.compile(r"[①-⑳㉑-㊿\-*•·○□▪※]|\(?\d+\s*[.)]|[가-하ㄱ-ㅎ]\s*[.)]|제\s*\d+\s*[조항호]|[(\[<〈【|]")
_SUFFIX = explained(
    r"(?:규정|규칙|학칙|정관|세칙|지침|내규|규약|요강|강령|기준|회칙|헌장|요령|준칙|조례|법률|시행령|편람|원칙|.{3}법)"
    r"(?:\s*[(（\[【][^)）\]】]*[)）\]】])?\**$",
    finds=("인사규정", "고등교육법"),
    refuses="교수법",
)
_NAME_STYLE = re.compile(r"규정\s*(?:명|제목|이름)|법령\s*명|^(?:제목|큰제목|title)$", re.IGNORECASE)
_ABOLISHED = re.compile(r"(?:^|\s)(?:폐\s*지|이동|통합)(?:\s|$|[→:.,)>\]】(])|(?:폐지|이동|통합)(?:함|됨|되었다)")
_EMPTY = re.compile(r"삭\s*제|폐\s*지|제\s*\d+\s*조(?:\s*의\s*\d+)?|내지|부터|까지|및|[\d\W_①-⑳㉑-㊿]")
_CITED = explained(
    r"(?:에서|에게|에|의|을|를|와|과|는|은|이|가|및|내지|또는|부터|까지|중)"
    r"|\s+(?:및|내지|또는|부터|까지|중|의\s|에\s|각\s*호|규정에|따라)|\s*(?:제\s*\d+\s*[항호조]|[,~∼\-])",
    finds=("에서", " 제3항"),
    refuses=" 총칙",
)
DIVISION_RANKS = {"편": 0, "장": 1, "절": 2, "관": 3}
LONGEST_NAME = 60
LONGEST_TITLE = 120
LONGEST_EMPTY = 2_000
"""Characters of dates and marks that may remain of a deleted article."""


@dataclass(frozen=True, slots=True)
class ArticleHead:
    """`제N조의M(title)` at the start of a line. `minor` is 0 without `의M`; `body` is an offset into the line."""

    number: int
    minor: int
    title: str
    body: int
    tail: str

    @property
    def label(self) -> str:
        """`제15조`, `제3조의2`, without blanks."""
        return f"제{self.number}조의{self.minor}" if self.minor else f"제{self.number}조"


def article_head(text: str) -> ArticleHead | None:
    """The head that the line begins with. `tail` is what follows the head (the number when there is no title)."""
    match = ARTICLE_NUMBER.match(text)
    if match is None:
        return None
    number, minor, position = int(match[1]), int(match[2] or 0), match.end()
    tail = text[position : position + 12]
    title = ""
    after = _skip(text, position)
    if first := _FIRST_PARAGRAPH.match(text, after):
        after = first.end()  # `제5조 ① (제목) …`: the title follows the mark of the first paragraph.
    while (closed := _closing(text, after)) > 0:
        if _MARK.fullmatch(text, after, closed) and (_DATED.search(text, after, closed) or title):
            if title:
                break
            after = _skip(text, closed)
            continue
        title = " ".join(text[after + 1 : closed - 1].split())
        position, tail = closed, text[closed : closed + 12]
        break
    body = position
    while body < len(text) and text[body] in " \t\u3000*":
        body += 1
    return ArticleHead(number, minor, title, body, tail)


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\u3000":
        position += 1
    return position


def _closing(text: str, position: int) -> int:
    """Offset after the bracket that closes the one at `position`; 0 if there is none or it is not closed."""
    opening = text[position : position + 1]
    closing = _PAIRS.get(opening)
    if closing is None:
        return 0
    depth = 0
    for index in range(position, min(len(text), position + LONGEST_TITLE)):
        depth += (text[index] == opening) - (text[index] == closing)
        if depth == 0:
            return index + 1
    return 0


def cites(tail: str) -> bool:
    """Whether the text after `제N조` or its bracket makes it a citation: `제3조의 규정에`, `제3조 및`, `제3조제2항`."""
    return bool(_CITED.match(tail))


def division_head(text: str) -> tuple[int, str] | None:
    """Rank (0 편, 1 장, 2 절, 3 관) and the heading without amendment marks."""
    match = _DIVISION.match(text)
    if match is None or len(text) > LONGEST_NAME + 60 or _SENTENCE.search(text):
        return None
    heading = " ".join(without_marks(text).strip(" *").split())
    return (DIVISION_RANKS[match[1]], heading) if len(heading) <= LONGEST_NAME else None


def addendum_head(text: str) -> tuple[str, int] | None:
    """The date line (`2010. 3. 1.`) or "" and the offset of the body in the line."""
    match = _ADDENDUM.match(text)
    if match is None:
        return None
    rest = match["rest"]
    if rest.startswith("①"):
        return "", match.start("rest")
    if len(rest) > LONGEST_TITLE:
        return None
    return rest.strip("<>〈〉[]()（）【】 *"), len(text)


def appendix_head(text: str) -> tuple[str, str] | None:
    """Label (`별표 1`, `별지 제3호 서식`) and the title after it; "" if the title is on the next line."""
    match = _APPENDIX.match(text)
    if match is None:
        return None
    label = match["inner"] or match["bare"]
    rest = without_marks(match["rest"]).strip(" *:")
    if max(len(label), len(rest)) > LONGEST_NAME or _SENTENCE.search(rest):
        return None
    return " ".join(re.sub(r"(별|서|양|붙)\s+(표|지|첨|식|임)", r"\1\2", label).split()), " ".join(rest.split())


def without_marks(text: str) -> str:
    """The text without amendment marks: `<개정 2010. 3. 1.>`, `(신설 …)`, `[본조신설 …]`."""
    return _MARK.sub("", text)


def is_empty_body(text: str) -> bool:
    """Whether an article has no content: it was deleted, or only numbers and marks remain."""
    return len(text) <= LONGEST_EMPTY and not _EMPTY.sub("", without_marks(text))


def is_history(text: str) -> bool:
    """Whether the line is of the history: `제정 1990. 3. 1.`, `<규정 명칭 변경 2013. 2. 1.>`, `소관부서: 교무처`."""
    if _BRACKETED.match(text) or text[0] in "<〈[":
        return True
    if len(text) > 200 or text.endswith("다."):
        return False
    return bool(_HISTORY_WORDS.search(text) and (_DATED.search(text) or ":" in text)) or not _EMPTY.sub("", text)


def is_abolished(text: str) -> bool:
    """Whether the line is the remainder of an abolished or moved regulation: `2025년 3월 1일자 폐지 → …`."""
    return len(text) < 200 and not text.endswith("한다.") and bool(_DATED.search(text) and _ABOLISHED.search(text))


def may_be_name(text: str) -> bool:
    """Whether the line could be a name: short, not a sentence, without a list mark or bracket before it."""
    return 2 <= len(text) <= LONGEST_NAME and not _SENTENCE.search(text) and not _LISTED.match(text)


def has_name_ending(text: str) -> bool:
    """Whether the text ends as a name: `…규정`, `…학칙`, `…시행세칙`, with or without a bracket after it."""
    return bool(_SUFFIX.search(text))


def is_name_style(style: str) -> bool:
    """Whether the name of a style marks names of regulations or titles."""
    return bool(_NAME_STYLE.search(style))


_MARKUP = re.compile(r"\s*(?:(#{1,6})\s+)?(?:\*\*|__)?\s*")


@dataclass(frozen=True, slots=True)
class DocumentLine:
    """A line that is not blank. `text == document.text[start:end]`, without Markdown's `#` and `**` before it.

    `level` is that of a heading (of the block or of the `#`), 0 otherwise; `table` is true for a row of a table.
    """

    start: int
    end: int
    text: str
    level: int = 0
    style: str = ""
    table: bool = False


def lines_of(document: ParsedDocument) -> list[DocumentLine]:
    """All lines that are not blank, in order. One pass over text and blocks."""
    lines: list[DocumentLine] = []
    blocks = iter(document.blocks)
    block: Block | None = next(blocks, None)
    position = 0
    for raw in document.text.split("\n"):
        start, position = position, position + len(raw) + 1
        if not raw or raw.isspace():
            continue
        while block is not None and block.end <= start:
            block = next(blocks, None)
        here = block if block is not None and block.start < start + len(raw) else None
        line = _line(raw, start, here)
        if line is not None:
            lines.append(line)
    return lines


def _line(raw: str, start: int, block: Block | None) -> DocumentLine | None:
    if block is not None and block.kind == "table":
        text = raw.strip()
        begin = start + raw.index(text)
        only_cell = text.rstrip(" \t|")
        text = only_cell if only_cell and "|" not in only_cell else text
        return DocumentLine(begin, begin + len(text), text, table=True)
    markup = _MARKUP.match(raw)
    offset = markup.end() if markup else 0
    text = raw[offset:].rstrip()
    if not text:
        return None
    level = len(markup[1]) if markup and markup[1] else 0
    if block is not None and block.kind == "heading":
        level = level or block.level
    return DocumentLine(start + offset, start + offset + len(text), text, level, block.style if block else "")
