"""kill -9 while cases are consolidated: every case is merged wholly or not at all, and the next run continues."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from dtrag.cases.maintenance import Consolidation
from dtrag.core.access.scope import EVERYTHING
from dtrag.core.cases.case import Case
from dtrag.core.documents import document_id
from dtrag.ports import CaseStore
from dtrag.settings import set_feature_flag
from tests.builders import case, vote
from tests.faults.case_voter import opened
from tests.store import Databases

pytestmark = pytest.mark.long_fault

PAIRS = 220
KILLS = 2


@pytest.fixture(autouse=True)
def memory_on() -> Iterator[None]:
    set_feature_flag("cbr_enabled", True)
    yield
    set_feature_flag("cbr_enabled", None)


def killed_run(arguments: list[str], batches: int) -> None:
    """Run the consolidation until it has finished so many batches, and kill it."""
    command = [sys.executable, "-m", "tests.faults.case_consolidator", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as process:
        assert process.stdout is not None
        for done, _ in enumerate(process.stdout, 1):
            if done == batches:
                process.kill()


async def filled(store: CaseStore) -> None:
    """Pairs of cases for the same question, one of them with a vote."""
    for number in range(PAIRS):
        cited = [f"{document_id(f'test:{number}')}:0"]
        for name in ("a", "b"):
            assert await store.add(
                case(f"{number:03}-{name}", f"How many days are there in rule {number}?", passages=cited)
            )
        await store.vote(vote(f"{number:03}-b", log_id=f"log-{number}"), EVERYTHING)


async def every(store: CaseStore) -> dict[str, Case]:
    return {each.case_id: each for each in await store.page(EVERYTHING, 2 * PAIRS)}


def assert_whole(cases: dict[str, Case]) -> int:
    """Each pair is merged or untouched, and its one vote counts once; the number of merged pairs."""
    merged = 0
    for number in range(PAIRS):
        a, b = cases[f"{number:03}-a"], cases[f"{number:03}-b"]
        assert (a.usage_count + b.usage_count, a.upvotes + b.upvotes) == (1, 1)
        statuses = Counter((a.status, b.status))
        assert statuses in (Counter(active=2), Counter(active=1, archived=1))
        merged += statuses["archived"]
    return merged


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_killed_consolidation_is_continued(kind: str, tmp_path: Path, databases: Databases) -> None:
    folder, database = tmp_path, None
    if kind == "postgres":
        settings = databases.settings()
        folder, database = settings.data_dir, settings.database_name
    arguments = [str(folder)] if database is None else [str(folder), database]
    async with opened(folder, database) as store:
        await filled(store)
        merged = 0
        for batches in range(1, KILLS + 1):
            killed_run(arguments, batches)
            now = assert_whole(await every(store))
            assert now >= merged + 50 * batches
            merged = now
        consolidation = Consolidation(store)
        await consolidation.run()
        assert assert_whole(await every(store)) == PAIRS
        runs = await consolidation.runs()
        assert len(runs) >= KILLS
        for run in runs:
            await consolidation.undo(run)
        assert assert_whole(await every(store)) == 0
