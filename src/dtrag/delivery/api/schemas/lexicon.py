"""Bodies and responses of `/lexicon`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, Field

from dtrag.core.lexicon_entry import LexiconEntry
from dtrag.delivery.api.schemas.base import StrictBody
from dtrag.packs.regulation_ko.own_entries import MAX_ENTRIES, MAX_FORMS, MAX_LENGTH, MAX_OFFICIAL, MIN_LENGTH

Word = Annotated[str, Field(min_length=MIN_LENGTH, max_length=MAX_LENGTH)]


class NewEntry(StrictBody):
    """An entry to add."""

    spoken: list[Word] = Field(
        min_length=1,
        max_length=MAX_FORMS,
        description="Everyday forms of one or more word beginnings, such as `책을 잃어버`; verbs match in all forms.",
    )
    official: list[Word] = Field(
        min_length=1, max_length=MAX_OFFICIAL, description="The words of the regulations, the best one first."
    )


class AddEntriesBody(StrictBody):
    """Entries to add."""

    entries: list[NewEntry] = Field(
        min_length=1,
        max_length=MAX_ENTRIES,
        description="Those that exist already in the same form are left out; others with the same form are a 409.",
    )


class EntryShape(BaseModel):
    """An own entry of the lexicon."""

    number: int = Field(description="Identifies the entry; never used again.")
    spoken: list[str] = Field(description="Everyday forms, in normalised spelling.")
    official: list[str] = Field(description="The words of the regulations, the best one first.")


class EntryList(BaseModel):
    """Own entries of the lexicon."""

    entries: list[EntryShape] = Field(description="The entries, by number.")

    @classmethod
    def of(cls, entries: Sequence[LexiconEntry]) -> EntryList:
        """From the values of the core."""
        return cls(entries=[EntryShape.model_validate(entry.as_dict()) for entry in entries])
