"""With the network closed everything works, and nothing even tries to use it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dtrag.adapters.embedders.bert import MiniLM
from dtrag.settings import Settings
from tests.toy import lines

WATCH = """
import os, sys

def watch(event, arguments):
    if event in {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"}:
        used = repr(arguments)
    elif event in {"socket.connect", "socket.sendto", "socket.sendmsg", "socket.bind"}:
        if arguments[0].family.name == "AF_UNIX":
            return
        used = repr(arguments[1:])
    elif event == "urllib.Request":
        used = repr(arguments[:1])
    elif event == "sitecustomize.watching":
        used = ""
    else:
        return
    with open(WATCHED, "a") as file:
        print(event, os.getpid(), used, file=file)
    if used:
        raise ConnectionRefusedError("the network is closed")

sys.addaudithook(watch)
sys.audit("sitecustomize.watching")
"""

LIFE = """
import asyncio, json, socket, sys
import dtrag
from dtrag.delivery.cli.main import main

async def life(data_dir, path):
    async with dtrag.open(data_dir=data_dir) as app:
        report = await app.ingest(path)
        results, metrics = await app.search("where is the kettle")
        answer = await app.ask("Which note has the serial number serial0007?")
        return {
            "documents": report.documents, "failed": report.failed, "found": len(results),
            "vectors": metrics.vector_candidates, "degraded": metrics.degraded, "answer": answer.text,
        }

print(json.dumps(asyncio.run(life(*sys.argv[1:3]))), flush=True)
assert main(["--data-dir", sys.argv[1], "models", "list", "--json"]) == 0
if len(sys.argv) > 3:
    socket.create_connection(("127.0.0.1", 9))
"""


def closed() -> list[str]:
    """The command in front of ours that takes the network away, where the machine lets us; else none."""
    command = ["unshare", "--net"]
    try:
        allowed = subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return []
    return command if allowed else []


@pytest.mark.skipif(not MiniLM.available(Settings()), reason="the weights of the embedder are not installed")
def test_a_whole_life_without_network(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    watched, hook = tmp_path / "watched", tmp_path_factory.mktemp("hook")
    (hook / "sitecustomize.py").write_text(f"WATCHED = {str(watched)!r}\n{WATCH}")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DTRAG_", "FEATURE_"))}
    environment = kept | {"PYTHONPATH": str(hook)}
    data_dir, path = tmp_path / "data", lines(tmp_path / "notes.jsonl", 10)

    def live(*more: str, prefix: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*prefix, sys.executable, "-c", LIFE, data_dir, path, *more],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    done = live(prefix=closed())
    assert done.returncode == 0, done.stderr
    first, _, models = done.stdout.partition("\n")
    told = json.loads(first)
    assert (told["documents"], told["failed"], told["degraded"]) == (10, [], [])
    assert told["found"] > 0 and told["vectors"] > 0 and told["answer"]
    assert "minilm" in models
    # A library binds a socket to the loopback when it is imported, to find out whether there is IPv6: nothing is sent.
    events = [line for line in watched.read_text().splitlines() if not line.endswith("(('::1', 0),)")]
    # The parser process has an environment of its own without the hook: where the machine allows, `closed()` covers it.
    assert events, "the process was not watched"
    assert {line.split()[0] for line in events} == {"sitecustomize.watching"}, events

    attempt = live("and now a connection", prefix=[])
    assert attempt.returncode != 0
    assert "socket.getaddrinfo" in watched.read_text()
