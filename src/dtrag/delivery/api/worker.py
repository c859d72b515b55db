"""One worker of `dtrag up --workers N`: serves as a process of its own what the supervisor's sockets receive.

    python -m dtrag.delivery.api.worker LISTENER OWNER COUNTS CONTROL SEAT SEATS FIRST

The first four are descriptors (OWNER -1: there is none). Over CONTROL it reports in lines of JSON, and receives the
bytes of `delivery/workers.py`. Its end means that the supervisor has died: the worker finishes and ends too.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

gc.disable()  # as in `dtrag up`: garbage collection during imports takes a tenth of the start time

from dtrag import logs  # noqa: E402
from dtrag.adapters.postgres.connect import pool_size_of_worker  # noqa: E402
from dtrag.counts import Counts  # noqa: E402
from dtrag.delivery.api.dependencies import Service  # noqa: E402
from dtrag.delivery.api.owner_socket import OwnerSocket, owner_socket_on  # noqa: E402
from dtrag.delivery.api.serve import DRAIN_S, Stop, Surroundings, run  # noqa: E402
from dtrag.delivery.workers import RETIRE, STOP, STOP_AT_ONCE  # noqa: E402
from dtrag.errors import DtragError  # noqa: E402
from dtrag.settings import Settings  # noqa: E402


class Control:
    """The connection to the supervisor."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._notes: list[str] = []
        self.note = self._notes.append

    def listening(self, address: str) -> None:
        """Report that requests are answered."""
        self.report({"listening": address, "notes": self._notes})

    def report(self, message: object) -> None:
        """Send a line of JSON."""
        with contextlib.suppress(OSError):  # without a supervisor the worker is about to end
            self._socket.sendall(json.dumps(message).encode() + b"\n")

    @contextlib.contextmanager
    def obeyed(self, stop: Stop) -> Iterator[None]:
        """While the block runs, the supervisor stops the worker. SIGTERM alone lets it retire.

        SIGINT is left to the supervisor: a terminal sends it to all, as systemd does with SIGTERM.
        """
        loop = asyncio.get_running_loop()
        self._socket.setblocking(False)

        def receive() -> None:
            orders = self._socket.recv(64)
            if not orders:
                loop.remove_reader(self._socket)
                orders = STOP_AT_ONCE
            for order in orders:
                if bytes([order]) == RETIRE:
                    stop.retire()
                else:
                    stop.begin(DRAIN_S if bytes([order]) == STOP else 0.0)

        loop.add_reader(self._socket, receive)
        loop.add_signal_handler(signal.SIGINT, lambda: None)
        loop.add_signal_handler(signal.SIGTERM, loop.call_later, DRAIN_S, stop.retire)
        try:
            yield
        finally:
            loop.remove_reader(self._socket)


async def serve(settings: Settings, descriptors: Sequence[int], seat: tuple[int, int, bool]) -> int:
    """Serve until stopped; returns the exit code."""
    tcp, owner, file, control_descriptor = descriptors
    number, seats, first = seat
    control = Control(control_descriptor)
    listener = socket.socket(fileno=tcp)
    owner_listener = socket.socket(fileno=owner) if owner >= 0 else None

    @contextlib.contextmanager
    def owner_socket(service: Service) -> Iterator[OwnerSocket | None]:
        yield owner_socket_on(service, owner_listener)

    around = Surroundings(
        counts=Counts(file, seats=seats, seat=number),
        owner=owner_socket,
        stopped=control.obeyed,
        note=control.note,
        listening=control.listening,
        warm_first=not first,
    )
    try:
        threads = max(1, min(settings.embed_threads, (os.cpu_count() or 1) // settings.workers))
        pool_size = await pool_size_of_worker(settings)
        await run(replace(settings, embed_threads=threads, pool_size=pool_size), listener, around)
    except DtragError as error:
        control.report({"failed": type(error).__name__, "message": str(error)})
        return error.exit_code
    return 0


def main(arguments: Sequence[str]) -> int:
    """Run the worker that the arguments describe; returns the exit code."""
    numbers = [int(argument) for argument in arguments]
    settings = Settings.load()
    logs.configure(settings.log_level, settings.log_format)
    gc.freeze()
    gc.enable()
    return asyncio.run(serve(settings, numbers[:4], (numbers[4], numbers[5], bool(numbers[6]))))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
