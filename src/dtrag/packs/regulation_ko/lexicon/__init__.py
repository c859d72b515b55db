"""Everyday words and the official words of regulations: what people say, and what the articles call it.

Entries lie in the TOML files beside this module, one file a field of life. An entry has `spoken` forms and `official`
words. A spoken form is one or more word beginnings: every one of them must begin a word of the question, in order, with
at most `MAX_GAP` other words between two of them. Forms of a single syllable match a whole word only.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources

from dtrag.core.text.analysis import normalise
from dtrag.core.text.questions import without_particle
from dtrag.packs.regulation_ko.jamo import SpellingIndex

MAX_GAP = 2
"""Other words between two words of a form: "책을 도서관에서 잃어버렸어요" still is "책 잃어버"."""
MAX_PARTICLE = 2
"""Syllables between two words of a form that are written as one word ("책을잃어버렸어요")."""
INSIDE_LEAST = 3
"""Syllables from which on a single word is also searched for inside a compound ("하계계절학기")."""
CORRECTED_LEAST = 3
"""Syllables from which on a misspelt word is compared by its letters (jamo)."""
_WORD = re.compile(r"[가-힣]+|[a-z0-9]+(?:[-'][a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Entry:
    """`spoken` forms (normalised, several ways to say one thing), their `official` words (best first), and the field
    of life that the entry belongs to."""

    spoken: tuple[str, ...]
    official: tuple[str, ...]
    field: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """An entry that a question contains: `words` are the positions of the question's words that the form explains.

    `form` is the spoken form; `exact` is False when spelling was corrected.
    """

    entry: Entry
    form: str
    words: tuple[int, ...]
    exact: bool = True

    @property
    def size(self) -> int:
        """Number of the form's words."""
        return len(self.form.split())


def words_of(question: str) -> list[str]:
    """The words of a question, normalised: runs of Hangul, and of Latin letters and digits."""
    return _WORD.findall(normalise(question))


@dataclass(frozen=True, slots=True)
class _Form:
    tokens: tuple[str, ...]
    entry: Entry


@dataclass(frozen=True)
class Lexicon:
    """The entries, indexed by the first word of their forms. Immutable; `with_entries` makes a larger one."""

    entries: tuple[Entry, ...]
    _by_start: Mapping[str, Sequence[_Form]] = field(default_factory=dict, repr=False, compare=False)
    _inside: Mapping[str, _Form] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Lexicon:
        """The lexicon of these entries."""
        entries = tuple(entries)
        by_start: dict[str, list[_Form]] = {}
        inside: dict[str, _Form] = {}
        for entry in entries:
            for spoken in entry.spoken:
                form = _Form(tuple(words_of(spoken)), entry)
                if not form.tokens:
                    continue
                by_start.setdefault(_start(form.tokens[0]), []).append(form)
                whole = "".join(form.tokens)
                if len(form.tokens) == 1 and len(whole) >= INSIDE_LEAST and _is_hangul(whole):
                    inside.setdefault(whole, form)
        return cls(entries, by_start, inside)

    def with_entries(self, entries: Iterable[Entry]) -> Lexicon:
        """A lexicon with more entries; an entry of the same spoken form comes first in its official words."""
        return Lexicon.of((*entries, *self.entries))

    @functools.cached_property
    def _spelling(self) -> SpellingIndex[_Form]:
        return SpellingIndex(
            (form.tokens[0], form)
            for forms in self._by_start.values()
            for form in forms
            if len(form.tokens) == 1 and len(form.tokens[0]) >= CORRECTED_LEAST and _is_hangul(form.tokens[0])
        )

    def matches(self, question: str, known: Iterable[str] = ()) -> list[Match]:
        """The entries that the question contains, forms of more words first.

        A word that a form of several words explains is not explained again by a form of one word with the same
        official words. Words in `known` (of the collection's own names and titles) are never taken for misspelt.
        """
        words = words_of(question)
        matches = [*self._in_order(words), *self._written_together(words)]
        matches.sort(key=lambda match: (-match.size, match.words))
        explained = {position for match in matches for position in match.words}
        known = frozenset(known)
        for position, word in enumerate(words):
            if position not in explained and len(word) >= CORRECTED_LEAST and word not in known:
                matches += self._corrected(position, word)
        return _distinct(matches)

    def _in_order(self, words: Sequence[str]) -> Iterator[Match]:
        for position, word in enumerate(words):
            for form in self._candidates(word):
                found = _placed(form.tokens, words, position)
                if found:
                    yield Match(form.entry, " ".join(form.tokens), found)
            for length in range(INSIDE_LEAST, len(word)):
                for start in range(1, len(word) - length + 1):
                    inner = self._inside.get(word[start : start + length])
                    if inner is not None:
                        yield Match(inner.entry, inner.tokens[0], (position,))

    def _candidates(self, word: str) -> Iterator[_Form]:
        if not word[0].isascii():
            yield from self._by_start.get(word[:1], ())
        if len(word) > 1 or word[0].isascii():
            yield from self._by_start.get(word[:2], ())

    def _written_together(self, words: Sequence[str]) -> Iterator[Match]:
        """Forms of several words that the question writes as one, and single words that it writes as two."""
        for position, word in enumerate(words):
            if _is_hangul(word):
                for start in range(len(word) - 1):
                    for form in self._candidates(word[start:]):
                        if len(form.tokens) > 1 and _contains(word, start, form.tokens):
                            yield Match(form.entry, " ".join(form.tokens), (position,))
            if position + 1 < len(words):
                pair = word + words[position + 1]
                for length in range(max(INSIDE_LEAST, len(word) + 1), len(pair) + 1):
                    form_of_two = self._inside.get(pair[:length])
                    if form_of_two is not None:
                        yield Match(form_of_two.entry, form_of_two.tokens[0], (position, position + 1))

    def _corrected(self, position: int, word: str) -> Iterator[Match]:
        for form in self._spelling.nearest(without_particle(word)):
            yield Match(form.entry, form.tokens[0], (position,), exact=False)


def _start(token: str) -> str:
    return token[:1] if len(token) == 1 and not token.isascii() else token[:2]


def _is_hangul(text: str) -> bool:
    return all("가" <= character <= "힣" for character in text)


def _placed(tokens: Sequence[str], words: Sequence[str], first: int) -> tuple[int, ...]:
    """The positions of the words that the tokens begin, from `first` on; () when one is missing."""
    if not _begins(tokens[0], words[first], alone=len(tokens) == 1):
        return ()
    positions = [first]
    for token in tokens[1:]:
        window = range(positions[-1] + 1, min(len(words), positions[-1] + 2 + MAX_GAP))
        following = next((place for place in window if _begins(token, words[place], alone=False)), None)
        if following is None:
            return ()
        positions.append(following)
    return tuple(positions)


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


def _begins(token: str, word: str, *, alone: bool) -> bool:
    if token[0].isascii():
        return word == token or (len(token) >= 3 and word.startswith(token) and len(word) - len(token) <= 3)
    if alone and len(token) == 1:
        return without_particle(word) == token
    return word.startswith(token)


def _distinct(matches: Iterable[Match]) -> list[Match]:
    kept: dict[int, Match] = {}
    for match in matches:
        present = kept.get(id(match.entry))
        if present is None or len(match.words) > len(present.words):
            kept[id(match.entry)] = match
    return list(kept.values())


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
    """The lexicon of the package. Blocking: reads a dozen small files once."""
    entries: list[Entry] = []
    for file in sorted(resources.files(__package__).iterdir(), key=lambda file: file.name):
        if file.name.endswith(".toml"):
            entries += read_entries(file.read_text("utf-8"), file.name.removesuffix(".toml"))
    return Lexicon.of(entries)
