"""Models are loaded outside of a question's time, once each, and waited for by the questions that need them."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Future

from dtrag.concurrency import DaemonThreads
from dtrag.ports import Loadable

LOADING_S = 20.0
"""Longest wait for a model from the moment its loading began, in seconds: the largest known one takes about 5. After
that questions do without it, until it is there."""


class ModelLoader:
    """Loads the models of one engine. What a model raises is not raised here, but where it is used."""

    def __init__(self, longest: float = LOADING_S) -> None:
        self._longest = longest
        self._threads = DaemonThreads(4, "load-model")
        self._loading: dict[int, tuple[Loadable, Future[None], float]] = {}

    async def wait(self, *models: object) -> None:
        """Return when those of the models that have to be loaded are, or after `longest` seconds of loading."""
        now = time.monotonic()
        for model in models:
            if isinstance(model, Loadable):
                future, end = self._begun(model, now)
                if not future.done() and end > now:
                    await asyncio.wait({asyncio.wrap_future(future)}, timeout=end - now)
                    now = time.monotonic()

    def _begun(self, model: Loadable, now: float) -> tuple[Future[None], float]:
        """The loading of the model, begun now if it was not before."""
        if id(model) not in self._loading:
            self._loading[id(model)] = (model, self._threads.submit(model.load), now + self._longest)
        _, future, end = self._loading[id(model)]
        return future, end
