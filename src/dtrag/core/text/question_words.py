"""The words that say what a question asks for, by meaning: one table (`question_words.toml`) for all readers."""

from __future__ import annotations

import functools
import re
import tomllib
from importlib import resources
from typing import Any

_PLACES = {
    "en": r"\b(?:{})\b",
    "en_start": r"^\W*(?:{})\b",
    "ko": r"(?:{})",
    "ko_end": r"(?:{})(?![가-힣])",
    "ko_last": r"(?:{})[가-힣]*[\s?？]*$",
}
"""Column of the table -> where its words stand."""


@functools.cache
def table() -> dict[str, dict[str, Any]]:
    """Meaning -> its columns."""
    return tomllib.loads(resources.files(__package__).joinpath("question_words.toml").read_text("utf-8"))


def words_for(meaning: str, *columns: str) -> list[str]:
    """The words of a meaning, of all columns or of these."""
    row = table()[meaning]
    listed = (" ".join(row[column].split()) for column in columns or _PLACES if column in row)
    return [word for column in listed for word in column.split(", ")]


@functools.cache
def _pattern(meaning: str) -> re.Pattern[str]:
    columns = {column: "|".join(words_for(meaning, column)) for column in _PLACES if column in table()[meaning]}
    return re.compile("|".join(_PLACES[column].replace("{}", listed) for column, listed in columns.items()), re.I)


def count(question: str, *meanings: str) -> int:
    """How many words of the meanings the question has."""
    return sum(len(_pattern(meaning).findall(question)) for meaning in meanings)


def asks(question: str, *meanings: str) -> bool:
    """Whether the question has a word of one of the meanings."""
    return any(_pattern(meaning).search(question) for meaning in meanings)
