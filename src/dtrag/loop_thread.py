"""An event loop in a thread of its own, for code without `await` that calls asynchronous parts."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, TypeVar

from dtrag.errors import NotOpened

T = TypeVar("T")
R = TypeVar("R")


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
