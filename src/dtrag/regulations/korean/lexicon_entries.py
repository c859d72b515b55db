"""Own entries of the lexicon: checks, the stored form, the TOML form, and suggestions from corrected answers."""

from __future__ import annotations

import itertools
import json
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dtrag.core.lexicon_entry import LexiconEntry
from dtrag.core.response import plain
from dtrag.core.text.analysis import STOP_WORDS, normalise, terms
from dtrag.core.text.questions import content
from dtrag.errors import Advice, InvalidInput
from dtrag.regulations.korean.lexicon import OWN_FIELD, Entry, Lexicon, words_of

MAX_ENTRIES = 500
MAX_FORMS = 20
"""Spoken forms of one entry."""
MAX_OFFICIAL = 10
"""Official words of one entry."""
MIN_LENGTH, MAX_LENGTH = 2, 60
"""Characters of a form or an official word."""
MAX_CHARACTERS = 100_000
"""Characters of all forms and official words together: every process reads them with the settings of the index."""
_SHOWN = 40
Words = tuple[tuple[str, ...], tuple[str, ...]]
"""Spoken forms and official words of an entry."""


def checked_words(spoken: Sequence[str] | str, official: Sequence[str] | str) -> Words:
    """The forms and words of an entry, normalised and each once. Raises `InvalidInput`."""
    forms = _each_once("spoken form", "--spoken", spoken, MAX_FORMS, normalised=True)
    words = _each_once("official word", "--official", official, MAX_OFFICIAL, normalised=False)
    for form in forms:
        _check_form(form)
    for word in words:
        if len("".join(words_of(word))) < MIN_LENGTH or not terms(word):
            raise InvalidInput(
                f"The official word {word!r} is too short to be searched: give one of at least {MIN_LENGTH} characters."
            )
    return forms, words


def _each_once(kind: str, option: str, texts: Sequence[str] | str, most: int, *, normalised: bool) -> tuple[str, ...]:
    values = [texts] if isinstance(texts, str) else list(texts)
    if not all(isinstance(text, str) for text in values):
        raise InvalidInput(f"Every {kind} of an entry must be a text.")
    for text in values:
        if not text.isprintable():
            raise InvalidInput(f"The {kind} {text[:_SHOWN]!r} has control characters. Write it without them.")
        if len(text) > MAX_LENGTH:
            raise InvalidInput(f"The {kind} {text[:_SHOWN]!r}… has over {MAX_LENGTH} characters. Shorten it.")
    stripped = (" ".join((normalise(text) if normalised else text).split()) for text in values)
    unique = tuple(dict.fromkeys(text for text in stripped if text))
    if not 1 <= len(unique) <= most:
        message = f"An entry needs 1 to {most} {kind}s, and this one has {len(unique)}."
        raise InvalidInput(message, Advice.ENTRY_WORDS, option=option, field=option.removeprefix("--"))
    return unique


def _check_form(form: str) -> None:
    words = words_of(form)
    if len("".join(words)) < MIN_LENGTH:
        raise InvalidInput(
            f"The spoken form {form!r} would match nearly every question: "
            f"give at least {MIN_LENGTH} Hangul syllables, Latin letters or digits."
        )
    for word in words[:-1]:
        if len(word) == 1 and "가" <= word <= "힣":
            raise InvalidInput(
                f"In the spoken form {form!r}, {word!r} would match every word that begins with it. Write it with its "
                f"particle, such as {_as_object(word)!r}, which matches the whole word only, or write a longer word."
            )


def _as_object(syllable: str) -> str:
    has_final_consonant = (ord(syllable) - ord("가")) % 28 > 0
    return syllable + ("을" if has_final_consonant else "를")


def as_stored(entries: Sequence[LexiconEntry], next_number: int) -> dict[str, object]:
    """The value of the setting."""
    return {"next": next_number, "entries": plain(list(entries))}


def from_stored(value: object) -> list[LexiconEntry]:
    """The entries of a stored value; rows that are not entries are left out, so that a search never fails by them."""
    rows = value.get("entries") if isinstance(value, Mapping) else None
    entries = []
    for row in rows if isinstance(rows, list) else []:
        if not isinstance(row, Mapping) or not isinstance(row.get("number"), int):
            continue
        try:
            forms, words = checked_words(row.get("spoken") or (), row.get("official") or ())
        except (InvalidInput, TypeError):
            continue
        entries.append(LexiconEntry(row["number"], forms, words))
    return entries


def unread(value: object) -> int:
    """How many parts of a stored value `from_stored` leaves out, which a change would lose."""
    if value is None:
        return 0
    if not isinstance(value, Mapping) or not isinstance(value.get("entries"), list):
        return 1
    rows = value["entries"]
    complete = sum(isinstance(row, Mapping) and row.keys() <= {"number", "spoken", "official"} for row in rows)
    return len(rows) - min(complete, len(from_stored(value))) + len(value.keys() - {"next", "entries"})


def next_number(value: object, entries: Iterable[LexiconEntry]) -> int:
    """The number of the next new entry: numbers of removed entries are not used again."""
    stored = value.get("next") if isinstance(value, Mapping) else None
    highest = max((entry.number for entry in entries), default=0)
    return max(stored if isinstance(stored, int) else 1, highest + 1)


def for_matching(entries: Iterable[LexiconEntry]) -> list[Entry]:
    """The entries as `Lexicon.with_entries` takes them."""
    return [Entry(entry.spoken, entry.official, OWN_FIELD) for entry in entries]


def to_toml(entries: Iterable[LexiconEntry]) -> str:
    """A text that `from_toml` reads, in the format of the built-in files."""
    parts = [f'field = "{OWN_FIELD}"\n']
    # A JSON array of printable strings is a TOML array of strings.
    for entry in entries:
        spoken, official = (json.dumps(list(words), ensure_ascii=False) for words in (entry.spoken, entry.official))
        parts.append(f"\n[[entries]]\nspoken = {spoken}\nofficial = {official}\n")
    return "".join(parts)


def from_toml(text: str) -> list[Words]:
    """The entries of a TOML text. Raises `InvalidInput` that names the first wrong entry."""
    try:
        rows = tomllib.loads(text).get("entries", [])
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidInput(f"This is not a TOML file: {error}. `dtrag lexicon export` shows the format.") from error
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise InvalidInput("The file has no [[entries]]. `dtrag lexicon export` shows the format.")
    entries = []
    for position, row in enumerate(rows, 1):
        lists = [row.get("spoken"), row.get("official")]
        if not all(isinstance(words, list) for words in lists) or row.keys() - {"spoken", "official"}:
            raise InvalidInput(f"Entry {position} of the file: an entry has two lists, spoken and official.")
        try:
            entries.append(checked_words(*lists))
        except InvalidInput as error:
            raise InvalidInput(f"Entry {position} of the file: {error}") from error
    return entries


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
