"""Own entries of the lexicon that corrections of answers suggest: everyday words of the questions, official ones of
the provisions that answer them."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dtrag.core.lexicon_entry import LexiconEntry
from dtrag.core.text.analysis import STOP_WORDS, normalise
from dtrag.core.text.questions import content
from dtrag.errors import InvalidInput
from dtrag.regulations.korean.lexicon import Lexicon, words_of
from dtrag.regulations.korean.own_entries import checked_words, to_toml

STEM = 2
"""First characters that forms of one Korean word share."""
MAX_OFFICIAL_WORDS = 3
"""Official words of a suggested entry."""
SHARE = 0.5
"""Least share of the questions with a form whose corrections have the official word."""


@dataclass(frozen=True, slots=True)
class CorrectedQuestion:
    """A question with the titles (of provisions, else headings) and texts of the passages that answer it."""

    question: str
    titles: tuple[str, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """An entry, and the questions that support it."""

    spoken: str
    official: tuple[str, ...]
    questions: tuple[str, ...]

    @property
    def support(self) -> int:
        """Number of different questions."""
        return len(self.questions)

    def as_dict(self) -> dict[str, object]:
        """For display."""
        return {
            "spoken": [self.spoken],
            "official": list(self.official),
            "support": self.support,
            "questions": list(self.questions),
        }


def suggestions(corrected: Iterable[CorrectedQuestion], lexicon: Lexicon, least: int) -> list[Suggestion]:
    """Entries that at least `least` different questions support, the best supported first.

    A form is a word of a question that no chosen passage contains; of several forms of a Korean word, their common
    beginning. Words that the lexicon already leads to the official word are left out.
    """
    questions: dict[str, set[str]] = defaultdict(set)  # stem -> all questions with it
    written: dict[str, set[str]] = defaultdict(set)
    pairs: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for each in {normalise(each.question): each for each in corrected}.values():
        everyday, official = _everyday(each), _official(each)
        known = _known(each.question, lexicon)
        for word in everyday:
            stem = _stem(word)
            questions[stem].add(each.question)
            written[stem].add(word)
            for title_word in official:
                if title_word not in known.get(word, frozenset()):
                    pairs[stem][title_word].add(each.question)
    suggested = [
        suggestion
        for stem, by_word in pairs.items()
        if (suggestion := _suggestion(_form(written[stem], stem), by_word, len(questions[stem]), least)) is not None
    ]
    return sorted(suggested, key=lambda each: (-each.support, each.spoken))


def as_toml(suggestions: Sequence[Suggestion]) -> str:
    """The suggestions in the format of own entries, each after a comment with its questions."""
    header, *entries = to_toml([LexiconEntry(0, (each.spoken,), each.official) for each in suggestions]).split(
        "\n[[entries]]"
    )
    parts = [header]
    for each, entry in zip(suggestions, entries, strict=True):
        comments = "".join(f"# {_printable(question)}\n" for question in each.questions[:5])
        parts.append(f"\n# Questions: {each.support}\n{comments}[[entries]]{entry}")
    return "".join(parts)


def _suggestion(form: str, by_word: Mapping[str, set[str]], questions: int, least: int) -> Suggestion | None:
    supported = {
        word: support
        for word, support in by_word.items()
        if len(support) >= least and len(support) >= SHARE * questions
    }
    ranked = sorted(supported, key=lambda word: (-len(supported[word]), word))[:MAX_OFFICIAL_WORDS]
    if not ranked:
        return None
    try:
        (spoken,), official = checked_words([form], ranked)
    except InvalidInput:  # too short to be an entry
        return None
    return Suggestion(spoken, official, tuple(sorted(set().union(*(supported[word] for word in ranked)))))


def _everyday(corrected: CorrectedQuestion) -> list[str]:
    """Words of the question that occur neither in the titles nor in the texts."""
    passages = "".join("".join(words_of(text)) for text in (*corrected.titles, *corrected.texts))
    words = [word for word in words_of(content(corrected.question)) if len(word) >= STEM and not word.isdecimal()]
    return [word for word in dict.fromkeys(words) if word not in STOP_WORDS and _stem(word) not in passages]


def _official(corrected: CorrectedQuestion) -> list[str]:
    """Words of the titles that the question does not contain."""
    question = "".join(words_of(corrected.question))
    words = [word for title in corrected.titles for word in words_of(content(title))]
    return [
        word
        for word in dict.fromkeys(words)
        if len(word) >= STEM and not word.isdecimal() and word not in STOP_WORDS and word not in question
    ]


def _known(question: str, lexicon: Lexicon) -> dict[str, frozenset[str]]:
    """Word of the question -> official words that the lexicon adds for it."""
    words = words_of(question)
    known: dict[str, set[str]] = defaultdict(set)
    for match in lexicon.matches(question):
        for position in match.words:
            known[words[position]].update(match.entry.official)
    stems: dict[str, frozenset[str]] = {}
    for word in words_of(content(question)):
        stems[word] = frozenset().union(*(official for full, official in known.items() if full.startswith(word)))
    return stems


def _stem(word: str) -> str:
    return word[:STEM] if "가" <= word[0] <= "힣" else word


def _form(words: Iterable[str], stem: str) -> str:
    """What all the words begin with, at least the stem."""
    shared = itertools.takewhile(lambda characters: len(set(characters)) == 1, zip(*words, strict=False))
    return "".join(characters[0] for characters in shared) or stem


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)[:200]
