"""What an answer costs over HTTP, one at a time and a hundred at once, with the settings of `make setup`.

    python bench/chat.py ../shared/data [--sets english korean book] [--seconds 1.0] [--embedder auto] [--folder FOLDER]

English: SQuAD paragraphs; Korean: KorQuAD paragraphs; book: a regulation book with its pack. No question is asked
twice. The service runs in a process of its own; the clients and a local server in place of the language model run in
this one, on the same processors. Processor time is that of the service and its PostgreSQL. With `--folder` the
collections, which take minutes to embed, are kept there for the next time.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent / "search"))

from system import family_of, processor_s
from tests.model_server import Messages, ModelServer

from dtrag.app import open_app
from dtrag.settings import Settings

JUDGEMENT, REPLY = '{"passages": [1, 2], "answer": "whole"}', "The passages say so. [1]"
ALONE, AT_ONCE, ROUNDS, WARM, CLIENTS = 60, 100, 3, 8, 8
"""Questions asked one after another, at once, how often, and before anything is measured; clients beside each other."""
SETS = {
    "english": ("squad2-dev/corpus.jsonl", ("squad2-dev/queries.jsonl",)),
    "korean": ("korquad1-dev/corpus.jsonl", ("korquad1-dev/queries.jsonl",)),
    "book": ("korean-regulations/regulations.hwpx", ("korean-regulations/questions.dev.jsonl",)),
}
OWN_QUESTIONS = ("questions.jsonl", "questions_everyday.jsonl", "questions_in_parts.jsonl")
"""Further questions about the book, in bench/regulations."""


@dataclass(frozen=True)
class Service:
    """A running `dtrag up`."""

    address: str
    pid: int
    database_pid: int

    def processor_s(self) -> float:
        """Seconds of processor time of the service, its workers and parser, and its PostgreSQL."""
        return processor_s([*family_of(self.pid), *family_of(self.database_pid)])


@contextmanager
def service(data_dir: Path, embedder: str, **settings: str) -> Iterator[Service]:
    """A service on that folder, with nothing but these settings."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DTRAG_")} | {
        "DTRAG_DATA_DIR": str(data_dir),
        "DTRAG_EMBEDDER": embedder,
        "DTRAG_PORT": "0",
        **{f"DTRAG_{name.upper()}": value for name, value in settings.items()},
    }
    command = [str(Path(sys.executable).with_name("dtrag")), "up"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines = iter(process.stderr)
        address = next(line.split()[4] for line in lines if line.startswith("dtrag is listening on "))
        said: list[str] = []
        listening = threading.Thread(target=said.extend, args=(lines,))  # a full pipe would stop the service
        listening.start()
        time.sleep(6)  # what is loaded in the background: the embedder, the model's client
        while httpx2.get(f"{address}/health").json()["workers"] < int(settings.get("workers", 1)):
            time.sleep(1)
        database = int(next(data_dir.rglob("postmaster.pid")).read_text("utf-8").split()[0])
        try:
            yield Service(address, process.pid, database)
        finally:
            process.terminate()
            listening.join()
            if said:
                print(f"the service has said {len(said)} lines, the last: {said[-1][:200]}")


@dataclass
class Outcome:
    """What became of questions. `whole` are answers that did without nothing; `processor_s` is of each question."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    whole: int = 0
    processor_s: float = 0.0
    wall_s: float = 0.0


async def ask(served: Service, questions: Sequence[str], clients: int) -> Outcome:
    """The questions, so many at the same time."""
    done, waiting = Outcome(), iter(questions)
    limits = httpx2.Limits(max_connections=clients, max_keepalive_connections=clients)
    async with httpx2.AsyncClient(base_url=served.address, timeout=60, limits=limits) as client:
        used, started = served.processor_s(), time.perf_counter()

        async def conversation() -> None:
            for question in waiting:
                started = time.perf_counter()
                try:
                    response = await client.post("/chat/run", json={"message": question})
                except httpx2.HTTPError:
                    done.statuses[0] += 1
                    continue
                done.statuses[response.status_code] += 1
                if response.status_code == 200:
                    done.seconds.append(time.perf_counter() - started)
                    done.whole += not response.json()["metadata"]["degraded"]

        await asyncio.gather(*(conversation() for _ in range(clients)))
        done.wall_s = time.perf_counter() - started
        done.processor_s = (served.processor_s() - used) / max(1, len(questions))
    done.seconds.sort()
    return done


def reply(messages: Messages) -> str:
    """Of the model: a judgement where passages are judged, and an answer."""
    return JUDGEMENT if "Reply with one JSON object" in messages[0]["content"] else REPLY


def share(ordered: Sequence[float], part: float) -> float:
    """The value below which this part lies."""
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else float("nan")


def line(what: str, done: Outcome) -> str:
    """A row of the table."""
    answered, refused = done.statuses[200], done.statuses[503]
    counts = (answered, done.whole, refused, sum(done.statuses.values()) - answered - refused)
    times = "".join(f" {share(done.seconds, part) * 1e3:.0f} |" for part in (0.5, 0.95))
    return (
        f"| {what} | "
        + " | ".join(map(str, counts))
        + f" |{times} {done.processor_s * 1e3:.1f} | {answered / done.wall_s:.0f} |"
    )


def questions_of(data: Path, name: str) -> list[str]:
    """Different ones, in the order of their files."""
    files = [data / file for file in SETS[name][1]]
    if name == "book":
        files += [Path(__file__).parent / "regulations" / file for file in OWN_QUESTIONS]
    rows = [json.loads(row) for file in files for row in file.read_text("utf-8").splitlines()]
    return list(dict.fromkeys(row.get("text") or row["question"] for row in rows))


async def collected(data: Path, name: str, folder: Path, embedder: str) -> None:
    """The collection in the folder, with its vectors."""
    settings = Settings.load(environ={}, data_dir=folder, embedder=embedder)
    async with open_app(settings) as app:
        if not (await app.counts())[0]:
            await app.ingest([data / SETS[name][0]])
        await app.vectors.fill(sentences=True)


def main(data: Path, sets: Sequence[str], embedder: str, delay: float, folder: Path) -> None:
    """Print the table."""
    print("| | 200 | whole | 503 | other | p50 ms | p95 ms | processor ms | a second |\n|---" + "|---" * 8 + "|")
    for name in sets:
        asyncio.run(collected(data, name, folder / name, embedder))
        fresh = iter(questions_of(data, name))

        def report(what: str, served: Service, count: int, clients: int, fresh: Iterator[str] = fresh) -> None:
            questions = list(itertools.islice(fresh, count))
            if len(questions) == count:
                print(line(what, asyncio.run(ask(served, questions, clients))), flush=True)

        with service(folder / name, embedder) as served:
            asyncio.run(ask(served, list(itertools.islice(fresh, WARM)), 4))
            report(f"{name}, one at a time", served, ALONE, 1)
            for _ in range(ROUNDS):
                report(f"{name}, {AT_ONCE} at once", served, AT_ONCE, AT_ONCE)
        for workers in ("1", "2", "1", "2"):
            with service(folder / name, embedder, workers=workers) as served:
                asyncio.run(ask(served, list(itertools.islice(fresh, WARM)), CLIENTS))
                report(f"{name}, {CLIENTS} clients, {workers} worker(s)", served, AT_ONCE, CLIENTS)
        for reader, calls in (("on", 2), ("off", 1)):
            with ModelServer(reply, delay=delay) as model:
                chat = {"llm": "openai:bench", "llm_base_url": model.url, "llm_api_key": "none", "reader": reader}
                with service(folder / name, embedder, **chat) as served:
                    asyncio.run(ask(served, list(itertools.islice(fresh, WARM)), 4))
                    what = f"{name}, {AT_ONCE} at once, {calls} calls of a model, {delay:g} s each"
                    report(what, served, AT_ONCE, AT_ONCE)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", nargs="*", choices=list(SETS), default=list(SETS))
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--embedder", default="auto")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dtrag-bench-") as temporary:
        main(options.data, options.sets, options.embedder, options.seconds, options.folder or Path(temporary))
