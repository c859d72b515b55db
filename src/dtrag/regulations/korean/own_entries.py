"""Own entries of the lexicon: checks, the stored form, and the TOML form that is exported and read again."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence

from dtrag.core.lexicon_entry import LexiconEntry
from dtrag.core.response import plain
from dtrag.core.text.analysis import normalise, terms
from dtrag.errors import Advice, InvalidInput
from dtrag.regulations.korean.lexicon import OWN_FIELD, Entry, words_of

MAX_ENTRIES = 500
MAX_FORMS = 20
"""Spoken forms of one entry."""
MAX_OFFICIAL = 10
"""Official words of one entry."""
MIN_LENGTH, MAX_LENGTH = 2, 60
"""Characters of a form or an official word."""
MAX_CHARACTERS = 100_000
"""Characters of all forms and official words together: every process reads them with the settings of the index."""
_SYLLABLE = re.compile(r"[가-힣]")
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
        if _SYLLABLE.fullmatch(word):
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
