"""Many conversations at once over HTTP: how many are answered, how many are told to come back, and how long it takes.

python bench/chat.py FOLDER [--seconds 1.0] [--embedder none|auto]

FOLDER holds corpus.jsonl and queries.jsonl. The service runs in a process of its own, the clients and a local server in
place of the language model in this one; both share the processors. Questions differ, and no search is cached.
"""

from __future__ import annotations

import argparse
import asyncio
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

from tests.model_server import ModelServer

from dtrag.app import App, open_app
from dtrag.core.access.scope import Scope
from dtrag.core.text.questions import content_terms
from dtrag.pipeline.answer.extractive import extract
from dtrag.settings import Settings

REPLY = "The passages say so. [1]"
SINGLE = 100
"""Questions asked one after another, for the overhead."""


@contextmanager
def service(data_dir: str, embedder: str, **settings: str) -> Iterator[tuple[str, int]]:
    """Address and process id of a service on that folder."""
    environment = os.environ | {
        "DTRAG_DATA_DIR": data_dir,
        "DTRAG_EMBEDDER": embedder,
        "DTRAG_CACHE_SIZE": "0",
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
        time.sleep(6)  # what is loaded in the background: the embedder, the graph, the model's client
        try:
            yield address, process.pid
        finally:
            process.terminate()
            listening.join()
            if said:
                print(f"the service has said {len(said)} lines, the last: {said[-1][:200]}")


def processor_s(pid: int) -> float:
    """Seconds of processor time that the process has used (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Outcome:
    """What became of questions asked at once. `whole` are answers that did without nothing."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    whole: int = 0
    processor_s: float = 0.0


async def at_once(served: tuple[str, int], questions: Sequence[str], count: int) -> Outcome:
    """So many questions at the same time; `processor_s` is the service's for each."""
    address, pid = served
    used, done = processor_s(pid), Outcome()
    limits = httpx2.Limits(max_connections=count, max_keepalive_connections=count)

    async with httpx2.AsyncClient(base_url=address, timeout=60, limits=limits) as client:

        async def ask(number: int) -> None:
            started = time.perf_counter()
            question = questions[number % len(questions)]
            body = {"message": question, "conversation_id": f"bench-{count}-{number}"}
            try:
                response = await client.post("/chat/run", json=body)
            except httpx2.HTTPError:
                done.statuses[0] += 1
                return
            done.statuses[response.status_code] += 1
            if response.status_code == 200:
                done.seconds.append(time.perf_counter() - started)
                done.whole += not response.json()["metadata"]["degraded"]

        await asyncio.gather(*(ask(number) for number in range(count)))
    done.seconds.sort()
    done.processor_s = (processor_s(pid) - used) / count
    return done


async def one_by_one(address: str, questions: Sequence[str], app: App) -> tuple[list[float], list[float]]:
    """Seconds of bare search and composing in this process, and of the same questions over HTTP, in turn."""
    bare, whole = [], []
    async with httpx2.AsyncClient(base_url=address, timeout=60) as client:
        for question in questions:
            started = time.perf_counter()
            passages, _ = await app.search(question, 10, highlight=False, exact_candidates=True)
            statistics = await app.index.statistics(set(content_terms(question)), Scope.everything())
            await asyncio.to_thread(extract, question, passages, statistics, None)
            bare.append(time.perf_counter() - started)
            started = time.perf_counter()
            response = await client.post("/chat/run", json={"message": question})
            whole.append(time.perf_counter() - started)
            response.raise_for_status()
    return sorted(bare), sorted(whole)


def share(ordered: Sequence[float], part: float) -> float:
    """The value below which this part lies."""
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else float("nan")


def line(what: str, done: Outcome) -> str:
    """A row of the table."""
    answered, refused = done.statuses[200], done.statuses[503]
    counts = (answered, done.whole, refused, sum(done.statuses.values()) - answered - refused)
    times = "".join(f"{share(done.seconds, part):>8.2f}" for part in (0.5, 0.95, 1.0))
    return f"{what:<28}" + "".join(f"{count:>6}" for count in counts) + f"{times}{done.processor_s * 1000:>8.0f}"


async def main(folder: Path, delay: float, embedder: str) -> None:
    """Print the table."""
    rows = [json.loads(row) for row in (folder / "queries.jsonl").read_text("utf-8").splitlines()]
    questions = [row["text"] for row in rows]
    with tempfile.TemporaryDirectory(prefix="dtrag-bench-") as data_dir, ModelServer(REPLY, delay=delay) as model:
        settings = Settings.load(environ={}, data_dir=data_dir, embedder=embedder, cache_size=0)
        async with open_app(settings) as app:
            await app.ingest([folder / "corpus.jsonl"])
            print(f"{folder.name}: {len(questions)} questions, embedder {embedder}")
            print(
                f"{'':<28}{'200':>6}{'whole':>6}{'503':>6}{'other':>6}{'p50 s':>8}{'p95 s':>8}{'max s':>8}{'cpu ms':>8}"
            )
            with service(data_dir, embedder) as served:
                await at_once(served, questions, 4)
                print(line("100 at once, quoted", await at_once(served, questions, 100)))
                bare, whole = await one_by_one(served[0], (questions * SINGLE)[:SINGLE], app)
            chat = {"llm": "openai:bench", "llm_base_url": model.url, "llm_api_key": "none"}
            with service(data_dir, embedder, **chat) as served:
                await at_once(served, questions, 4)
                for count in (100, 300):
                    print(line(f"{count} at once, model of {delay:g} s", await at_once(served, questions, count)))
            over = (share(whole, 0.5) - share(bare, 0.5)) * 1000
            print(
                f"one at a time, p50: search and compose {share(bare, 0.5) * 1000:.1f} ms, "
                f"/chat/run {share(whole, 0.5) * 1000:.1f} ms,\noverhead {over:.1f} ms"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--embedder", default="none")
    given = parser.parse_args()
    asyncio.run(main(given.folder, given.seconds, given.embedder))
