"""The first and second burst of simultaneous searches after a start, with the product's own settings.

    PYTHONPATH=. python bench/first_burst.py [FILE_OR_FOLDER] [--clients 1000] [--rounds 3]

Each client searches for words of its own on a connection of its own. Prints how many got 200, 503 and no answer, the
seconds until the last answer, and the processor time of the service until it was ready.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.api.conftest import Served
from tests.faults.test_floods import Answer, all_at_once, search

TICKS = os.sysconf("SC_CLK_TCK")
SAMPLES = Path(__file__).parents[1] / "examples"


def burst(port: int, clients: int, label: str) -> str:
    """Statuses and seconds of a burst."""

    def client(number: int) -> Answer:
        try:
            return search(port, f"{label} leave of absence {number}")
        except OSError:
            return 0, None

    started = time.monotonic()
    answers = Counter(status for status, _ in all_at_once(clients, client))
    return f"{answers[200]} / {answers[503]} / {answers[0]} in {time.monotonic() - started:.1f} s"


def main() -> None:
    """Index once, then start and burst in rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", nargs="?", type=Path, default=SAMPLES)
    parser.add_argument("--clients", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory(prefix="bench-burst-") as folder:
        data = str(Path(folder) / "data")
        program = str(Path(sys.executable).with_name("dtrag"))
        subprocess.run([program, "--data-dir", data, "ingest", str(options.source)], check=True, capture_output=True)
        for number in range(options.rounds):
            running = Served(data_dir=data, port="0")
            running.until_ready()
            used = Path(f"/proc/{running.process.pid}/stat").read_text("ascii").rpartition(")")[2].split()
            ready = (int(used[11]) + int(used[12])) / TICKS
            first, second = (burst(running.port, options.clients, f"{number} {name}") for name in ("first", "second"))
            print(
                f"ready after {ready:.1f} s of processor; 200 / 503 / none: first {first}, second {second}", flush=True
            )
            running.stop()


if __name__ == "__main__":
    main()
