"""Sentences of the service for a reader with a stable code, so that a client can say them in another language."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypedDict

from dtrag.core.response import response
from dtrag.errors import DtragError

_VALUE = re.compile(r"\{(\w+)")
_NEW_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


class StatementRow(TypedDict):
    """A statement as it is stored and sent."""

    code: str
    text: str
    values: dict[str, str]


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence for the reader with its code, to be said in another language."""

    __pydantic_config__ = response("StatementShape")

    code: str
    """What it says, such as searched; stable. Empty: only the text is known."""
    text: str
    """The sentence, in English or in the language of the question."""
    values: Mapping[str, str] = field(default_factory=dict)
    """The variable parts of the sentence by name, as written in it."""

    def row(self) -> StatementRow:
        """As it is stored and sent."""
        return {"code": self.code, "text": self.text, "values": dict(self.values)}


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


def shown_as(text: str, statement: CodedText) -> CodedText:
    """The statement with another text, such as one in the language of the question."""
    return CodedText(text, statement.statements)


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


def statements_of_error(error: DtragError) -> tuple[Statement, ...]:
    """The statements of an error's message; one made from the docstring of its class has the name of the class as code.

    `StorageFull` is `error_storage_full`. A message without codes gives none.
    """
    message = error.args[0] if error.args else ""
    if isinstance(message, CodedText):
        return message.statements
    if error.has_own_message:
        return ()
    shown = set(_VALUE.findall(type(error).__doc__ or ""))
    values = {name: str(value) for name, value in error.fields.items() if name in shown}
    code = f"error_{_NEW_WORD.sub('_', type(error).__name__).lower()}"
    return (Statement(code, str(error), values),)


def text_of_error(error: DtragError) -> str:
    """The message of an error with its statements."""
    statements = statements_of_error(error)
    return CodedText(str(error), statements) if statements else str(error)


def statement_of(row: object) -> Statement:
    """The inverse of `Statement.row`. Raises `TypeError` for a value of another shape."""
    match row:
        case {"code": str(code), "text": str(text), "values": dict(values)}:
            return Statement(code, text, {str(name): str(value) for name, value in values.items()})
    raise TypeError("a statement has code, text and values")


def rows_of(texts: Iterable[str]) -> list[StatementRow]:
    """The statements of all texts as they are stored."""
    return [statement.row() for statement in all_statements(texts)]
