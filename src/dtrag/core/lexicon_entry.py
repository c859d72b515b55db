"""Own entries of the lexicon: everyday words of an organisation and the official words for them."""

from __future__ import annotations

from dataclasses import dataclass

from dtrag.core.response import response

SETTING = "lexicon"
"""Name of the index setting that holds the own entries."""


@dataclass(frozen=True, slots=True)
class LexiconEntry:
    """An own entry of the lexicon."""

    __pydantic_config__ = response("EntryShape")

    number: int
    """Identifies the entry; never used again."""
    spoken: tuple[str, ...]
    """Everyday forms, in normalised spelling."""
    official: tuple[str, ...]
    """The words of the regulations, the best one first."""
