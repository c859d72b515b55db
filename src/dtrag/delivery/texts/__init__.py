"""Texts of the service in Korean: statements by their code, and what settings mean. In English they are in the code."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from dtrag.core.statements import Statement, text_of
from dtrag.core.text.analysis import language


@cache
def korean_statements() -> dict[str, str]:
    """The texts of statements by code, with `{name}` for their values."""
    return _table("statements.ko.toml")


def in_language_of(answer: str, statements: Iterable[Statement]) -> str:
    """A reason or note on the answer: for a Korean one in Korean, as far as its statements have Korean texts."""
    if language(answer) != "ko":
        return text_of(statements)
    korean = korean_statements()
    sentences = (
        korean[statement.code].format_map(statement.values) if statement.code in korean else statement.text
        for statement in statements
    )
    return " ".join(sentences)


@cache
def korean_settings() -> dict[str, str]:
    """What each setting and flag means, by its name."""
    return _table("settings.ko.toml")


def _table(name: str) -> dict[str, str]:
    return {key: str(text) for key, text in tomllib.loads(files(__name__).joinpath(name).read_text("utf-8")).items()}
