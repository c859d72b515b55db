"""How often an extractive answer contains the gold answer, and how long it is.

python bench/answers.py SET_FOLDER [--questions 800] [--embedder none|auto]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from pathlib import Path

from dtrag.app import open_throwaway
from dtrag.core.text.analysis import language, normalise
from dtrag.pipeline.answer.extractive import extract
from dtrag.ports import speaks
from dtrag.settings import Settings


async def main(folder: Path, limit: int, embedder: str) -> None:
    rows = [json.loads(line) for line in (folder / "queries.jsonl").read_text("utf-8").splitlines()]
    asked = [row for row in rows if row.get("answers") and row.get("answerable", True)]
    asked = asked[:: max(1, len(asked) // limit)]
    contained, sentences, characters = 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="dtrag-bench-") as data_dir:
        async with open_throwaway(Settings.load(environ={}, data_dir=data_dir, embedder=embedder)) as app:
            await app.ingest([folder / "corpus.jsonl"])
            statistics = (await app.index.snapshot()).statistics
            for row in asked:
                found, _ = await app.search(row["text"], 10)
                speaker = app.embedder if speaks(app.embedder, language(row["text"])) else None
                quotes = extract(row["text"], found, statistics, speaker)
                text = _bare(" ".join(quote.text for quote in quotes))
                contained += any(_bare(answer) in text for answer in row["answers"])
                sentences += len(quotes)
                characters += sum(len(quote.text) for quote in quotes)
    count = len(asked)
    print(
        f"{folder.name}, embedder {embedder}, {count} questions: gold answer contained {contained / count:.3f}, "
        f"{sentences / count:.1f} sentences, {characters / count:.0f} characters"
    )


def _bare(text: str) -> str:
    return normalise(text).replace(" ", "")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--questions", type=int, default=800)
    parser.add_argument("--embedder", default="none")
    given = parser.parse_args()
    asyncio.run(main(given.folder, given.questions, given.embedder))
