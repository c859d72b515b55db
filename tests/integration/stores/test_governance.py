"""What stores of keys, agents, approvals and the audit log must do."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from dtrag.core.access.api_key import IDLE, LONGEST, Key, Session
from dtrag.core.access.audit_chain import AuditEntry, AuditFilter, AuditRow, ChainHead, verify
from dtrag.core.access.scope import Grant
from dtrag.core.agent import Spending
from dtrag.core.manifest import manifest_from_category
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.core.tool_approval import Approval
from dtrag.errors import NotFound
from dtrag.ports import AuditStore, Stores
from tests.builders import MINUTE, NOON, agent, api_key

DAY = date(2025, 6, 1)


class TestKeys:
    """A name belongs to one active key at a time; revoked keys stay known."""

    async def test_a_key_is_found_by_its_prefix_as_it_was_stored(self, stores: Stores) -> None:
        grant = Grant.of([CategoryPath.parse("HR/Leave")], await stores.taxonomy.active())
        key = api_key("reader", grant=grant, days=30)
        assert await stores.keys.add(key)
        assert await stores.keys.of_prefix(key.prefix) == key
        assert await stores.keys.of_prefix("unknown0") is None

    async def test_a_name_of_an_active_key_is_taken(self, stores: Stores) -> None:
        first, second = api_key("reader"), api_key("reader")
        assert await stores.keys.add(first)
        assert not await stores.keys.add(second)
        assert await stores.keys.of_prefix(second.prefix) is None
        assert await stores.keys.revoke("reader", NOON) is not None
        assert await stores.keys.add(second)

    async def test_concurrent_keys_of_one_name_give_one(self, stores: Stores) -> None:
        added = await asyncio.gather(*(stores.keys.add(api_key("reader")) for _ in range(4)))
        assert sum(added) == 1
        assert len(await stores.keys.every()) == 1

    async def test_a_revoked_key_stays_known(self, stores: Stores) -> None:
        key = api_key("reader")
        await stores.keys.add(key)
        revoked = await stores.keys.revoke("reader", NOON + MINUTE)
        assert revoked == replace(key, revoked_at=NOON + MINUTE)
        assert await stores.keys.of_prefix(key.prefix) == revoked
        assert await stores.keys.every() == [revoked]

    async def test_what_is_not_active_cannot_be_revoked(self, stores: Stores) -> None:
        await stores.keys.add(api_key("reader"))
        assert await stores.keys.revoke("writer", NOON) is None
        assert await stores.keys.revoke("reader", NOON) is not None
        assert await stores.keys.revoke("reader", NOON) is None

    async def test_keys_are_listed_newest_first(self, stores: Stores) -> None:
        for name, minutes in (("b", 1), ("c", 2), ("a", 0)):
            await stores.keys.add(api_key(name, at=NOON + minutes * MINUTE))
        assert [key.name for key in await stores.keys.every()] == ["c", "b", "a"]

    async def test_a_public_key_has_the_branches_of_its_agent(self, stores: Stores) -> None:
        taxonomy = await stores.taxonomy.active()
        first, second = (Grant.of([CategoryPath.parse(path)], taxonomy) for path in ("Handbook", "HR"))
        desk = agent("Desk", grant=first)
        await stores.agents.add(desk)
        origins = ("https://www.example.org",)
        key = replace(api_key("site", grant=first), role="public", agent_id=desk.agent_id, origins=origins)
        await stores.keys.add(key)
        assert await stores.keys.of_prefix(key.prefix) == key
        assert await stores.agents.replace(replace(desk, edition=2, grant=second), "editor")
        assert await stores.keys.of_prefix(key.prefix) == replace(key, grant=second)
        assert await stores.agents.delete(desk.agent_id)
        (ended,) = await stores.keys.every()
        assert (ended.state(NOON), ended.grant) == ("revoked", first)
        assert await stores.keys.of_prefix(key.prefix) == ended

    async def test_that_there_was_a_key_is_remembered(self, stores: Stores) -> None:
        assert not await stores.keys.any()
        await stores.keys.add(api_key("reader"))
        await stores.keys.revoke("reader", NOON)
        assert await stores.keys.any()

    async def test_a_use_is_remembered_unless_a_late_one_is_known(self, stores: Stores) -> None:
        key = api_key("reader")
        await stores.keys.add(key)
        await stores.keys.used(key.key_id, NOON, NOON - MINUTE)
        await stores.keys.used(key.key_id, NOON + MINUTE / 2, NOON - MINUTE / 2)
        assert (await stores.keys.every())[0].last_used_at == NOON
        await stores.keys.used(key.key_id, NOON + 2 * MINUTE, NOON + MINUTE)
        assert (await stores.keys.every())[0].last_used_at == NOON + 2 * MINUTE
        await stores.keys.used(uuid.uuid4(), NOON, NOON)


class TestSessions:
    """A session ends with its key, by its age, by its idle time, and when it is deleted."""

    async def _key(self, stores: Stores, name: str = "reader") -> Key:
        key = api_key(name)
        await stores.keys.add(key)
        return key

    async def test_a_session_is_given_back_as_it_was_stored(self, stores: Stores) -> None:
        session = Session(b"1" * 32, (await self._key(stores)).prefix, NOON, NOON)
        await stores.sessions.add(session, 10)
        assert await stores.sessions.get(session.digest) == session
        assert await stores.sessions.get(b"2" * 32) is None

    async def test_without_a_key_there_is_no_session(self, stores: Stores) -> None:
        await stores.sessions.add(Session(b"1" * 32, "unknown0", NOON, NOON), 10)
        assert await stores.sessions.get(b"1" * 32) is None

    async def test_the_oldest_sessions_of_a_key_make_way(self, stores: Stores) -> None:
        first, second = await self._key(stores), await self._key(stores, "writer")
        await stores.sessions.add(Session(b"0" * 32, second.prefix, NOON - MINUTE, NOON), 2)
        for number in range(1, 5):
            at = NOON + number * MINUTE
            await stores.sessions.add(Session(str(number).encode() * 32, first.prefix, at, at), 2)
        kept = [number for number in range(5) if await stores.sessions.get(str(number).encode() * 32)]
        assert kept == [0, 3, 4]

    async def test_a_use_is_remembered_unless_a_late_one_is_known(self, stores: Stores) -> None:
        session = Session(b"1" * 32, (await self._key(stores)).prefix, NOON, NOON)
        await stores.sessions.add(session, 10)
        await stores.sessions.use(session.digest, NOON + MINUTE, NOON - MINUTE)
        assert await stores.sessions.get(session.digest) == session
        await stores.sessions.use(session.digest, NOON + MINUTE, NOON)
        assert await stores.sessions.get(session.digest) == replace(session, used_at=NOON + MINUTE)

    async def test_a_session_is_deleted_once(self, stores: Stores) -> None:
        session = Session(b"1" * 32, (await self._key(stores)).prefix, NOON, NOON)
        await stores.sessions.add(session, 10)
        assert await stores.sessions.delete(session.digest)
        assert not await stores.sessions.delete(session.digest)
        assert await stores.sessions.get(session.digest) is None

    async def test_what_has_expired_is_forgotten(self, stores: Stores) -> None:
        prefix = (await self._key(stores)).prefix
        now = NOON + LONGEST
        for digest, created, used in (
            (b"old", NOON - MINUTE, now),  # used all the time, for longer than allowed
            (b"idle", now - 2 * IDLE, now - IDLE - MINUTE),
            (b"live", NOON + MINUTE, now - IDLE + MINUTE),
        ):
            await stores.sessions.add(Session(digest, prefix, created, used), 10)
        assert await stores.sessions.forget(now) == 2
        assert await stores.sessions.get(b"live") is not None
        assert await stores.sessions.forget(now) == 0


class TestAgents:
    """Every edition is kept; of two changes at once one succeeds."""

    async def test_an_agent_is_given_back_as_it_was_stored(self, stores: Stores) -> None:
        stored = agent("Leave", grant=Grant.of([CategoryPath.parse("Handbook")], await stores.taxonomy.active()))
        await stores.agents.add(stored)
        agent_ = await stores.agents.get(stored.agent_id)
        assert agent_ is not None
        assert agent_.manifest.as_dict() == stored.manifest.as_dict()
        assert replace(agent_, manifest=stored.manifest) == stored
        assert await stores.agents.get(uuid.uuid4()) is None

    async def test_agents_are_listed_newest_first(self, stores: Stores) -> None:
        for name, minutes in (("b", 1), ("c", 2), ("a", 0)):
            await stores.agents.add(agent(name, at=NOON + minutes * MINUTE))
        assert [row.name for row in await stores.agents.every()] == ["c", "b", "a"]

    async def test_a_change_is_the_next_edition(self, stores: Stores) -> None:
        first = agent("Leave")
        await stores.agents.add(first)
        second = replace(
            first,
            edition=2,
            manifest=manifest_from_category("1.0.0", [["Handbook"]], name="Holidays"),
            updated_at=NOON + MINUTE,
        )
        assert await stores.agents.replace(second, "editor")
        agent_ = await stores.agents.get(first.agent_id)
        assert agent_ is not None
        assert (agent_.name, agent_.edition, agent_.created_by, agent_.created_at) == ("Holidays", 2, "tests", NOON)
        editions = await stores.agents.editions(first.agent_id)
        assert [(row.edition, row.manifest.name, row.created_by, row.created_at) for row in editions] == [
            (2, "Holidays", "editor", NOON + MINUTE),
            (1, "Leave", "tests", NOON),
        ]

    async def test_of_two_changes_of_one_edition_the_second_is_refused(self, stores: Stores) -> None:
        first = agent("Leave")
        await stores.agents.add(first)
        second = replace(first, edition=2)
        assert sorted(await asyncio.gather(stores.agents.replace(second, "a"), stores.agents.replace(second, "b"))) == [
            False,
            True,
        ]
        assert len(await stores.agents.editions(first.agent_id)) == 2
        assert not await stores.agents.replace(replace(agent("Unknown"), edition=2), "a")

    async def test_deleting_takes_everything_of_the_agent(self, stores: Stores) -> None:
        stored, other = agent("Leave"), agent("Pay")
        for row in (stored, other):
            await stores.agents.add(row)
            await stores.agents.charge(row.agent_id, DAY, 1, 100, 5)
        assert await stores.agents.delete(stored.agent_id)
        assert not await stores.agents.delete(stored.agent_id)
        assert await stores.agents.get(stored.agent_id) is None
        assert await stores.agents.editions(stored.agent_id) == []
        assert await stores.agents.spending(stored.agent_id, DAY) == Spending(DAY)
        assert await stores.agents.spending(other.agent_id, DAY) == Spending(DAY, 1, 100, 5)

    async def test_spending_adds_up_by_day(self, stores: Stores) -> None:
        stored = agent("Leave")
        await stores.agents.add(stored)
        assert await stores.agents.spending(stored.agent_id, DAY) == Spending(DAY)
        assert await stores.agents.charge(stored.agent_id, DAY, 1, 100, 5) == Spending(DAY, 1, 100, 5)
        assert await stores.agents.charge(stored.agent_id, DAY, 2, 50, 0) == Spending(DAY, 3, 150, 5)
        tomorrow = DAY + timedelta(days=1)
        assert await stores.agents.charge(stored.agent_id, tomorrow, 1, 1, 1) == Spending(tomorrow, 1, 1, 1)
        assert await stores.agents.spending(stored.agent_id, DAY) == Spending(DAY, 3, 150, 5)

    async def test_concurrent_charges_are_all_counted(self, stores: Stores) -> None:
        stored = agent("Leave")
        await stores.agents.add(stored)
        await asyncio.gather(*(stores.agents.charge(stored.agent_id, DAY, 1, 10, 2) for _ in range(8)))
        assert await stores.agents.spending(stored.agent_id, DAY) == Spending(DAY, 8, 80, 16)

    async def test_an_unknown_agent_cannot_be_charged(self, stores: Stores) -> None:
        with pytest.raises(NotFound):
            await stores.agents.charge(uuid.uuid4(), DAY, 1, 1, 1)

    async def test_versions_of_the_tree_are_those_of_the_taxonomy(self, stores: Stores) -> None:
        await stores.writer.ensure_paths([CategoryPath.parse("Handbook")])
        active = await stores.taxonomy.active()
        tree = await stores.agents.tree(active.version)
        assert tree is not None
        assert dict(tree.nodes) == dict(active.nodes)
        assert await stores.agents.tree("9.9.9") is None


class TestApprovals:
    """One approval per tool."""

    async def test_approvals_are_given_back_by_tool(self, stores: Stores) -> None:
        approvals = [Approval(f"web.{name}", bytes([number]) * 32, "me", NOON) for number, name in enumerate("ba")]
        for approval in approvals:
            await stores.approvals.put(approval)
        stored = await stores.approvals.every()
        assert list(stored.items()) == [("web.a", approvals[1]), ("web.b", approvals[0])]

    async def test_a_second_approval_replaces_the_first(self, stores: Stores) -> None:
        await stores.approvals.put(Approval("web.a", bytes(32), "me", NOON))
        second = Approval("web.a", bytes([1]) * 32, "you", NOON + MINUTE)
        await stores.approvals.put(second)
        assert await stores.approvals.every() == {"web.a": second}

    async def test_removing_says_whether_there_was_one(self, stores: Stores) -> None:
        await stores.approvals.put(Approval("web.a", bytes(32), "me", NOON))
        assert not await stores.approvals.remove("web.b")
        assert await stores.approvals.remove("web.a")
        assert not await stores.approvals.remove("web.a")
        assert await stores.approvals.every() == {}


def entry(action: str, *, actor: str = "kim", minutes: int = 0) -> AuditEntry:
    """A line of the log."""
    scope = [{"path": ["HR"], "node_id": 2}]
    return AuditEntry(NOON + minutes * MINUTE, actor, action, scope, ["a", "b"], "done", {"count": 2, "share": 0.5})


async def head_of(audit: AuditStore) -> ChainHead:
    """The newest line, or number 0."""
    rows = await audit.newest(1, AuditFilter())
    return ChainHead(rows[0].number, rows[0].hash) if rows else ChainHead(0, bytes(32))


class TestAudit:
    """A chain without gaps. The log may hold lines of earlier tests: nothing can delete them."""

    async def test_lines_continue_the_chain(self, stores: Stores) -> None:
        before = await head_of(stores.audit)
        middle = await stores.audit.append([entry("a"), entry("b")])
        after = await stores.audit.append([entry("c")])
        assert (middle.number, after.number) == (before.number + 2, before.number + 3)
        rows = await stores.audit.page(before.number, 10)
        assert [row.entry.action for row in rows] == ["a", "b", "c"]
        verdict = verify(rows, before)
        assert (verdict.ok, verdict.head) == (True, after)

    async def test_a_line_is_given_back_as_it_was_hashed(self, stores: Stores) -> None:
        before = await head_of(stores.audit)
        await stores.audit.append([replace(entry("search"), scope=None, details={"text": "a\x00b", "ids": [1, "2"]})])
        (row,) = await stores.audit.page(before.number, 10)
        assert (row.entry.at, row.entry.actor, row.entry.scope) == (NOON, "kim", None)
        assert dict(row.entry.details) == {"text": "a\ufffdb", "ids": [1, "2"]}
        assert verify([row], before).ok

    async def test_appending_nothing_gives_the_same_head(self, stores: Stores) -> None:
        head = await stores.audit.append([entry("a")])
        assert await stores.audit.append([]) == head

    async def test_concurrent_lines_are_all_in_the_chain(self, stores: Stores) -> None:
        before = await head_of(stores.audit)
        await asyncio.gather(*(stores.audit.append([entry(f"{number}"), entry(f"{number}")]) for number in range(5)))
        rows = await stores.audit.page(before.number, 100)
        assert len(rows) == 10
        assert verify(rows, before).ok
        actions = [row.entry.action for row in rows]
        assert all(actions[at] == actions[at + 1] for at in range(0, 10, 2))

    async def test_pages_follow_each_other(self, stores: Stores) -> None:
        before = await head_of(stores.audit)
        await stores.audit.append([entry(f"{number}") for number in range(5)])
        rows: list[AuditRow] = []
        while page := await stores.audit.page(rows[-1].number if rows else before.number, 2):
            assert len(page) <= 2
            rows += page
        assert [row.entry.action for row in rows] == ["0", "1", "2", "3", "4"]

    async def test_the_newest_lines_by_number_time_and_actor(self, stores: Stores) -> None:
        actor = uuid.uuid4().hex
        head = await stores.audit.append([entry(f"{number}", actor=actor, minutes=number) for number in range(4)])
        await stores.audit.append([entry("other", actor="lee", minutes=9)])
        assert await self._actions(stores, 10, None, None, actor) == ["3", "2", "1", "0"]
        assert await self._actions(stores, 2, None, None, actor) == ["3", "2"]
        assert await self._actions(stores, 10, head.number - 1, None, actor) == ["1", "0"]
        assert await self._actions(stores, 10, None, 2, actor) == ["3", "2"]
        assert await self._actions(stores, 1, None, None, None) == ["other"]

    async def _actions(
        self, stores: Stores, limit: int, before: int | None, minutes: int | None, actor: str | None
    ) -> list[str]:
        since = None if minutes is None else NOON + minutes * MINUTE
        return [row.entry.action for row in await stores.audit.newest(limit, AuditFilter(before, since, actor=actor))]

    async def test_lines_by_action_decision_subject_and_time(self, stores: Stores) -> None:
        actor, subject = uuid.uuid4().hex, uuid.uuid4().hex
        lines = [
            replace(entry("GET /documents", actor=actor, minutes=1), subjects=[subject, "x"]),
            replace(entry("POST /Search", actor=actor, minutes=2), decision="denied"),
            replace(entry("keys.create", actor=actor, minutes=3), subjects=[]),
        ]
        await stores.audit.append(lines)

        async def actions(**filters: Any) -> list[str]:
            rows = await stores.audit.newest(10, AuditFilter(actor=actor, **filters))
            return [row.entry.action for row in rows]

        assert await actions(action="search") == ["POST /Search"]
        assert await actions(action="/") == ["POST /Search", "GET /documents"]
        assert await actions(action="%") == []
        assert await actions(decision="denied") == ["POST /Search"]
        assert await actions(subject=subject) == ["GET /documents"]
        assert await actions(subject=subject[:8]) == []
        assert await actions(until=NOON + 2 * MINUTE) == ["GET /documents"]
        assert await actions(since=NOON + 2 * MINUTE, until=NOON + 3 * MINUTE) == ["POST /Search"]
