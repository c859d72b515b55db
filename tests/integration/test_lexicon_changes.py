"""Own entries of the lexicon: changes, conflicts, limits and audit lines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from dtrag.adapters.postgres.database import Database
from dtrag.app import App
from dtrag.errors import Conflict, InvalidInput, NotFound
from dtrag.regulations.korean import lexicon_entries
from dtrag.regulations.korean.lexicon_entries import MAX_ENTRIES
from tests.store import empty, toy_app


@pytest_asyncio.fixture
async def app(emptied: Database) -> AsyncIterator[App]:
    async with toy_app(emptied) as opened:
        yield opened


async def test_numbers_are_never_used_again(app: App) -> None:
    first = await app.lexicon.add("긱사 밥", "식당운영")
    second = await app.lexicon.add(["총장님 메일"], ["정보공개"])
    assert (first.number, second.number) == (1, 2)
    assert await app.lexicon.remove(2) == second
    assert (await app.lexicon.add("총장님 메일", "정보공개")).number == 3
    assert await app.lexicon.remove("긱사  밥") == first
    assert [entry.number for entry in await app.lexicon.entries()] == [3]
    for unknown in (1, 2, "긱사 밥"):
        with pytest.raises(NotFound, match="dtrag lexicon list"):
            await app.lexicon.remove(unknown)


async def test_an_identical_entry_is_returned_and_another_with_the_same_form_refused(app: App) -> None:
    first = await app.lexicon.add(["긱사 밥", "긱사 식사"], "식당운영")
    assert await app.lexicon.add(["긱사 밥", "긱사 식사"], "식당운영") == first
    with pytest.raises(Conflict, match="dtrag lexicon remove 1"):
        await app.lexicon.add("긱사 식사", "급식")
    assert await app.lexicon.add_all([(["긱사 밥", "긱사 식사"], ["식당운영"])]) == []
    assert await app.lexicon.entries() == [first]


async def test_all_entries_are_added_or_none(app: App) -> None:
    with pytest.raises(InvalidInput):
        await app.lexicon.add_all([("긱사 밥", "식당운영"), ("쉬", "휴학")])
    with pytest.raises(Conflict):
        await app.lexicon.add_all([("긱사 밥", "식당운영"), ("긱사 밥", "급식")])
    assert await app.lexicon.entries() == []


async def test_an_export_restores_another_app(app: App, emptied: Database) -> None:
    await app.lexicon.add_all([("긱사 밥", "식당운영"), (["총장님 메일", "총장 편지"], ["정보공개", "민원"])])
    text = await app.lexicon.export()
    exported = await app.lexicon.entries()
    await empty(emptied)
    async with toy_app(emptied) as other:
        added = await other.lexicon.add_toml(text)
        assert added == await other.lexicon.entries() == exported
        assert await other.lexicon.add_toml(text) == []


async def test_the_limits(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    many = [(f"우리말{number}", "휴학") for number in range(MAX_ENTRIES + 1)]
    with pytest.raises(InvalidInput, match=f"can have {MAX_ENTRIES} own entries"):
        await app.lexicon.add_all(many)
    await app.lexicon.add_all(many[:MAX_ENTRIES])
    with pytest.raises(InvalidInput, match="these would be 501"):
        await app.lexicon.add(*many[-1])
    assert lexicon_entries.MAX_CHARACTERS > 0
    monkeypatch.setattr("dtrag.regulations.lexicon.MAX_CHARACTERS", 10)
    await app.lexicon.remove(1)
    with pytest.raises(InvalidInput, match="10 are allowed"):
        await app.lexicon.add("한마디로 말해", "휴학")


async def test_concurrent_changes_are_all_stored(app: App) -> None:
    added = await asyncio.gather(*(app.lexicon.add(f"우리말{number}", "휴학") for number in range(8)))
    assert sorted(entry.number for entry in added) == list(range(1, 9))
    assert len(await app.lexicon.entries()) == 8


async def test_every_change_has_an_audit_line(app: App) -> None:
    await app.lexicon.add_all([("긱사 밥", "식당운영"), ("총장님 메일", "정보공개")])
    await app.lexicon.add("긱사 밥", "식당운영")
    await app.lexicon.remove(1)
    with pytest.raises(NotFound):
        await app.lexicon.remove(1)
    entries = [row.entry for row in await app.audit.newest(limit=3)]
    lines = [(entry.actor, entry.action, list(entry.subjects), dict(entry.details)) for entry in reversed(entries)]
    meal = {"spoken": ["긱사 밥"], "official": ["식당운영"]}
    mail = {"spoken": ["총장님 메일"], "official": ["정보공개"]}
    assert lines == [
        ("local", "lexicon.add", ["1"], meal),
        ("local", "lexicon.add", ["2"], mail),
        ("local", "lexicon.remove", ["1"], meal),
    ]
