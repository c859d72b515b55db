"""A process that votes 1,000 times, one after another, and prints the number of every vote that was acknowledged.

python -m tests.faults.case_voter FOLDER [DATABASE]
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from dtrag.adapters.postgres.connect import connect
from dtrag.adapters.postgres.stores.cases import PostgresCases
from dtrag.adapters.sqlite.cases import SqliteCases
from dtrag.core.access.scope import EVERYTHING
from dtrag.core.cases.case import FeedbackType
from dtrag.ports import CaseStore
from dtrag.settings import Settings
from tests.builders import vote

VOTES = 1_000


@asynccontextmanager
async def opened(folder: Path, database: str | None) -> AsyncIterator[CaseStore]:
    """The case memory in an SQLite file, or in a database of the embedded server."""
    if database is None:
        store = SqliteCases(folder)
        yield store
        await store.close()
        return
    settings = Settings.load(environ={}, data_dir=folder, database_name=database, embedder="none")
    async with connect(settings) as connected:
        yield PostgresCases(connected)


async def cast_votes(store: CaseStore) -> None:
    """All votes, again and again the same ones."""
    for number in range(VOTES):
        each = vote("one", FeedbackType.IGNORED, log_id=f"log-{number}", success=number % 4 == 0)
        if await store.vote(each, EVERYTHING) is not None:
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()


async def main() -> None:
    """Vote in the store of the arguments."""
    async with opened(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None) as store:
        await cast_votes(store)


if __name__ == "__main__":
    asyncio.run(main())
