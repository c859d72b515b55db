"""How long a change of the category tree takes: a move and its rollback, and a merge of documents.

python bench/governance.py --documents 20000 --merged 5000
python bench/governance.py --documents 100000 --passages 10 --merged 500
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.builders import indexed_document
from tests.toy import sentence

from dtrag.adapters.postgres.index_writer import PostgresWriter
from dtrag.app import App, open_app
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.settings import Settings

BATCH = 500


async def main(documents: int, merged: int, passages: int) -> None:
    with tempfile.TemporaryDirectory(prefix="bench-governance-") as folder:
        settings = Settings.load(environ={}, data_dir=Path(folder) / "data", embedder="none")
        async with open_app(settings) as app:
            await fill(app, documents, merged, passages)
            print(f"{documents:,} documents of {passages} passages; {merged:,} of them in the branch that is merged")
            move = (await app.taxonomy.propose([{"op": "move", "path": "Moved", "to": "Rest"}])).version
            await timed("activate a move", app.taxonomy.activate(move))
            await timed("search after it", app.search("kettle", mode="lexical"))
            await timed("roll it back", app.taxonomy.rollback("1.0.0"))
            merge = (await app.taxonomy.propose([{"op": "merge", "paths": ["Merged"], "into": "Rest"}])).version
            await timed("preview a merge", app.taxonomy.preview(merge))
            await timed("activate the merge", app.taxonomy.activate(merge))
            await timed("search after it", app.search("kettle", mode="lexical"))
            await timed("roll the merge back", app.taxonomy.rollback("1.0.0"))


async def fill(app: App, documents: int, merged: int, passages: int) -> None:
    """So many documents in `Merged`, the rest in `Moved`."""
    writer, chance = PostgresWriter(app.database), random.Random(1)
    places = [CategoryPath.parse(name) for name in ("Merged", "Moved", "Rest")]
    taxonomy = await writer.ensure_paths(places)
    nodes = [taxonomy.find(place) or 0 for place in places]
    for start in range(0, documents, BATCH):
        await writer.write(
            [
                indexed_document(
                    f"d:{number}",
                    [sentence(chance, 20) for _ in range(passages)],
                    node_id=nodes[0] if number < merged else nodes[1],
                )
                for number in range(start, min(start + BATCH, documents))
            ]
        )
    await writer.tidy()
    await app.search("kettle", mode="lexical")


async def timed(name: str, work: Awaitable[object]) -> None:
    """Do it and say how long it took."""
    started = time.perf_counter()
    await work
    print(f"{name:22} {(time.perf_counter() - started) * 1000:8.1f} ms", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--merged", type=int, default=5_000)
    parser.add_argument("--passages", type=int, default=1, help="of each document")
    given = parser.parse_args()
    asyncio.run(main(given.documents, given.merged, given.passages))
