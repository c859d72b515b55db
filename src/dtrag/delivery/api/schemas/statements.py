"""Sentences for the reader with codes, so that a client says them in another language."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from dtrag.core.statements import statements_of


class StatementShape(BaseModel):
    """A sentence for the reader with its code, to be said in another language."""

    model_config = ConfigDict(from_attributes=True)

    code: str = Field(description="What it says, such as searched; stable. Empty: only the text is known.")
    text: str = Field(description="The sentence, in English or in the language of the question.")
    values: dict[str, str] = Field(description="The variable parts of the sentence by name, as written in it.")


REASON_STATEMENTS = "The sentences of reason with codes."
NOTE_STATEMENTS = "The notes with codes."


def statement_shapes(text: str) -> list[StatementShape]:
    """The sentences of a text with their codes."""
    return [StatementShape.model_validate(statement) for statement in statements_of(text)]
