"""Finds the names of regulations, rules and laws in any text, and which regulation each one means."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace

from dtrag.packs.regulation_ko import citation_patterns as patterns
from dtrag.packs.regulation_ko.catalog import Catalog, Name, Outline, folded_name
from dtrag.packs.regulation_ko.citation_patterns import SPACE
from dtrag.packs.regulation_ko.cited_names import NameFinder
from dtrag.packs.regulation_ko.verification.rule_names import (
    CODE,
    ENDING,
    RuleNames,
    is_decree,
    is_generic,
    is_of_the_state,
)

MOST_WORDS = 5
"""Words before a reference that may be an unknown name."""
SHORTEST_UNQUOTED = 5
"""Letters of an unknown name without quotation marks and without a reference behind it."""
LONGEST_WORDS = 60
_NOWHERE = Outline("")
_CORNERS = "「『｢《"
_REFERENCE_AFTER = re.compile(
    rf"{SPACE}(?:[(（](?!{SPACE}제{SPACE}\d)[^()（）\n]{{0,60}}[)）])?{SPACE}(?:의{SPACE}|중{SPACE}|상의{SPACE}|상{SPACE})?"
    rf"(?:제{SPACE}\d{{1,3}}{SPACE}[편장절관]{SPACE})*[(（\[<〈「【,]?{SPACE}"
    rf"(?:제{SPACE}\d{{1,4}}{SPACE}(?:조|[,~∼·ㆍ-])|\d{{1,3}}조(?![원각])|별{SPACE}[표지첨]|부{SPACE}칙)"
)
RULE_ENDINGS = "규정|세칙|규칙|학칙|정관|지침|내규|요령|준칙|강령|요강|규약|헌장|기준|회칙|편람"
_RULE_WORD = re.compile(
    rf"(?<![가-힣])(?P<word>(?:[가-힣A-Za-z0-9·ㆍ․]|\([가-힣A-Za-z ]{{1,20}}\)){{0,40}}(?:{RULE_ENDINGS}))"
    r"(?![가-힣](?<![에의은을과와및이가로상중내]))(?!집|류)"
)
_WORDS_BEFORE = re.compile(r"(?:[가-힣A-Za-z0-9·ㆍ․()]+[ \t]{1,2}){0,4}$")
_SELF = re.compile(
    r"^(?:이|본|동|같은|위|해당|상기|전기|그|현|각|관련|다른|모든|타|전|후|종전|종전의|현행|구|개정|변경)$"
)
_FOLLOWED = re.compile(
    r"(?:을|를|은|는|이|가|의)?\s?(?:에\s?)?(?:따라|따른|따르|의하여|의해|의한|의거|근거|준하여|준용|준수|적용|위반|정한|정하는|정하고|규정)"
)
_IN_BRACKETS = re.compile(r"[(（\[<〈「【]|별")
"""Between the title of a form and what it is based on: 계상 기준(제19조 관련), 처리 기준 [별표 1]."""
_CODE_BESIDE = re.compile(rf"{SPACE}[(（\[]{SPACE}(\d{{1,2}}-\d{{1,4}}-\d{{1,4}}){SPACE}[)）\]]")
_CODE_BEFORE = re.compile(
    rf"(?<![\d-])({CODE.pattern})(?={SPACE}(?:제{SPACE}\d{{1,4}}{SPACE}조|별{SPACE}[표지]|부{SPACE}칙))"
)
_PARTICLES = re.compile(r"(?:은|는|이|가|을|를|에|에서|의|와|과|및|또는|하여|따라|의한|위한|대한|한|하는|된|되는)$")
_DEFINITION = re.compile(
    r"([」』”’\"']?\s?[(（](?:이하|약칭)\s?[:：]?\s?[“\"‘'「『]?([가-힣A-Za-z·ㆍ ]{1,30}?)[”\"’'」』]?\s?"
    r"(?:(?:이라|라)\s?(?:한다|함|하고|하며|칭한다|칭함))?[)）])"
)
MOST_DEFINITIONS = 50
"""Short names that one text may define."""
_GENERAL = re.compile(
    r"^(?:세부|운영|시행|별도|관련|관계|해당|기타|각종|정부|관리|업무|자체|내부|제반|대학|학교|교내|기관|지원|위원회|평가|심사|지급|처리"
    r"|상위|하위|기존|현행|종전|변경|개정|임용|승진|선발|적용|특례|경과|예외|일반|공통|표준|당해|사용|안전){1,3}(?:규정|세칙|지침|내규|규칙|요령)$"
    r"|기준$|^(?:이|본|동|위|그|각|타|현|제|신|구)(?:규정|세칙|규칙|지침|내규|학칙|정관)$"
)
"""Words without a reference behind them that name no particular rule."""
_EMPTY = Catalog.of([])


class NamesInText:
    """Finds names in texts with the names of one collection; short ones as the regulation `source` uses them."""

    def __init__(self, names: RuleNames, source: Outline | None = None) -> None:
        self._rules = names
        self._source = source

    def find(self, text: str) -> list[Name]:
        """The names in order, none within another: defined short names first, then quoted ones, then others."""
        chosen: list[Name] = []
        for source in (self._quoted, self._of_collection, self._laws):
            chosen = _without_overlaps([*chosen, *source(text)])
        chosen = _without_overlaps([*_short_names(text, chosen), *chosen, *self._unknown(text), *self._codes(text)])
        return [self._with_code(text, name) for name in chosen if name.text]

    def _quoted(self, text: str) -> Iterator[Name]:
        for match in patterns.QUOTED.finditer(text):
            article = patterns.ARTICLE.search(match[1])
            written = match[1][: article.start()] if article else match[1]
            end = match.start(1) + article.start() if article else match.end()
            if len(folded_name(written)) < 2 or text[max(0, match.start() - 4) : match.start()].rstrip().endswith(
                "이하"
            ):
                continue
            regulation = self._rules.exact(written, self._source)
            in_corners = match.group()[0] in _CORNERS
            if regulation is not None:
                yield Name(match.start(), end, written.strip(), regulation)
                continue
            is_cited = article is not None or _REFERENCE_AFTER.match(text, match.end()) is not None
            is_rule = ENDING.search(written.strip()) is not None and not is_generic(written)
            is_name = (is_rule or is_of_the_state(written)) and (in_corners or is_cited)
            if is_name or (in_corners and is_cited):
                yield self._outside(match.start(), end, written.strip())

    def _outside(self, start: int, end: int, written: str) -> Name:
        """A name that is not in the collection: a law, a misspelt name, or none."""
        is_law = is_of_the_state(written) or written.endswith(("법", "법률"))
        may_be_rule = ENDING.search(written) is not None and not is_decree(written)
        near = self._rules.near(written) if may_be_rule or not is_law else None
        successor = self._rules.successor(written)
        is_law = is_law and near is None and successor is None
        return Name(start, end, written, near=near, successor=successor, is_law=is_law)

    def _of_collection(self, text: str) -> Iterator[Name]:
        for start, end, regulation in self._rules.occurrences(text, self._source):
            longer = _RULE_WORD.match(text, _after_blanks(text, end))
            if (
                longer
                and folded_name(longer["word"]).startswith("시행")
                and _REFERENCE_AFTER.match(text, longer.end("word"))
            ):
                written = text[start : longer.end("word")]
                exact = self._rules.exact(written, self._source)
                if exact is None:
                    yield self._outside(start, longer.end("word"), written)
                    continue
            successor = None if regulation else self._rules.successor(text[start:end])
            yield Name(start, end, text[start:end], regulation, successor=successor)

    @staticmethod
    def _laws(text: str) -> Iterator[Name]:
        """Laws without quotation marks, with the grammar of citations in regulations."""
        for name in NameFinder(text, _NOWHERE, _EMPTY).laws():
            written = text[name.start : name.end]
            if written.endswith("시행규칙") or not ENDING.search(written):
                yield Name(name.start, name.end, written, is_law=True)

    def _unknown(self, text: str) -> Iterator[Name]:
        """Names that end as those of rules and are not in the collection."""
        for match in _RULE_WORD.finditer(text):
            start, end, word = match.start("word"), match.end("word"), match["word"]
            after = _REFERENCE_AFTER.match(text, end)
            is_cited = after is not None and not (word.endswith("기준") and _IN_BRACKETS.search(after.group()))
            if not is_cited:
                is_name = len(word) >= SHORTEST_UNQUOTED and not is_generic(word) and not _GENERAL.search(word)
                if is_name and (self._rules.near(word) is not None or _FOLLOWED.match(text, end)):
                    yield self._outside(start, end, word)
                continue
            name = self._longest_near(text, start, end, word)
            if name is not None:
                yield name

    def _longest_near(self, text: str, start: int, end: int, word: str) -> Name | None:
        """The cited name that ends at `end`: with the words before it that make it most similar to a known one."""
        words = _WORDS_BEFORE.search(text, max(0, start - LONGEST_WORDS), start)
        starts = [start]
        if words:
            starts += [words.start() + match.start() for match in reversed(list(re.finditer(r"\S+", words.group())))]
        before = text[starts[1] : start].strip() if len(starts) > 1 else ""
        if _SELF.match(before) or _SELF_WORD.match(word):
            return None
        for begin in starts[:MOST_WORDS]:
            written = text[begin:end]
            exact = None if is_generic(written) else self._rules.exact(written, self._source)
            if exact is not None:
                return Name(begin, end, written, exact)
            near = None if is_generic(written) else self._rules.near(written)
            if near is not None:
                return Name(begin, end, written, near=near)
        for begin in starts[:3]:
            if is_of_the_state(text[begin:end]):
                return Name(begin, end, text[begin:end], is_law=True)
        begin = start
        if is_generic(word):  # 드론 운영 규정: the name has several words
            for earlier in starts[1:3]:
                if _PARTICLES.search(text[earlier:start].split(maxsplit=1)[0]):
                    break
                begin = earlier
            if begin == start:
                return None
        return Name(begin, end, text[begin:end])

    def _codes(self, text: str) -> Iterator[Name]:
        for match in _CODE_BEFORE.finditer(text):
            regulation = self._rules.by_code(match[1])
            if regulation is not None:
                yield Name(match.start(), match.end(), match[1], regulation)

    def _with_code(self, text: str, name: Name) -> Name:
        """The name with the code in brackets behind it, when that is the code of another regulation."""
        match = _CODE_BESIDE.match(text, name.end)
        if match is None or name.is_law:
            return name
        if name.owner is None:
            of_code = self._rules.by_code(match[1])
            return Name(name.start, name.end, name.text, near=of_code or name.near)
        if name.owner.code and name.owner.code != match[1]:
            return Name(name.start, name.end, name.text, name.owner, other_code=match[1])
        return name


_SELF_WORD = re.compile(r"^(?:이|본|동|위|그|각|타|현|제|신|구)(?:규정|세칙|규칙|지침|내규|학칙|정관|기준)$")


def _without_overlaps(names: Iterable[Name]) -> list[Name]:
    """The names in the order of the text; of overlapping ones, the first given."""
    starts: list[int] = []
    ends: list[int] = []
    chosen: list[Name] = []
    for name in names:
        place = bisect_right(starts, name.start)
        if (not place or ends[place - 1] <= name.start) and (place == len(starts) or name.end <= starts[place]):
            starts.insert(place, name.start)
            ends.insert(place, name.end)
            chosen.insert(place, name)
    return chosen


def _short_names(text: str, names: Iterable[Name]) -> Iterator[Name]:
    """What a text defines as a short name of a regulation or law (이하 “인사규정”이라 한다), wherever it then occurs.

    The definition itself has no `text`.
    """
    defined: set[str] = set()
    for name in names:
        definition = _DEFINITION.match(text, name.end)
        if definition is None:
            continue
        yield Name(definition.start(1), definition.end(1), "")
        short = definition[2].strip()
        if short in defined or len(defined) == MOST_DEFINITIONS:
            continue
        defined.add(short)
        for start in _places(text, short, definition.end()):
            end = start + len(short)
            follows = text[end : end + 1]
            in_word = "가" <= follows <= "힣" and not patterns.PARTICLE_AFTER.match(text, end)
            if not in_word and (_REFERENCE_AFTER.match(text, end) or not is_generic(short)):
                yield replace(name, start=start, end=end, text=short)


def _places(text: str, word: str, start: int) -> Iterator[int]:
    """Where the word begins a word after `start`."""
    while (start := text.find(word, start)) >= 0:
        if not "가" <= text[start - 1] <= "힣":
            yield start
        start += len(word)


def _after_blanks(text: str, place: int) -> int:
    match = patterns.BLANKS.match(text, place)
    return match.end() if match else place
