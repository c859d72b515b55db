"""Lines that were broken at a margin: which ones belong together, and how a quotation of them reads."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dtrag.core.text.line_kinds import is_terminated, width
from dtrag.core.text.patterns import explained

WIDEST_WRAPPED = 130
"""Cells. Text with wider lines was not broken at a margin: its line breaks mean something."""
NARROWEST_WRAPPED = 30
FULL = 0.65
"""Share of the margin from which on a line that ends no sentence continues in the next."""
BEFORE_LOWER_CASE = 0.4
"""The same share if the next line begins with a small letter."""

_HANGUL_BREAK = re.compile(r"(?<=[가-힣])\n[ \t]*(?=[가-힣])")
_HYPHEN_BREAK = re.compile(r"(?<=[A-Za-zÀ-ɏ]{2})-\n[>\s]*(?=[a-zß-ɏ])")
_SPACE = re.compile(r"\s*\n[>\s]*|[\s\u00a0]+")
_CELLS = re.compile(r"(?<=\S)(?:[ ]?\t\s*| {3,})(?=\S)")
_BRACKET = re.compile(r"[<〈(\[]\s*[가-힣\d]")
_AMENDMENT = explained(
    r"\s*[<〈](?=[^<>〈〉]{0,40}(?:개\s?정|신\s?설|삭\s?제|삽\s?입|이동\s?\d))[^<>〈〉]{0,1500}[>〉]|\s*[<〈]\s?종전[^<>〈〉]{0,120}[>〉]"
    r"|\s*[(\[]\s*(?:전문|전부|일부|제목|본조|본항|본호|제\d+[조호]에서)?\s?(?:개정|신설|이동|삭제)\s?[,\s]*\d{2,4}\s?[.년][^()\[\]]{0,120}[)\]]",
    finds=("<개정 2020. 3. 1.>", "[본조신설 2019. 1. 1.]"),
    refuses="<신청 2020. 3. 1.>",
)
_PARTICLE = re.compile(
    r"(?:[은는을를의와과야며]|에[서게]?|으?로|까지|부터|이다|[습입]?니다)(?=[\s.,;)\]]|$)|다(?=[.,)])"
)
"""What never stands alone at the beginning of a line."""
_WORD_END = re.compile(r"(?:[은는을를와과며고여의]|에서|에게|으로|까지|부터|하여|다만)$")


def margin(lines: Sequence[str]) -> int:
    """The width at which the lines were broken; 0 for lines that were not."""
    widths = sorted(width(line) if len(line) <= WIDEST_WRAPPED else WIDEST_WRAPPED + 1 for line in lines)
    wide = sum(cells > WIDEST_WRAPPED for cells in widths)
    if not widths or wide > len(widths) // 10:
        return 0
    widest = widths[-1 - wide]
    return widest if widest >= NARROWEST_WRAPPED else 0


def continues(line: str, following: str, wrapped_at: int) -> bool:
    """Whether `following` continues `line`, both without surrounding blanks; `wrapped_at` is their `margin`."""
    cells = width(line)
    lower = following[0].islower()
    if not wrapped_at:
        return lower and not is_terminated(line) and cells >= NARROWEST_WRAPPED * 2
    first_word = following.split(maxsplit=1)[0]
    if cells >= wrapped_at * FULL / 2 and cells + 1 + width(first_word) > wrapped_at:
        return True
    return not is_terminated(line) and cells >= wrapped_at * (BEFORE_LOWER_CASE if lower else FULL)


def breaks_words(joints: Sequence[tuple[str, str]], wrapped_at: int) -> bool:
    """Whether Korean text was broken at the margin itself, inside words; `joints` are lines and those that go on."""
    hangul = [
        (line, following) for line, following in joints if "가" <= line[-1] <= "힣" and "가" <= following[0] <= "힣"
    ]
    if any(_PARTICLE.match(following) for _, following in hangul):
        return True
    return len(hangul) > 1 and all(width(line) >= wrapped_at - 2 for line, _ in hangul)


def ends_word(text: str) -> bool:
    """Whether Korean text ends as a word does, so that a broken line goes on with another word."""
    return _WORD_END.search(text[-4:]) is not None


def displayed(quote: str, *, words_broken: bool = False) -> str:
    """The quotation on one line for a reader, without marks of amendments unless it is nothing else.

    Cells of a table without lines are separated by ` | `; a word that was broken at the margin is one word again.
    """
    shown = quote
    if "\n" in quote:
        shown = _HANGUL_BREAK.sub(lambda match: _joint(match, words_broken), shown)
        shown = _HYPHEN_BREAK.sub("", shown)
    elif "|" not in quote and ("\t" in quote or "   " in quote):
        shown = _CELLS.sub(" | ", shown)
    if "\n" in shown or "  " in shown or "\u00a0" in shown:
        shown = _SPACE.sub(" ", shown)
    if _BRACKET.search(shown):
        shown = _AMENDMENT.sub("", shown).strip() or shown
    if "|" not in shown:
        return shown.strip()
    return shown.removeprefix("|").removesuffix("|").strip() or shown


def _joint(match: re.Match[str], words_broken: bool) -> str:
    """Nothing where a line ended inside a word, a blank where it ended between two."""
    if match[0] != "\n":
        return " "
    if _PARTICLE.match(match.string, match.end()):
        return ""
    return "" if words_broken and not ends_word(match.string[: match.start()]) else " "
