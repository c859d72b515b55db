"""Finds the names of regulations, rules and laws in a text, and which regulation each one means.

In the provisions of a regulation, names of rules outside the collection count when a part of them is cited. In other
texts (a memorandum, a draft) misspelt names and short names that the text defines count as well.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from dtrag.core.editions import folded_name
from dtrag.core.text.patterns import WORD, explained
from dtrag.regulations.korean import citation_patterns as patterns
from dtrag.regulations.korean.catalog import ENDING, FIRST_LETTERS, NOT_NAMES, Catalog, Name, Outline, abolished_rules
from dtrag.regulations.korean.citation_patterns import DOTS, SPACE

LONG_NAME_WORDS = 3
"""Words from which on a name of a law may itself contain 및 or 등."""
MAX_NAME_LENGTH = 60
"""Characters before the ending of a long rule name that are searched for its beginning."""
MAX_WORDS_LENGTH = 300
"""Characters before the ending of an unknown rule that are searched for the words of its name."""
CONTEXT_LENGTH = 12
"""Characters before the name of an unknown rule that may show it to be a rule of the state."""
MOST_WORDS = 5
"""Words before a reference that may be an unknown name."""
SHORTEST_UNQUOTED = 5
"""Letters of an unknown name without quotation marks and without a reference behind it."""
LONGEST_WORDS = 60
MOST_DEFINITIONS = 50
"""Short names that one text may define."""
MOST_NEAR_SEARCHES = 500
"""Unknown names of one text for which near names are searched."""
_CODE = r"\d{1,2}-\d{1,4}-\d{1,4}"
_CORNERS = "「『｢《"
_REFERENCE_AFTER = explained(
    rf"{SPACE}(?:[(（](?!{SPACE}제{SPACE}\d)[^()（）\n]{{0,60}}[)）])?{SPACE}(?:의{SPACE}|중{SPACE}|상의{SPACE}|상{SPACE})?"
    rf"(?:제{SPACE}\d{{1,3}}{SPACE}[편장절관]{SPACE})*[(（\[<〈「【,]?{SPACE}"
    rf"(?:제{SPACE}\d{{1,4}}{SPACE}(?:조|[,~∼·ㆍ-])|\d{{1,3}}조(?![원각])|별{SPACE}[표지첨]|부{SPACE}칙)",
    finds=(" 제4조", "(2-1-1)의 [별표 1]", " 제2장 제3조"),
    refuses=(" 제3항", "에 따라"),
)
_ENDINGS = "규정|세칙|규칙|학칙|정관|지침|내규|요령|준칙|강령|요강|규약|헌장|기준|회칙|편람"
_RULE_WORD = explained(
    rf"(?<![가-힣])(?P<word>(?:[가-힣A-Za-z0-9·ㆍ․]|\([가-힣A-Za-z ]{{1,20}}\)){{0,40}}(?:{_ENDINGS}))"
    r"(?![가-힣](?<![에의은을과와및이가로상중내]))(?!집|류)",
    finds=("교원인사규정에", "시행세칙"),
    refuses="규정집",
)
_WORDS_BEFORE = re.compile(r"(?:[가-힣A-Za-z0-9·ㆍ․()]+[ \t]{1,2}){0,4}$")
_SELF = frozenset(
    "이 본 동 같은 위 해당 상기 전기 그 현 각 관련 다른 모든 타 전 후 종전 종전의 현행 구 개정 변경".split()
)
_FOLLOWED = explained(
    r"(?:을|를|은|는|이|가|의)?\s?(?:에\s?)?(?:따라|따른|따르|의하여|의해|의한|의거|근거|준하여|준용|준수|적용|위반|정한|정하는|정하고|규정)",
    finds=("에 따라", "을 준수"),
    refuses=("과 함께", "이다"),
)
_IN_BRACKETS = frozenset("(（[<〈「【별")
"""Between the title of a form and what it is based on: 계상 기준(제19조 관련), 처리 기준 [별표 1]."""
_CODE_BESIDE = re.compile(rf"{SPACE}[(（\[]{SPACE}(\d{{1,2}}-\d{{1,4}}-\d{{1,4}}){SPACE}[)）\]]")
_CODE_BEFORE = re.compile(rf"(?<![\d-])({_CODE})(?={SPACE}(?:제{SPACE}\d{{1,4}}{SPACE}조|별{SPACE}[표지]|부{SPACE}칙))")
_PARTICLES = tuple("은 는 이 가 을 를 에 에서 의 와 과 및 또는 하여 따라 의한 위한 대한 한 하는 된 되는".split())
_DEFINITION = explained(
    r"([」』”’\"']?\s?[(（](?:이하|약칭)\s?[:：]?\s?[“\"‘'「『]?([가-힣A-Za-z·ㆍ ]{1,30}?)[”\"’'」』]?\s?"
    r"(?:(?:이라|라)\s?(?:한다|함|하고|하며|칭한다|칭함))?[)）])",
    finds="(이하 “인사규정”이라 한다)",
    refuses="(인사규정)",
)
_GENERAL = explained(
    r"^(?:세부|운영|시행|별도|관련|관계|해당|기타|각종|정부|관리|업무|자체|내부|제반|대학|학교|교내|기관|지원|위원회|평가|심사|지급|처리"
    r"|상위|하위|기존|현행|종전|변경|개정|임용|승진|선발|적용|특례|경과|예외|일반|공통|표준|당해|사용|안전){1,3}(?:규정|세칙|지침|내규|규칙|요령)$"
    r"|기준$|^(?:이|본|동|위|그|각|타|현|제|신|구)(?:규정|세칙|규칙|지침|내규|학칙|정관)$",
    finds=("운영세부지침", "이규정"),
    refuses="교원인사규정",
)
"""Words without a reference behind them that name no particular rule."""
_SELF_WORD = re.compile(r"^(?:이|본|동|위|그|각|타|현|제|신|구)(?:규정|세칙|규칙|지침|내규|학칙|정관|기준)$")
_STATE_ORDINANCE = ("에관한규칙", "시행규칙", "회계규칙")
_DECREES = frozenset(
    folded_name(name)
    for name in (
        "대학설립·운영규정",
        "대학설립ㆍ운영 규정",
        "보안업무규정",
        "사학기관 재무·회계 규칙",
        "대학교원 자격기준 등에 관한 규정",
        "교수자격기준 등에 관한 규정",
        "공용차량 관리 규정",
        "연구윤리 확보를 위한 지침",
        "대학등록금에 관한 규칙",
        "학력인정 규칙",
        "학교 회계 규칙",
        "여비규정",
        "원격교육 설비 기준 고시",
    )
)
_WORD_START = re.compile(r"(?<![가-힣A-Za-z0-9])[가-힣A-Za-z0-9]")
_SKIPPED = frozenset(f" \t\u00a0\u3000{DOTS}")
_SKIPS = re.compile(f"[{''.join(_SKIPPED)}]+")


class NameFinder:
    """Finds the names in one text: of the regulations of a catalog, as `source` uses them, and of others."""

    def __init__(self, text: str, catalog: Catalog, source: Outline | None = None) -> None:
        self._text = text
        self._catalog = catalog
        self._source = source
        self._near: dict[str, Outline | None] = {}

    def of_provision(self) -> list[Name]:
        """The names in a provision of `source`, none within another: a longer one comes before a shorter one."""
        folded, places = _folded_with_places(self._text)
        known = list(self._of_collection(folded, places, is_provision=True))
        ends = {name.end for name in known}
        candidates = [*known, *self._quoted_in_provision(), *self._laws(), *self._abolished(), *self._followed()]
        for match in patterns.RULE_ENDINGS.finditer(folded):
            end = places[match.end() - 1] + 1
            if end not in ends and patterns.PARTICLE_AFTER.match(folded, match.end()):
                candidates += self._unknown_in_provision(end)
        return _without_overlaps(sorted(candidates, key=lambda name: (name.start - name.end, name.start)))

    def of_text(self) -> list[Name]:
        """The names in order, none within another: defined short names first, then quoted ones, then others."""
        laws = (law for law in self._laws() if law.text.endswith("시행규칙") or not ENDING.search(law.text))
        known = self._of_collection(*_folded_with_places(self._text), is_provision=False)
        chosen = _without_overlaps([*self._quoted(), *known, *laws])
        chosen = _without_overlaps([*_short_names(self._text, chosen), *chosen, *self._unknown(), *self._codes()])
        return [self._with_code(name) for name in chosen if name.text]

    def _of_collection(self, folded: str, places: Sequence[int], *, is_provision: bool) -> Iterator[Name]:
        """The names of the catalog, with or without blanks in them, and of what its regulations replaced."""
        behind = 0
        names, own_names = self._catalog.by_first_letters(self._source)
        all_prefixes = self._catalog.prefixes
        for match in _WORD_START.finditer(self._text):
            start = bisect_left(places, match.start())
            first, prefixes = folded[start : start + FIRST_LETTERS], all_prefixes.get(folded[start], ())
            if start < behind or not (prefixes or first in names or first in own_names):
                continue
            for prefix in ("", *prefixes):
                name = self._known_at(folded, places, start, prefix, is_provision=is_provision)
                if name is not None:
                    yield name
                    behind = bisect_left(places, name.end)
                    break

    def _known_at(
        self, folded: str, places: Sequence[int], start: int, prefix: str, *, is_provision: bool
    ) -> Name | None:
        if not folded.startswith(prefix, start):
            return None
        for end in self._catalog.end_of_name(folded, start + len(prefix), self._source):
            stop = places[end - 1] + 1
            is_word = patterns.PARTICLE_AFTER.match(folded, end) is not None
            if not is_provision:
                after = self._text[stop : stop + 1]
                is_word = not _in_word(after) or ("가" <= after <= "힣" and is_word)
            if not is_word:
                continue
            name = self._name(places[start], stop, self._catalog.exact(folded[start:end], self._source))
            if name.owner is None and name.successor is None:
                return None
            return name if is_provision else self._with_ending(name)
        return None

    def _with_ending(self, name: Name) -> Name:
        """The name of the rules for a regulation (휴학규정 시행세칙) where they are cited."""
        longer = _RULE_WORD.match(self._text, _after_blanks(self._text, name.end))
        if not longer or not folded_name(longer["word"]).startswith("시행"):
            return name
        end = longer.end("word")
        written = self._text[name.start : end]
        if not _REFERENCE_AFTER.match(self._text, end) or self._catalog.exact(written, self._source):
            return name
        return self._outside(name.start, end, written)

    def _name(self, start: int, end: int, owner: Outline | None, *, is_law: bool = False) -> Name:
        written = self._text[start:end]
        successor = None if owner or is_law else self._catalog.successors.get(folded_name(written))
        return Name(start, end, written, owner, successor=successor, is_law=is_law)

    def _laws(self) -> Iterator[Name]:
        for match in patterns.BARE_LAW.finditer(self._text):
            if self._is_law(match):
                start = match.start() + (_outer_words(match[1]) if "관한" in match[1] else 0)
                yield self._name(start, match.end(), None, is_law=True)
        for pattern in (patterns.SHORT_LAW, patterns.LAW_ALONE):
            for match in pattern.finditer(self._text):
                yield self._name(match.start(), match.end(), None, is_law=True)

    def _is_law(self, match: re.Match[str]) -> bool:
        law, name = match.group().strip(), match[1]
        if (
            patterns.NOT_LAW.search(name)
            or "".join(law.split()) in {"법", "이법", "동법"}
            or law.startswith(("같은", "동법", "이 법"))
        ):
            return False
        is_cited = patterns.REFERENCE_AFTER.match(self._text, match.end()) is not None
        is_known = name in patterns.KNOWN_LAWS or patterns.LAW_ABOUT.search(name) is not None
        is_named = name.endswith(("법", "법률")) and patterns.LAW_PARTICLE.match(self._text, match.end()) is not None
        has_decree = bool(match[2]) and name.endswith("법")
        return (is_cited and not law.endswith("법령")) or is_known or is_named or has_decree

    def _quoted_in_provision(self) -> Iterator[Name]:
        for match in patterns.QUOTED.finditer(self._text):
            if self._text[max(0, match.start() - CONTEXT_LENGTH) : match.start()].rstrip().endswith("이하"):
                continue
            quoted = match[1]
            article = patterns.ARTICLE.search(quoted)
            folded = _folded(quoted[: article.start()] if article else quoted)
            owner = self._catalog.exact(folded, self._source)
            if owner is not None and len(folded) > 1:
                if article:
                    yield self._name(match.start(), match.start(1) + article.start(), owner)
                else:
                    yield self._name(match.start(), match.end(), owner)
            elif patterns.LAW_ENDING.search(quoted.strip()) and (
                not patterns.NOT_LAW.search(quoted.strip()) or patterns.ARTICLE_AFTER.match(self._text, match.end())
            ):
                yield self._name(match.start(), match.end(), None, is_law=True)
            elif patterns.ENDS_AS_RULE.search(folded) and len(folded) > 3 and not self._is_heading(match):
                yield self._name(match.start(), match.end(), None, is_law=bool(patterns.STATE_RULE.search(folded)))

    def _is_heading(self, quoted: re.Match[str]) -> bool:
        """<평가 기준> alone in its line, or [평가 기준]."""
        line = self._text[self._text.rfind("\n", 0, quoted.start()) + 1 :].partition("\n")[0]
        return quoted.group()[0] == "[" or (line.strip() == quoted.group() and quoted.group()[0] in "<〈")

    def _abolished(self) -> Iterator[Name]:
        """The rules of the collection or of former days that are abolished or created (폐지한다)."""
        for start, name, _ in abolished_rules(self._text):
            yield self._name(start, start + len(name), self._catalog.exact(name, self._source))

    def _followed(self) -> Iterator[Name]:
        for match in patterns.FOLLOWED_RULE.finditer(self._text):
            if self._catalog.exact(match[1], self._source) is None and not patterns.GENERAL_RULE.search(match[1]):
                yield self._name(match.start(1), match.end(1), None)

    def _unknown_in_provision(self, stop: int) -> Iterator[Name]:
        """A rule outside the collection, when a part of it is cited: its articles are not those of the source."""
        word = self._text[_word_start(self._text, stop) : stop]
        if self._is_own_rule(word, stop):
            return
        if not patterns.REFERENCE_AFTER.match(self._text, stop):
            if len(word) > 4 and patterns.STATE_RULE.match(word):
                yield self._name(stop - len(word), stop, None, is_law=True)
            return
        line = self._text.rfind("\n", 0, stop) + 1
        if long_name := patterns.LONG_RULE.search(self._text, max(line, stop - MAX_NAME_LENGTH), stop):
            yield self._name(long_name.start() + _outer_words(long_name.group()), stop, None, is_law=True)
            return
        words = patterns.WORDS_BEFORE.search(self._text, max(0, stop - MAX_WORDS_LENGTH), stop)
        if words is None:
            return
        start = words.start() + len(words.group()) - len(words.group().lstrip())
        name = self._text[start:stop]
        is_reference = patterns.OWN_RULE.search(name) or patterns.SAME_RULE.search(name)
        if not is_reference and (not patterns.BARE_RULE.fullmatch(name) or "기준" in name):
            before = self._text[max(0, start - CONTEXT_LENGTH) : start]
            yield self._name(start, stop, None, is_law=bool(patterns.STATE_RULE.search(before + name)))

    def _is_own_rule(self, word: str, stop: int) -> bool:
        """기준 제4조, in a regulation of this kind (…보상기준)."""
        start = stop - len(word)
        return (
            patterns.BARE_RULE.fullmatch(word) is not None
            and self._source is not None
            and self._source.name.endswith(word)
            and not patterns.ABOUT_BEFORE.search(self._text[max(0, start - CONTEXT_LENGTH) : start])
        )

    def _quoted(self) -> Iterator[Name]:
        for match in patterns.QUOTED.finditer(self._text):
            article = patterns.ARTICLE.search(match[1])
            written = match[1][: article.start()] if article else match[1]
            end = match.start(1) + article.start() if article else match.end()
            if len(folded_name(written)) < 2 or self._text[max(0, match.start() - 4) : match.start()].rstrip().endswith(
                "이하"
            ):
                continue
            regulation = self._catalog.by_code.get(written.strip()) or self._catalog.exact(written, self._source)
            in_corners = match.group()[0] in _CORNERS
            if regulation is not None:
                yield Name(match.start(), end, written.strip(), regulation)
                continue
            is_cited = article is not None or _REFERENCE_AFTER.match(self._text, match.end()) is not None
            is_rule = ENDING.search(written.strip()) is not None and not _is_generic(written)
            is_name = (is_rule or _is_of_the_state(written)) and (in_corners or is_cited)
            if is_name or (in_corners and is_cited):
                yield self._outside(match.start(), end, written.strip())

    def _outside(self, start: int, end: int, written: str) -> Name:
        """A name that is not in the collection: a law, a misspelt name, or none."""
        is_law = _is_of_the_state(written) or written.endswith(("법", "법률"))
        may_be_rule = ENDING.search(written) is not None and not _is_decree(written)
        near = self._nearest(written) if may_be_rule or not is_law else None
        successor = self._catalog.successors.get(folded_name(written))
        is_law = is_law and near is None and successor is None
        return Name(start, end, written, near=near, successor=successor, is_law=is_law)

    def _unknown(self) -> Iterator[Name]:
        """Names that end as those of rules and are not in the collection."""
        for match in _RULE_WORD.finditer(self._text):
            start, end, word = match.start("word"), match.end("word"), match["word"]
            after = _REFERENCE_AFTER.match(self._text, end)
            is_cited = after is not None and not (word.endswith("기준") and not _IN_BRACKETS.isdisjoint(after.group()))
            if not is_cited:
                is_name = len(word) >= SHORTEST_UNQUOTED and not _is_generic(word) and not _GENERAL.search(word)
                if is_name and (self._nearest(word) is not None or _FOLLOWED.match(self._text, end)):
                    yield self._outside(start, end, word)
                continue
            name = self._longest_near(start, end, word)
            if name is not None:
                yield name

    def _longest_near(self, start: int, end: int, word: str) -> Name | None:
        """The cited name that ends at `end`: with the words before it that make it most similar to a known one."""
        words = _WORDS_BEFORE.search(self._text, max(0, start - LONGEST_WORDS), start)
        starts = [start]
        if words:
            starts += [words.start() + match.start() for match in reversed(list(WORD.finditer(words.group())))]
        before = self._text[starts[1] : start].strip() if len(starts) > 1 else ""
        if before in _SELF or _SELF_WORD.match(word):
            return None
        for begin in starts[:MOST_WORDS]:
            written = self._text[begin:end]
            exact = None if _is_generic(written) else self._catalog.exact(written, self._source)
            if exact is not None:
                return Name(begin, end, written, exact)
            near = None if _is_generic(written) else self._nearest(written)
            if near is not None:
                return Name(begin, end, written, near=near)
        for begin in starts[:3]:
            if _is_of_the_state(self._text[begin:end]):
                return Name(begin, end, self._text[begin:end], is_law=True)
        begin = start
        if _is_generic(word):  # 드론 운영 규정: the name has several words
            for earlier in starts[1:3]:
                if self._text[earlier:start].split(maxsplit=1)[0].endswith(_PARTICLES):
                    break
                begin = earlier
            if begin == start:
                return None
        return Name(begin, end, self._text[begin:end])

    def _codes(self) -> Iterator[Name]:
        for match in _CODE_BEFORE.finditer(self._text):
            regulation = self._catalog.by_code.get(match[1])
            if regulation is not None:
                yield Name(match.start(), match.end(), match[1], regulation)

    def _with_code(self, name: Name) -> Name:
        """The name with the code in brackets behind it, when that is the code of another regulation."""
        match = _CODE_BESIDE.match(self._text, name.end)
        if match is None or name.is_law:
            return name
        if name.owner is None:
            of_code = self._catalog.by_code.get(match[1])
            return Name(name.start, name.end, name.text, near=of_code or name.near)
        if name.owner.code and name.owner.code != match[1]:
            return Name(name.start, name.end, name.text, name.owner, other_code=match[1])
        return name

    def _nearest(self, name: str) -> Outline | None:
        """The most similar regulation of the catalog."""
        folded = folded_name(name)
        for prefix in patterns.PREFIXES[:8]:
            if folded.startswith(prefix) and len(folded) > len(prefix) + 4:
                folded = folded[len(prefix) :]
                break
        if folded not in self._near:
            if len(self._near) >= MOST_NEAR_SEARCHES:
                return None
            self._near[folded] = self._catalog.nearest(folded)
        return self._near[folded]


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
            if not in_word and (_REFERENCE_AFTER.match(text, end) or not _is_generic(short)):
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


def _is_generic(name: str) -> bool:
    """Whether the words are no name: 관련 규정, 내부 지침."""
    return folded_name(name) in NOT_NAMES


def _is_of_the_state(name: str) -> bool:
    """Whether the name is one of a law or of a rule that the state issues."""
    stripped = name.strip()
    folded = folded_name(stripped)
    if _is_decree(name):
        return True
    is_law = patterns.LAW_ENDING.search(stripped) is not None and not patterns.NOT_LAW.search(stripped)
    if is_law and (folded.endswith(_STATE_ORDINANCE) or not ENDING.search(stripped)):
        return True
    return (is_law or ENDING.search(stripped) is not None) and patterns.STATE_RULE.search(folded) is not None


def _is_decree(name: str) -> bool:
    """Whether the name is that of a well-known rule of the state whose name looks like that of a regulation."""
    return folded_name(name) in _DECREES


def _in_word(character: str) -> bool:
    return "가" <= character <= "힣" or (character.isascii() and character.isalnum())


def _word_start(text: str, end: int) -> int:
    """Where the Korean word that ends at `end` starts, at most `MAX_WORDS_LENGTH` characters before; `end` if none."""
    start = end
    while start > max(0, end - MAX_WORDS_LENGTH) and "가" <= text[start - 1] <= "힣":
        start -= 1
    return start


def _folded(name: str) -> str:
    return re.sub(rf"[\s{DOTS}]", "", name)


def _folded_with_places(text: str) -> tuple[str, list[int]]:
    """The text without blanks and middle dots, and the position in the text of each of its characters."""
    places = [place for place, character in enumerate(text) if character not in _SKIPPED]
    return _SKIPS.sub("", text), places


def _outer_words(name: str) -> int:
    """Characters before the name of a law that belong to the sentence ("본 규정은 공공기관의 … 법률")."""
    words = list(WORD.finditer(name))
    cut = 0
    for word, following in itertools.pairwise(words):
        ends = patterns.CLAUSE_END.search(word.group())
        joins = word.group().endswith(("및", "등")) and cut == 0 and len(words) > LONG_NAME_WORDS
        if ends and "관한" not in word.group() and not joins:
            cut = following.start()
    return cut
