"""A question or query from the arguments, quoted or not, or from standard input for `-`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from dtrag.errors import InvalidInput

MOST_CHARACTERS = 100_000
"""Maximum read from standard input: more than a question may have, less than a file sent by mistake."""


def question_of(words: Sequence[str]) -> str:
    """The words joined; a single `-` reads standard input to its end. Raises `InvalidInput`."""
    if list(words) != ["-"]:
        return " ".join(words)
    try:
        text = sys.stdin.read(MOST_CHARACTERS).strip()
    except UnicodeDecodeError as error:
        raise InvalidInput("Standard input is not UTF-8 text: it contains no question.") from error
    if not text:
        raise InvalidInput("Standard input is empty: it contains no question.")
    return text
