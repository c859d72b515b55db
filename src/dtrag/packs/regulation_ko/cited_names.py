"""Finds the names of regulations, rules and laws in the text of a regulation, each with the regulation it means."""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from dtrag.packs.regulation_ko import citation_patterns as patterns
from dtrag.packs.regulation_ko.catalog import Catalog, Name, Outline, folded_name
from dtrag.packs.regulation_ko.deletions import abolished_rules

LONG_NAME_WORDS = 3
"""Words from which on a name of a law may itself contain 및 or 등."""
MAX_NAME_LENGTH = 60
"""Characters before the ending of a long rule name that are searched for its beginning."""
MAX_WORDS_LENGTH = 300
"""Characters before the ending of an unknown rule that are searched for the words of its name."""
LONGEST_COLLECTION_NAME = 100
"""Characters of a name of the collection that is recognised without quotation marks."""
CONTEXT_LENGTH = 12
"""Characters before the name of an unknown rule that may show it to be a rule of the state."""
_GENERIC = frozenset({"규정", "세칙", "지침", "내규", "기준", "요령", ""})
_OWN_UNIVERSITY = frozenset({"본대학교", "본교", "우리대학교", "대학교"})


class NameFinder:
    """Finds names in one text (`masked`, without amendment marks) of the regulation `source`."""

    def __init__(self, masked: str, source: Outline, catalog: Catalog) -> None:
        self._masked = masked
        self._source = source
        self._catalog = catalog
        self._prefixes = (*patterns.PREFIXES, *catalog.institutions)

    def find(self) -> Iterator[Name]:
        """The names, none within another: a longer one comes before a shorter one."""
        return self._longest(self._candidates())

    def laws(self) -> Iterator[Name]:
        """The names of laws without quotation marks, none within another."""
        return self._longest(self._laws())

    def _name(self, start: int, end: int, owner: Outline | None, *, is_law: bool = False) -> Name:
        written = self._masked[start:end]
        successor = None if owner or is_law else self._catalog.successors.get(folded_name(written))
        return Name(start, end, written, owner, successor=successor, is_law=is_law)

    @staticmethod
    def _longest(candidates: Iterable[Name]) -> Iterator[Name]:
        taken: list[tuple[int, int]] = []
        for name in sorted(candidates, key=lambda name: (name.start - name.end, name.start)):
            place = bisect.bisect(taken, (name.start, name.end))
            before, after = taken[max(0, place - 1) : place], taken[place : place + 1]
            if all(end <= name.start for _, end in before) and all(name.end <= start for start, _ in after):
                taken.insert(place, (name.start, name.end))
                yield name

    def _candidates(self) -> Iterator[Name]:
        yield from self._quoted()
        yield from self._of_collection()
        yield from self._laws()
        yield from self._abolished()
        for match in patterns.FOLLOWED_RULE.finditer(self._masked):
            if self._owner(_folded(match[1])) is None and not patterns.GENERAL_RULE.search(match[1]):
                yield self._name(match.start(1), match.end(1), None)

    def _laws(self) -> Iterator[Name]:
        for match in patterns.BARE_LAW.finditer(self._masked):
            if self._is_law(match):
                start = match.start() + (_outer_words(match[1]) if "관한" in match[1] else 0)
                yield self._name(start, match.end(), None, is_law=True)
        for pattern in (patterns.SHORT_LAW, patterns.LAW_ALONE):
            for match in pattern.finditer(self._masked):
                yield self._name(match.start(), match.end(), None, is_law=True)

    def _is_law(self, match: re.Match[str]) -> bool:
        law, name = match.group().strip(), match[1]
        if (
            patterns.NOT_LAW.search(name)
            or re.sub(r"\s", "", law) in {"법", "이법", "동법"}
            or law.startswith(("같은", "동법", "이 법"))
        ):
            return False
        is_cited = patterns.REFERENCE_AFTER.match(self._masked, match.end()) is not None
        is_known = name in patterns.KNOWN_LAWS or patterns.LAW_ABOUT.search(name) is not None
        is_named = name.endswith(("법", "법률")) and patterns.LAW_PARTICLE.match(self._masked, match.end()) is not None
        has_decree = bool(match[2]) and name.endswith("법")
        return (is_cited and not law.endswith("법령")) or is_known or is_named or has_decree

    def _quoted(self) -> Iterator[Name]:
        for match in patterns.QUOTED.finditer(self._masked):
            if re.search(r"이하\s*$", self._masked[max(0, match.start() - CONTEXT_LENGTH) : match.start()]):
                continue
            quoted = match[1]
            article = patterns.ARTICLE.search(quoted)
            folded = _folded(quoted[: article.start()] if article else quoted)
            owner = self._owner(folded)
            if owner is not None and len(folded) > 1:
                if article:
                    yield self._name(match.start(), match.start(1) + article.start(), owner)
                else:
                    yield self._name(match.start(), match.end(), owner)
            elif patterns.LAW_ENDING.search(quoted.strip()) and (
                not patterns.NOT_LAW.search(quoted.strip()) or patterns.ARTICLE_AFTER.match(self._masked, match.end())
            ):
                yield self._name(match.start(), match.end(), None, is_law=True)
            elif patterns.ENDS_AS_RULE.search(folded) and len(folded) > 3 and not self._is_heading(match):
                yield self._name(match.start(), match.end(), None, is_law=bool(patterns.STATE_RULE.search(folded)))

    def _is_heading(self, quoted: re.Match[str]) -> bool:
        """<평가 기준> alone in its line, or [평가 기준]."""
        line = self._masked[self._masked.rfind("\n", 0, quoted.start()) + 1 :].partition("\n")[0]
        return quoted.group()[0] == "[" or (line.strip() == quoted.group() and quoted.group()[0] in "<〈")

    def _abolished(self) -> Iterator[Name]:
        """The rules of the collection or of former days that are abolished or created (폐지한다)."""
        for start, name, _ in abolished_rules(self._masked):
            yield self._name(start, start + len(name), self._owner(_folded(name)))

    def _of_collection(self) -> Iterator[Name]:
        """Names without quotation marks that end as a rule does, of the collection or not."""
        folded, places = _folded_with_places(self._masked)
        longest = min(self._catalog.longest(), LONGEST_COLLECTION_NAME) + 6
        for match in patterns.RULE_ENDINGS.finditer(folded):
            end = match.end()
            if not patterns.PARTICLE_AFTER.match(folded, end):
                continue
            for start in range(max(0, end - longest), end - 1):
                owner = self._owner_at(folded, places, start, end)
                is_former = owner is None and folded[start:end] in self._catalog.successors
                if owner is not None or (is_former and self._begins_word(places[start])):
                    yield self._name(places[start], places[end - 1] + 1, owner)
                    break
            else:
                yield from self._unknown_rule(places, end)

    def _unknown_rule(self, places: Sequence[int], end: int) -> Iterator[Name]:
        """A rule outside the collection, when a part of it is cited: its articles are not those of the source."""
        stop = places[end - 1] + 1
        word = self._masked[_word_start(self._masked, stop) : stop]
        if self._is_own_rule(word, stop):
            return
        if not patterns.REFERENCE_AFTER.match(self._masked, stop):
            if len(word) > 4 and patterns.STATE_RULE.match(word):
                yield self._name(stop - len(word), stop, None, is_law=True)
            return
        line = self._masked.rfind("\n", 0, stop) + 1
        if long_name := patterns.LONG_RULE.search(self._masked, max(line, stop - MAX_NAME_LENGTH), stop):
            yield self._name(long_name.start() + _outer_words(long_name.group()), stop, None, is_law=True)
            return
        words = patterns.WORDS_BEFORE.search(self._masked, max(0, stop - MAX_WORDS_LENGTH), stop)
        if words is None:
            return
        start = words.start() + len(words.group()) - len(words.group().lstrip())
        name = self._masked[start:stop]
        is_reference = patterns.OWN_RULE.search(name) or patterns.SAME_RULE.search(name)
        if not is_reference and (not patterns.BARE_RULE.fullmatch(name) or "기준" in name):
            before = self._masked[max(0, start - CONTEXT_LENGTH) : start]
            yield self._name(start, stop, None, is_law=bool(patterns.STATE_RULE.search(before + name)))

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
        if any(patterns.OWN_RULE.match(self._masked, max(0, first - before)) for before in (1, 2)):
            return None
        return owner if self._begins_word(first) else None

    def _begins_word(self, position: int) -> bool:
        """Whether a word begins here, or its part after a prefix such as 본교."""
        before = self._masked[position - 1] if position else " "
        is_inside = "가" <= before <= "힣" or before.isalnum()
        return not is_inside or self._masked[_word_start(self._masked, position) : position] in self._prefixes

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
