"""The file of the case memory: one connection in a thread of its own, its schema, and the forms of its values."""

from __future__ import annotations

import json
import sqlite3
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, TypeVar

from dtrag.adapters.case_codec import NAMES, NODES, PASSAGES, CaseCodec, ColumnForm
from dtrag.adapters.sql_files import statements
from dtrag.concurrency import DaemonThreads
from dtrag.core.cases.case import CaseLog, CitedPassage
from dtrag.core.text.personal_data_policy import OFF, PersonalDataPolicy
from dtrag.core.version import __version__
from dtrag.errors import DatabaseUnavailable, SchemaTooNew, StorageFull

T = TypeVar("T")
FILE = "cbr_system.db"
FORMAT = 1
"""Number of the schema, which the file records. Raise it with a change that earlier versions cannot use."""
BUSY_S = 10.0
"""Longest wait for another process that writes."""
SQL = statements("dtrag.adapters.sqlite", "cases.sql")


class _Masking(sqlite3.Connection):
    """Masks the texts of all parameters; of JSON its texts."""

    policy = OFF

    def execute(self, statement: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """See `sqlite3.Connection`."""
        return super().execute(statement, self._masked(parameters))

    def executemany(self, statement: str, parameters: Iterable[Any], /) -> sqlite3.Cursor:
        """See `sqlite3.Connection`."""
        return super().executemany(statement, map(self._masked, parameters))

    def _masked(self, parameters: Any) -> Any:
        if not isinstance(parameters, Mapping):
            return parameters
        return {name: self._text(value) if isinstance(value, str) else value for name, value in parameters.items()}

    def _text(self, text: str) -> str:
        if text[:1] in ("[", "{"):
            try:
                value = json.loads(text)
            except ValueError:
                return self.policy.masked(text)
            masked = self.policy.masked_value(value)
            return text if masked == value else _json(masked)
        return self.policy.masked(text)


def connect(folder: Path, personal_data: PersonalDataPolicy = OFF) -> sqlite3.Connection:
    """A connection to the file in the folder, which is created if it is missing, with the whole schema.

    `personal_data` is masked in what is written, if so decided. Outside of an explicit transaction every statement is
    one of its own. Raises `DatabaseUnavailable`, and `SchemaTooNew` for a file of a later version.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(
            folder / FILE,
            timeout=BUSY_S,
            isolation_level=None,
            check_same_thread=False,
            factory=_Masking if personal_data.masks else sqlite3.Connection,
        )
        if isinstance(connection, _Masking):
            connection.policy = personal_data
    except (OSError, sqlite3.Error) as error:
        raise DatabaseUnavailable(
            f"The case memory in {folder} cannot be opened: {error}. Check the folder of CBR_DATA_DIR."
        ) from error
    try:
        connection.row_factory = sqlite3.Row
        _refuse_later(connection, folder)
        connection.execute(SQL["write_ahead"])
        connection.execute(SQL["on_disk"])
        with transaction(connection):
            _create(connection)
    except sqlite3.Error as error:
        connection.close()
        raise translated(error, folder) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _create(connection: sqlite3.Connection) -> None:
    for table in ("cbr_cases", "cbr_logs", "cbr_decisions"):
        connection.execute(SQL[f"create_{table.removeprefix('cbr_')}"])
        present = {row["name"] for row in connection.execute(SQL["columns"], {"table": table})}
        for name, script in SQL.items():
            if name.startswith(f"{table}.") and name.partition(".")[2] not in present:
                for statement in _each(script):
                    connection.execute(statement)
    for statement in _each(SQL["create_rest"]):
        connection.execute(statement)
    connection.execute(SQL["number_unnumbered"])
    connection.execute(SQL["write_format"].format(FORMAT))


def _refuse_later(connection: sqlite3.Connection, folder: Path) -> None:
    number = connection.execute(SQL["format"]).fetchone()[0]
    if number > FORMAT:
        raise SchemaTooNew(
            place=f"The case memory in {folder}",
            current=__version__,
            change=f"format {number} (known: {FORMAT})",
            maker="a later version",
            setting="CBR_DATA_DIR",
        )


def _each(script: str) -> Iterator[str]:
    """The statements of a script. Unlike `executescript`, which commits first, they can be part of a transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement:
        yield statement


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of the block or nothing of it; it locks the file against other writers."""
    connection.execute(SQL["begin"])
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute(SQL["rollback"])
        raise
    connection.execute(SQL["commit"])


def translated(error: sqlite3.Error, folder: Path) -> DatabaseUnavailable | StorageFull:
    """The error of SQLite as one of dtrag."""
    if "disk is full" in str(error):
        return StorageFull(f"The disk of {folder} is full. Free some space; suggestions still work.")
    return DatabaseUnavailable(
        f"The case memory in {folder} cannot be used: {error}. Check the disk and the rights of the folder."
    )


class CaseFile:
    """The file in one folder. It is opened at the first use, and closed by `close` or with the object."""

    def __init__(self, folder: Path, personal_data: PersonalDataPolicy = OFF) -> None:
        self.folder = folder
        self._personal_data = personal_data
        self._thread = DaemonThreads(1, "dtrag-cases")
        self._connection: sqlite3.Connection | None = None

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """The result of the work, done in the thread of the file. Raises `DatabaseUnavailable`, `StorageFull`."""
        return await self._thread.run(self._work, work)

    def _work(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._connection is None:
            self._connection = connect(self.folder, self._personal_data)
            weakref.finalize(self, self._connection.close)
        try:
            return work(self._connection)
        except sqlite3.Error as error:
            raise translated(error, self.folder) from error

    async def close(self) -> None:
        """Close the connection; a later use opens it again."""
        await self._thread.run(self._close)

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def rows(connection: sqlite3.Connection, name: str, values: Mapping[str, Any]) -> list[sqlite3.Row]:
    """The rows of a named statement."""
    return connection.execute(SQL[name], values).fetchall()


def path_of(value: str | None) -> tuple[str, ...]:
    """A list of names or ids from its JSON; one name where another program has stored it plainly."""
    if not value:
        return ()
    try:
        names = json.loads(value)
    except ValueError:
        return (value,)
    return tuple(str(name) for name in names) if isinstance(names, list) else (str(names),)


def passages_of(value: str | None) -> tuple[CitedPassage, ...]:
    """Cited passages from their JSON: pairs of an id and a hash in hexadecimal digits."""
    return tuple(CitedPassage(chunk_id, bytes.fromhex(digest)) for chunk_id, digest in json.loads(value or "[]"))


def nodes_of(value: str | None) -> frozenset[int] | None:
    """Nodes from their JSON; None for no list."""
    return None if value is None else frozenset(json.loads(value))


def time_text(value: datetime) -> str:
    """Of one length, so that their order as text is that of the times."""
    return value.astimezone(UTC).isoformat(timespec="microseconds")


def _time_of(value: str) -> datetime:
    parsed = datetime.fromisoformat(value)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


_json = json.JSONEncoder(ensure_ascii=False).encode
CODEC = CaseCodec(
    {
        NAMES: ColumnForm(_json, path_of),
        NODES: ColumnForm(lambda nodes: None if nodes is None else _json(sorted(nodes)), nodes_of),
        PASSAGES: ColumnForm(
            lambda passages: _json([[each.chunk_id, each.content_hash.hex()] for each in passages]), passages_of
        ),
        Mapping[str, Any]: ColumnForm(lambda value: _json(dict(value)), lambda value: json.loads(value or "{}")),
        datetime: ColumnForm(time_text, _time_of),
        date | None: ColumnForm(
            lambda day: day and day.isoformat(), lambda value: date.fromisoformat(value) if value else None
        ),
    },
    {(CaseLog, "success"): "success_flag"},
)
