"""What the session of a new connection must be: as the requested role, with the requested settings, of its own, and on
a server that writes. One statement for each new connection; queries take no more time.

A pooling proxy may drop start-up options, or lend the session of one client to another between two transactions: then
a reader would have the rights of the owner. What is missing is set once; what does not stay is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, LiteralString, NamedTuple

from psycopg import AsyncConnection, sql
from psycopg.errors import InsufficientPrivilege
from psycopg.rows import tuple_row

from dtrag.adapters.postgres.queries import queries
from dtrag.errors import DatabaseUnavailable

SHARED = (
    "a connection pooler shares sessions between clients (transaction or statement pooling), and would mix their "
    "rights. Set pool_mode = session in it, or connect to PostgreSQL itself."
)
STANDBY = (
    "this server is a standby, whose copy may be late: a revoked right would still count. Connect to the primary; with "
    "several hosts in DTRAG_DATABASE_URL, add target_session_attrs=read-write."
)
READ_ONLY_SERVER = (
    "this server takes no changes (default_transaction_read_only is on): it has been replaced, or is about to be. "
    "Requests succeed again as soon as a server of DTRAG_DATABASE_URL takes changes."
)
CHANGED = (
    "the session does not stay as it was set up: {difference}. A connection pooler must be in session mode; better, "
    "connect to PostgreSQL itself."
)


_STATEMENTS = 5
"""For a pooler that uses its sessions in turn."""


class Backend(NamedTuple):
    """The server process of a session; of two servers, two may have the same number."""

    process: int
    server_started: object
    standby: bool = False


class _State(NamedTuple):
    role: str
    backend: Backend
    read_only: bool
    settings: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class SessionSetup:
    """The role and the settings of a session; `reads_only`: every transaction in it is read-only."""

    role: str
    settings: Mapping[str, str]
    reads_only: bool = False

    @property
    def options(self) -> str:
        """The settings as start-up options."""
        return " ".join(f"-c {name}={value}" for name, value in self.settings.items())

    async def prepare(
        self, connection: AsyncConnection[Any], conninfo: str, known: Collection[Backend], *, standby: bool = False
    ) -> Backend:
        """Verify the session of a new connection; returns its server process.

        `known` are those of the other open connections. `standby`: a standby is accepted. Raises `DatabaseUnavailable`.
        """
        state = await self._state(connection)
        if not standby:
            _require_primary(state)
        pooled = state.backend.process != connection.info.backend_pid  # a proxy gives its clients numbers of its own
        if pooled and (state.backend in known or await _lent(connection, conninfo, state.backend)):
            raise DatabaseUnavailable(reason=SHARED)
        if difference := self._difference(state):
            try:
                await self._set(connection)
            except InsufficientPrivilege as error:
                raise DatabaseUnavailable(reason=CHANGED.format(difference=difference)) from error
            again = await self._state(connection)
            if again.backend != state.backend:
                raise DatabaseUnavailable(reason=SHARED)
            if difference := self._difference(again):
                raise DatabaseUnavailable(reason=CHANGED.format(difference=difference))
        if self.reads_only:
            await connection.execute(queries("session")["read_only"])
        return state.backend

    async def _state(self, connection: AsyncConnection[Any]) -> _State:
        names = list(self.settings)
        row = await _row(connection, queries("session")["state"], {"names": names})
        role, process, server_started, standby, read_only, values = row
        return _State(role, Backend(process, server_started, standby), read_only, dict(zip(names, values, strict=True)))

    def _difference(self, state: _State) -> str:
        """The first difference to what was requested; "" if there is none."""
        if state.role != self.role:
            return f"it runs as {state.role}, not as {self.role}"
        for name, value in self.settings.items():
            if (state.settings[name] or "").replace(" ", "") != value:
                return f"{name} is {state.settings[name]!r}, not {value!r}"
        return ""

    async def _set(self, connection: AsyncConnection[Any]) -> None:
        for name, value in {**self.settings, "role": self.role}.items():
            values = sql.Composed([sql.Literal(part) for part in value.split(",")]).join(",")
            await connection.execute(
                sql.SQL(queries("session")["set"]).format(name=sql.Identifier(*name.split(".")), values=values)
            )


def milliseconds(number: int) -> str:
    """The duration as PostgreSQL shows it."""
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)):
        if number and number % size == 0:
            return f"{number // size}{unit}"
    return f"{number}ms" if number else "0"


def _require_primary(state: _State) -> None:
    if state.backend.standby:
        raise DatabaseUnavailable(reason=STANDBY)
    if state.read_only:
        raise DatabaseUnavailable(reason=READ_ONLY_SERVER)


async def _lent(connection: AsyncConnection[Any], conninfo: str, backend: Backend) -> bool:
    """Whether the session of a connection serves another client, or another one serves the connection.

    The other client holds a transaction while the connection is idle: a pooler that lends sessions gives it the one
    that was used last, or gives the connection another one before or after.
    """
    statement = queries("session")["backend"]
    async with await AsyncConnection.connect(conninfo, autocommit=True) as other:
        async with other.transaction():
            lent = Backend(*await _row(other, statement))
            used = {Backend(*await _row(connection, statement))}
        for _ in range(_STATEMENTS):
            used.add(Backend(*await _row(connection, statement)))
    return lent == backend or used != {backend}


async def _row(connection: AsyncConnection[Any], statement: LiteralString, values: Any = None) -> tuple[Any, ...]:
    async with connection.cursor(row_factory=tuple_row) as cursor:
        row = await (await cursor.execute(statement, values, prepare=False)).fetchone()
    assert row is not None  # noqa: S101 - a statement without from
    return row
