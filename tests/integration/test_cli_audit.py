"""`dtrag audit` as people run it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from dtrag.isolation.scenarios import EXEMPT
from dtrag.settings import Settings
from tests.integration.cli_process import Cli
from tests.store import Store


@pytest.fixture
def cli(settings: Settings) -> Iterator[Cli]:
    yield Cli(settings.data_dir, (("DTRAG_DATABASE_NAME", settings.database_name), ("DTRAG_EMBEDDER", "none")))


def test_lines_are_listed_and_verified(cli: Cli, store: Store) -> None:
    assert cli.call("keys", "create", "--name", "kim").code == 0
    assert cli.call("keys", "create", "--name", "lee", "--scope", "HR").code == 0
    lines = cli.call("audit", "list", "--json").json["lines"]
    assert [(line["number"], line["actor"], line["action"]) for line in lines] == [
        (2, "local", "keys.create"),
        (1, "local", "keys.create"),
    ]
    listed = cli.call("audit", "list", "--limit", "1")
    assert "keys.create" in listed.out
    assert max(map(len, listed.out.splitlines())) <= 80
    assert cli.call("audit", "list", "--actor", "nobody", "--json").json == {"lines": []}
    assert cli.call("audit", "list", "--since", "yesterday").code == 2
    head = cli.call("audit", "verify").out.strip()
    assert head.startswith("2:")
    assert cli.call("audit", "verify", "--expect", head, "--json").json["ok"] is True
    assert cli.call("audit", "verify", "--expect", "2:" + "0" * 64).code == 1
    assert cli.call("audit", "verify", "--expect", "rubbish").code == 2
    with store.connect() as connection, psycopg.ClientCursor(connection):
        connection.execute("grant update on audit_log to dtrag_owner")
        connection.execute("update audit_log set actor = 'lee' where number = 1")
    ran = cli.call("audit", "verify")
    assert (ran.code, "line 1" in ran.out) == (1, True)


def test_isolation_writes_its_report(cli: Cli, tmp_path: Path) -> None:
    ran = cli.call(
        *"audit isolation --requests 60 --documents 60 --nodes 12 --report".split(), str(tmp_path / "r.json"), "--json"
    )
    assert (ran.code, ran.json["leaks"], ran.json["requests"] >= 60) == (0, 0, True), ran.json["examples"]
    twins = ran.json["twins"]
    assert (twins["differences"], twins["pairs"] > 0, ran.json["http"] * 2 >= ran.json["requests"]) == (0, True, True)
    assert twins["exempt"].keys() == EXEMPT.keys()
    assert json.loads((tmp_path / "r.json").read_text("utf-8")) == ran.json
