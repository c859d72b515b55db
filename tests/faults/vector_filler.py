"""A process that makes vectors slowly, and prints the number of each batch when it is stored.

python -m tests.faults.vector_filler FOLDER DATABASE
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from dtrag.adapters.postgres.connect import connect
from dtrag.adapters.postgres.stores.vectors import PostgresVectors
from dtrag.core.documents import Vector
from dtrag.ingestion.vectors import VectorFiller
from dtrag.settings import Settings
from tests.toy import ToyEmbedder

EMBEDDER = ToyEmbedder(languages=frozenset({"*"}))


class Slow(ToyEmbedder):
    """Takes a while for each batch."""

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        time.sleep(0.05)
        return super().embed_documents(texts)


async def main(folder: str, database: str) -> None:
    settings = Settings.load(environ={}, data_dir=Path(folder), database_name=database, embedder="none")
    async with connect(settings) as opened:
        slow = Slow(languages=EMBEDDER.languages)
        await VectorFiller(PostgresVectors(opened), slow).fill(lambda made, _: _tell(made))


def _tell(made: int) -> None:
    sys.stdout.write(f"{made}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
