"""Return types of `dtrag.open()` and `dtrag.open_sync()`: a context manager, and an app for scripts and notebooks.

The methods of `SyncApp` are those of `App`, run on an event loop in a thread.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Concatenate, Generic, NoReturn, ParamSpec, TypeVar, overload

from dtrag.app import App, open_app
from dtrag.concurrency import LoopThread
from dtrag.errors import NotOpened
from dtrag.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")


class AppOpening(AbstractAsyncContextManager[App]):
    """Opens an app on `async with`; any other use raises `NotOpened`, which explains it."""

    def __init__(self, settings: Settings) -> None:
        self._manager = open_app(settings)

    async def __aenter__(self) -> App:
        return await self._manager.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._manager.__aexit__(kind, error, traceback)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise NotOpened(use=f"app.{name}")

    def __await__(self) -> NoReturn:
        raise NotOpened(use="await")

    def __enter__(self) -> NoReturn:
        raise NotOpened(use="with")

    def __exit__(self, *exception: object) -> None:
        """`with` looks this method up before it calls `__enter__`, which raises the error."""


class _Blocking(Generic[P, T]):
    """A coroutine method of `App` as a method of `SyncApp` that returns its result."""

    def __init__(self, method: Callable[Concatenate[App, P], Coroutine[Any, Any, T]]) -> None:
        self.method = method
        self.__name__ = method.__name__
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, instance: None, owner: type[SyncApp]) -> _Blocking[P, T]: ...

    @overload
    def __get__(self, instance: SyncApp, owner: type[SyncApp]) -> Callable[P, T]: ...

    def __get__(self, instance: SyncApp | None, owner: type[SyncApp]) -> _Blocking[P, T] | Callable[P, T]:
        if instance is None:
            return self
        opened = instance

        @functools.wraps(self.method)
        def call(*arguments: P.args, **options: P.kwargs) -> T:
            return opened.run(lambda app: self.method(app, *arguments, **options))

        return call


class SyncApp:
    """An open app for code without `await`: scripts and notebooks. Get one from `dtrag.open_sync()`; close it.

    It has the methods of `App`; everything else of the app (`keys`, `review`, `taxonomy` …) is reached with `run`.
    Callbacks such as `on_progress` are called in the thread of the event loop. Any thread may call it.
    """

    load = _Blocking(App.load)
    ingest = _Blocking(App.ingest)
    plan_prune = _Blocking(App.plan_prune)
    sync = _Blocking(App.sync)
    plan_sync = _Blocking(App.plan_sync)
    reindex = _Blocking(App.reindex)
    calibrate = _Blocking(App.calibrate)
    uncalibrate = _Blocking(App.uncalibrate)
    evaluate_answers = _Blocking(App.evaluate_answers)
    search = _Blocking(App.search)
    ask = _Blocking(App.ask)
    answer = _Blocking(App.answer)
    documents = _Blocking(App.documents)
    counts = _Blocking(App.counts)
    branch = _Blocking(App.branch)
    pending_vectors = _Blocking(App.pending_vectors)
    document = _Blocking(App.document)
    passage = _Blocking(App.passage)
    delete_document = _Blocking(App.delete_document)
    select_documents = _Blocking(App.select_documents)
    delete_documents = _Blocking(App.delete_documents)
    check_identity = _Blocking(App.check_identity)

    def __init__(self, settings: Settings) -> None:
        """Open the app. Raises `DatabaseUnavailable`."""
        self._opened = LoopThread(
            functools.partial(open_app, settings),
            name="dtrag-sync",
            reopen="This app is closed. Open another one with: dtrag.open_sync()",
        )

    def run(self, call: Callable[[App], Coroutine[Any, Any, T]]) -> T:
        """The result of a call of the app, such as `app.run(lambda app: app.review.waiting())`.

        Ctrl-C cancels it. Raises what the call raises, and `NotOpened` after `close` and inside a callback.
        """
        return self._opened.run(call)

    def close(self) -> None:
        """Close the app; may be repeated."""
        self._opened.close()

    def __enter__(self) -> SyncApp:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
