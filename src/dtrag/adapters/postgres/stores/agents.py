"""Agents in the database: `AgentStore` over the tables of migration 0003."""

from __future__ import annotations

import datetime
import uuid

from psycopg import errors
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from dtrag.adapters.postgres.database import Database
from dtrag.adapters.postgres.queries import queries
from dtrag.adapters.postgres.stores.taxonomy_rows import tree_of
from dtrag.core.access.scope import Grant
from dtrag.core.agent import Agent, AgentEdition, Spending
from dtrag.core.manifest import AgentManifest
from dtrag.core.taxonomy.tree import Taxonomy
from dtrag.errors import NotFound


class PostgresAgents:
    """The agents of one database."""

    def __init__(self, database: Database):
        self._database = database

    async def add(self, agent: Agent) -> None:
        """Store a new agent with its first edition."""
        async with self._database.connection("owner") as connection, connection.pipeline(), connection.transaction():
            await connection.execute(queries("agents")["insert_agent"], _values(agent))
            await connection.execute(queries("agents")["insert_edition"], _values(agent))

    async def get(self, agent_id: uuid.UUID) -> Agent | None:
        """The agent, or None."""
        async with self._database.connection("search") as connection:
            cursor = await connection.execute(queries("agents")["agent"], {"agent_id": agent_id})
            row = await cursor.fetchone()
        return _agent(row) if row else None

    async def every(self) -> list[Agent]:
        """All agents, the newest first."""
        async with self._database.connection("search") as connection:
            rows = await (await connection.execute(queries("agents")["agents"])).fetchall()
        return [_agent(row) for row in rows]

    async def replace(self, agent: Agent, changed_by: str) -> bool:
        """Replace the previous edition by `agent`; False when it is not the current one any longer."""
        values = _values(agent)
        async with self._database.connection("owner") as connection, connection.transaction():
            cursor = await connection.execute(queries("agents")["replace_agent"], values)
            if await cursor.fetchone() is None:
                return False
            edition = {**values, "created_by": changed_by, "created_at": agent.updated_at}
            await connection.execute(queries("agents")["insert_edition"], edition)
        return True

    async def delete(self, agent_id: uuid.UUID) -> bool:
        """Delete the agent with its editions and its spending; False for an unknown one."""
        async with self._database.connection("owner") as connection:
            cursor = await connection.execute(queries("agents")["delete_agent"], {"agent_id": agent_id})
            return await cursor.fetchone() is not None

    async def editions(self, agent_id: uuid.UUID) -> list[AgentEdition]:
        """Every manifest that the agent has had, the newest first."""
        async with self._database.connection("owner") as connection:
            rows = await (await connection.execute(queries("agents")["editions"], {"agent_id": agent_id})).fetchall()
        return [
            AgentEdition(
                row["edition"],
                AgentManifest.from_dict(row["manifest"]),
                row["created_by"],
                row["created_at"],
                Grant.from_json(row["scope"]),
            )
            for row in rows
        ]

    async def charge(self, agent_id: uuid.UUID, day: datetime.date, calls: int, tokens: int, cost: int) -> Spending:
        """Add to what the agent used on the day, in one statement; returns the day's sum. Raises `NotFound`."""
        used = {"agent_id": agent_id, "day": day, "calls": calls, "tokens": tokens, "cost": cost}
        try:
            async with self._database.connection("owner") as connection:
                row = await (await connection.execute(queries("agents")["charge"], used)).fetchone()
        except errors.ForeignKeyViolation as error:
            raise NotFound(kind="agent", name=str(agent_id)) from error
        return Spending(day, **row) if row else Spending(day)

    async def spending(self, agent_id: uuid.UUID, day: datetime.date) -> Spending:
        """What the agent used on the day."""
        values = {"agent_id": agent_id, "day": day}
        async with self._database.connection("owner") as connection:
            row = await (await connection.execute(queries("agents")["spending"], values)).fetchone()
        return Spending(day, **row) if row else Spending(day)

    async def tree(self, version: str) -> Taxonomy | None:
        """That version of the tree, or None."""
        async with self._database.connection("search") as connection:
            return await tree_of(connection, version)


def _values(agent: Agent) -> dict[str, object]:
    return {
        "agent_id": agent.agent_id,
        "name": agent.name,
        "edition": agent.edition,
        "manifest": Jsonb(agent.manifest.as_dict()),
        "scope": Jsonb(agent.grant.as_json()),
        "created_by": agent.created_by,
        "created_at": agent.created_at,
        "updated_at": agent.updated_at,
    }


def _agent(row: DictRow) -> Agent:
    return Agent(
        agent_id=row["agent_id"],
        edition=row["edition"],
        manifest=AgentManifest.from_dict(row["manifest"]),
        grant=Grant.from_json(row["scope"]),
        created_by=row["created_by"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )
