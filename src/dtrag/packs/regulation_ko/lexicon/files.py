"""Reads the files of a lexicon: TOML, as people edit it.

`tomllib` takes 5 µs for each of 50,000 strings. An array of strings without escapes on one line is the same in TOML and
JSON: `json` reads files that have no other values, in a tenth of the time, and `tomllib` all others.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from itertools import accumulate, chain, pairwise

from dtrag.core.text.analysis import normalise
from dtrag.packs.regulation_ko.lexicon.forms import Entry, words_of

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
