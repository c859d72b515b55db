"""What stores of conversations and traces must do, and what tells which documents a caller may see."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import timedelta

import pytest

from dtrag.core.access.scope import EVERYTHING, Scope
from dtrag.core.answer_feedback import AnswerFeedback
from dtrag.core.cases.case import FeedbackType
from dtrag.core.conversation import Turn
from dtrag.core.documents import document_id
from dtrag.errors import DtragError
from dtrag.ports import Stores
from tests.builders import MINUTE, NOON, NOTHING, branch_nodes, filled, indexed_document, trace

LONG_AGO = NOON - timedelta(days=30)
MOST_TURNS = 3


def turn(text: str, minutes: int = 0, documents: tuple[uuid.UUID, ...] = ()) -> Turn:
    """A turn some minutes after noon."""
    return Turn(0, f"{text}?", f"{text}!", NOON + minutes * MINUTE, documents)


class TestConversations:
    """A conversation belongs to its owner and keeps its last turns."""

    async def test_turns_are_numbered_and_given_back_in_order(self, stores: Stores) -> None:
        documents = (uuid.uuid4(), uuid.uuid4())
        numbers = [
            await stores.conversations.add("c", "kim", turn(text, minutes, documents), MOST_TURNS)
            for minutes, text in enumerate("ab")
        ]
        assert numbers == [1, 2]
        turns = await stores.conversations.turns("c", "kim", 10, LONG_AGO)
        assert [(row.number, row.question, row.answer) for row in turns] == [(1, "a?", "a!"), (2, "b?", "b!")]
        assert turns[0].document_ids == documents
        assert turns[1].created_at == NOON + MINUTE

    async def test_a_turn_knows_its_trace(self, stores: Stores) -> None:
        known = replace(turn("a"), trace_id=uuid.uuid4())
        for added in (known, turn("b")):
            await stores.conversations.add("c", "kim", added, MOST_TURNS)
        turns = await stores.conversations.turns("c", "kim", 10, LONG_AGO)
        assert [row.trace_id for row in turns] == [known.trace_id, None]
        assert turns[0].hidden().trace_id is None
        assert known.trace_id is not None
        assert await stores.conversations.turn_of(known.trace_id, "kim", LONG_AGO) == turns[0]
        assert await stores.conversations.turn_of(known.trace_id, "lee", LONG_AGO) is None
        assert await stores.conversations.turn_of(known.trace_id, "kim", NOON + MINUTE) is None
        assert await stores.conversations.turn_of(uuid.uuid4(), "kim", LONG_AGO) is None

    async def test_traces_are_stored_with_the_turn_or_not_at_all(self, stores: Stores) -> None:
        first, second = trace(owner="kim"), trace(owner="kim")
        await stores.conversations.add("c", "kim", turn("a"), MOST_TURNS, [first])
        await stores.conversations.add("c", "kim", turn("b"), MOST_TURNS, [first])
        assert await stores.traces.get(first.trace_id, LONG_AGO) == first
        with pytest.raises(DtragError):
            await stores.conversations.add("c", "kim", turn("\0"), MOST_TURNS, [second])
        assert await stores.traces.get(second.trace_id, LONG_AGO) is None
        assert len(await stores.conversations.turns("c", "kim", 10, LONG_AGO)) == 2

    async def test_a_summary_counts_all_turns_and_shows_the_first_kept_question(self, stores: Stores) -> None:
        for minutes, text in enumerate("abcde"):
            await stores.conversations.add("c", "kim", turn(text, minutes), MOST_TURNS)
        summary = await stores.conversations.get("c", "kim", MOST_TURNS, LONG_AGO)
        assert summary is not None
        assert (summary.turns, summary.question) == (5, "c?")
        assert (summary.created_at, summary.updated_at) == (NOON, NOON + 4 * MINUTE)

    async def test_a_conversation_expires_after_its_last_turn(self, stores: Stores) -> None:
        await stores.conversations.add("c", "kim", turn("a"), MOST_TURNS)
        await stores.conversations.add("c", "kim", turn("b", 5), MOST_TURNS)
        since = NOON + 5 * MINUTE
        assert len(await stores.conversations.turns("c", "kim", 10, since)) == 2
        assert await stores.conversations.turns("c", "kim", 10, since + MINUTE) == []
        assert await stores.conversations.get("c", "kim", MOST_TURNS, since + MINUTE) is None
        assert await stores.conversations.every("kim", MOST_TURNS, since + MINUTE, 10, 0) == ([], 0)

    async def test_deleting_takes_the_turns_too(self, stores: Stores) -> None:
        await stores.conversations.add("c", "kim", turn("a"), MOST_TURNS)
        assert await stores.conversations.delete("c", "kim")
        assert not await stores.conversations.delete("c", "kim")
        assert await stores.conversations.turns("c", "kim", 10, LONG_AGO) == []
        assert await stores.conversations.add("c", "kim", turn("b"), MOST_TURNS) == 1


class TestDocumentVisibility:
    """Unknown documents and those outside of the scope look alike."""

    async def test_only_documents_in_scope_are_visible(self, stores: Stores) -> None:
        _, machines, _ = await filled(stores)
        inside, outside = document_id("test:kettle"), document_id("test:salary")
        ids = [inside, outside, uuid.uuid4()]
        assert await stores.sight.visible(ids, machines) == {inside}
        assert await stores.sight.visible(ids, EVERYTHING) == {inside, outside}
        assert await stores.sight.visible(ids, NOTHING) == frozenset()
        assert await stores.sight.visible([], EVERYTHING) == frozenset()
        everything = await stores.sight.titles(ids, EVERYTHING)
        assert set(everything) == {inside, outside}
        assert await stores.sight.titles(ids, machines) == {inside: everything[inside]}
        assert await stores.sight.titles(ids, NOTHING) == await stores.sight.titles([], EVERYTHING) == {}

    async def test_a_deleted_document_is_not_visible(self, stores: Stores) -> None:
        document = indexed_document("test:one", ["One."])
        await stores.writer.write([document])
        await stores.writer.delete(document.document_id, EVERYTHING)
        assert await stores.sight.visible([document.document_id], EVERYTHING) == frozenset()

    async def test_a_document_is_visible_where_it_is_now(self, stores: Stores) -> None:
        taxonomy, machines, staff = await filled(stores)
        assert taxonomy.nodes
        (node,) = branch_nodes(staff)
        kettle = indexed_document("test:kettle", ["The kettle moved."], node_id=node, replaces=True)
        await stores.writer.write([kettle])
        assert await stores.sight.visible([kettle.document_id], machines) == frozenset()
        assert await stores.sight.visible([kettle.document_id], Scope(frozenset({node}))) == {kettle.document_id}


class TestTraces:
    """Traces are written once and read newest first."""

    async def test_a_trace_is_given_back_as_it_was_stored(self, stores: Stores) -> None:
        stored = trace(owner="kim")
        await stores.traces.add([stored])
        assert await stores.traces.get(stored.trace_id, LONG_AGO) == stored
        assert await stores.traces.get(stored.trace_id, NOON) == stored
        assert await stores.traces.get(stored.trace_id, NOON + MINUTE) is None
        assert await stores.traces.get(uuid.uuid4(), LONG_AGO) is None

    async def test_a_known_trace_stays_as_it_is(self, stores: Stores) -> None:
        first = trace(question="first")
        await stores.traces.add([first])
        second = trace(question="second")
        object.__setattr__(second, "trace_id", first.trace_id)
        other = trace()
        await stores.traces.add([second, other])
        assert await stores.traces.get(first.trace_id, LONG_AGO) == first
        assert await stores.traces.get(other.trace_id, LONG_AGO) == other

    async def test_the_newest_are_first_and_pages_follow(self, stores: Stores) -> None:
        stored = [trace(at=NOON + number // 2 * MINUTE) for number in range(5)]
        await stores.traces.add(stored)
        expected = sorted(stored, key=lambda row: (row.created_at, row.trace_id), reverse=True)
        first = await stores.traces.newest(2, None, LONG_AGO, None)
        assert first == expected[:2]
        assert await stores.traces.newest(10, None, LONG_AGO, first[-1]) == expected[2:]

    async def test_owner_and_time_restrict_the_list(self, stores: Stores) -> None:
        mine, old, other = trace(owner="kim"), trace(owner="kim", at=NOON - MINUTE), trace(owner="lee")
        await stores.traces.add([mine, old, other])
        assert await stores.traces.newest(10, "kim", LONG_AGO, None) == [mine, old]
        assert await stores.traces.newest(10, "kim", NOON, None) == [mine]
        assert await stores.traces.newest(10, "", LONG_AGO, None) == []
        assert len(await stores.traces.newest(10, None, LONG_AGO, None)) == 3

    async def test_feedback_is_kept_by_answer_and_voter_and_replaced_by_the_same_voter(self, stores: Stores) -> None:
        answer, other = uuid.uuid4(), uuid.uuid4()
        up = AnswerFeedback(trace_id=answer, voter="kim", feedback=FeedbackType.THUMBS_UP, given_at=NOON)
        down = replace(up, feedback=FeedbackType.THUMBS_DOWN, reason="Ünzutreffend.", given_at=NOON + MINUTE)
        of_lee = replace(up, voter="lee")
        for feedback in (up, of_lee, replace(up, trace_id=other), down, down):
            await stores.traces.put_feedback(feedback)
        both = [answer, other, uuid.uuid4()]
        assert await stores.traces.feedback_by("kim", both) == {answer: down, other: replace(up, trace_id=other)}
        assert await stores.traces.feedback_by("lee", both) == {answer: of_lee}
        assert await stores.traces.feedback_by("park", both) == await stores.traces.feedback_by("kim", []) == {}
        await stores.traces.forget(NOON + MINUTE)
        assert await stores.traces.feedback_by("kim", both) == {answer: down}
        assert await stores.traces.feedback_by("lee", both) == {}
