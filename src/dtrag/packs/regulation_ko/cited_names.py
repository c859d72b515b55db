"""Finds the names of regulations, rules and laws in the text of a regulation, each with the regulation it means."""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dtrag.packs.regulation_ko import citation_patterns as patterns
from dtrag.packs.regulation_ko.catalog import Catalog, Outline

LONG_NAME_WORDS = 3
"""Words from which on a name of a law may itself contain 및 or 등."""
MAX_NAME_LENGTH = 60
"""Characters before the ending of a long rule name that are searched for its beginning."""
MAX_WORDS_LENGTH = 300
"""Characters before the ending of an unknown rule that are searched for the words of its name."""
LONGEST_COLLECTION_NAME = 100
"""Characters of a name of the collection that is recognised without quotation marks."""
MIN_NAME_LENGTH = 4
"""Length of the name of an abolished rule that is too short to identify one."""
LONGEST_LIST = 600
"""Characters before 폐지한다 that may list rules."""
CONTEXT_LENGTH = 12
"""Characters before the name of an unknown rule that may show it to be a rule of the state."""
_GENERIC = frozenset({"규정", "세칙", "지침", "내규", "기준", "요령", ""})
_OWN_UNIVERSITY = frozenset({"본대학교", "본교", "우리대학교", "대학교"})


@dataclass(slots=True)
class CitedName:
    """A name in the text: of a regulation of the collection (`owner`), or of a rule outside it (owner None)."""

    start: int
    end: int
    owner: Outline | None
    is_law: bool = False


class NameFinder:
    """Finds names in one text (`masked`, without amendment marks) of the regulation `source`."""

    def __init__(self, masked: str, source: Outline, catalog: Catalog) -> None:
        self._masked = masked
        self._source = source
        self._catalog = catalog
        self._prefixes = (*patterns.PREFIXES, *catalog.institutions)

    def find(self) -> Iterator[CitedName]:
        """The names, none within another: a longer one comes before a shorter one."""
        return self._longest(self._candidates())

    def laws(self) -> Iterator[CitedName]:
        """The names of laws without quotation marks, none within another."""
        return self._longest(self._laws())

    @staticmethod
    def _longest(candidates: Iterable[CitedName]) -> Iterator[CitedName]:
        taken: list[tuple[int, int]] = []
        for name in sorted(candidates, key=lambda name: (name.start - name.end, name.start)):
            place = bisect.bisect(taken, (name.start, name.end))
            before, after = taken[max(0, place - 1) : place], taken[place : place + 1]
            if all(end <= name.start for _, end in before) and all(name.end <= start for start, _ in after):
                taken.insert(place, (name.start, name.end))
                yield name

    def _candidates(self) -> Iterator[CitedName]:
        yield from self._quoted()
        yield from self._of_collection()
        yield from self._laws()
        yield from self._abolished()
        for match in patterns.FOLLOWED_RULE.finditer(self._masked):
            if self._owner(_folded(match[1])) is None and not patterns.GENERAL_RULE.search(match[1]):
                yield CitedName(match.start(1), match.end(1), None)

    def _laws(self) -> Iterator[CitedName]:
        for match in patterns.BARE_LAW.finditer(self._masked):
            if self._is_law(match):
                start = match.start() + (_outer_words(match[1]) if "관한" in match[1] else 0)
                yield CitedName(start, match.end(), None, is_law=True)
        for pattern in (patterns.SHORT_LAW, patterns.LAW_ALONE):
            for match in pattern.finditer(self._masked):
                yield CitedName(match.start(), match.end(), None, is_law=True)

    def _is_law(self, match: re.Match[str]) -> bool:
        law, name = match.group().strip(), match[1]
        if (
            patterns.NOT_LAW.search(name)
            or re.sub(r"\s", "", law) in {"법", "이법", "동법"}
            or law.startswith(("같은", "동법", "이 법"))
        ):
            return False
        is_cited = patterns.AFTER_NAME.match(self._masked, match.end()) is not None
        is_known = name in patterns.KNOWN_LAWS or patterns.LAW_ABOUT.search(name) is not None
        is_named = name.endswith(("법", "법률")) and patterns.LAW_PARTICLE.match(self._masked, match.end()) is not None
        has_decree = bool(match[2]) and name.endswith("법")
        return (is_cited and not law.endswith("법령")) or is_known or is_named or has_decree

    def _quoted(self) -> Iterator[CitedName]:
        for match in patterns.QUOTED.finditer(self._masked):
            if re.search(r"이하\s*$", self._masked[max(0, match.start() - CONTEXT_LENGTH) : match.start()]):
                continue
            quoted = match[1]
            article = patterns.ARTICLE.search(quoted)
            folded = _folded(quoted[: article.start()] if article else quoted)
            owner = self._owner(folded)
            if owner is not None and len(folded) > 1:
                if article:
                    yield CitedName(match.start(), match.start(1) + article.start(), owner)
                else:
                    yield CitedName(match.start(), match.end(), owner)
            elif patterns.LAW_ENDING.search(quoted.strip()) and (
                not patterns.NOT_LAW.search(quoted.strip()) or patterns.ARTICLE_AFTER.match(self._masked, match.end())
            ):
                yield CitedName(match.start(), match.end(), None, is_law=True)
            elif patterns.ENDS_AS_RULE.search(folded) and len(folded) > 3 and not self._is_heading(match):
                yield CitedName(match.start(), match.end(), None, is_law=bool(patterns.STATE_RULE.search(folded)))

    def _is_heading(self, quoted: re.Match[str]) -> bool:
        """<평가 기준> alone in its line, or [평가 기준]."""
        line = self._masked[self._masked.rfind("\n", 0, quoted.start()) + 1 :].partition("\n")[0]
        return quoted.group()[0] == "[" or (line.strip() == quoted.group() and quoted.group()[0] in "<〈")

    def _abolished(self) -> Iterator[CitedName]:
        """The rules of the collection or of former days that are abolished or created (폐지한다)."""
        for match in patterns.ABOLISHES.finditer(self._masked):
            before = self._masked[max(0, match.start() - LONGEST_LIST) : match.start()]
            names = before[max(before.rfind(mark) for mark in ".\n()") + 1 :]
            start = match.start() - len(names)
            separators = list(patterns.LIST_SEPARATOR.finditer(names))
            starts = [0, *(separator.end() for separator in separators)]
            ends = [*(separator.start() for separator in separators), len(names)]
            for first, last in zip(starts, ends, strict=True):
                name = names[first:last].strip()
                if self._names_a_rule(name):
                    begin = start + names.index(name, first)
                    yield CitedName(begin, begin + len(name), self._owner(_folded(name)))

    @staticmethod
    def _names_a_rule(name: str) -> bool:
        is_rule = patterns.ENDS_AS_RULE.search(name) is not None and len(name) > MIN_NAME_LENGTH
        return is_rule and not patterns.FORMER_RULE.match(name)

    def _of_collection(self) -> Iterator[CitedName]:
        """Names without quotation marks that end as a rule does, of the collection or not."""
        folded, places = _folded_with_places(self._masked)
        longest = min(self._catalog.longest(), LONGEST_COLLECTION_NAME) + 6
        for match in patterns.RULE_ENDINGS.finditer(folded):
            end = match.end()
            if not patterns.PARTICLE_AFTER.match(folded, end):
                continue
            for start in range(max(0, end - longest), end - 1):
                owner = self._owner_at(folded, places, start, end)
                if owner is not None:
                    yield CitedName(places[start], places[end - 1] + 1, owner)
                    break
            else:
                yield from self._unknown_rule(places, end)

    def _unknown_rule(self, places: Sequence[int], end: int) -> Iterator[CitedName]:
        """A rule outside the collection, when a part of it is cited: its articles are not those of the source."""
        stop = places[end - 1] + 1
        word = self._masked[_word_start(self._masked, stop) : stop]
        if self._is_own_rule(word, stop):
            return
        if not patterns.AFTER_NAME.match(self._masked, stop):
            if len(word) > 4 and patterns.STATE_RULE.match(word):
                yield CitedName(stop - len(word), stop, None, is_law=True)
            return
        line = self._masked.rfind("\n", 0, stop) + 1
        if long_name := patterns.LONG_RULE.search(self._masked, max(line, stop - MAX_NAME_LENGTH), stop):
            yield CitedName(long_name.start() + _outer_words(long_name.group()), stop, None, is_law=True)
            return
        words = patterns.WORDS_BEFORE.search(self._masked, max(0, stop - MAX_WORDS_LENGTH), stop)
        if words is None:
            return
        start = words.start() + len(words.group()) - len(words.group().lstrip())
        name = self._masked[start:stop]
        is_reference = patterns.SELF.search(name) or patterns.SAME_RULE.search(name)
        if not is_reference and (not patterns.BARE_RULE.fullmatch(name) or "기준" in name):
            before = self._masked[max(0, start - CONTEXT_LENGTH) : start]
            yield CitedName(start, stop, None, is_law=bool(patterns.STATE_RULE.search(before + name)))

    def _is_own_rule(self, word: str, stop: int) -> bool:
        """기준 제4조, in a regulation of this kind (…보상기준)."""
        start = stop - len(word)
        return (
            patterns.BARE_RULE.fullmatch(word) is not None
            and self._source.name.endswith(word)
            and not patterns.ABOUT_BEFORE.search(self._masked[max(0, start - CONTEXT_LENGTH) : start])
        )

    def _owner_at(self, folded: str, places: Sequence[int], start: int, end: int) -> Outline | None:
        owner = self._owner(folded[start:end])
        if owner is None:
            return None
        first = places[start]
        if patterns.SELF.match(self._masked, max(0, first - 1)) or patterns.SELF.match(self._masked, max(0, first - 2)):
            return None
        before = self._masked[first - 1] if first else " "
        if not ("가" <= before <= "힣" or before.isalnum()):
            return owner
        return owner if self._masked[_word_start(self._masked, first) : first] in self._prefixes else None

    def _owner(self, folded: str) -> Outline | None:
        """The regulation of the collection with this name, with or without a prefix such as 본교."""
        for prefix in ("", *self._prefixes):
            if prefix and not folded.startswith(prefix):
                continue
            name = folded[len(prefix) :]
            if name in _GENERIC:
                continue
            source = None if prefix in _OWN_UNIVERSITY and name == "학칙" else self._source
            owner = self._catalog.named(name, source)
            if owner is not None:
                return owner
        return None


def _word_start(text: str, end: int) -> int:
    """Where the Korean word that ends at `end` starts, at most `MAX_WORDS_LENGTH` characters before; `end` if none."""
    start = end
    while start > max(0, end - MAX_WORDS_LENGTH) and "가" <= text[start - 1] <= "힣":
        start -= 1
    return start


def _folded(name: str) -> str:
    return re.sub(rf"[\s{patterns.DOTS}]", "", name)


def _folded_with_places(text: str) -> tuple[str, list[int]]:
    """The text without blanks and middle dots, and the position in the text of each of its characters."""
    places = [place for place, character in enumerate(text) if character not in f" \t\u00a0\u3000{patterns.DOTS}"]
    return "".join(text[place] for place in places), places


def _outer_words(name: str) -> int:
    """Characters before the name of a law that belong to the sentence ("본 규정은 공공기관의 … 법률")."""
    words = list(re.finditer(r"\S+", name))
    cut = 0
    for word, following in itertools.pairwise(words):
        ends = patterns.CLAUSE_END.search(word.group())
        joins = word.group().endswith(("및", "등")) and cut == 0 and len(words) > LONG_NAME_WORDS
        if ends and "관한" not in word.group() and not joins:
            cut = following.start()
    return cut
