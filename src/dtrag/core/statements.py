"""Sentences of the service for a reader with a stable code, so that a client can say them in another language."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dtrag.core.response import INTERNAL, response
from dtrag.errors import DtragError

_VALUE = re.compile(r"\{(\w+)")
_NEW_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence for the reader with its code, to be said in another language."""

    __pydantic_config__ = response("StatementShape")

    code: str
    """What it says, such as searched; stable. Empty: only the text is known."""
    text: str
    """The sentence, in English or in the language of the question."""
    values: Mapping[str, str] = field(default_factory=dict, hash=False)
    """The variable parts of the sentence by name, as written in it."""
    shown: str = field(default="", metadata=INTERNAL)
    """The sentence among the reasons or notes of an answer, where that is not `text`: a Korean one."""

    def __str__(self) -> str:
        return self.shown or self.text


Statements = tuple[Statement, ...]


def stated(code: str, template: str, shown: str = "", /, **values: object) -> Statement:
    """The template with its values: `stated("searched", "Searched: {passages}.", passages=5)`; `shown` as the field."""
    written = {name: str(value) for name, value in values.items()}
    return Statement(code, template.format(**written), written, shown)


def text_of(statements: Iterable[Statement]) -> str:
    """The sentences one after the other."""
    return " ".join(map(str, statements))


def statement_of(error: DtragError) -> Statement:
    """The message of an error; one made from the docstring of its class has the name of the class as code.

    `StorageFull` is `error_storage_full`. A message without a code is one without it here, too.
    """
    if isinstance(error.message, Statement):
        return error.message
    if error.message is not None:
        return Statement("", str(error))
    shown = set(_VALUE.findall(type(error).__doc__ or ""))
    values = {name: str(value) for name, value in error.fields.items() if name in shown}
    return Statement(f"error_{_NEW_WORD.sub('_', type(error).__name__).lower()}", str(error), values)


def statement_in(row: object) -> Statement:
    """The statement that `plain` wrote as JSON values. Raises `TypeError` for a value of another shape."""
    match row:
        case {"code": str(code), "text": str(text), "values": dict(values)}:
            return Statement(code, text, {str(name): str(value) for name, value in values.items()})
    raise TypeError("a statement has code, text and values")
