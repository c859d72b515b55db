"""Shared regular expressions, and those with examples: what each finds and refuses, which a test runs."""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST_WITHOUT_EXAMPLES = 80
"""Characters of a regular expression from which on it is written with examples."""


HANGUL = re.compile(r"[가-힣]+")
LATIN = re.compile(r"[A-Za-z]+")
DIGITS = re.compile(r"\d+")
FIGURE = re.compile(r"\d[\d,.]*")
CIRCLED = re.compile(r"[①-⑳]")
PARAGRAPH = re.compile(r"[①-⑳㉑-㉟㊱-㊿]")
WORD = re.compile(r"\S+")
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
CHUNK_ID = re.compile(rf"{UUID.pattern}:\d{{1,9}}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ExplainedPattern:
    """A pattern that is found in every text of `finds` and in none of `refuses`."""

    pattern: re.Pattern[str]
    finds: tuple[str, ...]
    refuses: tuple[str, ...]


EXPLAINED: list[ExplainedPattern] = []
"""All patterns of the modules that are imported."""


def explained(
    regex: str, *, finds: str | tuple[str, ...], refuses: str | tuple[str, ...], flags: int = 0
) -> re.Pattern[str]:
    """The compiled pattern, with its examples in the table that a test runs (`EXPLAINED`)."""
    pattern = re.compile(regex, flags)
    texts = [(examples,) if isinstance(examples, str) else examples for examples in (finds, refuses)]
    EXPLAINED.append(ExplainedPattern(pattern, *texts))
    return pattern
