"""Sentences of the service for a reader with a stable code, so that a client can say them in another language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence: `text` in English, or in the question's language; `values` are its variable parts as written.

    `code` is stable and names what the sentence says; "" for a sentence of which only the text is known.
    """

    code: str
    text: str
    values: Mapping[str, str] = field(default_factory=dict)


class CodedText(str):
    """A text that knows which statements it consists of; wherever a text is expected, it is one."""

    __slots__ = ("statements",)
    statements: tuple[Statement, ...]

    def __new__(cls, text: str, statements: tuple[Statement, ...] = ()) -> CodedText:
        """The default is for copies, which set the statements afterwards."""
        coded = super().__new__(cls, text)
        coded.statements = statements
        return coded


def stated(code: str, template: str, **values: object) -> CodedText:
    """The template with its values as one statement: `stated("searched", "Searched: {passages}.", passages=5)`."""
    written = {name: str(value) for name, value in values.items()}
    text = template.format(**written)
    return CodedText(text, (Statement(code, text, written),))


def joined(*texts: str) -> CodedText:
    """The texts one after the other, without empty ones."""
    present = [text for text in texts if text]
    return CodedText(" ".join(present), tuple(statement for text in present for statement in statements_of(text)))


def statements_of(text: str) -> tuple[Statement, ...]:
    """The statements of a text; a text without codes is one statement, an empty one none."""
    if isinstance(text, CodedText):
        return text.statements
    return (Statement("", text),) if text else ()


def all_statements(texts: Iterable[str]) -> tuple[Statement, ...]:
    """The statements of all texts."""
    return tuple(statement for text in texts for statement in statements_of(text))
