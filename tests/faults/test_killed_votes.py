"""kill -9 while votes are counted: none that was acknowledged is lost, and none counts twice."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from dtrag.core.access.scope import EVERYTHING
from tests.builders import case
from tests.faults.case_voter import VOTES, cast_votes, opened
from tests.store import Databases

pytestmark = pytest.mark.long_fault

KILLS = 5


def killed_voter(arguments: list[str], votes: int) -> int:
    """Run a voter until it has acknowledged so many votes, kill it, and return how many it has acknowledged."""
    command = [sys.executable, "-m", "tests.faults.case_voter", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as process:
        assert process.stdout is not None
        acknowledged = 0
        for _ in process.stdout:
            acknowledged += 1
            if acknowledged == votes:
                process.kill()
        return acknowledged


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_no_acknowledged_vote_is_lost_and_none_counts_twice(
    kind: str, tmp_path: Path, databases: Databases
) -> None:
    random_source = random.Random(KILLS)
    folder, database = tmp_path, None
    if kind == "postgres":
        settings = databases.settings()
        folder, database = settings.data_dir, settings.database_name
    arguments = [str(folder)] if database is None else [str(folder), database]
    async with opened(folder, database) as store:
        await store.add(case("one"))
        counted = 0
        for kill in range(KILLS):
            acknowledged = killed_voter(arguments, random_source.randint(1, VOTES // KILLS * (kill + 1)))
            voted = await store.get("one", EVERYTHING)
            assert voted is not None
            # One more may have been counted, without having been acknowledged any more.
            assert max(counted, acknowledged) <= voted.usage_count <= max(counted, VOTES)
            numbers = {int(vote.log_id.partition("-")[2]) for vote in (await store.votes(["one"], EVERYTHING))["one"]}
            assert set(range(acknowledged)) <= numbers
            assert len(numbers) == voted.usage_count
            counted = voted.usage_count
        await cast_votes(store)
        whole = await store.get("one", EVERYTHING)
        assert whole is not None
        assert (whole.usage_count, whole.success_rate) == (VOTES, 0.25)
        assert len(await store.logs(EVERYTHING, 2 * VOTES)) == VOTES
