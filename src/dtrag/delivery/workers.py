"""`dtrag up --workers N`: the supervisor of the processes that serve. It imports no engine.

It keeps the embedded database running, has the sockets, and starts a template: an interpreter that imports the service
and loads the models, and from which the workers are forked, so that they share this memory: a further one takes 60 MB
instead of 217. Each accepts from the same sockets, so a client that connects while workers change waits for one that
accepts. A file without a name holds what they count together (`counts.py`), with a seat for each and one more for the
successor of a worker.

SIGTERM and SIGINT stop all, SIGHUP replaces one worker after another by those of a new template, with the code of then.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dtrag import errors, logs
from dtrag.adapters.postgres.server.server import EmbeddedServer
from dtrag.counts import Counts
from dtrag.delivery.listening import address_of, listen, owner_listener
from dtrag.errors import DtragError, WorkerFailed
from dtrag.personal_data import mask_of
from dtrag.settings import Settings, environment_of

STOP, STOP_AT_ONCE, RETIRE = b"t", b"i", b"r"
"""Orders to a worker: to stop as after SIGTERM or SIGINT, or to finish while others serve."""
GRACE_S = 10.0
"""Seconds beyond DTRAG_DRAIN_SECONDS and DTRAG_STOP_SECONDS after which a worker that should have ended is killed."""
PROVEN_S = 60.0
"""A worker that ended earlier than this counts as failed: the next one is started later."""
LONGEST_PAUSE_S = 30.0
FORK = struct.Struct("<3i")
"""A request to a template, beside the descriptors: seat, number of seats, and whether the worker is the first one."""
_LOG = logging.getLogger(__name__)


class Template:
    """A process that forks workers, and reports when they end. It ends itself with the supervisor."""

    def __init__(self, settings: Settings) -> None:
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "dtrag.delivery.api.worker", str(theirs.fileno())],
                env=environment_of(settings),
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                process_group=0,  # Ctrl-C reaches the supervisor alone
            )
        self.workers: dict[int, Worker] = {}
        self.ended = asyncio.create_task(self._watch())

    def fork(self, worker: Worker, numbers: Sequence[int], descriptors: Sequence[int]) -> None:
        """Start a worker, once the models are loaded. Raises `OSError`."""
        socket.send_fds(self._control, [FORK.pack(worker.seat, *numbers)], descriptors)
        self.workers[worker.seat] = worker

    async def end(self) -> None:
        """Kill it: it has nothing to finish."""
        self._process.kill()
        await self.ended

    async def _watch(self) -> None:
        reader, writer = await asyncio.open_unix_connection(sock=self._control)
        with contextlib.suppress(OSError, ValueError):  # killed, perhaps in the middle of a line
            async for line in reader:
                seat, pid, code = json.loads(line)
                self.workers[seat].pid = pid
                if code is not None:
                    self.workers.pop(seat).code.set_result(code)
        code = await asyncio.to_thread(self._process.wait)
        writer.close()
        for worker in self.workers.values():
            worker.code.set_result(code)
        self.workers.clear()


@dataclass(eq=False, slots=True)
class Worker:
    """A process, and its connection. `pid` and the exit `code` are what its template reports."""

    seat: int
    template: Template
    control: socket.socket
    pid: int | None = None
    code: asyncio.Future[int] = field(default_factory=asyncio.Future)
    started: float = field(default_factory=time.monotonic)
    serving: asyncio.Event = field(default_factory=asyncio.Event)
    notes: Sequence[str] = ()
    failure: dict[str, Any] = field(default_factory=dict)
    retired: bool = False
    ended: asyncio.Task[int] | None = None
    """Ends with the process; its exit code."""

    def tell(self, order: bytes) -> None:
        """Send an order; a process that has ended needs none."""
        with contextlib.suppress(OSError):
            self.control.send(order)

    async def watch(self) -> int:
        """Take its reports until it has ended; returns its exit code."""
        reader, writer = await asyncio.open_unix_connection(sock=self.control)
        with contextlib.suppress(OSError, ValueError):  # killed, perhaps in the middle of a line
            async for line in reader:
                report = json.loads(line)
                if "listening" in report:
                    self.notes = report["notes"]
                    self.serving.set()
                else:
                    self.failure = report
        writer.close()
        return await self.code

    async def kill(self) -> None:
        """End it at once."""
        if self.pid is None:
            await self.template.end()
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


class WorkerPool:
    """The workers of a service; `run` returns the exit code."""

    def __init__(self, settings: Settings, listener: socket.socket, on_listening: Callable[[str], None] | None) -> None:
        self._settings = settings
        self._listener = listener
        self._on_listening = on_listening
        self._workers: list[Worker] = []
        self._template: Template | None = None
        self._templates: list[Template] = []
        self._failures = 0
        self._changed = asyncio.Event()
        self._renewal = False
        self._stopping = asyncio.Event()
        self._terminal = os.isatty(2)

    async def run(self) -> int:
        """Serve until a signal. Raises what starting the database and the first worker raises."""
        loop = asyncio.get_running_loop()
        for number, order in ((signal.SIGTERM, STOP), (signal.SIGINT, STOP_AT_ONCE)):
            if signal.getsignal(number) is not signal.SIG_IGN:  # started in the background by a shell: it stays ignored
                loop.add_signal_handler(number, self._stop, order)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            loop.add_signal_handler(signal.SIGHUP, self._renew)
        with contextlib.ExitStack() as stack:
            if not self._settings.database_url:
                stack.enter_context(await asyncio.to_thread(EmbeddedServer.open, self._settings.data_dir))
            self._owner = stack.enter_context(owner_listener(self._settings.data_dir))
            self._file = stack.enter_context(tempfile.TemporaryFile())
            self._counts = Counts(self._file.fileno(), seats=self._settings.workers + 1)
            tending = asyncio.create_task(self._tend())
            stopping = asyncio.create_task(self._stopping.wait())
            try:
                await asyncio.wait({tending, stopping}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                tending.cancel()
                await self._end()
            await asyncio.gather(tending, return_exceptions=True)
            if not tending.cancelled() and (error := tending.exception()) is not None:
                raise error
        return 0

    def _stop(self, order: bytes) -> None:
        self._stopping.set()
        for worker in self._workers:
            worker.tell(order)

    def _renew(self) -> None:
        if self._terminal and not os.isatty(2):  # it was closed
            self._stop(STOP_AT_ONCE)
            return
        self._renewal = True
        self._changed.set()

    async def _tend(self) -> None:
        """Start the workers, start others for those that end, and replace them when requested."""
        first = await self._started(first=True)
        _print(*first.notes, f"dtrag is listening on {address_of(self._listener)} (docs at /docs), {self._number()}")
        if self._on_listening is not None:
            self._on_listening(address_of(self._listener))
        while True:
            self._changed.clear()
            await self._complete()
            if self._renewal:
                self._renewal = False
                await self._replace_all()
                continue
            await self._changed.wait()

    async def _complete(self) -> None:
        """Start workers until there are enough; pause longer and longer between those that fail."""
        while len(self._active()) < self._settings.workers:
            await asyncio.sleep(pause_s(self._failures))
            try:
                await self._started()
            except DtragError as error:
                _LOG.error("a worker did not start, which is tried again: %s", error)

    async def _replace_all(self) -> None:
        """Replace each worker by a new one that already serves. If one fails, the others stay, and their template."""
        template, self._template = self._template, None
        try:
            for old in self._active():
                await self._started()
                old.retired = True
                old.tell(RETIRE)
                await self._ended(old)
            _print(f"dtrag has replaced its {self._number()}")
        except DtragError as error:
            _LOG.error("the workers are not replaced, because a new one did not start: %s", error)
            self._template = template
        for unused in [each for each in self._templates if each is not self._template and not each.workers]:
            self._templates.remove(unused)
            await unused.end()

    async def _started(self, *, first: bool = False) -> Worker:
        """A new worker that serves. Raises what it reports, or `WorkerFailed`."""
        if self._stopping.is_set():
            raise asyncio.CancelledError
        try:
            worker = self._spawn(first=first)
        except OSError as error:  # no memory or descriptor left, or an update that is replacing the interpreter
            self._failures += 1
            raise WorkerFailed(f"A process of a worker cannot be started: {error}.") from error
        serving = asyncio.create_task(worker.serving.wait())
        assert worker.ended is not None  # noqa: S101 - set by `_spawn`
        await asyncio.wait({serving, worker.ended}, return_when=asyncio.FIRST_COMPLETED)
        serving.cancel()
        if worker.serving.is_set():
            return worker
        if worker.failure:
            kind: type[DtragError] = getattr(errors, worker.failure["failed"], WorkerFailed)
            raise kind(worker.failure["message"])
        raise WorkerFailed(code=worker.ended.result())

    def _spawn(self, *, first: bool) -> Worker:
        if self._template is None or self._template.ended.done():
            self._template = Template(self._settings)
            self._templates.append(self._template)
        ours, theirs = socket.socketpair()
        seats = self._settings.workers + 1
        taken = {worker.seat for worker in self._workers}
        seat = next(number for number in range(seats) if number not in taken)
        sockets = [self._listener, theirs, *([self._owner] if self._owner is not None else [])]
        worker = Worker(seat, self._template, ours)
        with theirs:
            descriptors = [self._file.fileno(), *(each.fileno() for each in sockets)]
            self._template.fork(worker, (seats, first), descriptors)
        worker.ended = asyncio.create_task(worker.watch())
        worker.ended.add_done_callback(lambda _: self._note_end(worker))
        self._workers.append(worker)
        return worker

    def _note_end(self, worker: Worker) -> None:
        self._workers.remove(worker)
        self._counts.vacate(worker.seat)
        if worker.retired or self._stopping.is_set():
            return
        lived = time.monotonic() - worker.started
        self._failures = 0 if lived > PROVEN_S else self._failures + 1
        if worker.serving.is_set():
            ended = (worker.pid, worker.code.result())
            _LOG.warning("worker %d has ended with code %d, another one is started", *ended)
        self._changed.set()

    async def _ended(self, worker: Worker) -> None:
        """Return when the worker has ended, which takes it as long as its requests, at most the time to stop."""
        if worker.ended is None:
            return
        try:
            async with asyncio.timeout(self._settings.drain_seconds + self._settings.stop_seconds + GRACE_S):
                await asyncio.shield(worker.ended)
        except TimeoutError:
            _LOG.error("worker %s does not end: it is killed", worker.pid)
            await worker.kill()
            await worker.ended

    async def _end(self) -> None:
        """End the workers that run."""
        if not self._stopping.is_set():
            self._stop(STOP_AT_ONCE)
        await asyncio.gather(*(self._ended(worker) for worker in list(self._workers)))
        await asyncio.gather(*(template.end() for template in self._templates))

    def _active(self) -> list[Worker]:
        return [worker for worker in self._workers if not worker.retired]

    def _number(self) -> str:
        return f"{self._settings.workers} workers"


def pause_s(failures: int) -> float:
    """Seconds before the next worker is started, after so many in succession that failed."""
    return min(LONGEST_PAUSE_S, 0.25 * 2 ** min(failures, 10)) if failures else 0.0


def supervise(settings: Settings, on_listening: Callable[[str], None] | None = None) -> int:
    """As `dtrag.delivery.api.serve.serve`, with the workers of the settings."""
    logs.configure(settings.log_level, settings.log_format, mask_of(settings))
    with contextlib.closing(listen(settings.host, settings.port)) as listener:

        async def run() -> int:
            return await WorkerPool(settings, listener, on_listening).run()

        return asyncio.run(run())


def _print(*lines: str) -> None:
    for line in lines:
        sys.stderr.write(line + os.linesep)
    sys.stderr.flush()
