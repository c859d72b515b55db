"""Facts about a database for `dtrag doctor`: its migrations, the rights of its roles, what its index holds."""

from __future__ import annotations

from dataclasses import dataclass

from psycopg import sql

from dtrag.adapters.postgres.database import ROLES, Database, migration_texts
from dtrag.adapters.postgres.queries import queries
from dtrag.errors import DatabaseDamaged


@dataclass(frozen=True, slots=True)
class SchemaState:
    """Numbers of migrations."""

    applied: int
    known: int


@dataclass(frozen=True, slots=True)
class RoleRights:
    """`unrestricted`: a superuser, or one that bypasses row-level security."""

    role: str
    unrestricted: bool


async def schema_state(database: Database) -> SchemaState:
    """Which migrations are applied."""
    known = migration_texts()
    async with database.connection("owner") as connection:
        rows = await (await connection.execute(queries("schema")["migrations"])).fetchall()
    return SchemaState(len(rows), len(known))


async def role_rights(database: Database) -> list[RoleRights]:
    """The rights of the three roles, as their own connections see them."""
    rights = []
    for role in ROLES:
        async with database.connection(role) as connection:
            rows = await (await connection.execute(queries("schema")["role_rights"])).fetchall()
        rights += [RoleRights(row["role"], row["unrestricted"]) for row in rows]
    return rights


async def index_counts(database: Database) -> tuple[int, int]:
    """Numbers of vectors, and of batches that are being written or were interrupted."""
    async with database.connection("search") as connection:
        row = await (await connection.execute(queries("schema")["index_counts"])).fetchone()
    return (int(row["vectors"]), int(row["uncounted"])) if row else (0, 0)


async def damaged_tables(database: Database) -> dict[str, str]:
    """Table -> the error, of the tables with a damaged page: all are read, so that their checksums are compared."""
    statements, damaged = queries("schema"), {}
    async with database.connection("owner") as connection:
        names = [row["name"] for row in await (await connection.execute(statements["tables"])).fetchall()]
    for name in names:
        statement = sql.SQL(statements["read_table"]).format(table=sql.Identifier(name))
        try:
            async with database.connection("owner") as connection:
                await connection.execute(statement)
        except DatabaseDamaged as error:
            damaged[name] = str(error)
    return damaged
