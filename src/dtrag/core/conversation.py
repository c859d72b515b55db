"""A conversation: questions with their answers, in order, stored under an id for the caller."""

from __future__ import annotations

import datetime
import re
import uuid
from dataclasses import dataclass, replace

from dtrag.core.chat import Message
from dtrag.errors import InvalidInput

MAX_ID = 128
WITHHELD = "(This answer cannot be shown any more: documents that it rests on are out of reach now.)"
"""What stands for an answer in the history that a model is shown, when the caller may not see its documents now."""
_ID = re.compile(r"\w[\w.:@~-]*")


@dataclass(frozen=True, slots=True)
class Turn:
    """One question with its answer; `number` counts from 1 in its conversation.

    `document_ids` are all documents that had a part in the answer. `withheld`: one of them may not be seen now, and
    `answer` is empty.
    """

    number: int
    question: str
    answer: str
    created_at: datetime.datetime
    document_ids: tuple[uuid.UUID, ...] = ()
    withheld: bool = False

    def hidden(self) -> Turn:
        """Without the answer."""
        return replace(self, answer="", withheld=True)

    def messages(self) -> tuple[Message, Message]:
        """As a model is shown it."""
        return Message("user", self.question), Message("assistant", WITHHELD if self.withheld else self.answer)

    def shown_documents(self) -> tuple[uuid.UUID, ...]:
        """The documents that what `messages` tells rests on; none for a withheld answer."""
        return () if self.withheld else self.document_ids


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation without its turns: how many there have been, and the first question that is kept."""

    conversation_id: str
    created_at: datetime.datetime
    updated_at: datetime.datetime
    turns: int
    question: str


def conversation_id(given: object = None) -> str:
    """The id to go on with: the given one, or a new one for None and "".

    Raises `InvalidInput` for more than 128 characters, or others than letters, digits and `_ . : @ ~ -`.
    """
    if given is None or given == "":
        return str(uuid.uuid4())
    if not isinstance(given, str) or len(given) > MAX_ID or not _ID.fullmatch(given):
        raise InvalidInput(
            f"conversation_id has 1 to {MAX_ID} letters, digits and _ . : @ ~ - and begins with a letter or a digit. "
            "Leave it out to begin a new conversation."
        )
    return given
