"""The past of a regulation: deleted articles and appendices (`제5조 삭제 <2020. 1. 1.>`), former names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dtrag.core.editions import folded_name
from dtrag.core.text.patterns import explained
from dtrag.regulations.korean import citation_patterns as patterns
from dtrag.regulations.korean.catalog import Number, article_label

LONGEST_LIST = 600
"""Characters before 폐지한다 that may list rules."""
MIN_NAME_LENGTH = 4
"""Length of the name of an abolished rule that is too short to identify one."""
_QUOTES = " 「」『』“”‘’\"'"
WIDEST_RANGE = 60
"""Articles that a range (제5조 내지 제9조) may delete."""
_BEFORE = r"(?m)^[ \t\r\f\u00a0\u3000*#]*+"
_ARTICLE = explained(
    rf"{_BEFORE}(?P<head>제\s*+(\d{{1,4}})\s*+조(?:\s*+의\s*+(\d{{1,3}}))?)"
    r"(?P<range>\s*+(?:부터|내지|[~∼～\-])\s*+제\s*+(\d{1,4})\s*+조(?:\s*+의\s*+(\d{1,3}))?(?:\s*+까지)?)?"
    r"(?P<title>\s*+[(（](?!\s*+삭\s*+제)[^()（）\n]*+[)）])?[*\s]*+[<〈(（\[]?\s*+삭\s*+제",
    finds=("제5조 삭제 <2020. 1. 1.>", "제3조 내지 제5조 삭 제"),
    refuses="다만 제5조 삭제",
)
_APPENDIX = explained(
    rf"{_BEFORE}(?:[<〈\[(（【「〔［]\s*+)?"
    r"(?P<label>별\s*+[표지첨](?:\s*+(?:서식)?\s*+제?\s*+\d+(?:\s*+[-–의]\s*+\d+)*+\s*+호?)?(?:\s*+서\s*+식)?)"
    r"\s*+[>〉\])）】」〕］]?\s*+[<〈(（\[]\s*+삭\s*+제",
    finds="[별표 2] <삭제 2020. 1. 1.>",
    refuses="[별표 2] 심사표",
)


@dataclass(frozen=True, slots=True)
class Deletion:
    """A deleted provision: `label` (제5조, 별표 2) and the span of what remains, such as `삭제 <2020. 1. 1.>`."""

    kind: str
    label: str
    title: str
    number: Number | None
    start: int
    end: int


def deletions(text: str) -> Iterator[Deletion]:
    """The deleted articles and appendices, in the order of the text; every article of a range."""
    for match in _ARTICLE.finditer(text):
        title = (match["title"] or "").strip()[1:-1]
        start = match.start("head") if match["range"] else match.end("title" if title else "head")
        span = _span(text, start, match.end())
        for number in _numbers(match):
            yield Deletion("article", article_label(number), " ".join(title.split()), number, *span)
    for match in _APPENDIX.finditer(text):
        span = _span(text, match.end("label"), match.end())
        yield Deletion("appendix", " ".join(match["label"].split()), "", None, *span)


def _numbers(match: re.Match[str]) -> list[Number]:
    first = (int(match[2]), int(match[3] or 0))
    if not match["range"]:
        return [first]
    last = (int(match[5]), int(match[6] or 0))
    if last[0] - first[0] > WIDEST_RANGE:
        return [first, last]
    if first[0] == last[0]:
        between = [(first[0], minor) for minor in range(first[1] + 1, last[1])]
    else:
        between = [(number, 0) for number in range(first[0] + 1, last[0])]
    return list(dict.fromkeys([first, *between, last]))


def _span(text: str, start: int, inside: int) -> tuple[int, int]:
    """From `start` to the end of the line that contains `inside`, without blanks and the marks of Markdown."""
    end = text.find("\n", inside)
    end = len(text) if end < 0 else end
    while start < end and text[start] in " \t\r\n*)）>〉]】」〕］":
        start += 1
    while start < end and text[end - 1] in " \t\r*":
        end -= 1
    return start, end


def abolished_rules(text: str) -> Iterator[tuple[int, str, bool]]:
    """Place and name of the rules that an addendum abolishes (`true`) or creates: …, …세칙은 폐지한다."""
    for match in patterns.ABOLISHES.finditer(text):
        before = text[max(0, match.start() - LONGEST_LIST) : match.start()]
        names = before[max(before.rfind(mark) for mark in ".\n()") + 1 :]
        start = match.start() - len(names)
        separators = list(patterns.LIST_SEPARATOR.finditer(names))
        starts = [0, *(separator.end() for separator in separators)]
        ends = [*(separator.start() for separator in separators), len(names)]
        for first, last in zip(starts, ends, strict=True):
            name = names[first:last].strip()
            name = name[max(0, *(name.rfind(mark) for mark in "“「‘")) :] if name[-1:] in _QUOTES else name
            is_rule = patterns.ENDS_AS_RULE.search(name.rstrip(_QUOTES)) is not None and len(name) > MIN_NAME_LENGTH
            if is_rule and not patterns.FORMER_RULE.match(name):
                yield start + names.index(name, first), name, "폐지" in match.group()


def former_names(name: str, addenda: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Earlier names of a regulation, and names of the rules that it replaced, as its addenda mention them."""
    own = folded_name(name)
    renamed: dict[str, None] = {}
    replaced: dict[str, None] = {}
    for text in addenda:
        for match in patterns.RENAMES.finditer(text):
            names = match["before"], match["after"]
            if own in map(folded_name, names):
                renamed |= dict.fromkeys(names)
        replaced |= dict.fromkeys(
            rule.strip(_QUOTES) for _, rule, is_abolished in abolished_rules(text) if is_abolished
        )
        replaced |= dict.fromkeys(match[1] for match in patterns.CONTINUES.finditer(text))
    return (
        tuple(former for former in renamed if folded_name(former) != own),
        tuple(former for former in replaced if folded_name(former) != own and former not in renamed),
    )
