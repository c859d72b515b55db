"""A question or query from the command line: words in quotes or not, or standard input for `-`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from dtrag.errors import InvalidInput

MOST_CHARACTERS = 100_000
"""What is read of standard input: more than any question may have, less than a file given by mistake."""


def question_of(words: Sequence[str]) -> str:
    """The words joined; a single `-` reads standard input to its end. Raises `InvalidInput`."""
    if list(words) != ["-"]:
        return " ".join(words)
    try:
        text = sys.stdin.read(MOST_CHARACTERS).strip()
    except UnicodeDecodeError as error:
        raise InvalidInput("Standard input is not UTF-8 text: there is no question in it.") from error
    if not text:
        raise InvalidInput("Standard input is empty: there is no question in it.")
    return text
