"""Conversations: questions with their answers, in order, by id and owner."""

from __future__ import annotations

import datetime
import re
import uuid
from dataclasses import dataclass, replace

from dtrag.core.chat import Message
from dtrag.core.response import Moment, response
from dtrag.errors import InvalidInput

MAX_ID = 128
MAX_TITLE = 200
"""Characters of the name of a conversation, and of a text that conversations are searched for."""
WITHHELD = "(This answer cannot be shown any more: documents that it rests on are out of reach now.)"
"""Replaces an answer in the history of a model when the caller may not see its documents any more."""
_ID = re.compile(r"\w[\w.:@~-]*")


@dataclass(frozen=True, slots=True)
class Turn:
    """One question with its answer; `number` starts at 1 in its conversation.

    `document_ids` are all documents that contributed to the answer, `trace_id` its trace (None: unknown). `withheld`:
    the caller may not see one of the documents any more, and `answer` is empty. `grade` is the highest one of the
    documents, None when it is unknown.
    """

    number: int
    question: str
    answer: str
    created_at: datetime.datetime
    document_ids: tuple[uuid.UUID, ...] = ()
    withheld: bool = False
    trace_id: uuid.UUID | None = None
    grade: int | None = None

    def hidden(self) -> Turn:
        """Without the answer."""
        return replace(self, answer="", withheld=True, trace_id=None)

    def messages(self) -> tuple[Message, Message]:
        """As messages for a model."""
        answer = WITHHELD if self.withheld else self.answer
        return Message("user", self.question, self.grade), Message("assistant", answer, self.grade)

    def shown_documents(self) -> tuple[uuid.UUID, ...]:
        """The documents behind `messages`; none for a withheld answer."""
        return () if self.withheld else self.document_ids


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation without its turns."""

    __pydantic_config__ = response("ConversationShape")

    conversation_id: str
    """Its id; send it with the next question to continue."""
    created_at: Moment
    """When it began, ISO 8601 in UTC."""
    updated_at: Moment
    """When its last question was answered."""
    turns: int
    """Number of its questions; the last 100 are stored."""
    question: str
    """The first stored question."""
    title: str = ""
    """The name that you gave to it; empty without one."""


def conversation_id(requested: object = None) -> str:
    """The requested id, or a new one for None and "".

    Raises `InvalidInput` for more than 128 characters, and for others than letters, digits and `_ . : @ ~ -`.
    """
    if requested is None or requested == "":
        return str(uuid.uuid4())
    if not isinstance(requested, str) or len(requested) > MAX_ID or not _ID.fullmatch(requested):
        raise InvalidInput(
            f"conversation_id has 1 to {MAX_ID} letters, digits and _ . : @ ~ - and begins with a letter or a digit. "
            "Leave it out to begin a new conversation."
        )
    return requested
