"""The stores of the case memory, timed: SQLite and an embedded PostgreSQL, with real syncs of the disk.

Questions have 6 to 12 words of a vocabulary of 5,000, Zipf-distributed; half are Korean. Half of the searches have the
scope of half of the categories.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import random
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx2

from dtrag.adapters.postgres.connect import connect
from dtrag.adapters.postgres.database import Database
from dtrag.adapters.postgres.queries import queries
from dtrag.adapters.postgres.stores import cases as postgres_cases
from dtrag.adapters.postgres.stores.cases import PostgresCases
from dtrag.adapters.sqlite import connection as sqlite_connection
from dtrag.adapters.sqlite.cases import SqliteCases
from dtrag.adapters.sqlite.connection import SQL, CaseFile, transaction
from dtrag.core.access.scope import EVERYTHING, Scope
from dtrag.core.cases.case import Case, CaseChange, CaseQuery, FeedbackType, SimilarityMethod, Vote
from dtrag.core.cases.index import question_hash
from dtrag.delivery.api.app import create_app
from dtrag.ports import CaseStore
from dtrag.settings import Settings

SEED = 20251122
NODES = 20
HALF = Scope(frozenset(range(2, 2 + NODES // 2)))
NOW = datetime(2025, 11, 22, tzinfo=UTC)
_SYLLABLES = [chr(code) for code in range(ord("가"), ord("힣"), 28)]


class Questions:
    """Questions over a vocabulary whose word frequencies fall with the rank."""

    def __init__(self) -> None:
        self._random = random.Random(SEED)
        english = [f"word{number}" for number in range(5_000)]
        korean = ["".join(self._random.choices(_SYLLABLES, k=3)) for _ in range(5_000)]
        self._vocabularies = (english, korean)
        self._weights = list(itertools.accumulate(1 / rank for rank in range(1, 5_001)))

    def next(self) -> str:
        """Another one."""
        count = self._random.randint(6, 12)
        vocabulary = self._random.choice(self._vocabularies)
        return " ".join(self._random.choices(vocabulary, cum_weights=self._weights, k=count))

    def case(self, number: int) -> Case:
        """A case with one of them."""
        query = self.next()
        return Case(
            case_id=f"case-{number:07}",
            query=query,
            query_hash=question_hash(query),
            category_path=("Area", f"Field {number % NODES}"),
            node_id=2 + number % NODES,
            content="Rules of leave, article 7",
            quality_score=self._random.choice([0.4, 0.5, 0.6, 0.7]),
            created_at=NOW,
            updated_at=NOW,
        )


async def fill_file(folder: Path, cases: Sequence[Case]) -> None:
    """Store the cases in one transaction."""
    file = CaseFile(folder)

    def write(connection: object) -> None:
        with transaction(connection):
            connection.executemany(SQL["add_case"], map(sqlite_connection.CODEC.values, cases))

    await file.run(write)
    await file.close()


async def fill_database(database: Database, cases: Sequence[Case]) -> None:
    """Store the cases in one transaction."""
    async with database.connection("owner") as connection, connection.transaction(), connection.pipeline():
        for case in cases:
            await connection.execute(queries("cases")["add_case"], postgres_cases.CODEC.values(case))


@asynccontextmanager
async def opened(kind: str, cases: Sequence[Case]) -> AsyncIterator[CaseStore]:
    """A store with these cases."""
    with tempfile.TemporaryDirectory(prefix="dtrag-bench-") as folder:
        if kind == "sqlite":
            await fill_file(Path(folder), cases)
            store = SqliteCases(Path(folder))
            yield store
            await store.close()
            return
        settings = Settings.load(environ={}, data_dir=Path(folder) / "data", embedder="none")
        async with connect(settings) as database:
            await fill_database(database, cases)
            yield PostgresCases(database)


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds of each call, and the processor time of this process for one of them."""

    each: Sequence[float]
    processor: float = 0.0

    def __str__(self) -> str:
        ordered = sorted(self.each)
        shown = f"median {statistics.median(ordered):7.2f} ms, p95 {ordered[int(0.95 * len(ordered))]:7.2f} ms"
        return f"{shown}, processor {self.processor:5.2f} ms" if self.processor else shown


async def timed(work: Callable[[int], Awaitable[object]], rounds: int) -> Times:
    """The times of so many calls, one after another."""
    times, processor = [], time.process_time()
    for number in range(rounds):
        started = time.perf_counter()
        await work(number)
        times.append((time.perf_counter() - started) * 1_000)
    return Times(times, (time.process_time() - processor) * 1_000 / rounds)


async def suggest(sizes: Sequence[int], kinds: Sequence[str], rounds: int) -> None:
    """The five nearest cases."""
    for size, kind in itertools.product(sizes, kinds):
        questions = Questions()
        cases = [questions.case(number) for number in range(size)]
        async with opened(kind, cases) as store:
            cold = await timed(lambda _: store.nearest(CaseQuery(text="word1", limit=5), EVERYTHING), 1)
            print(f"{size:7,} cases, {kind:8}: first {cold.each[0]:8.1f} ms (reads all questions)")
            for name, method, scope in (
                ("cosine, whole tree", SimilarityMethod.COSINE, EVERYTHING),
                ("cosine, half of the tree", SimilarityMethod.COSINE, HALF),
                ("euclidean, whole tree", SimilarityMethod.EUCLIDEAN, EVERYTHING),
            ):
                asked = [CaseQuery(text=questions.next(), limit=5, method=method) for _ in range(rounds)]
                times = await timed(
                    lambda number, asked=asked, scope=scope: store.nearest(asked[number], scope), rounds
                )
                print(f"                           {name:26} {times}")


def crud_steps(
    store: CaseStore, questions: Questions, size: int, rounds: int
) -> dict[str, Callable[[int], Awaitable[object]]]:
    """The measured calls by name, in their order."""
    query = CaseQuery(text=questions.next(), limit=5)
    new = [questions.case(size + number) for number in range(rounds)]
    ids = [case.case_id for case in new]
    return {
        "first search": lambda n: store.nearest(query, EVERYTHING),
        "add": lambda n: store.add(new[n]),
        "read": lambda n: store.get(ids[n], EVERYTHING),
        "change": lambda n: store.change(ids[n], CaseChange(query=f"other {n}"), NOW, EVERYTHING),
        "feedback": lambda n: store.vote(vote(ids[n], n), EVERYTHING),
        "search": lambda n: store.nearest(query, EVERYTHING),
        "delete": lambda n: store.delete(ids[n], EVERYTHING),
    }


def vote(case_id: str, number: int) -> Vote:
    """A vote of an interaction of its own."""
    return Vote(
        log_id=f"log-{number}", case_id=case_id, feedback=FeedbackType.THUMBS_UP, success=True, voter="", at=NOW
    )


async def crud(size: int, kinds: Sequence[str], rounds: int) -> None:
    """Changes of single cases, each durable when it returns."""
    for kind in kinds:
        questions = Questions()
        async with opened(kind, [questions.case(number) for number in range(size)]) as store:
            print(f"{kind}, {size:,} cases, {rounds} calls each")
            for name, step in crud_steps(store, questions, size, rounds).items():
                print(f"    {name:16} {await timed(step, 1 if name == 'first search' else rounds)}")


async def concurrent(size: int, kinds: Sequence[str]) -> None:
    """100 suggestions at once over HTTP, and 200 votes at once on one case."""
    os.environ["CBR_ENABLED"] = "true"
    for kind in kinds:
        questions = Questions()
        cases = [questions.case(number) for number in range(size)]
        with tempfile.TemporaryDirectory(prefix="dtrag-bench-") as folder:
            files = Path(folder) / "cases" if kind == "sqlite" else None
            settings = Settings.load(environ={}, data_dir=Path(folder) / "data", embedder="none", cbr_data_dir=files)
            if files is not None:
                await fill_file(files, cases)
            api = create_app(settings)
            async with (
                api.router.lifespan_context(api),
                httpx2.AsyncClient(transport=httpx2.ASGITransport(api), base_url="http://127.0.0.1") as client,
            ):
                app = api.state.service.app
                if files is None:
                    await fill_database(app.database, cases)
                print(f"{kind}, {size:,} cases")
                await suggest_at_once(client)
                await vote_at_once(app.case_store, cases[0].case_id)


async def suggest_at_once(client: httpx2.AsyncClient) -> None:
    """100 requests at once, three times."""

    async def ask(number: int) -> tuple[int, float]:
        started = time.perf_counter()
        response = await client.post("/cbr/suggest", json={"query": f"word1 word{number}", "k": 5})
        return response.status_code, (time.perf_counter() - started) * 1_000

    await ask(0)
    for _ in range(3):
        replies = await asyncio.gather(*(ask(number) for number in range(100)))
        good = sum(status == 200 for status, _ in replies)
        print(f"    100 suggestions at once: {good} with 200, {Times([ms for _, ms in replies])}")


async def vote_at_once(store: CaseStore, case_id: str) -> None:
    """200 votes at once."""
    started = time.perf_counter()
    await asyncio.gather(*(store.vote(vote(case_id, number), EVERYTHING) for number in range(200)))
    voted = await store.get(case_id, EVERYTHING)
    seconds = time.perf_counter() - started
    print(f"    200 votes at once: {seconds:.2f} s, {voted.usage_count if voted else 0} counted")


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The measurements as subcommands."""
    for name in ("suggest", "crud", "concurrent"):
        parser = commands.add_parser(name)
        parser.add_argument("--stores", default="sqlite,postgres")
        parser.add_argument("--rounds", type=int, default=200)
        if name == "suggest":
            parser.add_argument("--sizes", default="1000,10000,100000")
        else:
            parser.add_argument("--size", type=int, default=10_000)


def run(options: argparse.Namespace) -> None:
    """One of the measurements."""
    kinds = options.stores.split(",")
    if options.command == "suggest":
        asyncio.run(suggest([int(size) for size in options.sizes.split(",")], kinds, options.rounds))
    elif options.command == "crud":
        asyncio.run(crud(options.size, kinds, options.rounds))
    else:
        asyncio.run(concurrent(options.size, kinds))
