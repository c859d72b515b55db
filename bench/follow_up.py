"""Whether follow-up questions find their passage once the words of the question before are carried over.

python bench/follow_up.py SET_FOLDER [--questions 400] [--embedder none|auto]

Follow-ups are made, not collected: of two questions about one article that both name it, the second has the name
replaced by a pronoun. The set tells which passage answers it. The figures are the shares of questions whose passage is
the first, and among the first ten: of the questions as they were written, of the follow-ups alone, of the follow-ups
with words carried over; and, to see the harm, of the questions as they were written, but after a question about
something else, as the rules would send them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dtrag.app import App, open_throwaway
from dtrag.core.text.followup import standing_alone
from dtrag.settings import Settings

TOP = 10
_KOREAN = {"은": "그건", "는": "그건", "이": "그게", "가": "그게", "을": "그걸", "를": "그걸", "의": "그", "에": "거기"}


_BEFORE = re.compile(r"\b(?:did|do|does|was|is|has|had|will|can) (?:the )?$", re.IGNORECASE)
"""In English the name must be what the question is about, and not a part of a longer name."""


async def main(folder: Path, limit: int, embedder: str) -> None:
    rows = [json.loads(line) for line in (folder / "queries.jsonl").read_text("utf-8").splitlines()]
    rows = [row for row in rows if row.get("answerable", True)]
    gold: dict[str, set[str]] = defaultdict(set)
    for line in (folder / "qrels.tsv").read_text("utf-8").splitlines():
        question, document, grade = line.split("\t")
        if int(grade) > 0:
            gold[question].add(document)
    pairs = list(_pairs(rows))
    pairs = pairs[:: max(1, len(pairs) // limit)][:limit]
    strangers = [(rows[(7 * n + len(rows) // 2) % len(rows)]["text"], row) for n, (_, row, _) in enumerate(pairs)]
    with tempfile.TemporaryDirectory(prefix="dtrag-bench-") as data_dir:
        async with open_throwaway(Settings.load(environ={}, data_dir=data_dir, embedder=embedder)) as app:
            await app.ingest([folder / "corpus.jsonl"])

            async def hits(asked: list[tuple[str, dict[str, Any]]]) -> str:
                places = [await _place(app, text, gold[row["id"]]) for text, row in asked]
                return " ".join(f"{sum(place <= top for place in places) / len(places):.3f}" for top in (1, TOP))

            whole = await hits([(row["text"], row) for _, row, _ in pairs])
            alone = await hits([(follow_up, row) for _, row, follow_up in pairs])
            carried = [(standing_alone(follow_up, [before])[0], row) for before, row, follow_up in pairs]
            with_words = await hits(carried)
            changed = [(standing_alone(row["text"], [before])[0], row) for before, row in strangers]
            harmed = await hits(changed)
    noticed = sum(text != follow_up for (text, _), (_, _, follow_up) in zip(carried, pairs, strict=True)) / len(pairs)
    touched = sum(text != row["text"] for text, row in changed) / len(changed)
    print(
        f"{folder.name}, embedder {embedder}, {len(pairs)} follow-ups, hit@1 hit@{TOP}: as written {whole}, "
        f"follow-up alone {alone}, with words carried over {with_words} (noticed {noticed:.3f}); "
        f"whole questions after a stranger {harmed} (changed {touched:.3f})"
    )


def _pairs(rows: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any], str]]:
    """(question before, row of the next question of the article, that question with a pronoun for the article)."""
    last: dict[str, str] = {}
    for row in rows:
        name = row["article"].replace("_", " ")
        follow_up = _with_pronoun(row["text"], name)
        before = last.get(name)
        if follow_up is not None and before is not None:
            yield before, row, follow_up
        if name.lower() in row["text"].lower():
            last[name] = row["text"]


def _with_pronoun(question: str, name: str) -> str | None:
    """None where the name does not stand in the question in a way that a pronoun can take its place."""
    found = re.search(re.escape(name) + r"('s)?(?P<particle>[가-힣]?)(?=[\s?,.]|$)", question, re.IGNORECASE)
    if found is None:
        return None
    pronoun: str | None
    if re.search(r"[가-힣]", question):
        pronoun = _KOREAN.get(found["particle"])
    elif found[1] or _BEFORE.search(question[: found.start()]):
        pronoun = "its" if found[1] else "it"
    else:
        pronoun = None
    if pronoun is None:
        return None
    start = re.sub(r"\b(?:the|an?) $", "", question[: found.start()], flags=re.IGNORECASE)
    return start + pronoun + question[found.end() :]


async def _place(app: App, text: str, wanted: set[str]) -> int:
    """Where the passage stands, from 1; beyond the first ten where it is not among them."""
    results, _ = await app.search(text, TOP)
    places = (n for n, result in enumerate(results, start=1) if str(result.metadata.get("id")) in wanted)
    return next(places, TOP + 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--questions", type=int, default=400)
    parser.add_argument("--embedder", default="none")
    given = parser.parse_args()
    asyncio.run(main(given.folder, given.questions, given.embedder))
