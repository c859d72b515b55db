"""Whether searches as of a day return the right edition of every article: `python bench/regulations/editions.py`.

The regulations are invented (tests/amendments.py, seeded): amendments with dates of single articles, dates in the
future, deleted and added articles, repealed regulations and transitional provisions. Each edition is a file, ingested
in the order of the dates. On the day of every change and the day before, the regulation is searched as of that day; the
text that is valid then is known from the events of the generator. Right: the valid text of each article is among the
results. Leaked: results with another text of an article, of any regulation.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from datetime import date, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.amendments import History, histories, write_books

from dtrag.app import App, open_throwaway
from dtrag.settings import Settings

TOP_K = 40


def described(made: list[History], today: date) -> str:
    """How many amendments there are of each kind."""
    counts: Counter[str] = Counter()
    for history in made:
        counts["repealed regulations"] += history.repealed_on is not None
        for before, edition in zip(history.editions, history.editions[1:], strict=False):
            counts["amendments"] += 1
            counts["with dates of single articles"] += bool(edition.later)
            counts["in the future"] += edition.day > today or any(day > today for day in edition.later.values())
            counts["that delete articles"] += bool(before.articles.keys() - edition.articles.keys())
            counts["with transitional provisions"] += edition.transitional is not None
    return ", ".join(f"{number} {name}" for name, number in counts.items())


async def check(app: App, made: list[History]) -> tuple[int, int, int, int, float]:
    """Searches, articles that were checked, those in the right text, texts that leaked; milliseconds of a search."""
    texts = [(history, number, history.markers(number)) for history in made for number in history.numbers()]
    searches = checked = right = leaked = 0
    seconds = 0.0
    for history in made:
        for day in [day for place, day in enumerate(history.days()) if place % 3 != 2]:
            started = time.perf_counter()
            results, _ = await app.search(f"{history.name}의 기준", TOP_K, as_of=day)
            seconds += time.perf_counter() - started
            searches += 1
            shown = " ".join(result.text for result in results)
            for owner, number, markers in texts:
                valid = owner.valid(number, day)
                leaked += sum(f"{marker} " in shown for marker in markers if marker != valid)
                if owner is history and valid is not None:
                    checked += 1
                    right += f"{valid} " in shown
    return searches, checked, right, leaked, 1e3 * seconds / searches


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--works", type=int, default=110)
    parser.add_argument("--seed", type=int, default=13)
    arguments = parser.parse_args()
    made = histories(arguments.seed, arguments.works)
    print(described(made, datetime.now().astimezone().date()))
    settings = Settings.load(environ={}, data_dir=Path(tempfile.mkdtemp()), embedder="none")
    async with open_throwaway(settings) as app:
        with tempfile.TemporaryDirectory() as folder:
            report = await app.ingest(list(write_books(made, Path(folder))), "Rules")
        print(f"{report.documents} editions of {len(made)} regulations in {report.seconds:.1f} s")
        searches, checked, right, leaked, milliseconds = await check(app, made)
    print(
        f"{searches} searches ({milliseconds:.1f} ms each): {right} of {checked} articles in the right text "
        f"({right / checked:.2%}), {leaked} other texts"
    )


asyncio.run(main())
