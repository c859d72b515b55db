"""Models are loaded once, before the time limit of a search starts; a model that hangs blocks nothing."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from typing import ClassVar
from unittest import mock

from dtrag.core.access.scope import Scope
from dtrag.retrieval.engine import HybridSearchEngine
from dtrag.retrieval.model_loading import ModelLoader
from tests.toy import ToyEmbedder
from tests.unit.retrieval.memory import MemoryIndex, Row

HANGS = """
import asyncio, threading
from dtrag.concurrency import DaemonThreads

async def ask():
    call = asyncio.get_running_loop().run_in_executor(DaemonThreads(1, "model"), threading.Event().wait)
    await asyncio.wait({call}, timeout=0.05)
    call.cancel()

asyncio.run(ask())
print("ended")
"""


class Model:
    """Takes a while to load, or for ever."""

    def __init__(self, seconds: float = 0.05, error: Exception | None = None) -> None:
        self.loads = 0
        self._seconds = seconds
        self._error = error

    def load(self) -> None:
        self.loads += 1
        time.sleep(self._seconds)
        if self._error is not None:
            raise self._error


async def test_a_model_is_loaded_once_and_all_searches_wait_for_it() -> None:
    model, loader = Model(), ModelLoader()
    await asyncio.gather(*(loader.wait(model, None, object()) for _ in range(20)))
    await loader.wait(model)
    assert model.loads == 1


async def test_a_model_that_cannot_be_loaded_raises_no_error_here() -> None:
    await ModelLoader().wait(Model(error=RuntimeError("no weights")))


async def test_only_the_first_search_waits_for_a_model_that_never_loads() -> None:
    model, loader = Model(seconds=1.0), ModelLoader(max_seconds=0.1)
    with mock.patch.object(asyncio, "wait", wraps=asyncio.wait) as wait:
        for _ in range(5):
            await loader.wait(model)
    assert wait.await_count == model.loads == 1


async def test_a_search_loads_the_models_that_its_query_needs() -> None:
    class Embedder(ToyEmbedder):
        loads: ClassVar[list[str]] = []

        def load(self) -> None:
            self.loads.append(self.id)

    embedder = Embedder()
    engine = HybridSearchEngine(embedder, MemoryIndex([Row("a", "The kettle.")], ToyEmbedder()))
    for query, mode in (("주전자", "hybrid"), ("kettle", "lexical")):
        await engine.search(query, mode=mode, scope=Scope.everything())
        assert embedder.loads == []
    await engine.search("kettle", scope=Scope.everything())
    assert embedder.loads == [embedder.id]


def test_a_model_that_hangs_does_not_delay_the_end_of_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", HANGS], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "ended\n")
