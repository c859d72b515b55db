"""A file of an earlier version: its questions get the scope in which they were asked."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from dtrag.adapters.sqlite.cases import SqliteCases
from dtrag.adapters.sqlite.connection import FILE
from dtrag.core.access.scope import EVERYTHING, PUBLISHED
from dtrag.core.cases.case import CaseLog
from tests.builders import NOON, case
from tests.contract.test_case_stores import decision


async def test_a_file_without_scopes_of_questions_is_read(tmp_path: Path) -> None:
    store, part = SqliteCases(tmp_path), frozenset({4, 7})
    await store.add(case("by hand"))
    for case_id, answered_in in (("answer-whole", None), ("answer-part", part), ("answer-none", PUBLISHED)):
        await store.add(case(case_id, origin="answer", answered_in=answered_in))
    await store.add(case("answer-changed"))
    for log_id, nodes in (("whole", None), ("part", [4, 7]), ("none", [])):
        await store.add_log(CaseLog(log_id=log_id, timestamp=NOON, query="q", details={"answered_in": nodes}))
    await store.add_decision(decision("by hand", "one", correct=True))
    await store.close()
    with sqlite3.connect(tmp_path / FILE) as connection:
        for table in ("cbr_cases", "cbr_logs", "cbr_decisions"):
            connection.execute(f"alter table {table} drop column asked_in")
    connection.close()
    cases = {each.case_id: each.asked_in for each in await store.page(EVERYTHING, 10)}
    assert cases == {
        "by hand": PUBLISHED,
        "answer-whole": None,
        "answer-part": part,
        "answer-none": None,
        "answer-changed": None,
    }
    assert {log.log_id: log.asked_in for log in await store.logs(EVERYTHING, 10)} == {
        "whole": None,
        "part": part,
        "none": None,
    }
    assert (await store.decisions()).correct == 1
    await store.close()
