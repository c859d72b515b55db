"""The wordings of questions in one language, read from the TOML files beside this module."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any


@dataclass(frozen=True, slots=True)
class Wording:
    """Synonyms, patterns of what is asked and stated, and lists of words of one language."""

    phrases: Mapping[tuple[str, ...], frozenset[str]]
    """Words in their comparable form -> the classes of synonyms that they belong to."""
    longest_phrase: int
    aspects: tuple[tuple[str, re.Pattern[str]], ...]
    markers: tuple[tuple[str, re.Pattern[str]], ...]
    chatter: re.Pattern[str]
    words: Mapping[str, frozenset[str]]
    """List of words by its name, in their comparable form."""
    known: frozenset[str]
    """Comparable forms of all words of the file."""


def listed(text: str) -> tuple[str, ...]:
    """The words of a list that is written with commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def synonym_phrases(
    classes: Iterable[str], form: Callable[[str], tuple[str, ...]]
) -> dict[tuple[str, ...], frozenset[str]]:
    """The phrases of the classes in their comparable form, with the names (first words) of their classes."""
    phrases: dict[tuple[str, ...], set[str]] = {}
    for line in classes:
        members = listed(line)
        for member in members:
            phrases.setdefault(form(member), set()).add(members[0])
    return {words: frozenset(names) for words, names in phrases.items() if words}


@functools.cache
def raw_wording(language: str) -> Mapping[str, Any]:
    """The TOML file of a language. Blocking: reads a small file once."""
    file = resources.files(__package__).joinpath(f"wording_{language}.toml")
    return tomllib.loads(file.read_text("utf-8"))
