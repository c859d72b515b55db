"""Connections that break, between requests and in the middle of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from dtrag.adapters.postgres import database
from dtrag.adapters.postgres.server.cluster import ROLES
from dtrag.app import App, open_app
from dtrag.errors import DatabaseUnavailable
from dtrag.settings import Settings
from tests.store import Store
from tests.toy import lines

T = TypeVar("T")


def break_connections(store: Store) -> int:
    """End all others of the database, each as its own role; how many."""
    return sum(
        store.value(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity"
            " where usename = current_user and datname = %s and pid <> pg_backend_pid()",
            store.name,
            role=role,
        )
        for role in ROLES
    )


async def until_it_works(request: Callable[[], Awaitable[T]]) -> T:
    """The pools come back by themselves, within seconds; until then there is one kind of error."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return await request()
        except DatabaseUnavailable:
            assert time.monotonic() < deadline


def requests(app: App, path: Path) -> dict[str, Callable[[], Awaitable[object]]]:
    """Everything that can be asked, by name."""
    return {
        "search": lambda: app.search("kettle refund"),
        "strict": lambda: app.search("kettle", mode="strict"),
        "ask": lambda: app.ask("What about the kettle?"),
        "documents": app.documents,
        "ingest": lambda: app.ingest(path),
    }


async def test_between_requests(app: App, store: Store, tmp_path: Path) -> None:
    path = lines(tmp_path / "notes.jsonl", 40)
    await app.ingest(path)
    for name in (
        "search",
        "strict",
        "documents",
        "ingest",
    ):  # the pool takes a second or two to replace its connections
        assert break_connections(store) > 0
        await requests(app, path)[name]()
    store.assert_whole()


async def test_in_the_middle_of_requests(
    settings: Settings, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "POOL_TIMEOUT", 1.0)
    async with open_app(settings) as app:
        await break_and_ask(app, store, tmp_path)


async def break_and_ask(app: App, store: Store, tmp_path: Path) -> None:
    path = lines(tmp_path / "notes.jsonl", 200)
    await app.ingest(path)
    over = asyncio.Event()
    outcomes: dict[str, list[bool]] = {}

    async def ask_again_and_again(name: str, number: int) -> None:
        files = [lines(tmp_path / f"{number}-{version}.jsonl", 120, seed=version) for version in (1, 2)]
        rounds = 0
        while not over.is_set():
            rounds += 1
            request = requests(app, files[rounds % 2])[name]
            try:
                await request()
            except DatabaseUnavailable as error:
                assert str(error).startswith("The database cannot be reached: ")
                outcomes.setdefault(name, []).append(False)
            else:
                outcomes.setdefault(name, []).append(True)
            await asyncio.sleep(0)

    async def break_often() -> None:
        try:
            for _ in range(30):
                await asyncio.sleep(0.02)
                await asyncio.to_thread(break_connections, store)
        finally:
            over.set()

    names = ("search", "strict", "ask", "documents", "ingest")
    await asyncio.gather(break_often(), *(ask_again_and_again(name, number) for number, name in enumerate(names)))
    assert set(outcomes) == set(names)
    assert not all(all(kinds) for kinds in outcomes.values()), "nothing was ever interrupted"
    for number in range(len(names)):
        for version in (1, 2):
            path = tmp_path / f"{number}-{version}.jsonl"
            report = await until_it_works(partial(app.ingest, path))
            assert report.failed == []
    assert store.value("select count(*) from documents") == 200 + 120 * 2 * len(names)
    for request in requests(app, path).values():
        await until_it_works(request)
    store.assert_whole()
