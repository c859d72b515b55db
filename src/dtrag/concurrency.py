"""How much runs at the same time, and where: concurrency bounded queues, threads and loops.

A request that finds a queue full, or waits too long in it, is refused at once with the time after which to retry
(`Overloaded`): a service that accepts more than it can do answers no request in time. CPU work and waiting for models
have separate limits, because a hundred runs can wait for models while two compute.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import os
import secrets
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from concurrent.futures import Executor, Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Generic, ParamSpec, TypeVar

from dtrag.counts import CURRENT, Counts
from dtrag.errors import NotOpened, Overloaded
from dtrag.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")

INTERNAL_PATIENCE_S = 60.0
"""Longest wait of an admitted run for CPU or a model, in seconds: it was promised an answer, not a second refusal. With
10 s, half of a hundred questions at once over a book of regulations were refused on a loaded machine."""
UPLOAD_PATIENCE_S = 30.0
"""Longest wait of an upload, in seconds: the client keeps its files meanwhile, and sending them again costs more than
waiting."""
CASES_AT_ONCE, CASES_WAITING, CASE_PATIENCE_S = 8, 512, 30.0
"""Suggestions and votes take milliseconds each: many may wait, and each of them long, rather than be refused."""
MAX_RETRY_S = 5
"""Refused clients get a random `Retry-After` of 1 to 5 seconds, so that they do not all return together."""
FREED_ELSEWHERE_S = 0.005
"""Seconds after which the first in the queue looks whether another process has released a slot."""


def limit_clock() -> float:
    """Seconds on the clock by which limits are measured: that of the running event loop.

    `asyncio.timeout` and `asyncio.wait` use the same clock. A loop with another `time()` changes all limits together.
    """
    return asyncio.get_running_loop().time()


@dataclass(frozen=True, slots=True)
class Load:
    """How busy a limiter is: tasks working, tasks waiting, and tasks refused since the start."""

    working: int
    waiting: int
    refused: int


WORKING, WAITING = 0, 1
"""The cells of a limiter."""


class Limiter:
    """Lets `concurrency` tasks work at once; up to `queue` more wait, first come first served, at most `patience` s.

    Processes that share `counts` have the slots and the queue of a `name` together.
    """

    def __init__(
        self, concurrency: int, queue: int, patience: float, *, counts: Counts | None = None, name: str = ""
    ) -> None:
        self._concurrency = max(1, concurrency)
        self._queue = queue
        self._patience = patience
        self._turn = asyncio.Lock()
        self._freed = asyncio.Event()
        self.count_in(counts or Counts(), name)

    def count_in(self, counts: Counts, name: str) -> None:
        """Count in these from now on; no task may be working or waiting."""
        self._lock, self._shared = counts.lock, counts.shared
        self._now = counts.row(f"{CURRENT}limiter", name, width=2)
        self._refused = counts.row("limiter refused", name)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """A slot while the block runs. Raises `Overloaded` when the queue is full or the wait too long."""
        if self._now.own[WAITING] or not self._enter():
            await self._wait()
        try:
            yield
        finally:
            self._now.own[WORKING] -= 1
            self._freed.set()

    @property
    def load(self) -> Load:
        """How busy it is now."""
        return Load(int(self._now.total(WORKING)), int(self._now.total(WAITING)), int(self._refused.total()))

    def _enter(self) -> bool:
        """Take a slot if one is free, unless another process waits for one and has fewer."""
        with self._lock:
            own, seats = self._now.own, self._now.seats
            if self._now.total(WORKING) >= self._concurrency:
                return False
            if self._shared and any(seat[WAITING] and seat[WORKING] < own[WORKING] for seat in seats):
                return False
            own[WORKING] += 1
            return True

    async def _wait(self) -> None:
        if self._now.total(WAITING) >= self._queue:
            raise self._refusal()
        self._now.own[WAITING] += 1
        try:
            async with asyncio.timeout(self._patience), self._turn:
                while not self._enter():
                    self._freed.clear()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(FREED_ELSEWHERE_S if self._shared else None):
                            await self._freed.wait()
        except TimeoutError:
            raise self._refusal() from None
        finally:
            self._now.own[WAITING] -= 1

    def _refusal(self) -> Overloaded:
        self._refused.own[0] += 1
        return Overloaded(seconds=1 + secrets.randbelow(MAX_RETRY_S))


class Admission:
    """The limiters of one app. A run enters by `run()`, and takes `cpu()` and `model()` slots inside as needed.

    `search()`, `case()` and `upload()` are for searches, suggestions of cases and uploads over HTTP, which are not part
    of a run.

    `cpu()` belongs around a step, outside of its timeout, so that waiting for a slot does not count as the step's time.
    A run never holds a slot of one limiter while it waits for another, which could deadlock: no `model()` inside of
    `cpu()`.
    """

    def __init__(
        self,
        *,
        runs: int = 128,
        cpu: int = 0,
        models: int = 128,
        queue: int = 128,
        patience: float = 15.0,
        searches: tuple[int, int] = (8, 2_000),
        uploads: tuple[int, int] = (4, 32),
    ) -> None:
        """`cpu` = 0: twice the number of cores. Up to `queue` runs wait at most `patience` seconds to be admitted.

        `searches` and `uploads`: how many work at once, and how many may wait.
        """
        internal_queue = (runs + queue) * 8
        limits = {
            "run": (runs, queue, patience),
            "cpu": (cpu or 2 * (os.cpu_count() or 1), internal_queue, INTERNAL_PATIENCE_S),
            "model": (models, internal_queue, INTERNAL_PATIENCE_S),
            "search": (*searches, patience),
            "case": (CASES_AT_ONCE, CASES_WAITING, CASE_PATIENCE_S),
            "upload": (*uploads, UPLOAD_PATIENCE_S),
        }
        counts = Counts()
        self._limiters = {name: Limiter(*limit, counts=counts, name=name) for name, limit in limits.items()}

    def count_in(self, counts: Counts) -> None:
        """Have the slots and queues together with the other processes of these counts; before the first run."""
        for name, limiter in self._limiters.items():
            limiter.count_in(counts, name)

    @classmethod
    def of(cls, settings: Settings) -> Admission:
        """The limiters that the settings describe."""
        return cls(
            runs=settings.answers_at_once,
            cpu=settings.cpu_at_once,
            models=settings.model_calls_at_once,
            queue=settings.answers_waiting,
            patience=settings.wait_ms / 1000,
            searches=(settings.searches_at_once, settings.searches_waiting),
            uploads=(settings.uploads_at_once, settings.uploads_waiting),
        )

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Around a whole run. Raises `Overloaded`, before any work was done."""
        async with self._limiters["run"].slot():
            yield

    @asynccontextmanager
    async def cpu(self) -> AsyncIterator[None]:
        """Around CPU work: searching, composing, checking. Raises `Overloaded`."""
        async with self._limiters["cpu"].slot():
            yield

    @asynccontextmanager
    async def model(self) -> AsyncIterator[None]:
        """Around one call of a language model. Raises `Overloaded`."""
        async with self._limiters["model"].slot():
            yield

    @asynccontextmanager
    async def search(self) -> AsyncIterator[None]:
        """Around a search that is not part of a run. Raises `Overloaded`, before any work was done."""
        async with self._limiters["search"].slot():
            yield

    @asynccontextmanager
    async def case(self) -> AsyncIterator[None]:
        """Around a suggestion of cases or a vote. Raises `Overloaded`, before any work was done."""
        async with self._limiters["case"].slot():
            yield

    @asynccontextmanager
    async def upload(self) -> AsyncIterator[None]:
        """Around receiving and reading files. Raises `Overloaded`, before any byte was read."""
        async with self._limiters["upload"].slot():
            yield

    def loads(self) -> Mapping[str, Load]:
        """The load of each limiter now: run, cpu, model, search, case, upload."""
        return {name: limiter.load for name, limiter in self._limiters.items()}


class DaemonThreads(Executor):
    """At most `most` daemon threads, started as needed; a call that never returns occupies one of them for good.

    `ThreadPoolExecutor` joins its threads when the interpreter exits, so such a call would keep the process alive.
    `queue`: calls that may wait for a thread (None: any number); `submit` raises `Overloaded` beyond that.
    """

    def __init__(self, most: int, name: str, *, queue: int | None = None) -> None:
        self._most = most
        self._name = name
        self._queue = queue
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lock = threading.Lock()
        self._started = 0
        self._unfinished = 0

    def submit(self, function: Callable[P, T], /, *arguments: P.args, **keywords: P.kwargs) -> Future[T]:
        """The call's future. A call that is cancelled before it begins is not made."""
        future: Future[T] = Future()

        def call() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = function(*arguments, **keywords)
            except BaseException as error:  # noqa: BLE001 - raised again for the caller, as every executor does
                future.set_exception(error)
            else:
                future.set_result(result)

        with self._lock:
            if self._queue is not None and self._unfinished >= self._most + self._queue:
                raise Overloaded(seconds=MAX_RETRY_S)
            if self._started < min(self._unfinished + 1, self._most):
                name = f"{self._name}-{self._started + 1}"
                threading.Thread(target=self._work, name=name, daemon=True).start()
                self._started += 1
            self._calls.put(call)
            self._unfinished += 1
        return future

    async def run(self, function: Callable[P, T], /, *arguments: P.args, **keywords: P.kwargs) -> T:
        """The function's result, as `asyncio.to_thread` gives it. The call goes on when this is cancelled."""
        context = contextvars.copy_context()
        call = functools.partial(context.run, function, *arguments, **keywords)
        return await asyncio.get_running_loop().run_in_executor(self, call)

    def _work(self) -> None:
        while True:
            call = self._calls.get()
            call()
            with self._lock:
                self._unfinished -= 1

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Nothing to do: idle threads end with the process."""


class LoopThread(Generic[T]):
    """What a context manager opens, on an event loop in a thread. Any other thread may call it.

    `opened` makes the context manager, in the thread; what entering it raises, this raises. `reopen` tells how to get
    another one after `close`. One that was left open is closed when the interpreter exits.
    """

    def __init__(self, opened: Callable[[], AbstractAsyncContextManager[T]], *, name: str, reopen: str) -> None:
        self._reopen = reopen
        self._stop = asyncio.Event()
        self._result: Future[tuple[T, asyncio.AbstractEventLoop]] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(opened)), name=name, daemon=True)
        self._thread.start()
        try:
            self._value, self._loop = self._result.result()
        except BaseException:
            self._result.cancel()
            raise
        _at_exit(self)

    async def _serve(self, opened: Callable[[], AbstractAsyncContextManager[T]]) -> None:
        """Keep it open until `close`. One task enters and leaves it, as task groups and cancel scopes require."""
        try:
            async with opened() as value:
                self._result.set_result((value, asyncio.get_running_loop()))
                await self._stop.wait()
        except BaseException as error:
            if self._result.done():
                raise
            self._result.set_exception(error)

    def run(self, call: Callable[[T], Coroutine[Any, Any, R]]) -> R:
        """The result of a call of what is open. Ctrl-C cancels it.

        Raises what the call raises, and `NotOpened` after `close` and inside a callback.
        """
        if not self._thread.is_alive() or self._stop.is_set():
            raise NotOpened(self._reopen)
        if threading.current_thread() is self._thread:
            raise NotOpened("A callback cannot call the app that is calling it. Do it after the call has returned.")
        future = asyncio.run_coroutine_threadsafe(call(self._value), self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Close it; may be repeated."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()


def _at_exit(loop_thread: LoopThread[Any]) -> None:
    """Close what was left open when the interpreter exits.

    `atexit` runs too late: closing needs threads, which cannot be started by then.
    """
    forgotten = weakref.ref(loop_thread)

    def close() -> None:
        if (still_open := forgotten()) is not None:
            still_open.close()

    register: Callable[[Callable[[], None]], None] = getattr(threading, "_register_atexit")  # noqa: B009 - not in stubs
    register(close)
