"""kill -9 while vectors are made: what was stored stays, the rest follows, and no passage gets two."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from dtrag.adapters.postgres.stores.vectors import PostgresVectors
from dtrag.app import App
from dtrag.core.access.scope import EVERYTHING
from dtrag.ingestion.vectors import BATCH, VectorFiller
from dtrag.settings import Settings
from tests.faults.vector_filler import EMBEDDER
from tests.store import Store
from tests.toy import lines

KILLS = 4
DOCUMENTS = 1_000


def killed_filler(settings: Settings, batches: int) -> int:
    """Run a filler until it has stored so many batches, kill it, and return how many vectors it has stored."""
    command = [
        sys.executable,
        "-m",
        "tests.faults.vector_filler",
        str(settings.data_dir),
        settings.database_name,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as process:
        assert process.stdout is not None
        stored = 0
        for number, line in enumerate(process.stdout, 1):
            stored = int(line)
            if number == batches:
                process.kill()
        return stored


@pytest.mark.long_fault
async def test_a_killed_filler_loses_no_vector_and_makes_none_twice(
    app: App, settings: Settings, store: Store, tmp_path: Path
) -> None:
    await app.ingest(lines(tmp_path / "notes.jsonl", DOCUMENTS))
    vectors, chance, stored = PostgresVectors(app.database), random.Random(KILLS), 0
    for _ in range(KILLS):
        stored += killed_filler(settings, chance.randint(1, 3))
        # One more batch may have been stored, without having been printed any more.
        counted = store.value("select count(*) from embeddings")
        assert stored <= counted <= stored + BATCH
        stored = counted
        assert (await app.search("kettle", mode="lexical"))[0]
    assert await vectors.pending(EVERYTHING) == DOCUMENTS - stored > 0
    filled = await VectorFiller(vectors, EMBEDDER).fill()
    assert filled.made == DOCUMENTS - stored
    assert store.value("select count(*) from embeddings") == DOCUMENTS
    assert store.value("select count(*) from waiting_documents where not sentences") == 0
    store.assert_whole()
