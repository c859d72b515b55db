"""How the web page presents the service: its name, greeting, colour and example questions, from the settings."""

from __future__ import annotations

import string
from dataclasses import dataclass
from pathlib import Path

from dtrag.core.text.analysis import clean
from dtrag.errors import InvalidInput
from dtrag.settings import Settings

MAX_NAME = 60
MAX_GREETING = 400
MAX_EXAMPLES = 50
MAX_QUESTION = 200


@dataclass(frozen=True, slots=True)
class Presentation:
    """`name`, `greeting` and `colour` (#rrggbb) are "" when they are not set, `examples` empty without a file."""

    name: str
    greeting: str
    colour: str
    examples: tuple[str, ...]

    @classmethod
    def of(cls, settings: Settings) -> Presentation:
        """The presentation that the settings describe; the file of examples is read. Raises `InvalidInput`."""
        if settings.page_colour and not _is_colour(settings.page_colour):
            raise InvalidInput("DTRAG_PAGE_COLOUR is # and six hexadecimal digits, such as #7a1f3d.")
        return cls(
            _line("PAGE_NAME", settings.page_name, MAX_NAME),
            _line("PAGE_GREETING", settings.page_greeting, MAX_GREETING),
            settings.page_colour,
            _questions(settings.page_examples) if settings.page_examples else (),
        )


def _is_colour(text: str) -> bool:
    return len(text) == 7 and text[0] == "#" and set(text[1:]) <= set(string.hexdigits)


def _line(name: str, text: str, longest: int) -> str:
    line = " ".join(clean(text).split())
    if len(line) > longest:
        raise InvalidInput(f"DTRAG_{name} has {len(line)} characters: shorten it to {longest}.")
    return line


def _questions(file: Path) -> tuple[str, ...]:
    """The lines of the file, without blank ones and those that begin with #."""
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"The example questions cannot be read: {error}. Correct DTRAG_PAGE_EXAMPLES.") from error
    lines = [" ".join(clean(line).split()) for line in text.splitlines()]
    questions = tuple(dict.fromkeys(line for line in lines if line and not line.startswith("#")))
    if not 0 < len(questions) <= MAX_EXAMPLES or max(map(len, questions)) > MAX_QUESTION:
        raise InvalidInput(
            f"DTRAG_PAGE_EXAMPLES names a file with 1 to {MAX_EXAMPLES} questions, one a line, of at most "
            f"{MAX_QUESTION} characters: correct {file}."
        )
    return questions
