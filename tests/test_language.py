"""The words of CONTRIBUTING.md's table "Words that a test finds" are in no docstring, comment, text or page."""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROSE = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
EXEMPT = {
    "in force": ("src/dtrag/regulations/", "examples/README.md"),  # the legal term: a provision is in force
    "nobody": ("src/dtrag/core/answers/grounding.py",),  # a word of negation that sentences are searched for
    "is said": ("src/dtrag/isolation/library.py", "src/dtrag/isolation/worlds.py"),  # questions
}
"""Phrase -> files in which it is the right word."""


def phrases() -> list[str]:
    """What the left column of the table lists."""
    table = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("### Words that a test finds")[2]
    rows = re.findall(r"^\| (`.*?) \| [^|]+ \|$", table.partition("### Prefer")[0], re.MULTILINE)
    return [phrase for row in rows for phrase in re.findall(r"`([^`]+)`", row)]


def pattern_of(listed: Iterable[str]) -> re.Pattern[str]:
    words = sorted((r"\s+(?:#\s+)?".join(map(re.escape, phrase.split())) for phrase in listed), key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(words)})(?![\w-])", re.IGNORECASE)


def without_code(text: str) -> str:
    """The text with code in backticks blanked, so that lines keep their numbers."""
    return CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)


def prose_of(file: Path) -> str:
    """Comments and strings of a Python file on the lines where they are; any other file as it is."""
    text = file.read_text("utf-8")
    if file.suffix != ".py":
        return without_code(text) if file.suffix == ".md" else text
    lines = [""] * (text.count("\n") + 2)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in PROSE:
            for number, line in enumerate(token.string.split("\n"), start=token.start[0] - 1):
                lines[number] += f" {line}"
    return without_code("\n".join(lines))


def hits(file: Path, pattern: re.Pattern[str]) -> list[str]:
    """`path:line: phrase` of everything in the file that the pattern finds."""
    name, text = str(file.relative_to(ROOT)), prose_of(file)
    return [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {phrase}"
        for match in pattern.finditer(text)
        if "None" not in match[0]  # the value
        and not name.startswith(EXEMPT.get(phrase := " ".join(match[0].replace("#", " ").lower().split()), ()))
    ]


def searched() -> list[Path]:
    files = [file for suffix in ("*.py", "*.sql") for file in (ROOT / "src").rglob(suffix)]
    files = [file for file in files if file.parent.name != "migrations"]  # written once, never edited
    pages = [
        page
        for glob in ("docs/**/*.md", "README.md", "bench/README.md", "bench/HISTORY.md", "examples/README.md")
        for page in ROOT.glob(glob)
    ]
    return [*files, *pages, ROOT / "CHANGELOG.md"]


def test_the_words_of_the_style_table_are_not_used() -> None:
    pattern = pattern_of(phrases())
    assert [hit for file in searched() for hit in hits(file, pattern)] == []


def test_the_style_table_is_read() -> None:
    assert len(phrases()) >= 60
    assert {"room", "in force", "that is none"} <= set(phrases())


@pytest.mark.parametrize(
    ("prose", "expected"),
    [
        ("The rooms of the pipeline.", ["rooms"]),
        ("A version that is in\nforce.", ["in\nforce"]),
        ("A legible legend, a reinforced `room`, enforced; she asked for leave.", []),
        ("```\nin force\n```", []),
    ],
)
def test_what_is_found(prose: str, expected: list[str]) -> None:
    assert pattern_of(phrases()).findall(without_code(prose)) == expected


if __name__ == "__main__":  # .venv/bin/python -m tests.test_language src/dtrag/core
    folders = tuple(sys.argv[1:]) or ("",)
    everything = [hit for file in searched() for hit in hits(file, pattern_of(phrases()))]
    sys.stdout.writelines(f"{hit}\n" for hit in everything if hit.startswith(folders))
