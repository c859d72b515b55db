"""A standby: the owner's commands read its copy and report its age; a service refuses it; nothing is written."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dtrag.app import open_app
from dtrag.errors import DatabaseUnavailable
from dtrag.settings import Settings
from tests.clusters import Cluster, clusters
from tests.integration.cli_process import Cli
from tests.toy import lines


@pytest.fixture(scope="module")
def pair() -> Iterator[list[Cluster]]:
    with clusters(standby=True) as made:
        yield made


def settings_of(url: str, folder: Path) -> Settings:
    return Settings.load(environ={}, database_url=url, data_dir=folder / "data", embedder="none")


async def test_the_owner_reads_on_a_standby(pair: list[Cluster], tmp_path: Path) -> None:
    primary, standby = pair
    async with open_app(settings_of(primary.url(), tmp_path)) as app:
        await app.ingest(lines(tmp_path / "notes.jsonl", 20))
        key = (await app.keys.create("kim")).secret
    standby.replay(primary)
    with pytest.raises(DatabaseUnavailable, match="this server is a standby, whose copy may be late"):
        async with open_app(settings_of(standby.url(), tmp_path)):
            pass
    async with open_app(settings_of(standby.url(), tmp_path), standby=True) as app:
        assert (await app.search("kettle"))[0]
        assert len(await app.documents()) == 20
        await app.ask("What about the kettle?")
        assert await app.database.last_replayed() is not None
        with pytest.raises(DatabaseUnavailable, match="this server is a standby"):
            await app.keys.revoke("kim")
    async with open_app(settings_of(standby.url(primary), tmp_path)) as app:  # of several hosts the primary is used
        assert (await app.keys.recognise(key)).name == "kim"
        await app.keys.revoke("kim")


@pytest.mark.parametrize("command", [["search", "kettle"], ["documents"], ["doctor"]], ids=lambda command: command[0])
def test_commands_report_the_copy(pair: list[Cluster], tmp_path: Path, command: list[str]) -> None:
    url = pair[1].url()
    done = Cli(tmp_path / "data").call(*command, DTRAG_DATABASE_URL=url, DTRAG_EMBEDDER="none")
    assert done.code == 0, done.out + done.err
    assert "copy of a standby, whose last change is of " in " ".join((done.out + done.err).split())


async def test_a_connection_to_a_server_that_takes_no_changes_any_more_is_closed(
    pair: list[Cluster], tmp_path: Path
) -> None:
    primary, _ = pair
    async with open_app(settings_of(primary.url(), tmp_path)) as app:
        await app.keys.create("lee")
        primary.execute("alter system set default_transaction_read_only = on")
        reload(primary, "on")
        try:
            for _ in range(3):  # the pooled connections, then new ones
                with pytest.raises(DatabaseUnavailable, match="this server takes no changes"):
                    await app.keys.revoke("lee")
        finally:
            primary.execute("alter system reset default_transaction_read_only")  # which is no transaction
            reload(primary, "off")
        await app.keys.revoke("lee")


def reload(server: Cluster, read_only: str) -> None:
    """Its processes have the new value when a new connection has it: the server tells them before it accepts one."""
    server.execute("select pg_reload_conf()")
    while server.execute("show default_transaction_read_only") != [(read_only,)]:
        time.sleep(0.01)
