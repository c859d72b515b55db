"""A database, a case memory and settings that another version of dtrag made: each is refused or named in a sentence."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path

import pytest
from psycopg.types.json import Jsonb

from dtrag.adapters.postgres import database
from dtrag.adapters.sqlite.connection import FILE, connect
from dtrag.app import open_app
from dtrag.core.answers.passage_confidence import shipped, weights_for
from dtrag.delivery.api.app import create_app
from dtrag.delivery.cli.checks import examine
from dtrag.errors import Conflict, SchemaTooNew
from dtrag.governance.stored_settings import unused_settings
from dtrag.settings import Settings
from tests.store import Store


async def test_a_later_schema_is_refused_with_the_version_that_made_it(
    settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_app(settings):
        pass
    every = database.migration_texts()
    with monkeypatch.context() as later:
        later.setattr(database, "migration_texts", lambda: {**every, "9999_later.sql": "create table later ()"})
        later.setattr(database, "__version__", "9.1.0")
        async with open_app(settings):
            pass
    before = store.rows("select * from migrations order by 1")
    with pytest.raises(SchemaTooNew, match=r"does not know: 9999_later, made by dtrag 9\.1\.0\..* Update dtrag"):
        async with open_app(settings):
            pass
    assert store.rows("select * from migrations order by 1") == before
    [check] = [check for check in (await examine(settings)).checks if check.name == "database"]
    assert (check.state, "made by dtrag 9.1.0" in check.detail) == ("fail", True)

    store.rows("alter table migrations drop column version")  # as earlier versions made it
    with pytest.raises(SchemaTooNew, match="made by a later version"):
        async with open_app(settings):
            pass
    store.rows("delete from migrations where name = '9999_later.sql'")
    store.rows("delete from migrations where name = (select max(name) from migrations)")
    with monkeypatch.context() as earlier:
        earlier.setattr(database, "migration_texts", lambda: {**every, sorted(every)[-1]: "select 1"})
        async with open_app(settings):
            assert store.value("select version from migrations order by name desc limit 1") == "0.1.0"


def test_a_later_case_memory_is_refused(tmp_path: Path) -> None:
    connect(tmp_path).close()
    with sqlite3.connect(tmp_path / FILE) as file:
        assert file.execute("pragma user_version").fetchone() == (1,)
        file.execute("pragma user_version = 2")
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(SchemaTooNew, match=r"format 2 \(known: 1\), made by a later version.*CBR_DATA_DIR"):
        connect(tmp_path)
    assert (tmp_path / FILE).read_bytes() == before


async def test_stored_settings_of_other_versions_are_named(
    settings: Settings, store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DTRAG_TOPK", "3")
    calibration = {"signals": shipped().signals, "models": {"words": {"later": 1}}, "thresholds": {}}
    lexicon = {"next": 3, "entries": [{"number": 1, "spoken": ["쉬는 학기"], "official": ["휴학"], "later": True}]}
    async with open_app(settings) as app:
        assert unused_settings((await app.index.snapshot()).settings) == []
        for name, value in (("calibration", calibration), ("lexicon", lexicon), ("from_later", 1)):
            store.rows("insert into index_settings values (%s, %s)", name, Jsonb(value))
        store.rows("update index_settings set value = to_jsonb((value #>> '{}')::int + 1) where name = 'generation'")
        stored = (await app.index.snapshot()).settings
        notes = unused_settings(stored)
        assert [note.split(";")[0] for note in notes] == [
            "A later version of dtrag stored from_later in the index",
            "Another version of dtrag made the calibration",
            "A later version of dtrag stored 1 entries of the lexicon that this one cannot read",
        ]
        assert weights_for(stored["calibration"]) == shipped(), "questions are answered"
        with pytest.raises(Conflict, match="use the later version"):
            await app.lexicon.add(["복학 신청"], ["복학"])
        assert (await app.index.snapshot()).settings["lexicon"] == lexicon
    checks = (await examine(settings)).checks
    assert [check.detail for check in checks if check.name == "stored settings"] == notes
    [variables] = [check for check in checks if check.name == "environment"]
    assert variables.detail == "this version has no DTRAG_TOPK: ignored."
    with caplog.at_level(logging.WARNING):
        api = create_app(settings)
        async with api.router.lifespan_context(api):
            pass
    assert {*notes, "this version of dtrag has no setting DTRAG_TOPK: ignored"} <= set(caplog.messages)
