"""The spoken forms of a lexicon, found by the first letters of their first word.

Indexing all forms reads their first words only; the rest of a form is read when a question first has a word that may
begin it: a question needs a few hundred of the 36,000 forms.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from dtrag.core.text.analysis import normalise

MIN_LONG_WORD = 3
"""Syllables of a form of one word from which on it is also searched for inside a compound ("하계계절학기"), and
compared with misspelt words by its letters (jamo)."""
_WORD = re.compile(r"[가-힣]+|[a-z0-9]+(?:[-'][a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Entry:
    """`spoken` forms (normalised, several ways to say one thing), their `official` words (best first), and the field
    of life that the entry belongs to."""

    spoken: tuple[str, ...]
    official: tuple[str, ...]
    field: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """A spoken form. A word can match its second word only if it begins with one of the characters `second`.

    Every one of the tokens `literal` must begin a word: those in Latin letters that have no synonyms.
    """

    tokens: tuple[str, ...]
    entry: Entry
    second: frozenset[str] = frozenset()
    literal: frozenset[str] = frozenset()


class FormIndex:
    """The forms of these entries, in their order, before those of `more`.

    `synonyms` maps a word beginning to those that mean the same.
    `long_words` are the forms of one Hangul word of `MIN_LONG_WORD` syllables or more, with their entries;
    `by_long_word` has the first entry of each, `longest` is the length of the longest.
    """

    def __init__(
        self, entries: Iterable[Entry], synonyms: Mapping[str, frozenset[str]], more: FormIndex | None = None
    ) -> None:
        self._synonyms = synonyms
        self._more = more
        self._unread: dict[str, list[tuple[str, Entry]]] = {}
        self._beginning: dict[str, list[Form]] = {}
        self._joined: dict[str, list[Form]] = {}
        self._initials_of: dict[str, frozenset[str]] = {}
        self.long_words: list[tuple[str, Entry]] = []
        starts_of = functools.cache(self._starts)
        for entry in entries:
            for spoken in entry.spoken:
                part, _, rest = spoken.partition(" ")
                starts, long_word = starts_of(part, _has_word(rest)) or self._starts(spoken) or ((), "")
                for start in starts:
                    self._unread.setdefault(start, []).append((spoken, entry))
                if long_word:
                    self.long_words.append((long_word, entry))
        if more is not None:
            self.long_words += more.long_words
        self.by_long_word = dict(reversed(self.long_words))
        self.longest = max(map(len, self.by_long_word), default=0)

    def _starts(self, part: str, has_more: bool = False) -> tuple[tuple[str, ...], str] | None:
        """The starts of a form that begins with this part, and its word if that is long and alone; None without words.

        A form of several words is also found where the synonyms of its first word are.
        """
        words = words_of(part)
        if not words:
            return None
        first = words[0]
        if not has_more and len(words) == 1:
            is_long = len(first) >= MIN_LONG_WORD and is_hangul(first)
            return (_start(first),), first if is_long else ""
        first = _without_object(first)
        return tuple({_start(word) for word in (first, *self._synonyms.get(bare(first), ()))}), ""

    def beginning(self, word: str) -> Iterator[Form]:
        """The forms whose first word can begin this word."""
        return self._of_starts(word, self._forms)

    def joined(self, word: str) -> Iterator[Form]:
        """The forms of several words whose first one can begin here, inside a word that goes on with the others."""
        return self._of_starts(word, self._forms_joined)

    def _of_starts(self, word: str, forms: Callable[[str], Sequence[Form]]) -> Iterator[Form]:
        of_first = forms(word[:1]) if not word[0].isascii() else ()
        of_two = forms(word[:2]) if len(word) > 1 or word[0].isascii() else ()
        return chain(of_first, of_two)

    def _forms(self, start: str) -> Sequence[Form]:
        if start not in self._beginning:
            more = self._more._forms(start) if self._more is not None else ()
            unread = self._unread.get(start, ())
            if not (unread or more):
                return ()
            self._beginning[start] = [*(self._read(spoken, entry) for spoken, entry in unread), *more]
        return self._beginning[start]

    def _forms_joined(self, start: str) -> Sequence[Form]:
        if start not in self._joined:
            forms = self._forms(start)
            if not forms:
                return ()
            self._joined[start] = [form for form in forms if _joins(form, start)]
        return self._joined[start]

    def _read(self, spoken: str, entry: Entry) -> Form:
        tokens = _tokens(spoken)
        literal = frozenset([token for token in tokens if token[0].isascii() and token not in self._synonyms])
        return Form(tokens, entry, self._initials(tokens[1]) if len(tokens) > 1 else frozenset(), literal)

    def _initials(self, token: str) -> frozenset[str]:
        initials = self._initials_of.get(token)
        if initials is None:
            others = self._synonyms.get(bare(token), ())
            initials = self._initials_of[token] = frozenset([token[0], *[word[0] for word in others]])
        return initials


def words_of(question: str) -> list[str]:
    """The words of a question, normalised: runs of Hangul, and of Latin letters and digits."""
    return _WORD.findall(normalise(question))


def is_hangul(text: str) -> bool:
    """Whether the text has only Hangul syllables."""
    return all("가" <= character <= "힣" for character in text)


def bare(token: str) -> str:
    """The syllable of a token that is one syllable with an object's particle; other tokens unchanged."""
    return token[0] if is_syllable_as_object(token) else token


def is_syllable_as_object(token: str) -> bool:
    """Whether the token is one syllable and an object's particle."""
    return len(token) == 2 and "가" <= token[0] <= "힣" and token[1] in "을를"


def _has_word(text: str) -> bool:
    return bool(text) and (_WORD.search(text) is not None or bool(words_of(text)))


def _tokens(spoken: str) -> tuple[str, ...]:
    """The word beginnings of a spoken form. In one of several words an object's particle does not count.

    A single syllable keeps it, which says that it is a whole word: "과를 바꾸" does not match "과제를 바꾸".
    """
    words = _WORD.findall(spoken)
    return tuple(words) if len(words) == 1 else tuple(map(_without_object, words))


def _without_object(word: str) -> str:
    return word[:-1] if word[-1] in "을를" and len(word) > 2 and is_hangul(word[-3:-1]) else word


def _start(token: str) -> str:
    syllable = bare(token)
    return syllable if len(syllable) == 1 and not syllable.isascii() else syllable[:2]


def _joins(form: Form, start: str) -> bool:
    """Whether the form has several words, and its first one can be in a word that continues from `start` on."""
    first = form.tokens[0]
    return len(form.tokens) > 1 and (first.startswith(start) or start.startswith(first))
