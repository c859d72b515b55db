"""Texts of the service in Korean: statements by their code, and what settings mean. In English they are in the code."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files


@cache
def korean_statements() -> dict[str, str]:
    """The texts of statements by code, with `{name}` for their values."""
    return _table("statements.ko.toml")


@cache
def korean_settings() -> dict[str, str]:
    """What each setting and flag means, by its name."""
    return _table("settings.ko.toml")


def _table(name: str) -> dict[str, str]:
    return {key: str(text) for key, text in tomllib.loads(files(__name__).joinpath(name).read_text("utf-8")).items()}
