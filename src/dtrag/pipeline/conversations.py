"""Conversations: questions and answers stored under an id, as context for the next question.

A conversation belongs to its owner: the same id of another key is another conversation. An answer is shown only while
the caller may see every document that it is based on; otherwise it is withheld, also from the models and rules that use
the history.
"""

from __future__ import annotations

import datetime
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from dtrag.batch_writer import TidyTimer, kept_since
from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.access.scope import Scope, Viewer, scope_rows
from dtrag.core.chat import Message
from dtrag.core.conversation import MAX_TITLE, Conversation, Turn, conversation_id
from dtrag.core.documents import uuid_or_none
from dtrag.core.taxonomy.grades import Grades
from dtrag.core.text.analysis import clean
from dtrag.core.trace import Trace
from dtrag.errors import InvalidInput, NotFound
from dtrag.ports import ConversationStore, DocumentVisibility, Index, Recorder, unrecorded

MOST_TURNS = 100
"""Turns stored per conversation; older ones are deleted."""
REMEMBERED = 6
"""Turns of the history that a model or a rule uses."""
MAX_TEXT = 40_000
"""Characters stored of a question or an answer: four times the longest accepted question."""
MAX_LISTED = 1_000


class Conversations:
    """The conversations of one app. Those idle for more than `days()` are deleted; 0 keeps all."""

    def __init__(
        self,
        store: ConversationStore,
        sight: DocumentVisibility,
        index: Index,
        *,
        days: Callable[[], int],
        record: Recorder = unrecorded,
        grades: Grades = Grades(),
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ):
        self._store = store
        self._sight = sight
        self._index = index
        self._days = days
        self._record = record
        self._grades = grades
        self._now = now
        self._tidy_timer = TidyTimer(now, monotonic)

    async def history(
        self, conversation: str, caller: Caller, turns: int = REMEMBERED, *, scope: Viewer | None = None
    ) -> list[Message]:
        """The last turns as messages, oldest first; [] for an unknown conversation.

        `scope` limits what counts as visible further than the caller's own access (to an agent's categories).
        """
        last = await self.last(conversation, caller, turns, scope=scope)
        return [message for turn in last for message in turn.messages()]

    async def last(
        self, conversation: str, caller: Caller, turns: int = REMEMBERED, *, scope: Viewer | None = None
    ) -> list[Turn]:
        """As `history`, but as turns, with the documents that they are based on, and the highest grade of these."""
        if turns < 1:
            return []
        stored = await self._store.turns(conversation_id(conversation), caller.owner, turns, self._since())
        return await self._graded(await self._visible(stored, scope or caller.access))

    async def add(
        self,
        conversation: str,
        caller: Caller,
        question: str,
        answer: str,
        document_ids: Iterable[str | uuid.UUID] = (),
        *,
        trace_id: str | uuid.UUID | None = None,
        traces: Sequence[Trace] = (),
    ) -> int:
        """Store a turn, creating the conversation if necessary; returns the turn's number, from 1.

        `document_ids` are all documents that the answer is based on, cited or not; `trace_id` is that of the answer.
        `traces` are stored in the same transaction.
        """
        ids = tuple(dict.fromkeys(uuid.UUID(str(document_id)) for document_id in document_ids if document_id))
        turn = Turn(
            0,
            clean(question[:MAX_TEXT]),
            clean(answer[:MAX_TEXT]),
            self._now(),
            ids,
            trace_id=uuid_or_none(trace_id) if trace_id else None,
        )
        number = await self._store.add(conversation_id(conversation), caller.owner, turn, MOST_TURNS, traces)
        await self._tidy()
        return number

    async def every(
        self, limit: int = 100, offset: int = 0, *, text: str = "", caller: Caller = LOCAL
    ) -> tuple[list[Conversation], int]:
        """A page of the caller's conversations, newest first, and their total number.

        Only those with `text` in their title or in one of their questions.
        """
        if not (1 <= limit <= MAX_LISTED and offset >= 0):
            raise InvalidInput(f"limit must be from 1 to {MAX_LISTED:,} and offset at least 0.")
        return await self._store.every(caller.owner, MOST_TURNS, self._since(), limit, offset, text=clean(text))

    async def get(self, conversation: str, *, caller: Caller = LOCAL) -> tuple[Conversation, list[Turn]]:
        """A conversation of the caller and its stored turns. Raises `NotFound`."""
        key = _id_of(conversation)
        stored = await self._store.get(key, caller.owner, MOST_TURNS, self._since())
        if stored is None:
            raise _not_found(conversation)
        turns = await self._store.turns(key, caller.owner, MOST_TURNS, self._since())
        return stored, await self._visible(turns, caller.access)

    async def answer_of(self, trace_id: str, *, caller: Caller = LOCAL) -> str:
        """The caller's stored answer of this trace; "" without one that the caller may see."""
        turn = await self._turn_of(trace_id, caller)
        return (await self._visible([turn], caller.access))[0].answer if turn else ""

    async def question_of(self, trace_id: str, *, caller: Caller = LOCAL) -> str:
        """The caller's stored question of this trace; "" without one."""
        turn = await self._turn_of(trace_id, caller)
        return turn.question if turn else ""

    async def _turn_of(self, trace_id: str, caller: Caller) -> Turn | None:
        identifier = uuid_or_none(trace_id)
        return await self._store.turn_of(identifier, caller.owner, self._since()) if identifier else None

    async def rename(self, conversation: str, title: str, *, caller: Caller = LOCAL) -> None:
        """Set the title of a conversation of the caller; "" for none. Raises `InvalidInput` and `NotFound`."""
        line = " ".join(clean(title).split())
        if len(line) > MAX_TITLE:
            raise InvalidInput(f"A title has at most {MAX_TITLE} characters; this one has {len(line):,}.")
        if not await self._store.rename(_id_of(conversation), caller.owner, line, self._since()):
            raise _not_found(conversation)

    async def delete(self, conversation: str, *, caller: Caller = LOCAL) -> None:
        """Delete a conversation of the caller. Raises `NotFound`."""
        key = _id_of(conversation)
        if not await self._store.delete(key, caller.owner):
            raise _not_found(conversation)
        await self._record(
            caller.name,
            "conversations.delete",
            scope=scope_rows(caller.access),
            subjects=(key,),
            decision="done",
            details={},
        )

    async def tidy(self) -> int:
        """Delete expired conversations; returns their number."""
        return await self._store.forget(self._since()) if self._days() else 0

    async def _tidy(self) -> None:
        """As `tidy`, but at intervals: expired conversations are not shown in the meantime either."""
        if self._days() and self._tidy_timer.due():
            await self.tidy()

    def _since(self) -> datetime.datetime:
        return kept_since(self._now(), self._days())

    async def _graded(self, turns: Sequence[Turn]) -> list[Turn]:
        """The turns with the grades of their documents as they are placed now; a deleted one has the highest grade."""
        grades = self._grades.of((await self._index.snapshot()).taxonomy)
        left = {document_id for turn in turns for document_id in turn.document_ids} if grades.highest else set()
        of_document: dict[uuid.UUID, int] = {}
        for grade in range(grades.highest):
            lower = Scope(grades.up_to(grade))
            of_document |= dict.fromkeys(await self._sight.visible(left - of_document.keys(), lower), grade)
        return [
            replace(turn, grade=max((of_document.get(key, grades.highest) for key in turn.document_ids), default=0))
            for turn in turns
        ]

    async def _visible(self, turns: Sequence[Turn], viewer: Viewer) -> list[Turn]:
        """The turns, without the answers that are based on documents the viewer may not see."""
        document_ids = {document_id for turn in turns for document_id in turn.document_ids}
        if not document_ids:
            return list(turns)
        scope = viewer.resolved((await self._index.snapshot()).taxonomy)
        visible = await self._sight.visible(document_ids, scope)
        return [turn if visible.issuperset(turn.document_ids) else turn.hidden() for turn in turns]


def _id_of(conversation: str) -> str:
    """The id in its stored form. Raises `NotFound`, also for an invalid one."""
    try:
        return conversation_id(conversation or "?")
    except InvalidInput as error:
        raise _not_found(conversation) from error


def _not_found(conversation: object) -> NotFound:
    return NotFound(f"There is no conversation {str(conversation)[:60]!r} of yours. GET /conversations lists them.")
