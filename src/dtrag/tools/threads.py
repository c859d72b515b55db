"""Blocking functions as tools: each call has a thread of its own, which is left behind when its time is over."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Mapping
from typing import Any

from dtrag.errors import Overloaded

MOST = 32
"""Threads at a time, those left behind among them: a function that never ends costs one, not the machine."""
RETRY_SECONDS = 5

_running = threading.BoundedSemaphore(MOST)


async def in_thread(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """What the function returns. Raises what it raises, and `Overloaded` when `MOST` calls are still running.

    When this is cancelled the thread goes on, since Python cannot end one, but nobody waits for it: not the caller,
    and not the end of the process (an executor of the standard library would).
    """
    if not _running.acquire(blocking=False):
        raise Overloaded(seconds=RETRY_SECONDS)
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: Any, error: BaseException | None) -> None:
        if ended.done():
            return
        if error is None:
            ended.set_result(result)
        else:
            ended.set_exception(error)

    def work() -> None:
        result, failure = None, None
        try:
            result = context.run(function, **arguments)
        except BaseException as error:  # noqa: BLE001 - told to whoever waits; nothing may end unheard in a thread
            failure = RuntimeError(f"the tool raised {type(error).__name__}") if _unsettable(error) else error
        finally:
            _running.release()
        try:
            loop.call_soon_threadsafe(settle, result, failure)
        except RuntimeError:
            return  # the loop has ended meanwhile: nobody waits any more

    try:
        threading.Thread(target=work, name=f"tool-{getattr(function, '__name__', 'function')}", daemon=True).start()
    except BaseException:
        _running.release()
        raise
    return await ended


def _unsettable(error: BaseException) -> bool:
    """Whether a future does not take the error: asyncio keeps these three for itself."""
    return isinstance(error, (StopIteration, asyncio.CancelledError, KeyboardInterrupt, SystemExit))
