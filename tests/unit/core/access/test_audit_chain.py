"""The chain of the audit log: any change of any line shows, wherever it was made."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.access.audit_chain import (
    MAX_TEXT,
    START,
    AuditEntry,
    AuditRow,
    ChainHead,
    chained,
    content,
    plain,
    settled,
    verify,
)
from dtrag.errors import InvalidInput

AT = datetime(2026, 3, 1, 9, 30, 0, 123456, UTC)


def entry(number: int = 0, **changes: Any) -> AuditEntry:
    made = AuditEntry(
        AT + timedelta(seconds=number), "kim", "GET /documents", None, [f"d{number}"], "allowed", {"status": 200}
    )
    return dataclasses.replace(made, **changes)


def stored(row: AuditRow) -> AuditRow:
    """The row as a database gives it back."""
    inner = row.entry
    through = json.loads(json.dumps([inner.scope, inner.subjects, inner.details]))
    return dataclasses.replace(
        row, entry=dataclasses.replace(inner, scope=through[0], subjects=through[1], details=through[2])
    )


def test_an_unchanged_chain_is_verified() -> None:
    rows = chained([entry(number) for number in range(5)], START)
    assert [row.number for row in rows] == [1, 2, 3, 4, 5]
    assert verify(rows) == verify(map(stored, rows))
    assert verify(rows).ok
    assert verify(rows).head == ChainHead(5, rows[-1].hash)
    more = chained([entry(9)], verify(rows).head)
    assert verify(more, verify(rows).head).ok


@pytest.mark.parametrize(
    "changes",
    [
        {"actor": "lee"},
        {"action": "POST /ask"},
        {"scope": []},
        {"subjects": ["d2", "d3"]},
        {"decision": "denied"},
        {"details": {"status": 201}},
        {"at": AT},
    ],
    ids=lambda changes: str(next(iter(changes))),
)
def test_a_changed_line_is_detected(changes: dict[str, Any]) -> None:
    rows = chained([entry(number) for number in range(5)], START)
    rows[2] = dataclasses.replace(rows[2], entry=dataclasses.replace(rows[2].entry, **changes))
    assert (verify(rows).ok, verify(rows).first_bad) == (False, 3)


def test_a_missing_or_forged_line_is_detected() -> None:
    rows = chained([entry(number) for number in range(5)], START)
    assert verify(rows[:2] + rows[3:]).first_bad == 3
    assert verify(rows[1:]).first_bad == 1
    [forged] = chained([entry(7)], ChainHead(2, rows[1].hash))
    assert verify([*rows[:2], forged, *rows[3:]]).first_bad == 4


def test_a_hash_does_not_depend_on_time_zone_or_key_order() -> None:
    elsewhere = entry(details={"b": 1, "a": 2}, at=AT.astimezone(timezone(timedelta(hours=9))))
    here = entry(details={"a": 2, "b": 1})
    assert content(1, settled(elsewhere)) == content(1, settled(here))


def test_hashes_do_not_change_between_versions() -> None:
    # Worked out with sha256sum over 32 zero bytes and the JSON that is written out here.
    written = (
        '{"action":"GET /documents","actor":"kim","at":"2026-03-01T09:30:00.123456+00:00","decision":"allowed",'
        '"details":{"status":200},"number":1,"scope":null,"subjects":["d0"]}'
    )
    assert content(1, settled(entry())) == written.encode()


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(values)
def test_stored_values_are_those_that_were_hashed(value: Any) -> None:
    [row] = chained([entry(details={"value": value}, scope=[value])], START)
    assert verify([stored(row)]).ok
    assert "\x00" not in content(1, row.entry).decode()


def test_long_texts_are_truncated_and_unknown_decisions_refused() -> None:
    assert plain({"said": "x" * 5000}) == {"said": "x" * MAX_TEXT}
    assert plain(0.1) == "0.1"
    with pytest.raises(InvalidInput, match="Unknown decision"):
        chained([entry(decision="perhaps")], START)


@pytest.mark.parametrize("text", ["", "1", "1:", "x:" + "0" * 64, "-1:" + "0" * 64, "1:" + "0" * 63, "1:zz"])
def test_a_printed_head_can_be_parsed(text: str) -> None:
    head = ChainHead(12, bytes(range(32)))
    assert ChainHead.parse(str(head)) == head
    with pytest.raises(InvalidInput, match="not a head"):
        ChainHead.parse(text)
