"""A database on a cluster (Citus): converts it, and finds what is not as it must be.

Documents, their passages, indexes and vectors are distributed by document; everything else stays on the coordinator.
The conversion does what the catalog lacks, so that it resumes after an interruption, and a later one adds new tables.
Until it is complete, the database is marked, and no process opens it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.conninfo import make_conninfo
from psycopg.rows import DictRow, dict_row

from dtrag.adapters.postgres.connect import NO_ADDRESS, make_roles
from dtrag.adapters.postgres.database import (
    CONNECT_TIMEOUT,
    CONVERTING,
    EF_SEARCH,
    ROLE_NAMES,
    ROLES,
    Database,
    fetch,
    fetch_row,
    migrate,
    sentence,
)
from dtrag.adapters.postgres.queries import queries
from dtrag.errors import DatabaseUnavailable, InvalidInput
from dtrag.settings import Settings

REFERRING = (
    "chunks",
    "lexical_index",
    "embeddings",
    "sentence_vectors",
    "waiting_documents",
    "passage_validity",
    "originals",
)
"""Tables whose rows are deleted with their document."""
DISTRIBUTED = ("documents", *REFERRING, "imagined_questions")
SHARDS = 8
"""Of each table: few, since a statement over all of them takes longer with each; a server takes one or more."""
DATABASE_SETTINGS = {
    "citus.propagate_set_commands": "local",
    "hnsw.ef_search": str(EF_SEARCH),
    "hnsw.iterative_scan": "relaxed_order",
}
"""Settings of connections do not reach the other servers; those of the database do."""
_PATH = "-c search_path=dtrag,public,extensions"
HEALTH_S = 5.0
"""A server that needs longer to respond does not work, in seconds."""
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ConversionStep:
    """A part of the conversion: what it does, and its statements."""

    title: str
    statements: Sequence[sql.Composed]


@dataclass(frozen=True, slots=True)
class ClusterState:
    """What the catalog has: names of tables, and of constraints by table."""

    database: str
    marked: bool
    logins: Mapping[str, bool]
    settings: frozenset[str]
    policies: Sequence[tuple[str, str]]
    forced: Sequence[str]
    sees_documents: bool
    distributed: Mapping[str, tuple[str, int]]
    foreign_keys: Mapping[str, Sequence[str]]
    local_copies: frozenset[str]

    @classmethod
    async def read(cls, connection: AsyncConnection[DictRow]) -> ClusterState:
        """The state of the database of a connection."""

        async def rows(name: str, **values: object) -> list[DictRow]:
            return await (await connection.execute(_SQL[name], values or None)).fetchall()

        tables = [f"dtrag.{name}" for name in DISTRIBUTED]
        foreign_keys: dict[str, list[str]] = {}
        for row in await rows("foreign_keys", tables=tables):
            foreign_keys.setdefault(_plain(row["name"]), []).append(row["constraint"])
        return cls(
            database=(await rows("server"))[0]["name"],
            marked=(await rows("marked", mark=CONVERTING))[0]["marked"],
            logins={row["role"]: row["login"] for row in await rows("logins", roles=list(ROLE_NAMES.values()))},
            settings=frozenset((await rows("database_settings"))[0]["settings"]),
            policies=[(row["name"], row["policy"]) for row in await rows("policies") if row["name"] in DISTRIBUTED],
            forced=[row["name"] for row in await rows("forced", tables=tables)],
            sees_documents=(await rows("sees_documents_exists"))[0]["complete"],
            distributed={_plain(row["name"]): (row["key"], row["place"]) for row in await rows("distributed")},
            foreign_keys=foreign_keys,
            local_copies=frozenset(row["name"] for row in await rows("local_copies", tables=tables)),
        )

    def steps(self, shards: int = SHARDS) -> list[ConversionStep]:
        """What the conversion has to do, in this order; empty when it is complete."""
        steps: list[ConversionStep] = []

        def add(title: str, *statements: sql.Composed) -> None:
            if statements:
                steps.append(ConversionStep(title, statements))

        add(
            "the roles may log in: the servers connect to each other as them",
            *(_composed("let_log_in", role=sql.Identifier(role)) for role, login in self.logins.items() if not login),
        )
        add(
            "settings of the database, which reach all servers: " + ", ".join(DATABASE_SETTINGS),
            *(
                _composed(
                    "set_for_database",
                    database=sql.Identifier(self.database),
                    setting=sql.SQL(name),
                    value=sql.Literal(value),
                )
                for name, value in DATABASE_SETTINGS.items()
                if f"{name}={value}" not in self.settings
            ),
        )
        add(
            "policies of documents without sub-selects",
            *(
                _composed("confine_documents", table=sql.Identifier(table), policy=sql.Identifier(policy))
                for table, policy in self.policies
            ),
        )
        add(
            "the owner of the tables writes without their policies, which allow it everything",
            *(_composed("do_not_force", table=sql.Identifier(table)) for table in self.forced),
        )
        if not self.sees_documents:
            names = ("sees_documents", "revoke_sees_documents", "grant_sees_documents", "confine_cases", "confine_logs")
            add("policies of cases that join no documents", *map(_composed, names))
        missing = [table for table in DISTRIBUTED if table not in self.distributed]
        self._distribution(missing, shards, add)
        if steps or self.marked:
            mark, unmark = (_composed(name, mark=sql.Literal(CONVERTING)) for name in ("mark", "unmark"))
            first = [] if self.marked else [ConversionStep("no process opens the database until the end", [mark])]
            steps = [
                *first,
                *steps,
                ConversionStep(
                    "statistics for the planner; the database can be opened again", [_composed("statistics"), unmark]
                ),
            ]
        return steps

    def _distribution(self, missing: Sequence[str], shards: int, add: Callable[..., None]) -> None:
        off = {table: keys for table, keys in self.foreign_keys.items() if table in missing}
        for table, keys in off.items():
            add(
                f"foreign keys of {table} removed for now",
                *(
                    _composed("drop_foreign_key", table=sql.Identifier(table), constraint=sql.Identifier(key))
                    for key in keys
                ),
            )
        for table in missing:
            name = sql.Literal(f"dtrag.{table}")
            add(
                f"{table} distributed by document",
                _composed("distribute_first", shards=sql.Literal(shards))
                if table == "documents"
                else _composed("distribute", table=name),
            )
        for table in DISTRIBUTED:
            if table in missing or table in self.local_copies:
                copy = _composed("drop_local_copy", table=sql.Literal(f"dtrag.{table}"))
                add(f"the copy of {table} on the coordinator removed", copy)
        for table in REFERRING:
            constraint = f"{table}_document_id_fkey"
            if table in missing or constraint not in self.foreign_keys.get(table, ()):
                key = _composed("add_foreign_key", table=sql.Identifier(table), constraint=sql.Identifier(constraint))
                add(f"foreign key of {table}", key)


@dataclass(frozen=True, slots=True)
class Conversion:
    """What a conversion did or, with `dry_run`, would do."""

    dry_run: bool
    steps: list[str]
    rows: dict[str, int]
    """Rows of each distributed table; empty with `dry_run`."""
    shards: dict[str, int]
    """Shards of documents on each server; empty with `dry_run`."""


async def convert(settings: Settings, *, shards: int = SHARDS, dry_run: bool = False, tell: Tell) -> Conversion:
    """Distribute the documents of the database; what is done already is left as it is.

    `tell` gets each step before it begins and when it has ended. Raises `InvalidInput` while another program is
    connected or the cluster is not ready, and `DatabaseUnavailable`.
    """
    if not settings.database_url:
        raise InvalidInput(
            "An embedded database cannot be distributed. Set DTRAG_DATABASE_URL to the coordinator of a cluster "
            "(docs/how-to/citus.md)."
        )
    try:
        async with await AsyncConnection.connect(
            make_conninfo(settings.database_url, options=_PATH),
            autocommit=True,
            connect_timeout=CONNECT_TIMEOUT,
            row_factory=dict_row,
        ) as connection:
            return await _convert(connection, settings.database_url, shards, dry_run, tell)
    except psycopg.ProgrammingError as error:
        if "connection info string" in str(error) or "URI" in str(error):
            raise InvalidInput(NO_ADDRESS) from error
        raise
    except (psycopg.OperationalError, psycopg.InternalError) as error:
        raise DatabaseUnavailable(
            reason=f"{sentence(error)} What is converted stays; run dtrag cluster convert again."
        ) from error


async def _convert(
    connection: AsyncConnection[DictRow], url: str, shards: int, dry_run: bool, tell: Tell
) -> Conversion:
    await _require_cluster(connection)
    await _require_alone(connection)
    if not dry_run:
        await make_roles(connection, login=True)
    if not await _schema_is_current(connection, url, dry_run):
        return Conversion(dry_run, ["the schema of dtrag, and after it all steps of a conversion"], {}, {})
    steps = (await ClusterState.read(connection)).steps(shards)
    for step in steps:
        if dry_run:
            tell(step.title)
            continue
        await _require_alone(connection)
        began = time.monotonic()
        for statement in step.statements:
            await connection.execute(statement)
        tell(f"{step.title} ({time.monotonic() - began:.1f} s)")
    titles = [step.title for step in steps]
    if dry_run:
        return Conversion(dry_run, titles, {}, {})
    rows = {}
    for table in DISTRIBUTED:
        row = await (await connection.execute(_composed("count", table=sql.Identifier(table)))).fetchone()
        rows[table] = row["rows"] if row else 0
    placements = await (await connection.execute(_SQL["placements"])).fetchall()
    return Conversion(dry_run, titles, rows, {row["address"]: row["shards"] for row in placements})


async def _schema_is_current(connection: AsyncConnection[DictRow], url: str, dry_run: bool) -> bool:
    """Whether the tables exist; migrates them unless a conversion was interrupted."""
    row = await (await connection.execute(queries("schema")["migrations_table"])).fetchone()
    exists = row is not None and row["to_regclass"] is not None
    if exists:
        row = await (await connection.execute(_SQL["marked"], {"mark": CONVERTING})).fetchone()
        if row is not None and row["marked"]:
            return True
    if dry_run:
        return exists
    options = f"-c role={ROLE_NAMES['owner']} {_PATH}"
    async with await AsyncConnection.connect(
        make_conninfo(url, options=options), autocommit=True, connect_timeout=CONNECT_TIMEOUT
    ) as owner:
        await migrate(owner)
    return True


async def _require_cluster(connection: AsyncConnection[DictRow]) -> None:
    [server] = await (await connection.execute(_SQL["server"])).fetchall()
    if server["citus"] is None:
        raise InvalidInput(
            "This server has no Citus. Install it on each server of the cluster, and run as an administrator: create "
            "extension citus (docs/how-to/citus.md)."
        )
    if not server["superuser"]:
        raise InvalidInput("Only a superuser may convert a database. Put one into DTRAG_DATABASE_URL for this command.")
    nodes = await (await connection.execute(_SQL["nodes"])).fetchall()
    if not any(node["coordinator"] for node in nodes):
        raise InvalidInput(
            "This server is not the coordinator of a cluster. Connect to the coordinator, or run there: select "
            "citus_set_coordinator_host('HOST', PORT)."
        )
    if not any(node["holds"] and node["active"] for node in nodes):
        raise InvalidInput(
            "No server of the cluster may hold documents. Add one, on the coordinator: select citus_add_node('HOST', "
            "PORT)."
        )


async def _require_alone(connection: AsyncConnection[DictRow]) -> None:
    others = await (await connection.execute(_SQL["others"])).fetchall()
    if others:
        names = ", ".join(f"{row['program']} as {row['login']} (process {row['pid']})" for row in others[:5])
        raise InvalidInput(
            f"{len(others)} other connections to the database are open: {names}. Stop all services and commands of "
            "dtrag, and run dtrag cluster convert again."
        )


@dataclass(frozen=True, slots=True)
class ClusterFinding:
    """A line of `dtrag doctor` about the cluster."""

    state: Literal["ok", "warn", "fail"]
    detail: str
    advice: str = ""


async def examine(database: Database) -> list[ClusterFinding]:
    """What is right and what is wrong with the cluster of a database; empty without one."""
    if not database.on_cluster:
        return []
    async with database.connection("owner") as connection:
        nodes = await fetch(connection, _SQL["nodes"])
        state = await ClusterState.read(connection)
    return [
        *await _health(database, nodes),
        *_tables(state),
        *[finding async for finding in _propagation(database)],
    ]


async def _health(database: Database, nodes: Sequence[DictRow]) -> list[ClusterFinding]:
    away = ", ".join(node["address"] for node in nodes if not node["active"])
    if away:
        advice = "on the coordinator: select citus_activate_node('HOST', PORT)"
        return [ClusterFinding("fail", f"a server is not active: {away}.", advice)]
    silent: set[str] = set()
    try:
        async with asyncio.timeout(HEALTH_S), database.own_connection("owner") as connection:
            rows = await fetch(connection, _SQL["node_health"])
        silent = {row["to_address"] for row in rows if row["result"] is False}
        silent |= {row["from_address"] for row in rows if row["result"] is None}
    except psycopg.errors.InsufficientPrivilege:
        pass
    except TimeoutError:
        silent = {"at least one"}
    if silent:
        detail = f"servers do not respond, or cannot reach each other: {', '.join(sorted(silent))}."
        return [ClusterFinding("fail", detail, "start the server; dtrag continues by itself when it responds")]
    holding = [node["address"] for node in nodes if node["holds"]]
    return [ClusterFinding("ok", f"{len(nodes)} servers respond; {', '.join(holding)} may hold documents")]


def _tables(state: ClusterState) -> list[ClusterFinding]:
    findings = []
    content = {table: place for table, place in state.distributed.items() if table in DISTRIBUTED}
    if others := sorted(state.distributed.keys() - content.keys()):
        commands = "; ".join(f"select undistribute_table('dtrag.{table}')" for table in others)
        findings.append(
            ClusterFinding("fail", f"{', '.join(others)} must not be distributed.", f"as a superuser: {commands}")
        )
    wrong = sorted(
        table
        for table, place in content.items()
        if place[0] != "document_id" or place[1] != content.get("documents", place)[1]
    )
    if wrong:
        commands = "; ".join(f"select undistribute_table('dtrag.{table}')" for table in wrong)
        detail = f"{', '.join(wrong)}: not distributed by document_id beside the documents."
        findings.append(ClusterFinding("fail", detail, f"as a superuser: {commands}; then: dtrag cluster convert"))
    if not content:
        detail = "nothing is distributed: all documents are on the coordinator."
        findings.append(ClusterFinding("warn", detail, "stop dtrag, then: dtrag cluster convert"))
    elif missing := [step.title for step in state.steps()][1:-1]:
        detail = f"the conversion is not complete. Missing: {'; '.join(missing)}."
        findings.append(ClusterFinding("fail", detail, "stop dtrag, then: dtrag cluster convert"))
    elif not findings:
        findings.append(ClusterFinding("ok", f"distributed by document: {', '.join(sorted(content))}"))
    return findings


async def _propagation(database: Database) -> AsyncIterator[ClusterFinding]:
    """The setting without which no scope reaches the servers."""
    for role in ROLES:
        async with database.connection(role) as connection:
            row = await fetch_row(connection, _SQL["propagated"])
        value = row["value"] if row else None
        if value != "local":
            yield ClusterFinding(
                "fail",
                f"citus.propagate_set_commands is {value!r} for {ROLE_NAMES[role]}, not 'local': the scope of a caller "
                "does not reach the servers, which then show nothing.",
                "connect without a pooler that drops start-up options, and remove other values: alter role … reset "
                "citus.propagate_set_commands",
            )


_SQL = queries("cluster")


def _composed(name: str, **parts: sql.Composable) -> sql.Composed:
    return sql.SQL(_SQL[name]).format(**parts)


def _plain(table: str) -> str:
    return table.removeprefix("dtrag.")
