"""Conversations in memory, and which documents a caller may see: `ConversationStore` and `DocumentVisibility`."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime

from dtrag.core.access.scope import Scope
from dtrag.core.conversation import Conversation, Turn
from dtrag.testing.memory.state import MemoryState


@dataclass(slots=True)
class _Stored:
    created_at: datetime
    updated_at: datetime
    number: int = 0
    turns: list[Turn] = field(default_factory=list)


class MemoryConversations:
    """Conversations by owner and id."""

    def __init__(self) -> None:
        self._conversations: dict[tuple[str, str], _Stored] = {}

    async def add(self, conversation_id: str, owner: str, turn: Turn, max_turns: int) -> int:
        """Add the turn as the next one and drop those before the last `max_turns`; returns its number."""
        key = (owner, conversation_id)
        stored = self._conversations.setdefault(key, _Stored(turn.created_at, turn.created_at))
        stored.number += 1
        stored.updated_at = turn.created_at
        stored.turns.append(replace(turn, number=stored.number, withheld=False))
        del stored.turns[:-max_turns]
        return stored.number

    async def turns(self, conversation_id: str, owner: str, limit: int, since: datetime) -> list[Turn]:
        """The last turns, oldest first; none of a conversation that was last updated before `since`."""
        stored = self._recent(conversation_id, owner, since)
        return [turn for turn in stored.turns if turn.number > stored.number - limit] if stored else []

    async def turn_of(self, trace_id: uuid.UUID, owner: str, since: datetime) -> Turn | None:
        """The owner's turn with the answer of this trace, or None."""
        turns = (
            turn
            for (whose, _), stored in self._conversations.items()
            if whose == owner and stored.updated_at >= since
            for turn in stored.turns
        )
        return next((turn for turn in turns if turn.trace_id == trace_id), None)

    async def get(self, conversation_id: str, owner: str, max_turns: int, since: datetime) -> Conversation | None:
        """The conversation, or None."""
        stored = self._recent(conversation_id, owner, since)
        return _summary(conversation_id, stored, max_turns) if stored else None

    async def every(
        self, owner: str, max_turns: int, since: datetime, limit: int, offset: int
    ) -> tuple[list[Conversation], int]:
        """The owner's conversations, the newest first, and their total number."""
        recent = [
            (name, stored)
            for (whose, name), stored in self._conversations.items()
            if whose == owner and stored.updated_at >= since
        ]
        recent.sort(key=lambda pair: (-pair[1].updated_at.timestamp(), pair[0]))
        page = recent[offset : offset + limit]
        return [_summary(name, stored, max_turns) for name, stored in page], len(recent)

    async def delete(self, conversation_id: str, owner: str) -> bool:
        """Delete the conversation with its turns; False without one."""
        return self._conversations.pop((owner, conversation_id), None) is not None

    async def forget(self, before: datetime) -> int:
        """Delete conversations last updated before that time; returns how many."""
        old = [key for key, stored in self._conversations.items() if stored.updated_at < before]
        for key in old:
            del self._conversations[key]
        return len(old)

    def _recent(self, conversation_id: str, owner: str, since: datetime) -> _Stored | None:
        stored = self._conversations.get((owner, conversation_id))
        return stored if stored is not None and stored.updated_at >= since else None


def _summary(conversation_id: str, stored: _Stored, max_turns: int) -> Conversation:
    first = next(turn for turn in stored.turns if turn.number >= max(1, stored.number - max_turns + 1))
    return Conversation(conversation_id, stored.created_at, stored.updated_at, stored.number, first.question)


class MemoryDocumentVisibility:
    """Tells which documents of a state exist and are in scope."""

    def __init__(self, state: MemoryState):
        self._state = state

    async def visible(self, document_ids: Collection[uuid.UUID], scope: Scope) -> frozenset[uuid.UUID]:
        """Those of the documents that exist and are in scope."""
        documents = self._state.documents
        return frozenset(key for key in document_ids if key in documents and documents[key].in_scope(scope))

    async def titles(self, document_ids: Collection[uuid.UUID], scope: Scope) -> dict[uuid.UUID, str]:
        """The titles of those of the documents that exist and are in scope."""
        visible = await self.visible(document_ids, scope)
        return {key: self._state.documents[key].written.document.title for key in visible}
