"""A lexicon from everyday words to the official terms of regulations.

Entries are in the TOML files beside this module, one file for each field of life. An entry has `spoken` forms and
`official` words. A spoken form is one or more word beginnings: each of them must begin a word of the question, in
order, with at most `MAX_GAP` other words between two of them (English: in any order within `ENGLISH_WINDOW` words).
A verb matches in all its forms, a single syllable as a whole word only. `synonyms.toml` has classes of everyday words
that mean the same: inside a form of several words one of a class matches in place of another.
"""

from __future__ import annotations

import functools
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from itertools import accumulate, chain, pairwise
from typing import NamedTuple

from dtrag.core.query_expansion import MatchedBy
from dtrag.core.text.analysis import normalise
from dtrag.core.text.questions import without_particle
from dtrag.regulations.korean.lexicon.forms import (
    MIN_LONG_WORD,
    Entry,
    Form,
    FormIndex,
    bare,
    is_hangul,
    is_syllable_as_object,
    words_of,
)
from dtrag.regulations.korean.spelling import SpellingIndex, begins

MAX_GAP = 3
"""Other words between two words of a form: "책을 도서관에서 잃어버렸어요" still matches "책 잃어버"."""
ENGLISH_WINDOW = 6
"""English words around the first one of a form among which its other words are looked for: word order is free there."""
MAX_PARTICLE = 2
"""Syllables between two words of a form that are written as one word ("책을잃어버렸어요")."""
SYNONYMS_FILE = "synonyms.toml"
OWN_FIELD = "own"
"""The field of entries that administrators have added."""

__all__ = [
    "OWN_FIELD",
    "SYNONYMS_FILE",
    "Entry",
    "Lexicon",
    "Match",
    "built_in",
    "read_entries",
    "read_synonyms",
    "words_of",
]

CACHED_WORDS = 8_192
"""Words of questions for which is cached what they contain."""
CACHED_COMPARISONS = 65_536
"""Comparisons of a word of a form with a word of a question that are cached; a question makes about a thousand."""


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


@dataclass(frozen=True)
class Lexicon:
    """The entries, indexed by the first word of their forms. Immutable; `with_entries` makes a larger one.

    `synonyms` maps a word beginning to those that mean the same.
    """

    entries: tuple[Entry, ...]
    synonyms: Mapping[str, frozenset[str]] = field(default_factory=dict, repr=False)
    _forms: FormIndex = field(default_factory=lambda: FormIndex((), {}), repr=False, compare=False)

    @classmethod
    def of(cls, entries: Iterable[Entry], synonyms: Iterable[Sequence[str]] = ()) -> Lexicon:
        """The lexicon of these entries and classes of synonyms."""
        entries, same_meaning = tuple(entries), _same_meaning(synonyms)
        return cls(entries, same_meaning, FormIndex(entries, same_meaning))

    def with_entries(self, entries: Iterable[Entry]) -> Lexicon:
        """A lexicon with more entries, which come before the present ones."""
        entries = tuple(entries)
        forms = FormIndex(entries, self.synonyms, self._forms)
        return Lexicon((*entries, *self.entries), self.synonyms, forms)

    @functools.cached_property
    def _spelling(self) -> SpellingIndex[tuple[str, Entry]]:
        return SpellingIndex((word, (word, entry)) for word, entry in self._forms.long_words)

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
            if position not in explained and len(word) >= MIN_LONG_WORD and word not in known:
                matches += self._corrected(position, word)
        return _distinct(matches)

    def _spoken(self, words: Sequence[str]) -> Iterator[Match]:
        initials = frozenset(word[0] for word in words)
        beginnings = frozenset(word[:length] for word in words for length in range(1, len(word) + 1))
        for position, word in enumerate(words):
            for form in self._forms.beginning(word):
                if (form.second and form.second.isdisjoint(initials)) or not form.literal <= beginnings:
                    continue
                match = self._placed(form, words, position)
                if match is not None:
                    yield match
            for entry, inner in self._words_within(word).long:
                yield Match(entry, inner, (position,))

    def _placed(self, form: Form, words: Sequence[str], first: int) -> Match | None:
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
            synonyms = () if alone else self.synonyms.get(bare(token), ())
            return (
                "synonym"
                if any(other[0] == word[0] and _is_begun_by(other, word, alone=True) for other in synonyms)
                else None
            )

        return begins

    def _written_together(self, words: Sequence[str]) -> Iterator[Match]:
        """Forms of several words that the question writes as one, and single words that it writes as two."""
        for position, word in enumerate(words):
            for joined, form in self._words_within(word).joined:
                yield Match(joined, form, (position,))
            if position + 1 < len(words):
                pair = word + words[position + 1]
                longest = min(len(pair), self._forms.longest)
                for length in range(max(MIN_LONG_WORD, len(word) + 1), longest + 1):
                    entry = self._forms.by_long_word.get(pair[:length])
                    if entry is not None:
                        yield Match(entry, pair[:length], (position, position + 1))

    @functools.cached_property
    def _words_within(self) -> Callable[[str], _WordsWithin]:
        """What one word of a question contains, cached: questions share most of their words."""

        @functools.lru_cache(CACHED_WORDS)
        def words_within(word: str) -> _WordsWithin:
            forms = self._forms
            long = [
                (forms.by_long_word[inner], inner)
                for length in range(MIN_LONG_WORD, min(len(word), forms.longest + 1))
                for start in range(1, len(word) - length + 1)
                if (inner := word[start : start + length]) in forms.by_long_word
            ]
            joined = [
                (form.entry, " ".join(form.tokens))
                for start in (range(len(word) - 1) if is_hangul(word) else ())
                for form in forms.joined(word[start : start + 2])
                if _contains(word, start, form.tokens)
            ]
            return _WordsWithin(tuple(long), tuple(joined))

        return words_within

    def _corrected(self, position: int, word: str) -> Iterator[Match]:
        for spelt, entry in self._spelling.nearest(without_particle(word)):
            yield Match(entry, spelt, (position,), by="spelling")


class _WordsWithin(NamedTuple):
    """The entries of long words inside a word, and of forms of several words that it writes as one, with the forms."""

    long: tuple[tuple[Entry, str], ...]
    joined: tuple[tuple[Entry, str], ...]


def _same_meaning(classes: Iterable[Sequence[str]]) -> dict[str, frozenset[str]]:
    """Word beginning -> the others of its classes."""
    others: dict[str, set[str]] = {}
    for words in classes:
        for word in words:
            others.setdefault(word, set()).update(other for other in words if other != word)
    return {word: frozenset(same) for word, same in others.items()}


def _window(token: str, positions: Sequence[int], count: int) -> Iterable[int]:
    """Where the next word of a form may be, given the positions of those before it."""
    last = positions[-1]
    if not token[0].isascii():
        return range(last + 1, min(count, last + 2 + MAX_GAP))
    first = positions[0]
    low, high = max(0, first - ENGLISH_WINDOW), min(count, first + ENGLISH_WINDOW + 1)
    nearest = [place for far in range(1, count) for place in (last - far, last + far)]
    return [place for place in nearest if low <= place < high and place not in positions]


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
    if (alone and len(token) == 1) or is_syllable_as_object(token):
        return without_particle(word) == token[0]
    return begins(token, word)


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


@functools.cache
def built_in() -> Lexicon:
    """The lexicon of the package. Blocking: reads some thirty small files once, in .13 s."""
    entries: list[Entry] = []
    synonyms: list[tuple[str, ...]] = []
    for file in sorted(resources.files(__package__).iterdir(), key=lambda file: file.name):
        if file.name == SYNONYMS_FILE:
            synonyms = read_synonyms(file.read_text("utf-8"))
        elif file.name.endswith(".toml"):
            entries += read_entries(file.read_text("utf-8"), file.name.removesuffix(".toml"))
    return Lexicon.of(entries, synonyms)


_SEPARATOR = "\0"
_Lists = tuple[str, Sequence[Sequence[str]], Sequence[Sequence[str]]]
"""The field of a file, and the spoken and official words of each entry."""


def read_entries(text: str, name: str = "") -> list[Entry]:
    """The entries of a TOML text. Raises `ValueError` for a text that is not a lexicon file."""
    field, spoken_lists, official_lists = lists_by_json(text, name) or lists_by_toml(text, name)
    entries = []
    for forms, official in zip(_normalised(spoken_lists), official_lists, strict=True):
        spoken = tuple(dict.fromkeys(filter(None, forms)))
        words = tuple(dict.fromkeys(filter(None, map(str.strip, official))))
        if not spoken or not words:
            raise ValueError(
                f"An entry of {name or 'the lexicon'} has no spoken form or no official word: {forms}, {official}"
            )
        entries.append(Entry(spoken, words, field))
    return entries


def lists_by_toml(text: str, name: str = "") -> _Lists:
    """The lists of any TOML text."""
    read = tomllib.loads(text)
    rows = read.get("entries", [])
    return str(read.get("field", name)), [row["spoken"] for row in rows], [row["official"] for row in rows]


def lists_by_json(text: str, name: str = "") -> _Lists | None:
    """The lists of a text in which each key, with its value, is one line; None for every other text."""
    if "\\" in text:
        return None
    fields: list[str] = []
    lists: dict[str, list[str]] = {"spoken": [], "official": []}
    entries = 0
    for line in text.splitlines():
        key, _, value = line.partition(" = ")
        if key in lists and len(lists[key]) == entries - 1:
            lists[key].append(value)
        elif line == "[[entries]]":
            entries += 1
        elif key == "field" and not entries:
            fields.append(value)
        elif line and not line.startswith("#"):
            return None
    try:
        spoken, official, names = (
            json.loads(f"[{','.join(values)}]") for values in (lists["spoken"], lists["official"], fields)
        )
    except ValueError:
        return None
    is_usual = (
        len(spoken) == len(official) == entries
        and {list} >= set(map(type, chain(spoken, official)))
        and {str} >= set(map(type, chain(*spoken, *official, names)))
        and len(names) == len(fields) <= 1
    )
    return (names[0] if names else name, spoken, official) if is_usual else None


def read_synonyms(text: str) -> list[tuple[str, ...]]:
    """The classes of a TOML text, normalised. Raises `ValueError` for a class of fewer than two words."""
    classes = []
    for words in tomllib.loads(text).get("classes", []):
        same = tuple(dict.fromkeys(normalise(word) for word in words if word.strip()))
        if len(same) < 2 or any(len(words_of(word)) != 1 for word in same):
            raise ValueError(f"A class of synonyms needs two words or more, each one word: {words}")
        classes.append(same)
    return classes


def _normalised(lists: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """The lists with `normalise` of each word: one call for all of them takes a fifth of the time."""
    folded = [word.strip() for word in normalise(_SEPARATOR.join(chain(*lists))).split(_SEPARATOR)]
    ends = list(accumulate(map(len, lists), initial=0))
    if len(folded) != ends[-1]:  # none, or a word contains the separator
        return [[normalise(word) for word in words] for words in lists]
    return [folded[start:end] for start, end in pairwise(ends)]
