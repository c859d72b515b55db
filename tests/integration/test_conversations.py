"""Conversations in the database: their owner's alone, nothing lost, nothing shown of documents out of reach."""

from __future__ import annotations

import asyncio
import datetime
import uuid
from pathlib import Path

import pytest

from dtrag.adapters.postgres.stores.records import PostgresConversations, PostgresDocumentVisibility
from dtrag.app import App, open_app
from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.access.scope import Access, Grant
from dtrag.core.chat import Message
from dtrag.core.conversation import MAX_ID, WITHHELD, conversation_id
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.errors import InvalidInput, NotFound
from dtrag.pipeline.conversations import MOST_TURNS, Conversations
from dtrag.settings import Settings
from tests.cases import each
from tests.store import Store

KIM = Caller("kim", "reader", Access(), uuid.uuid4())
LEE = Caller("lee", "reader", Access(), uuid.uuid4())
NOON = datetime.datetime(2030, 1, 31, 12, tzinfo=datetime.UTC)


class Clock:
    """A clock that stands until it is put forward."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime.datetime:
        return self.now

    def passed(self) -> float:
        """Seconds that have really passed."""
        return self.now.timestamp()


def kept(app: App, clock: Clock, days: int = 90) -> Conversations:
    store, sight = PostgresConversations(app.database), PostgresDocumentVisibility(app.database)
    return Conversations(store, sight, app.index, days=lambda: days, now=clock, monotonic=clock.passed)


async def branch(app: App, key: Caller, *paths: str) -> Caller:
    """The same key, confined to the branches."""
    taxonomy = (await app.index.snapshot()).taxonomy
    grant = Grant.of([CategoryPath.parse(path) for path in paths], taxonomy)
    return Caller(key.name, key.role, Access((grant,)), key.key_id)


async def document(app: App, folder: Path, name: str, category: str) -> str:
    file = folder / f"{name}.md"
    file.write_text(f"# {name}\n\nThe {name} has a valve.", "utf-8")
    await app.ingest([file], category)
    return next(d.document_id for d in await app.documents() if d.title == name)


async def test_turns_come_back_in_order_as_messages(app: App) -> None:
    assert await app.conversations.history("c1", KIM) == []
    for number in range(1, 9):
        assert await app.conversations.add("c1", KIM, f"q{number}", f"a{number}") == number
    assert await app.conversations.history("c1", KIM, 2) == [
        Message("user", "q7"),
        Message("assistant", "a7"),
        Message("user", "q8"),
        Message("assistant", "a8"),
    ]
    assert len(await app.conversations.history("c1", KIM)) == 12
    assert await app.conversations.history("c1", KIM, 0) == []
    about, turns = await app.conversations.get("c1", caller=KIM)
    assert (about.turns, about.question, [turn.number for turn in turns]) == (8, "q1", list(range(1, 9)))


async def test_the_same_id_of_another_key_is_another_conversation(app: App) -> None:
    await app.conversations.add("shared", KIM, "what does the boss earn?", "much")
    assert await app.conversations.history("shared", LEE) == []
    assert await app.conversations.every(caller=LEE) == ([], 0)
    with pytest.raises(NotFound) as foreign:
        await app.conversations.get("shared", caller=LEE)
    with pytest.raises(NotFound) as deleting:
        await app.conversations.delete("shared", caller=LEE)
    assert str(foreign.value) == str(deleting.value)
    assert await app.conversations.add("shared", LEE, "hello?", "hi") == 1
    assert await app.conversations.add("shared", LOCAL, "me?", "you") == 1
    about, turns = await app.conversations.get("shared", caller=KIM)
    assert (about.turns, [turn.answer for turn in turns]) == (1, ["much"])


async def test_concurrent_turns_are_all_stored_once(settings: Settings, store: Store) -> None:
    async with open_app(settings) as one, open_app(settings) as other:
        numbers = await asyncio.gather(
            *((one, other)[n % 2].conversations.add(f"c{n % 3}", KIM, f"q{n}", f"a{n}") for n in range(60))
        )
        assert sorted(numbers) == sorted([*range(1, 21)] * 3)
    rows = store.rows("select question from conversation_turns where owner = %s", KIM.owner)
    assert sorted(rows) == sorted((f"q{n}",) for n in range(60))


async def test_only_the_last_turns_are_kept(app: App, store: Store) -> None:
    for number in range(MOST_TURNS + 3):
        await app.conversations.add("long", KIM, f"q{number}", "a")
    about, turns = await app.conversations.get("long", caller=KIM)
    assert (about.turns, about.question) == (MOST_TURNS + 3, "q3")
    assert [turn.number for turn in turns] == list(range(4, MOST_TURNS + 4))
    assert store.value("select count(*) from conversation_turns") == MOST_TURNS
    assert (await app.conversations.every(caller=KIM))[0] == [about]


class JumpingClock(Clock):
    """A clock that is put forward or back while no time passes."""

    def passed(self) -> float:
        return 0.0


@pytest.mark.parametrize("years", [10, -10])
async def test_a_clock_that_jumps_by_years_deletes_no_conversation(app: App, store: Store, years: int) -> None:
    clock = JumpingClock()
    conversations = kept(app, clock, days=30)
    await conversations.add("c1", KIM, "q", "a")
    clock.now = NOON + datetime.timedelta(days=365 * years)
    await conversations.add("c2", KIM, "q", "a")
    clock.now = NOON
    assert len(await conversations.history("c1", KIM)) == 2
    assert store.value("select count(*) from conversations") == 2


async def test_idle_conversations_are_deleted(app: App, store: Store) -> None:
    clock = Clock()
    conversations = kept(app, clock, days=30)
    await conversations.add("old", KIM, "q", "a")
    clock.now = NOON + datetime.timedelta(days=20)
    await conversations.add("new", KIM, "q", "a")
    clock.now = NOON + datetime.timedelta(days=31)
    assert await conversations.history("old", KIM) == []
    with pytest.raises(NotFound):
        await conversations.get("old", caller=KIM)
    assert [found.conversation_id for found in (await conversations.every(caller=KIM))[0]] == ["new"]
    await conversations.add("new", KIM, "q", "a")  # tidies, since an hour has passed
    assert store.rows("select conversation_id from conversations") == [("new",)]
    assert store.value("select count(*) from conversation_turns") == 2
    clock.now = NOON + datetime.timedelta(days=10_000)
    assert await kept(app, clock, days=0).tidy() == 0
    assert len(await kept(app, clock, days=0).history("new", KIM)) == 4


async def test_an_answer_is_withheld_from_callers_who_lost_access_to_its_documents(app: App, tmp_path: Path) -> None:
    open_id = await document(app, tmp_path, "kettle", "AI")
    closed_id = await document(app, tmp_path, "salary", "HR")
    await app.conversations.add("c", KIM, "what has a valve?", "The kettle.", [open_id])
    await app.conversations.add("c", KIM, "and what else?", "The salary.", [closed_id, open_id])
    await app.conversations.add("c", KIM, "and then?", "Nothing more.")
    both = await branch(app, KIM, "AI", "HR")
    assert [m.content for m in await app.conversations.history("c", both)][1::2] == [
        "The kettle.",
        "The salary.",
        "Nothing more.",
    ]
    narrowed = await branch(app, KIM, "AI")
    said = await app.conversations.history("c", narrowed)
    assert [m.content for m in said][1::2] == ["The kettle.", WITHHELD, "Nothing more."]
    _, turns = await app.conversations.get("c", caller=narrowed)
    assert [(turn.answer, turn.withheld) for turn in turns] == [
        ("The kettle.", False),
        ("", True),
        ("Nothing more.", False),
    ]
    # An agent's branches narrow what its model is shown, not what the caller reads back.
    of_agent = await app.conversations.history("c", both, scope=narrowed.access)
    assert of_agent == said


async def test_answers_of_moved_or_deleted_documents_are_withheld(app: App, tmp_path: Path) -> None:
    document_id = await document(app, tmp_path, "kettle", "AI")
    who = await branch(app, KIM, "AI")
    await app.conversations.add("c", who, "what has a valve?", "The kettle.", [document_id])
    assert (await app.conversations.history("c", who))[1].content == "The kettle."
    await document(app, tmp_path, "kettle", "HR")  # the same file, in another category
    assert (await app.conversations.history("c", who))[1].content == WITHHELD
    assert (await app.conversations.history("c", KIM))[1].content == "The kettle."
    await app.delete_document(document_id)
    assert (await app.conversations.history("c", KIM))[1].content == WITHHELD


async def test_a_deletion_is_in_the_audit_log(app: App, store: Store) -> None:
    await app.conversations.add("c", KIM, "q", "a")
    await app.conversations.delete("c", caller=KIM)
    with pytest.raises(NotFound):
        await app.conversations.get("c", caller=KIM)
    assert store.value("select count(*) from conversation_turns") == 0
    assert store.rows("select actor, action, subjects, decision from audit_log") == [
        ("kim", "conversations.delete", ["c"], "done")
    ]


async def test_texts_that_the_database_could_not_hold_are_cleaned_and_long_ones_cut(app: App) -> None:
    await app.conversations.add("c", KIM, "a\x00b\ud800", "x" * 100_000)
    _, [turn] = await app.conversations.get("c", caller=KIM)
    assert (turn.question, len(turn.answer)) == ("ab", 40_000)


async def test_pages(app: App) -> None:
    for name in "abc":
        await app.conversations.add(name, KIM, f"about {name}?", "a")
    found, total = await app.conversations.every(2, 1, caller=KIM)
    assert ([about.conversation_id for about in found], total) == (["b", "a"], 3)
    for limit, offset in ((0, 0), (1_001, 0), (1, -1)):
        with pytest.raises(InvalidInput):
            await app.conversations.every(limit, offset, caller=KIM)


@pytest.mark.parametrize("given", ["a", "conv-1", "대화", "user:42@site.org~x", "x" * MAX_ID])
def test_valid_ids(given: str) -> None:
    assert conversation_id(given) == given


@each("given", ["-a", ".", "..", "a b", "a/b", "a\x00", "a\n", "x" * (MAX_ID + 1), 7, ["a"]])
async def test_invalid_ids(app: App, given: object) -> None:
    with pytest.raises(InvalidInput, match="conversation_id"):
        conversation_id(given)
    with pytest.raises(NotFound):
        await app.conversations.get(given, caller=KIM)  # type: ignore[arg-type]


def test_a_new_id_is_a_uuid_of_its_own() -> None:
    assert uuid.UUID(conversation_id()) != uuid.UUID(conversation_id(""))
