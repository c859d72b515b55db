"""The stores of `ports/governance.py`: agents, API keys, rate limits, sessions, people and the audit log."""

from __future__ import annotations

import datetime
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict

from psycopg import errors
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from dtrag.adapters.postgres.database import Database, Store, Values, columns, fetch_row, repeated
from dtrag.adapters.postgres.queries import Lock, lock, queries
from dtrag.adapters.postgres.stores.taxonomy_moves import tree_of
from dtrag.core.access.api_key import IDLE, LONGEST, Key, Session
from dtrag.core.access.audit_chain import START, AuditEntry, AuditFilter, AuditRow, ChainHead, chained
from dtrag.core.access.scope import Grant
from dtrag.core.access.sign_in import Person
from dtrag.core.agent import Agent, AgentEdition, Spending
from dtrag.core.manifest import AgentManifest
from dtrag.core.taxonomy.tree import Taxonomy
from dtrag.errors import Conflict, NotFound

FORGET_EVERY_S = 60.0


class PostgresAgents(Store):
    """`AgentStore` over the tables agents, agent_manifests and agent_spending."""

    subject = "agents"

    async def add(self, agent: Agent) -> None:
        """See `AgentStore`."""
        async with self._database.connection("owner") as connection, connection.pipeline(), connection.transaction():
            await connection.execute(self._sql["insert_agent"], _agent_columns(agent))
            await connection.execute(self._sql["insert_edition"], _agent_columns(agent))

    async def get(self, agent_id: uuid.UUID) -> Agent | None:
        """See `AgentStore`."""
        stored = await self._row("agent", {"agent_id": agent_id}, role="search")
        return Agent(**_granted(stored)) if stored else None

    async def every(self) -> list[Agent]:
        """See `AgentStore`."""
        return [Agent(**_granted(stored)) for stored in await self._rows("agents", role="search")]

    async def replace(self, agent: Agent, changed_by: str) -> bool:
        """See `AgentStore`."""
        values = _agent_columns(agent)
        async with self._database.connection("owner") as connection, connection.transaction():
            if await fetch_row(connection, self._sql["replace_agent"], values) is None:
                return False
            edition = {**values, "created_by": changed_by, "created_at": agent.updated_at}
            await connection.execute(self._sql["insert_edition"], edition)
        return True

    async def delete(self, agent_id: uuid.UUID) -> bool:
        """See `AgentStore`."""
        return await self._row("delete_agent", {"agent_id": agent_id}) is not None

    async def editions(self, agent_id: uuid.UUID) -> list[AgentEdition]:
        """See `AgentStore`."""
        return [AgentEdition(**_granted(stored)) for stored in await self._rows("editions", {"agent_id": agent_id})]

    async def charge(self, agent_id: uuid.UUID, day: datetime.date, calls: int, tokens: int, cost: int) -> Spending:
        """See `AgentStore`; one statement."""
        used = {"agent_id": agent_id, "day": day, "calls": calls, "tokens": tokens, "cost": cost}
        try:
            return Spending(day, **await self._row("charge", used) or {})
        except errors.ForeignKeyViolation as error:
            raise NotFound(kind="agent", name=str(agent_id)) from error

    async def spending(self, agent_id: uuid.UUID, day: datetime.date) -> Spending:
        """See `AgentStore`."""
        return Spending(day, **await self._row("spending", {"agent_id": agent_id, "day": day}) or {})

    async def tree(self, version: str) -> Taxonomy | None:
        """See `AgentStore`."""
        async with self._database.connection("search") as connection:
            return await tree_of(connection, version)


class PostgresPublicSpending(Store):
    """`PublicSpendingStore` over the table public_spending."""

    subject = "agents"

    async def charge(self, day: datetime.date, calls: int, tokens: int, cost: int) -> None:
        """See `PublicSpendingStore`; one statement."""
        await self._execute("charge_public", {"day": day, "calls": calls, "tokens": tokens, "cost": cost})

    async def spending(self, day: datetime.date) -> Spending:
        """See `PublicSpendingStore`."""
        return Spending(day, **await self._row("public_spending", {"day": day}) or {})


def _agent_columns(agent: Agent) -> dict[str, object]:
    stored = {"name": agent.name, "manifest": Jsonb(agent.manifest.as_dict()), "scope": Jsonb(agent.grant.as_json())}
    return columns(agent) | stored


def _granted(stored: DictRow) -> DictRow:
    """The columns of an agent, or of an edition of its manifest, as fields."""
    grant, manifest = Grant.from_json(stored.pop("scope")), AgentManifest.from_dict(stored["manifest"])
    return {**stored, "manifest": manifest, "grant": grant}


class PostgresKeys(Store):
    """`KeyStore` over the table api_keys. Only the owner's role can read it."""

    subject = "keys"

    async def add(self, key: Key) -> bool:
        """See `KeyStore`."""
        async with self._database.connection("owner") as connection, connection.transaction():
            added = await fetch_row(connection, self._sql["insert_key"], _key_columns(key))
            if key.principals:  # the tree as it is read holds the groups of users for whom keys exist
                await connection.execute(queries("writing")["bump_generation"])
        return added is not None

    async def of_prefix(self, prefix: str) -> Key | None:
        """See `KeyStore`."""
        return _key(await self._row("key_of_prefix", {"prefix": prefix}))

    async def of_id(self, key_id: uuid.UUID) -> Key | None:
        """See `KeyStore`."""
        return _key(await self._row("key_of_id", {"key_id": key_id}))

    async def every(self) -> list[Key]:
        """See `KeyStore`."""
        return [key for stored in await self._rows("keys") if (key := _key(stored))]

    async def any(self) -> bool:
        """See `KeyStore`."""
        return bool((await self._rows("any_key"))[0]["found"])

    async def revoke(self, name: str, now: datetime.datetime) -> Key | None:
        """See `KeyStore`."""
        return _key(await self._row("revoke_key", {"name": name, "now": now}))

    async def used(self, key_id: uuid.UUID, now: datetime.datetime, before: datetime.datetime) -> None:
        """See `KeyStore`."""
        await self._execute("use_key", {"key_id": key_id, "now": now, "before": before})


def _key_columns(key: Key) -> dict[str, object]:
    scope = None if key.grant is None else Jsonb(key.grant.as_json())
    lists = {"origins": Jsonb(list(key.origins)), "principals": list(key.principals)}
    return {**columns(key), "scope": scope, **lists}


def _key(stored: DictRow | None) -> Key | None:
    if stored is None:
        return None
    scope = stored.pop("scope")
    grant = None if scope is None else Grant.from_json(scope)
    origins, principals = tuple(stored["origins"]), tuple(stored["principals"])
    digest = bytes(stored["digest"])
    return Key(**stored | {"digest": digest, "grant": grant, "origins": origins, "principals": principals})


class PostgresRateLimits(Store):
    """`RateLimitStore` over the table rate_limits."""

    subject = "limits"

    def __init__(self, database: Database):
        super().__init__(database)
        self._forget_at = 0.0

    async def take(self, caller: bytes, rate: int, tokens: int, unspent: int) -> tuple[int, float]:
        """See `RateLimitStore`."""
        values = {"caller": caller, "rate": rate, "tokens": min(tokens, rate), "unspent": unspent}
        row = await self._row("take", values)
        assert row is not None  # noqa: S101 - it returns the row that it writes
        if time.monotonic() > self._forget_at:
            self._forget_at = time.monotonic() + FORGET_EVERY_S
            await self._execute("forget")
        return row["taken"], row["level"]


class PostgresSessions(Store):
    """`SessionStore` over the table sessions."""

    subject = "sessions"

    async def add(self, session: Session, most: int) -> None:
        """See `SessionStore`."""
        async with self._database.connection("owner") as connection:
            await connection.execute(self._sql["insert"], columns(session))
            await connection.execute(self._sql["trim"], {"key_prefix": session.key_prefix, "most": most})

    async def get(self, digest: bytes) -> Session | None:
        """See `SessionStore`."""
        stored = await self._row("get", {"digest": digest})
        if stored is None:
            return None
        sealed = None if stored["sealed"] is None else bytes(stored["sealed"])
        return Session(**stored | {"digest": bytes(stored["digest"]), "sealed": sealed})

    async def use(self, digest: bytes, now: datetime.datetime, before: datetime.datetime) -> None:
        """See `SessionStore`."""
        await self._execute("use", {"digest": digest, "now": now, "before": before})

    async def delete(self, digest: bytes) -> bool:
        """See `SessionStore`."""
        return await self._execute("delete", {"digest": digest}) > 0

    async def forget(self, now: datetime.datetime) -> int:
        """See `SessionStore`."""
        return await self._execute("forget", {"idle_since": now - IDLE, "longest_since": now - LONGEST})

    async def claim(
        self, digest: bytes, checked: datetime.datetime, now: datetime.datetime, until: datetime.datetime
    ) -> bool:
        """See `SessionStore`."""
        values = {"digest": digest, "checked": checked, "now": now, "until": until}
        return await self._execute("claim", values) > 0

    async def checked(self, digest: bytes, now: datetime.datetime, sealed: bytes) -> None:
        """See `SessionStore`."""
        await self._execute("checked", {"digest": digest, "now": now, "sealed": sealed})


class PostgresPeople(Store):
    """`PeopleStore` over the tables people and api_keys."""

    subject = "people"

    async def every(self) -> list[Person]:
        """See `PeopleStore`."""
        return [_person(stored) for stored in await self._rows("every")]

    async def of_key(self, key_id: uuid.UUID) -> Person | None:
        """See `PeopleStore`."""
        stored = await self._row("of_key", {"key_id": key_id})
        return None if stored is None else _person(stored)

    async def put(self, person: Person, key: Key, *, create: bool) -> Key | None:
        """See `PeopleStore`."""
        return await repeated(lambda: self._put(person, key, create))

    async def allow(self, name: str | None, now: datetime.datetime) -> dict[uuid.UUID, str]:
        """See `PeopleStore`."""
        try:
            return {row["key_id"]: row["name"] for row in await self._rows("allow", {"name": name, "now": now})}
        except errors.UniqueViolation as error:
            raise Conflict("Another key has the name of this person now. Revoke it first.") from error

    async def _put(self, person: Person, key: Key, create: bool) -> Key | None:
        keys, row, values = queries("keys"), {**columns(person), "groups": sorted(person.groups)}, _key_columns(key)
        async with self._database.connection("owner") as connection, connection.transaction():
            stored = await fetch_row(connection, self._sql["key_of"], row)
            if stored is None:
                if not create or await fetch_row(connection, keys["insert_key"], values) is None:
                    return None
                await connection.execute(self._sql["insert"], row)
            else:
                row, values = row | stored, values | stored
                await connection.execute(self._sql["update"], row)
                await connection.execute(self._sql["rights"], values)
            return _key(await fetch_row(connection, keys["key_of_id"], values))


def _person(stored: DictRow) -> Person:
    return Person(**stored | {"groups": frozenset(stored["groups"])})


class PostgresAudit(Store):
    """`AuditStore` over the table audit_log, which its owner can only add to and read."""

    subject = "audit"

    async def append(self, entries: Sequence[AuditEntry]) -> ChainHead:
        """See `AuditStore`."""
        self._database.require_space_for_a_line()
        async with self._database.connection("owner") as connection, connection.transaction():
            await lock(connection, Lock.AUDIT)  # over all processes: the numbers of the lines have no gaps
            newest = await fetch_row(connection, self._sql["head"])
            head = START if newest is None else ChainHead(newest["number"], bytes(newest["hash"]))
            lines = chained(entries, head)
            for line in lines:  # no pipeline, in which the server does not end a silent session
                await connection.execute(self._sql["append"], _line_columns(line))
        return ChainHead(lines[-1].number, lines[-1].hash) if lines else head

    async def page(self, after: int, limit: int) -> list[AuditRow]:
        """See `AuditStore`."""
        return await self._lines("page", {"after": after, "limit": limit})

    async def newest(self, limit: int, filters: AuditFilter) -> list[AuditRow]:
        """See `AuditStore`."""
        return await self._lines("newest", {"limit": limit, **asdict(filters)})

    async def _lines(self, name: str, values: Values) -> list[AuditRow]:
        return [
            AuditRow(
                stored.pop("number"),
                previous=bytes(stored.pop("previous")),
                hash=bytes(stored.pop("hash")),
                entry=AuditEntry(**stored),
            )
            for stored in await self._rows(name, values)
        ]


def _line_columns(line: AuditRow) -> dict[str, object]:
    entry = line.entry
    scope = None if entry.scope is None else Jsonb(entry.scope)
    as_json = {"scope": scope, "subjects": Jsonb(entry.subjects), "details": Jsonb(entry.details)}
    return {**columns(line), **columns(entry), **as_json}
