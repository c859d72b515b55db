"""A lexicon from everyday words to the official terms of regulations.

Entries are in the TOML files beside this module, one file for each field of life. An entry has `spoken` forms and
`official` words. A spoken form is one or more word beginnings: each of them must begin a word of the question, in
order, with at most `MAX_GAP` other words between two of them (English: in any order within `ENGLISH_WINDOW` words).
A verb matches in all its forms, a single syllable as a whole word only. `synonyms.toml` has classes of everyday words
that mean the same: inside a form of several words one of a class matches in place of another.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Literal

from dtrag.core.text.analysis import normalise
from dtrag.core.text.questions import without_particle
from dtrag.packs.regulation_ko import conjugation
from dtrag.packs.regulation_ko.spelling import SpellingIndex

MAX_GAP = 3
"""Other words between two words of a form: "책을 도서관에서 잃어버렸어요" still matches "책 잃어버"."""
ENGLISH_WINDOW = 6
"""English words around the first one of a form among which its other words are looked for: word order is free there."""
MAX_PARTICLE = 2
"""Syllables between two words of a form that are written as one word ("책을잃어버렸어요")."""
MIN_INSIDE_LENGTH = 3
"""Syllables from which on a single word is also searched for inside a compound ("하계계절학기")."""
MIN_CORRECTED_LENGTH = 3
"""Syllables from which on a misspelt word is compared by its letters (jamo)."""
SYNONYMS_FILE = "synonyms.toml"
OWN_FIELD = "own"
"""The field of entries that administrators have added."""
MatchedBy = Literal["words", "synonym", "spelling"]
CACHED_COMPARISONS = 65_536
"""Comparisons of a word of a form with a word of a question that are cached; a question makes about a thousand."""
_WORD = re.compile(r"[가-힣]+|[a-z0-9]+(?:[-'][a-z0-9]+)*")
_OBJECT = re.compile(r"(?<=[가-힣]{2})[을를]$")
_SYLLABLE_AS_OBJECT = re.compile(r"[가-힣][을를]")


@dataclass(frozen=True, slots=True)
class Entry:
    """`spoken` forms (normalised, several ways to say one thing), their `official` words (best first), and the field
    of life that the entry belongs to."""

    spoken: tuple[str, ...]
    official: tuple[str, ...]
    field: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """An entry that matches a question; `words` are the positions of the question's words that the form explains.

    `form` is the spoken form; `by` says whether its very words matched, a synonym of one, or a corrected spelling.
    """

    entry: Entry
    form: str
    words: tuple[int, ...]
    by: MatchedBy = "words"

    @property
    def size(self) -> int:
        """Number of the form's words."""
        return len(self.form.split())


def words_of(question: str) -> list[str]:
    """The words of a question, normalised: runs of Hangul, and of Latin letters and digits."""
    return _WORD.findall(normalise(question))


@dataclass(frozen=True, slots=True)
class _Form:
    """A spoken form. A word can match its second word only if it begins with one of the characters `second`."""

    tokens: tuple[str, ...]
    entry: Entry
    second: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Lexicon:
    """The entries, indexed by the first word of their forms. Immutable; `with_entries` makes a larger one.

    `synonyms` maps a word beginning to those that mean the same.
    """

    entries: tuple[Entry, ...]
    synonyms: Mapping[str, frozenset[str]] = field(default_factory=dict, repr=False)
    _by_start: Mapping[str, Sequence[_Form]] = field(default_factory=dict, repr=False, compare=False)
    _joined: Mapping[str, Sequence[_Form]] = field(default_factory=dict, repr=False, compare=False)
    _inside: Mapping[str, _Form] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, entries: Iterable[Entry], synonyms: Iterable[Sequence[str]] = ()) -> Lexicon:
        """The lexicon of these entries and classes of synonyms."""
        return cls._indexed(tuple(entries), _same_meaning(synonyms))

    @classmethod
    def _indexed(cls, entries: tuple[Entry, ...], same_meaning: Mapping[str, frozenset[str]]) -> Lexicon:
        by_start: dict[str, list[_Form]] = {}
        inside: dict[str, _Form] = {}
        for entry in entries:
            for spoken in entry.spoken:
                tokens = _tokens(spoken)
                if not tokens:
                    continue
                form = _Form(tokens, entry, _initials(tokens[1], same_meaning) if len(tokens) > 1 else frozenset())
                first = form.tokens[0]
                others = same_meaning.get(_bare(first), frozenset()) if len(form.tokens) > 1 else frozenset()
                for start in {_start(word) for word in (first, *others)}:
                    by_start.setdefault(start, []).append(form)
                whole = "".join(form.tokens)
                if len(form.tokens) == 1 and len(whole) >= MIN_INSIDE_LENGTH and _is_hangul(whole):
                    inside.setdefault(whole, form)
        joined = {start: [form for form in forms if _joins(form, start)] for start, forms in by_start.items()}
        return cls(entries, same_meaning, by_start, joined, inside)

    def with_entries(self, entries: Iterable[Entry]) -> Lexicon:
        """A lexicon with more entries, which come before the present ones."""
        return Lexicon._indexed((*entries, *self.entries), self.synonyms)

    @functools.cached_property
    def _spelling(self) -> SpellingIndex[_Form]:
        return SpellingIndex(
            (form.tokens[0], form)
            for forms in self._by_start.values()
            for form in forms
            if len(form.tokens) == 1 and len(form.tokens[0]) >= MIN_CORRECTED_LENGTH and _is_hangul(form.tokens[0])
        )

    def matches(self, question: str, known: Iterable[str] = ()) -> list[Match]:
        """The entries that the question contains, forms of more words first.

        A word that a form of several words explains is not explained again by a form of one word with the same
        official words, nor by synonyms. Words in `known` (of the collection's own names and titles) are never taken
        for misspelt.
        """
        words = words_of(question)
        matches = _without_weaker([*self._spoken(words), *self._written_together(words)])
        matches.sort(key=lambda match: (-match.size, match.words))
        explained = {position for match in matches for position in match.words}
        known = frozenset(known)
        for position, word in enumerate(words):
            if position not in explained and len(word) >= MIN_CORRECTED_LENGTH and word not in known:
                matches += self._corrected(position, word)
        return _distinct(matches)

    @functools.cached_property
    def _longest_inside(self) -> int:
        return max(map(len, self._inside), default=0)

    def _spoken(self, words: Sequence[str]) -> Iterator[Match]:
        initials = frozenset(word[0] for word in words)
        for position, word in enumerate(words):
            for form in _candidates(self._by_start, word):
                if form.second and form.second.isdisjoint(initials):
                    continue
                match = self._placed(form, words, position)
                if match is not None:
                    yield match
            for length in range(MIN_INSIDE_LENGTH, min(len(word), self._longest_inside + 1)):
                for start in range(1, len(word) - length + 1):
                    inner = self._inside.get(word[start : start + length])
                    if inner is not None:
                        yield Match(inner.entry, inner.tokens[0], (position,))

    def _placed(self, form: _Form, words: Sequence[str], first: int) -> Match | None:
        """The match of a form whose first word begins the word at `first`; None when one of its words is missing."""
        alone = len(form.tokens) == 1
        by = self._begins(form.tokens[0], words[first], alone=alone)
        if by is None:
            return None
        positions = [first]
        weakest = by
        for token in form.tokens[1:]:
            for place in _window(token, positions, len(words)):
                by = self._begins(token, words[place], alone=False)
                if by is not None:
                    positions.append(place)
                    weakest = by if by != "words" else weakest
                    break
            else:
                return None
        return Match(form.entry, " ".join(form.tokens), tuple(sorted(positions)), weakest)

    def _begins(self, token: str, word: str, *, alone: bool) -> MatchedBy | None:
        """How a word of a form begins a word of the question; a form of one word (`alone`) has no synonyms."""
        return self._cached_begins(token, word, alone)

    @functools.cached_property
    def _cached_begins(self) -> Callable[[str, str, bool], MatchedBy | None]:
        @functools.lru_cache(CACHED_COMPARISONS)
        def begins(token: str, word: str, alone: bool) -> MatchedBy | None:
            if _is_begun_by(token, word, alone=alone):
                return "words"
            synonyms = () if alone else self.synonyms.get(_bare(token), ())
            return (
                "synonym"
                if any(other[0] == word[0] and _is_begun_by(other, word, alone=True) for other in synonyms)
                else None
            )

        return begins

    def _written_together(self, words: Sequence[str]) -> Iterator[Match]:
        """Forms of several words that the question writes as one, and single words that it writes as two."""
        for position, word in enumerate(words):
            if _is_hangul(word):
                for start in range(len(word) - 1):
                    for form in _candidates(self._joined, word[start : start + 2]):
                        if _contains(word, start, form.tokens):
                            yield Match(form.entry, " ".join(form.tokens), (position,))
            if position + 1 < len(words):
                pair = word + words[position + 1]
                longest = min(len(pair), self._longest_inside)
                for length in range(max(MIN_INSIDE_LENGTH, len(word) + 1), longest + 1):
                    form_of_two = self._inside.get(pair[:length])
                    if form_of_two is not None:
                        yield Match(form_of_two.entry, form_of_two.tokens[0], (position, position + 1))

    def _corrected(self, position: int, word: str) -> Iterator[Match]:
        for form in self._spelling.nearest(without_particle(word)):
            yield Match(form.entry, form.tokens[0], (position,), by="spelling")


def _candidates(by_start: Mapping[str, Sequence[_Form]], word: str) -> Iterator[_Form]:
    """The forms whose first word can begin this word."""
    if not word[0].isascii():
        yield from by_start.get(word[:1], ())
    if len(word) > 1 or word[0].isascii():
        yield from by_start.get(word[:2], ())


def _initials(token: str, same_meaning: Mapping[str, frozenset[str]]) -> frozenset[str]:
    return frozenset(word[0] for word in (token, *same_meaning.get(_bare(token), ())))


def _joins(form: _Form, start: str) -> bool:
    """Whether the form has several words, and its first one can be in a word that continues from `start` on."""
    first = form.tokens[0]
    return len(form.tokens) > 1 and (first.startswith(start) or start.startswith(first))


def _same_meaning(classes: Iterable[Sequence[str]]) -> dict[str, frozenset[str]]:
    """Word beginning -> the others of its classes."""
    others: dict[str, set[str]] = {}
    for words in classes:
        for word in words:
            others.setdefault(word, set()).update(other for other in words if other != word)
    return {word: frozenset(same) for word, same in others.items()}


def _tokens(spoken: str) -> tuple[str, ...]:
    """The word beginnings of a spoken form. In one of several words an object's particle does not count.

    A single syllable keeps it, which says that it is a whole word: "과를 바꾸" does not match "과제를 바꾸".
    """
    words = words_of(spoken)
    return tuple(words) if len(words) == 1 else tuple(_OBJECT.sub("", word) for word in words)


def _bare(token: str) -> str:
    return token[0] if _SYLLABLE_AS_OBJECT.fullmatch(token) else token


def _start(token: str) -> str:
    bare = _bare(token)
    return bare if len(bare) == 1 and not bare.isascii() else bare[:2]


def _is_hangul(text: str) -> bool:
    return all("가" <= character <= "힣" for character in text)


def _window(token: str, positions: Sequence[int], count: int) -> Iterable[int]:
    """Where the next word of a form may be, given the positions of those before it."""
    last = positions[-1]
    if not token[0].isascii():
        return range(last + 1, min(count, last + 2 + MAX_GAP))
    first = positions[0]
    around = range(max(0, first - ENGLISH_WINDOW), min(count, first + ENGLISH_WINDOW + 1))
    return sorted((place for place in around if place not in positions), key=lambda place: (abs(place - last), place))


def _contains(word: str, start: int, tokens: Sequence[str]) -> bool:
    """Whether the tokens follow each other in one word from `start` on, `MAX_PARTICLE` syllables apart at most."""
    if not word.startswith(tokens[0], start):
        return False
    end = start + len(tokens[0])
    for token in tokens[1:]:
        at = word.find(token, end, end + MAX_PARTICLE + len(token))
        if at < 0:
            return False
        end = at + len(token)
    return True


def _is_begun_by(token: str, word: str, *, alone: bool) -> bool:
    if token[0] != word[0]:
        return False
    if token[0].isascii():
        return word == token or (len(token) >= 3 and word.startswith(token) and len(word) - len(token) <= 3)
    if (alone and len(token) == 1) or _SYLLABLE_AS_OBJECT.fullmatch(token):
        return without_particle(word) == token[0]
    return conjugation.begins(token, word)


def _without_weaker(matches: Sequence[Match]) -> list[Match]:
    """The matches without those by synonyms of words that a form of several words explains as it stands."""
    explained = [set(match.words) for match in matches if match.by == "words" and match.size > 1]
    return [
        match
        for match in matches
        if match.by == "words" or not any(words.issuperset(match.words) for words in explained)
    ]


def _distinct(matches: Iterable[Match]) -> list[Match]:
    best: dict[int, Match] = {}
    for match in matches:
        present = best.get(id(match.entry))
        if present is None or (match.by == "words", len(match.words)) > (present.by == "words", len(present.words)):
            best[id(match.entry)] = match
    return list(best.values())


def read_synonyms(text: str) -> list[tuple[str, ...]]:
    """The classes of a TOML text, normalised. Raises `ValueError` for a class of fewer than two words."""
    classes = []
    for words in tomllib.loads(text).get("classes", []):
        same = tuple(dict.fromkeys(normalise(word) for word in words if word.strip()))
        if len(same) < 2 or any(len(words_of(word)) != 1 for word in same):
            raise ValueError(f"A class of synonyms needs two words or more, each one word: {words}")
        classes.append(same)
    return classes


def read_entries(text: str, name: str = "") -> list[Entry]:
    """The entries of a TOML text. Raises `ValueError` for a text that is not a lexicon file."""
    read = tomllib.loads(text)
    field_name = str(read.get("field", name))
    entries = []
    for row in read.get("entries", []):
        spoken = tuple(dict.fromkeys(normalise(form) for form in row["spoken"] if form.strip()))
        official = tuple(dict.fromkeys(word.strip() for word in row["official"] if word.strip()))
        if not spoken or not official:
            raise ValueError(f"An entry of {name or 'the lexicon'} has no spoken form or no official word: {row}")
        entries.append(Entry(spoken, official, field_name))
    return entries


@functools.cache
def built_in() -> Lexicon:
    """The lexicon of the package. Blocking: reads some thirty small files once."""
    entries: list[Entry] = []
    synonyms: list[tuple[str, ...]] = []
    for file in sorted(resources.files(__package__).iterdir(), key=lambda file: file.name):
        if file.name == SYNONYMS_FILE:
            synonyms = read_synonyms(file.read_text("utf-8"))
        elif file.name.endswith(".toml"):
            entries += read_entries(file.read_text("utf-8"), file.name.removesuffix(".toml"))
    return Lexicon.of(entries, synonyms)
