"""A database on a cluster: the conversion, the same results as on one server, and servers that fail.

Runs where DTRAG_TEST_CITUS_URL names the coordinator of a cluster of this machine, with at least two workers.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import pytest_asyncio

from dtrag.adapters.postgres import cluster
from dtrag.adapters.postgres import database as opening
from dtrag.adapters.postgres.connect import connect
from dtrag.app import App
from dtrag.core.access.scope import EVERYTHING, Scope
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.delivery.api.app import serve_opened
from dtrag.errors import DatabaseUnavailable, InvalidInput
from dtrag.isolation import worlds
from dtrag.isolation.library import VISITORS
from dtrag.isolation.proof import play_round
from dtrag.isolation.visits import Comparison
from dtrag.isolation.worlds import WordHashes, twin_worlds
from dtrag.ports import Models
from dtrag.settings import Settings
from dtrag.testing.throwaway import parser
from tests import citus
from tests.store import Databases
from tests.toy import ENGLISH, ToyEmbedder, lines, sentence

pytestmark = pytest.mark.skipif(not citus.URL, reason="DTRAG_TEST_CITUS_URL is not set")

EMBEDDER = ToyEmbedder(languages=frozenset({"*"}), dim=32)
BRANCHES = ("Alpha", "Beta", "Gamma")
WRITES = 1_000


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[App]:
    async with connect(settings) as database, App(settings, database, Models(EMBEDDER), parser) as app:
        yield app


async def branch(app: App, name: str) -> Scope:
    tree = (await app.index.snapshot()).taxonomy
    return Scope(tree.subtree(tree.find(CategoryPath.parse(name)) or 0))


async def fill(app: App, folder: Path, numbers: Sequence[int]) -> None:
    for number in numbers:
        await app.ingest(lines(folder / f"{number}.jsonl", 60, number), BRANCHES[number % 3])
    await app.vectors.fill(sentences=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder, so that documents have the same ids everywhere."""
    return tmp_path_factory.mktemp("citus")


@pytest_asyncio.fixture(scope="module")
async def on_cluster(folder: Path) -> AsyncIterator[Settings]:
    """A database that was filled, converted with an interruption after each step, and filled further."""
    with citus.database() as url:
        settings = citus.settings(url, folder / "data")
        async with opened(settings) as app:
            await fill(app, folder, range(5))
            with pytest.raises(InvalidInput, match="other connections to the database are open"):
                await cluster.convert(settings, tell=lambda _: None)
        told: list[str] = []
        would = await cluster.convert(settings, dry_run=True, tell=told.append)
        assert would.steps == told and "documents distributed by document" in told
        assert citus.rows(url, "select count(*) from pg_dist_partition where partmethod = 'h'") == [(0,)]
        steps = await interrupted(settings)
        assert steps == [title for title in told if title in steps], "copies of empty tables are none"
        assert len(steps) > 20
        assert (await cluster.convert(settings, tell=told.append)).steps == []
        async with opened(settings) as app:
            await fill(app, folder, range(5, 10))
        yield settings


async def interrupted(settings: Settings) -> list[str]:
    """The titles of the steps of a conversion that is interrupted after each of them."""
    steps: list[str] = []

    def interrupt(text: str) -> None:
        steps.append(text.rpartition(" (")[0])
        raise KeyboardInterrupt

    while True:
        try:
            await cluster.convert(settings, tell=interrupt)
        except KeyboardInterrupt:
            if not steps[-1].endswith("opened again"):
                with pytest.raises(DatabaseUnavailable, match="dtrag cluster convert"):
                    async with opened(settings):
                        pass
            continue
        return steps


@pytest_asyncio.fixture(scope="module")
async def on_one_server(databases_of_module: Databases, folder: Path) -> Settings:
    settings = databases_of_module.settings()
    async with opened(settings) as app:
        await fill(app, folder, range(10))
    return settings


async def test_results_are_those_of_one_server(on_cluster: Settings, on_one_server: Settings) -> None:
    chance = random.Random(5)
    questions = [sentence(chance, 3) for _ in range(150)] + [" ".join(chance.choices(ENGLISH, k=2)) for _ in range(50)]
    async with opened(on_cluster) as many, opened(on_one_server) as one:
        assert await many.counts() == await one.counts()
        scopes = [EVERYTHING, *[await branch(one, name) for name in BRANCHES]]
        assert scopes[1:] == [await branch(many, name) for name in BRANCHES]
        differing: dict[tuple[str, str, int], object] = {}
        for question in questions:
            for mode in ("lexical", "strict", "vector", "hybrid"):
                for number, scope in enumerate(scopes):
                    results = [
                        [(result.chunk_id, result.hybrid_score, result.text) for result in found]
                        for app in (many, one)
                        for found, _ in [await app.search(question, mode=mode, scope=scope, highlights=False)]
                    ]
                    if results[0] != results[1]:
                        differing[question, mode, number] = results
        assert differing == {}


async def test_documents_read_listed_moved_and_deleted(on_cluster: Settings, folder: Path) -> None:
    async with opened(on_cluster) as app:
        documents = await app.documents(limit=700)
        assert len(documents) == 600 == (await app.counts())[0]
        found = await app.document(documents[0].document_id)
        assert found is not None and "serial" in found[1]
        before = (await app.search("kettle", mode="strict", filters={"content_types": [documents[0].content_type]}))[0]
        assert before
        (folder / "more.jsonl").write_text(json.dumps({"id": "x", "title": "X", "text": "The zebra reads."}) + "\n")
        await app.ingest(folder / "more.jsonl", "Delta")
        [zebra] = (await app.search("zebra", mode="lexical"))[0]
        await app.delete_document(zebra.chunk_id.partition(":")[0])
        assert (await app.search("zebra", mode="lexical"))[0] == []
        assert (await app.counts())[0] == 600


async def test_doctor_names_what_is_missing_and_convert_mends_it(on_cluster: Settings) -> None:
    url = on_cluster.database_url or ""

    async def findings() -> dict[str, str]:
        async with connect(on_cluster) as database:
            return {entry.detail: entry.state for entry in await cluster.examine(database)}

    assert set((await findings()).values()) == {"ok"}
    name = citus.rows(url, "select current_database()")[0][0]
    for damage, detail in (
        ("select undistribute_table('dtrag.imagined_questions')", "imagined_questions distributed by document"),
        ("alter role dtrag_search nologin", "the roles may log in"),
        (f"alter database {name} reset hnsw.ef_search", "settings of the database"),
    ):
        citus.rows(url, damage)
        if "nologin" in damage:
            with pytest.raises(DatabaseUnavailable, match="server of the database cluster"):
                async with opened(on_cluster) as app:
                    await app.search("kettle")
        else:
            assert any(detail in text for text, state in (await findings()).items() if state == "fail"), damage
        assert any(step.startswith(detail) for step in (await cluster.convert(on_cluster, tell=lambda _: None)).steps)
    assert set((await findings()).values()) == {"ok"}


async def test_a_scope_that_is_not_propagated_shows_nothing(
    on_cluster: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(opening._SETTINGS, "citus.propagate_set_commands", "none")
    async with opened(on_cluster) as app:
        for scope in (EVERYTHING, await branch(app, "Alpha")):
            assert (await app.search("kettle", scope=scope))[0] == []
        details = [entry.detail for entry in await cluster.examine(app.database) if entry.state == "fail"]
    assert any("citus.propagate_set_commands is 'none' for dtrag_reader" in detail for detail in details)


async def test_a_migration_after_the_conversion(on_cluster: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    later = {
        "9998_later.sql": """
            alter table chunks add column later int not null default 7;
            create index chunks_later on chunks (later);
            create table later_things (document_id uuid primary key, thing text not null);
            alter policy sentences_in_scope on sentence_vectors using (
                nullif(current_setting('dtrag.full_scope', true), '') = 'on'
                or node_id = any (nullif(current_setting('dtrag.scope', true), '')::int[])
            );
            update documents set retained = false where retained;
        """
    }
    every = opening.migration_texts()
    with monkeypatch.context() as newer:
        newer.setattr(opening, "migration_texts", lambda: every | later)
        async with opened(on_cluster) as app:
            assert (await app.search("kettle"))[0]
        [(count, total)] = citus.rows(on_cluster.database_url or "", "select count(*), sum(later) from chunks")
        assert total == 7 * count > 0
    for undo in (
        "drop table later_things",
        "drop index chunks_later",
        "alter table chunks drop column later",
        "delete from migrations where name = '9998_later.sql'",
    ):
        citus.rows(on_cluster.database_url or "", undo)


async def test_a_dead_server_is_never_hidden(on_cluster: Settings) -> None:
    async with opened(on_cluster) as app:
        before = await everywhere(app)
        with citus.nodes()[1].down():
            refused = await outcomes(app, 10, before)
            with pytest.raises(DatabaseUnavailable):
                await app.database.ping()
        assert refused, "each search was answered in full, though half of the documents were away"
        assert await everywhere(app) == before  # at once, and without a restart
        await app.database.ping()


async def test_a_frozen_server_is_never_hidden_and_ends_no_connection_pool(on_cluster: Settings) -> None:
    async with opened(on_cluster) as app:
        before = await everywhere(app)
        with citus.nodes()[1].frozen():
            began = time.monotonic()
            refused = await outcomes(app, 2, before)
            with pytest.raises(DatabaseUnavailable):
                await app.database.ping()
            assert time.monotonic() - began < 3 * 5 * (2 + opening.GRACE_S)
        assert refused
        assert await everywhere(app) == before
        await app.database.ping()


async def test_a_slow_server_changes_no_result(on_cluster: Settings) -> None:
    async with opened(on_cluster) as app:
        before = await everywhere(app)
        with slow(citus.nodes()[1]):
            await outcomes(app, 3, before)
        assert await everywhere(app) == before


@contextmanager
def slow(node: citus.Node) -> Any:
    """The server works for a tenth of the time."""
    ending = Event()
    processes = node.processes

    def brake() -> None:
        while not ending.is_set():
            with node.frozen():
                time.sleep(0.2)
            time.sleep(0.05)

    assert processes()
    thread = Thread(target=brake)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


async def everywhere(app: App) -> list[object]:
    """Results whose passages are on all servers."""
    found: list[object] = []
    for mode in ("lexical", "strict", "vector"):
        for question in ("kettle", "library refund"):
            results, metrics = await app.search(question, 20, mode=mode, highlights=False)
            found.append([(result.chunk_id, result.text) for result in results])
            assert not metrics.degraded
    return found


async def outcomes(app: App, attempts: int, whole: list[object]) -> list[str]:
    """The refusals; what is answered is whole."""
    refusals: list[str] = []
    for _ in range(attempts):
        try:
            results, metrics = await app.search(f"kettle {len(refusals)}", 20, mode="lexical", highlights=False)
            assert metrics.degraded or len(results) == 20
        except DatabaseUnavailable as error:
            assert ":554" not in str(error) and "127.0.0.1" not in str(error), "no addresses"
            refusals.append(str(error))
    return refusals


async def test_twin_worlds_answer_alike(settings: Settings, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def throwaway(own: Settings, embedder: Any = None, *, case_folder: Path | None = None) -> Any:
        with citus.database() as url:
            converted = await citus.converted(url, folder / f"twin-{url[-6:]}", classify="auto", reranker="none")
            async with connect(converted) as database, App(converted, database, Models(embedder)) as app:
                yield app

    monkeypatch.setattr(worlds, "open_throwaway", throwaway)
    async with twin_worlds(settings, WordHashes(), serve_opened) as pair:
        compared = Comparison()
        pair.begin_round(1)
        await play_round(pair.worlds, 1, compared, visitors=VISITORS[:2])
        assert compared.examples == []
        assert compared.as_dict({})["differences"] == 0


async def test_no_process_keeps_an_earlier_state(on_cluster: Settings, folder: Path) -> None:
    """Two processes poll while documents on both workers are replaced; what was acknowledged before a poll is found."""
    context = multiprocessing.get_context("spawn")
    acknowledged, stop = context.Value("i", -1), context.Value("i", 0)
    reports = context.Queue()
    arguments = (on_cluster.database_url, str(folder), acknowledged, stop, reports)
    pollers = [context.Process(target=poll, args=arguments) for _ in range(2)]
    async with opened(on_cluster) as app:
        path = folder / "counter.jsonl"
        for number in range(WRITES):
            with path.open("w") as file:
                for name in ("a", "b", "c"):
                    text = f"The odometer {name} shows edition{number}."
                    file.write(json.dumps({"id": name, "title": name, "text": text}) + "\n")
            report = await app.ingest(path, "Alpha")
            assert not report.failed
            acknowledged.value = number
            if number == 0:
                for poller in pollers:
                    poller.start()
    stop.value = 1
    polls = [await asyncio.to_thread(reports.get, True, 60) for _ in pollers]
    for poller in pollers:
        poller.join(10)
    assert [misses for _, misses in polls] == [[], []]
    assert all(count > 100 for count, _ in polls), polls


def poll(url: str, folder: str, acknowledged: Synchronized[int], stop: Synchronized[int], reports: Any) -> None:
    """Search in a process of its own, and report the number of polls and what was missed."""

    async def run() -> tuple[int, list[str]]:
        misses, count = [], 0
        settings = Settings.load(environ={"DTRAG_DATABASE_URL": url}, data_dir=Path(folder) / "data", embedder="none")
        async with opened(settings) as app:
            while not stop.value:
                least = acknowledged.value
                results, _ = await app.search("odometer", mode="lexical", highlights=False)
                editions = [int(result.text.rpartition("edition")[2].rstrip(".")) for result in results]
                if len(editions) != 3 or min(editions) < least:
                    misses.append(f"{least}: {editions}")
                count += 1
        return count, misses[:20]

    reports.put(asyncio.run(run()))
