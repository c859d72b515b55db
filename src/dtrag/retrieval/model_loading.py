"""Loads each model once, outside of the time limits of questions; questions that need a model wait for it."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Future

from dtrag.concurrency import DaemonThreads
from dtrag.ports import Loadable

LOADING_S = 20.0
"""Seconds that questions wait for a model from the start of its loading; the largest known one takes about 5. After
that, they are answered without it until it is loaded."""


class ModelLoader:
    """Loads the models of one engine. An error of a model is raised where the model is used, not here."""

    def __init__(self, max_seconds: float = LOADING_S) -> None:
        self._max_seconds = max_seconds
        self._threads = DaemonThreads(4, "load-model")
        self._loading: dict[int, tuple[Loadable, Future[None], float]] = {}
        self._ready: dict[int, object] = {}

    async def wait(self, *models: object) -> None:
        """Return when the models that can be loaded are loaded, or after `max_seconds` of loading."""
        now = time.monotonic()
        for model in models:
            if id(model) in self._ready:
                continue
            if isinstance(model, Loadable):
                future, end = self._start(model, now)
                if not future.done() and end > now:
                    await asyncio.wait({asyncio.wrap_future(future)}, timeout=end - now)
                    now = time.monotonic()
                if not future.done():
                    continue
            self._ready[id(model)] = model

    def _start(self, model: Loadable, now: float) -> tuple[Future[None], float]:
        """The loading of the model and its end; started now if it was not before."""
        if id(model) not in self._loading:
            self._loading[id(model)] = (model, self._threads.submit(model.load), now + self._max_seconds)
        _, future, end = self._loading[id(model)]
        return future, end
