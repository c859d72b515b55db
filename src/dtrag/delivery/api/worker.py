"""The workers of `dtrag up --workers N`, and the template that they are forked from.

    python -m dtrag.delivery.api.worker CONTROL

Over the socket with this descriptor the supervisor (`delivery/workers.py`) requests workers, and the template reports
their pids and exit codes. A worker serves what the supervisor's sockets receive; over a socket of its own it reports in
lines of JSON and receives orders. Its end means that the supervisor has died: the worker finishes and ends too.

The template opens nothing and runs no event loop. Its models have no threads; those of numpy start again after a fork.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import os
import platform
import select
import signal
import socket
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NoReturn

gc.disable()  # as in `dtrag up`: garbage collection during imports takes a tenth of the start time

from dtrag import logs  # noqa: E402
from dtrag.adapters.embedders.factory import LOCAL, choose  # noqa: E402
from dtrag.adapters.postgres.connect import pool_size_of_worker  # noqa: E402
from dtrag.counts import Counts  # noqa: E402
from dtrag.delivery.api.dependencies import Service  # noqa: E402
from dtrag.delivery.api.owner_socket import OwnerSocket, owner_socket_on  # noqa: E402
from dtrag.delivery.api.serve import DRAIN_S, Stop, Surroundings, run  # noqa: E402
from dtrag.delivery.process_end import leave  # noqa: E402
from dtrag.delivery.workers import FORK, RETIRE, STOP, STOP_AT_ONCE  # noqa: E402
from dtrag.errors import DtragError  # noqa: E402
from dtrag.personal_data import mask_of  # noqa: E402
from dtrag.ports import Embedder, Loadable  # noqa: E402
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
                    stop.begin(drain=bytes([order]) == STOP)

        loop.add_reader(self._socket, receive)
        loop.add_signal_handler(signal.SIGINT, lambda: None)
        loop.add_signal_handler(signal.SIGTERM, loop.call_later, DRAIN_S, stop.retire)
        try:
            yield
        finally:
            loop.remove_reader(self._socket)


async def serve(settings: Settings, embedder: Embedder | None, numbers: Sequence[int], sockets: Sequence[int]) -> int:
    """Serve until stopped; returns the exit code."""
    seat, seats, first = numbers
    file, tcp, control_descriptor, *owner = sockets
    control = Control(control_descriptor)
    listener = socket.socket(fileno=tcp)
    owner_listener = socket.socket(fileno=owner[0]) if owner else None

    @contextlib.contextmanager
    def owner_socket(service: Service) -> Iterator[OwnerSocket | None]:
        yield owner_socket_on(service, owner_listener)

    around = Surroundings(
        counts=Counts(file, seats=seats, seat=seat),
        owner=owner_socket,
        stopped=control.obeyed,
        note=control.note,
        listening=control.listening,
        warm_first=not first,
        embedder=embedder,
    )
    try:
        await run(replace(settings, pool_size=await pool_size_of_worker(settings)), listener, around)
    except DtragError as error:
        control.report({"failed": type(error).__name__, "message": str(error)})
        return error.exit_code
    return 0


def main(arguments: Sequence[str]) -> int:
    """Fork workers until the supervisor ends; returns the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):  # a terminal and systemd send them to all
        signal.signal(number, signal.SIG_IGN)
    settings = Settings.load()
    logs.configure(settings.log_level, settings.log_format, mask_of(settings))
    threads = max(1, min(settings.embed_threads, (os.cpu_count() or 1) // settings.workers))
    settings = replace(settings, embed_threads=threads)
    embedder = _loaded(settings)
    gc.collect()
    gc.freeze()  # a collection would write to the memory that workers share
    control, (woken, waking) = socket.socket(fileno=int(arguments[0])), socket.socketpair()
    woken.setblocking(False)
    waking.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waking.fileno())
    seats: dict[int, int] = {}
    with contextlib.suppress(OSError):  # the supervisor has died
        while True:
            ready, _, _ = select.select([control, woken], [], [])
            if woken in ready:
                woken.recv(4096)
                for pid, code in _ended():
                    _report(control, seats.pop(pid), pid, code)
            if control not in ready:
                continue
            request, descriptors, _, _ = socket.recv_fds(control, FORK.size, 4)
            if not request:
                break
            numbers = FORK.unpack(request)
            pid = _forked()
            if not pid:
                for each in (control, woken, waking):
                    each.close()
                _work(settings, embedder, numbers, descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
            if pid > 0:
                seats[pid] = numbers[0]
            _report(control, numbers[0], pid if pid > 0 else None, None if pid > 0 else 1)
    return 0


def _loaded(settings: Settings) -> Embedder | None:
    """The models on this machine that embed; None without any, or where they fail: each worker then reports it."""
    if settings.embedder not in LOCAL or platform.system() == "Darwin":  # whose libraries may not be forked
        return None
    try:
        embedder = choose(settings)
        model: object = embedder
        if isinstance(model, Loadable):
            model.load()
    except Exception:  # noqa: BLE001 - the boundary: a worker opens the app without it, and loads it again
        return None
    return embedder


def _ended() -> Iterator[tuple[int, int]]:
    """Pids and exit codes of the workers that have ended."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            yield ended[0], os.waitstatus_to_exitcode(ended[1])


def _report(control: socket.socket, seat: int, pid: int | None, code: int | None) -> None:
    control.sendall(json.dumps([seat, pid, code]).encode() + b"\n")


def _forked() -> int:
    """`os.fork`; -1 where there is no memory for another process, which is logged."""
    try:
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of the threads of numpy
            return os.fork()
    except OSError:
        logging.getLogger(__name__).exception("a worker cannot be forked")
        return -1


def _work(settings: Settings, embedder: Embedder | None, numbers: Sequence[int], sockets: Sequence[int]) -> NoReturn:
    """Be a worker, and exit without what libraries do then: they would wait for threads that a fork leaves behind."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.setpgid(0, 0)
    gc.enable()
    code = 1
    try:
        code = asyncio.run(serve(settings, embedder, numbers, sockets))
    except BaseException:
        logging.getLogger(__name__).exception("a worker has failed")
    leave(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
