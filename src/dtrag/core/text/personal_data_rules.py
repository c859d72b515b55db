"""Own rules for personal data: a TOML file with words or patterns, such as numbers of employees.

    [[rules]]
    name = "employee"
    label = "사번"
    pattern = '(?<!\\d)E\\d{6}'
    words = ["사번", "employee no"]

`words` alone are found themselves; with a pattern, a match counts only where one of them is near it. Patterns match
with a bounded number of steps at each position, so that no text takes more than linear time.
"""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from dtrag.core.text.personal_data import KINDS, Kind
from dtrag.errors import InvalidInput

# How Python itself reads a pattern; mypy knows these modules only in some orders of the files.
op: Any = importlib.import_module("re._constants")
parser: Any = importlib.import_module("re._parser")

MOST_RULES = 100
MOST_WORDS = 1_000
MOST_CHARACTERS = 200
"""Length of what a pattern can match."""
MOST_WAYS = 200
"""Ways in which a pattern may be tried at one position: `\\d{1,4}` has 4, two of them one after the other 16."""
_KEYS = frozenset({"name", "label", "pattern", "words", "ignore_case"})
_NAME = re.compile(r"[a-z][a-z0-9_]{0,29}")
_LABEL = re.compile(r"[^\W\d_](?:[^\W\d_]|[ -]){0,19}")
_ONE = frozenset({op.LITERAL, op.NOT_LITERAL, op.IN, op.ANY})
_AROUND = frozenset({op.ASSERT, op.ASSERT_NOT})
_REPEATS = frozenset({op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT})


def rules_of(text: str) -> tuple[Kind, ...]:
    """The kinds of a TOML file. Raises `InvalidInput`, which names the rule and what is wrong."""
    try:
        rows = tomllib.loads(text).get("rules", [])
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidInput(f"The rules for personal data are not TOML: {error}") from error
    if not isinstance(rows, list) or not rows or len(rows) > MOST_RULES:
        raise InvalidInput(f"The rules for personal data need 1 to {MOST_RULES} tables [[rules]].")
    kinds = tuple(_kind(number, row) for number, row in enumerate(rows, start=1))
    names = [kind.name for kind in (*KINDS, *kinds)]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InvalidInput(f"The rules for personal data contain two kinds {twice!r}; choose another name.")
    return kinds


def _kind(number: int, row: object) -> Kind:
    def refuse(reason: str) -> InvalidInput:
        return InvalidInput(f"Rule {number} for personal data: {reason}")

    if not isinstance(row, Mapping) or row.keys() - _KEYS:
        raise refuse(f"it is a table with {', '.join(sorted(_KEYS))}.")
    name, words = row.get("name"), row.get("words", [])
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise refuse("name has up to 30 small letters, digits and underscores, and begins with a letter.")
    label = row.get("label", re.sub(r"[\d_]+", " ", name).strip())
    if not isinstance(label, str) or not _LABEL.fullmatch(label):
        raise refuse("label has up to 20 letters, blanks and hyphens.")
    if not isinstance(words, list) or len(words) > MOST_WORDS or not all(_is_word(word) for word in words):
        raise refuse(f"words is a list of up to {MOST_WORDS:,} texts of 2 to {MOST_CHARACTERS} characters.")
    flags = re.IGNORECASE if row.get("ignore_case", True) else 0
    named = re.compile("|".join(re.escape(word) for word in sorted(words, key=len, reverse=True)), flags)
    if "pattern" not in row:
        if not words:
            raise refuse("it needs a pattern or words.")
        return Kind(name, label, named, lambda candidate: True)
    try:
        pattern = checked_pattern(row["pattern"], flags if "ignore_case" in row else 0)
    except ValueError as error:
        raise refuse(f"its pattern {error}") from error
    if not words:
        return Kind(name, label, pattern, lambda candidate: True)
    return Kind(name, label, pattern, lambda candidate: bool(candidate.named(named)))


def _is_word(word: Any) -> bool:
    return isinstance(word, str) and 2 <= len(word) <= MOST_CHARACTERS


def checked_pattern(pattern: object, flags: int = 0) -> re.Pattern[str]:
    """The compiled pattern. Raises `ValueError`, with the end of a sentence, for one that could take long."""
    if not isinstance(pattern, str) or not 0 < len(pattern) <= MOST_CHARACTERS:
        raise ValueError(f"must have 1 to {MOST_CHARACTERS} characters.")
    try:
        compiled, parsed = re.compile(pattern, flags), parser.parse(pattern, flags)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"is not a regular expression: {error}.") from error
    if parsed.getwidth()[0] < 2:
        raise ValueError("must match at least 2 characters.")
    if parsed.getwidth()[1] > MOST_CHARACTERS:
        raise ValueError(f"can match more than {MOST_CHARACTERS} characters; write {{1,20}} in place of + and *.")
    if (ways := _ways(parsed)) > MOST_WAYS:
        raise ValueError(f"can be tried in {ways:,} ways at one position, at most {MOST_WAYS}; narrow its repetitions.")
    return compiled


def _ways(parsed: Any) -> int:
    """The number of ways in which a pattern can be tried at a position. Raises `ValueError` for unsupported parts."""
    ways = 1
    for code, argument in parsed:
        if code in _ONE or code is op.AT:
            continue
        if code in _REPEATS:
            least, most, inner = argument
            each = _ways(inner)
            ways *= min(MOST_WAYS + 1, sum(each**count for count in range(least, min(most, MOST_CHARACTERS) + 1)))
        elif code is op.BRANCH:
            ways *= sum(map(_ways, argument[1]))
        elif code is op.SUBPATTERN:
            ways *= _ways(argument[3])
        elif code in _AROUND:
            ways *= _ways(argument[1])
        else:
            raise ValueError(f"uses {str(code).lower()}, which is not supported: its time cannot be bounded.")
    return ways
