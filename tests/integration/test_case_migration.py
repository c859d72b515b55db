"""Cases move from SQLite to PostgreSQL and back with everything that belongs to them."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from dtrag.adapters.sqlite.cases import SqliteCases
from dtrag.app import App
from dtrag.cases.maintenance import Migrated, migrate
from dtrag.core.access.scope import EVERYTHING
from dtrag.core.cases.case import QuestionVector, ReuseDecision
from dtrag.errors import DatabaseUnavailable
from dtrag.ports import CaseStore
from tests.builders import NOON, case, vote
from tests.contract.test_case_stores import log


async def everything(store: CaseStore) -> list[object]:
    return [*await store.records(100), *await store.log_page(100)]


async def test_a_copy_is_complete_and_can_be_repeated(app: App, tmp_path: Path) -> None:
    file, again = SqliteCases(tmp_path / "a"), SqliteCases(tmp_path / "b")
    for name in ("one", "two", "세번째"):
        await file.add(
            case(name, metadata={"name": name}, passages=["x:1"], vector=QuestionVector("toy@1", b"\0\0\x80?"))
        )
        await file.vote(vote(name, log_id=f"log of {name}", voter="kim"), EVERYTHING)
    await file.add_decision(ReuseDecision(case_id="one", log_id="r", kind="replay", correct=True, at=NOON))
    await file.add_log(log("answer", kind="answer", shown_case_id="one", details={"confidence": 0.5}))
    database = app.case_store
    (interrupted, *_) = await file.records(1)
    await database.put(interrupted)
    assert await migrate(file, database) == Migrated(cases=2, known_cases=1, logs=4)
    assert await migrate(file, database) == Migrated(known_cases=3, known_logs=4)
    assert await everything(database) == await everything(file)
    assert await migrate(database, again) == Migrated(cases=3, logs=4)
    assert await everything(again) == await everything(file)
    for opened in (file, again):
        await opened.close()


async def test_interactions_that_cannot_be_written_are_errors(tmp_path: Path) -> None:
    """Each caller whose interaction was in the failed transaction gets the error."""
    file = SqliteCases(tmp_path)
    await file.add(case("one"))

    def forbid(connection: sqlite3.Connection) -> None:
        connection.execute("pragma query_only = on")

    await file._file.run(forbid)
    written = [file.add_log(log(f"log-{number}")) for number in range(5)]
    results = await asyncio.gather(*written, return_exceptions=True)
    assert all(isinstance(result, DatabaseUnavailable) for result in results)
    await file.close()
    await file.add_log(log("again"))
    assert [each.log_id for each in await file.logs(EVERYTHING, 10)] == ["again"]
    await file.close()
