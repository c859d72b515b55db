"""How the web page presents the service: its name, greeting, colour and example questions, from the settings."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from dtrag.core.text.analysis import clean
from dtrag.errors import InvalidInput
from dtrag.settings import Settings

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
        """The presentation that the settings describe; the file of examples is read once. Raises `InvalidInput`."""
        settings.check()
        return cls(
            _line(settings.page_name),
            _line(settings.page_greeting),
            settings.page_colour,
            _questions(settings.page_examples) if settings.page_examples else (),
        )


def _line(text: str) -> str:
    return " ".join(clean(text).split())


@functools.lru_cache(maxsize=4)
def _questions(file: Path) -> tuple[str, ...]:
    """The lines of the file, without blank ones and those that begin with #."""
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"The example questions cannot be read: {error}. Correct DTRAG_PAGE_EXAMPLES.") from error
    lines = [_line(line) for line in text.splitlines()]
    questions = tuple(dict.fromkeys(line for line in lines if line and not line.startswith("#")))
    if not 0 < len(questions) <= MAX_EXAMPLES or max(map(len, questions)) > MAX_QUESTION:
        raise InvalidInput(
            f"DTRAG_PAGE_EXAMPLES names a file with 1 to {MAX_EXAMPLES} questions, one a line, of at most "
            f"{MAX_QUESTION} characters: correct {file}."
        )
    return questions
