"""Ports of conversations: their store, and which of their documents a caller may see."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from datetime import datetime
from typing import Protocol

from dtrag.core.access.scope import Scope
from dtrag.core.conversation import Conversation, Turn


class DocumentVisibility(Protocol):
    """Tells which documents a scope may see: stored answers are shown only with all their documents visible."""

    async def visible(self, document_ids: Collection[uuid.UUID], scope: Scope) -> frozenset[uuid.UUID]:
        """The documents among these that exist and are in scope."""

    async def titles(self, document_ids: Collection[uuid.UUID], scope: Scope) -> dict[uuid.UUID, str]:
        """The titles of the documents among these that exist and are in scope."""


class ConversationStore(Protocol):
    """Conversations by id and owner: the same id with another owner is another conversation."""

    async def add(self, conversation_id: str, owner: str, turn: Turn, max_turns: int) -> int:
        """Append the turn, whose own number is ignored, and delete all but the last `max_turns` turns.

        Returns its number. Concurrent turns are all stored, in an unspecified order.
        """

    async def turns(self, conversation_id: str, owner: str, limit: int, since: datetime) -> list[Turn]:
        """The last `limit` turns, oldest first; empty when the conversation's last turn is older than `since`."""

    async def turn_of(self, trace_id: uuid.UUID, owner: str, since: datetime) -> Turn | None:
        """The owner's turn with the answer of this trace, of a conversation not older than `since`; None if unknown."""

    async def get(self, conversation_id: str, owner: str, max_turns: int, since: datetime) -> Conversation | None:
        """The conversation with its last `max_turns` turns; None when unknown or older than `since`."""

    async def every(
        self, owner: str, max_turns: int, since: datetime, limit: int, offset: int
    ) -> tuple[list[Conversation], int]:
        """A page of the owner's conversations not older than `since`, newest first, and their total number."""

    async def delete(self, conversation_id: str, owner: str) -> bool:
        """Delete the conversation with its turns; False when it does not exist."""

    async def forget(self, before: datetime) -> int:
        """Delete all conversations whose last turn is older than `before`; returns their number."""
