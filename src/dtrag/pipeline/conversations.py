"""Conversations: questions and answers kept under an id, so that the next question can rest on the last ones.

A conversation is its owner's alone: the same id of another key is another conversation. What a turn quoted is shown
only as long as the caller may see every document that had a part in it; else the answer is withheld, from the caller
and from the models and rules that are given the history.
"""

from __future__ import annotations

import datetime
import time
import uuid
from collections.abc import Callable, Iterable, Sequence

from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.access.scope import Viewer, scope_rows
from dtrag.core.chat import Message
from dtrag.core.conversation import Conversation, Turn, conversation_id
from dtrag.core.retention import TidyTimer, kept_since
from dtrag.core.text.analysis import clean
from dtrag.errors import InvalidInput, NotFound
from dtrag.ports import ConversationStore, DocumentVisibility, Index, Recorder, unrecorded

MOST_TURNS = 100
"""Turns kept of a conversation; older ones go."""
REMEMBERED = 6
"""Turns that a model or a rule is shown of it."""
MAX_TEXT = 40_000
"""Characters kept of a question or an answer: four times the longest question that is taken."""
MAX_LISTED = 1_000


class Conversations:
    """The conversations of one app. Those at rest for more than `days` are not there any more; 0 keeps all."""

    def __init__(
        self,
        store: ConversationStore,
        sight: DocumentVisibility,
        index: Index,
        *,
        days: int,
        record: Recorder = unrecorded,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ):
        self._store = store
        self._sight = sight
        self._index = index
        self._days = days
        self._record = record
        self._now = now
        self._tidy_timer = TidyTimer(now, monotonic)

    async def history(
        self, conversation: str, caller: Caller, turns: int = REMEMBERED, *, scope: Viewer | None = None
    ) -> list[Message]:
        """The last turns as messages, oldest first; [] for a conversation that there is not.

        `scope` is what counts as seen where it is less than all that the caller sees (an agent's branches).
        """
        last = await self.last(conversation, caller, turns, scope=scope)
        return [message for turn in last for message in turn.messages()]

    async def last(
        self, conversation: str, caller: Caller, turns: int = REMEMBERED, *, scope: Viewer | None = None
    ) -> list[Turn]:
        """What `history` shows, as turns. What a model makes of them rests on their documents, too."""
        if turns < 1:
            return []
        found = await self._store.turns(conversation_id(conversation), caller.owner, turns, self._since())
        return await self._seen(found, scope or caller.access)

    async def add(
        self,
        conversation: str,
        caller: Caller,
        question: str,
        answer: str,
        document_ids: Iterable[str | uuid.UUID] = (),
    ) -> int:
        """Keep a turn, and begin the conversation where there is none; returns the turn's number, from 1.

        `document_ids` are all documents that had a part in the answer, whether it cites them or not.
        """
        ids = tuple(dict.fromkeys(uuid.UUID(str(document_id)) for document_id in document_ids if document_id))
        turn = Turn(0, clean(question[:MAX_TEXT]), clean(answer[:MAX_TEXT]), self._now(), ids)
        number = await self._store.add(conversation_id(conversation), caller.owner, turn, MOST_TURNS)
        await self._tidy()
        return number

    async def every(
        self, limit: int = 100, offset: int = 0, *, caller: Caller = LOCAL
    ) -> tuple[list[Conversation], int]:
        """The caller's conversations, the newest first, and how many there are."""
        if not (1 <= limit <= MAX_LISTED and offset >= 0):
            raise InvalidInput(f"limit must be from 1 to {MAX_LISTED:,} and offset at least 0.")
        return await self._store.every(caller.owner, MOST_TURNS, self._since(), limit, offset)

    async def get(self, conversation: str, *, caller: Caller = LOCAL) -> tuple[Conversation, list[Turn]]:
        """A conversation of the caller's with the turns that are kept. Raises `NotFound`."""
        wanted = _known(conversation)
        found = await self._store.get(wanted, caller.owner, MOST_TURNS, self._since())
        if found is None:
            raise _not_found(conversation)
        turns = await self._store.turns(wanted, caller.owner, MOST_TURNS, self._since())
        return found, await self._seen(turns, caller.access)

    async def delete(self, conversation: str, *, caller: Caller = LOCAL) -> None:
        """Delete a conversation of the caller's. Raises `NotFound`."""
        wanted = _known(conversation)
        if not await self._store.delete(wanted, caller.owner):
            raise _not_found(conversation)
        await self._record(
            caller.name,
            "conversations.delete",
            scope=scope_rows(caller.access),
            subjects=(wanted,),
            decision="done",
            details={},
        )

    async def tidy(self) -> int:
        """Delete what is older than the settings say; returns how many conversations."""
        return await self._store.forget(self._since()) if self._days else 0

    async def _tidy(self) -> None:
        """As `tidy`, but now and then only: what is too old is not shown in the meantime either."""
        if self._days and self._tidy_timer.due():
            await self.tidy()

    def _since(self) -> datetime.datetime:
        return kept_since(self._now(), self._days)

    async def _seen(self, turns: Sequence[Turn], viewer: Viewer) -> list[Turn]:
        """The turns, those without their answers whose documents the viewer may not see all."""
        used = {document_id for turn in turns for document_id in turn.document_ids}
        if not used:
            return list(turns)
        scope = viewer.resolved((await self._index.snapshot()).taxonomy)
        visible = await self._sight.visible(used, scope)
        return [turn if visible.issuperset(turn.document_ids) else turn.hidden() for turn in turns]


def _known(conversation: str) -> str:
    """The id; what cannot be one leads nowhere. Raises `NotFound`."""
    try:
        return conversation_id(conversation or "?")
    except InvalidInput as error:
        raise _not_found(conversation) from error


def _not_found(conversation: object) -> NotFound:
    return NotFound(f"There is no conversation {str(conversation)[:60]!r} of yours. GET /conversations lists them.")
