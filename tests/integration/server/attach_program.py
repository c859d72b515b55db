"""A process that attaches to a data folder, prints the postmaster's pid, and detaches after one line of input.

`attached.attach_elsewhere` runs this file. It is a file and not a string, so that mypy checks its imports.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dtrag.adapters.postgres.server import process
from dtrag.adapters.postgres.server.server import EmbeddedServer


def main(folder: Path) -> None:
    with EmbeddedServer.open(folder) as server:
        sys.stdout.write(f"{process.running_pid(server.address.data_dir / 'postgres')}\n")
        sys.stdout.flush()
        sys.stdin.readline()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
