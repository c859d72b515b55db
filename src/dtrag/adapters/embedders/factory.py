"""The embedder that the settings name, loaded when it is first used.

An embedder is a module of this package whose name is its key, with `create(settings)`, `available(settings)` and a
class `Embedder`-like whose `id`, `dim`, `max_tokens` and `languages` are known before anything is loaded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from dtrag.adapters.embedders import fastembed, minilm, remote
from dtrag.core.documents import Vector
from dtrag.errors import InvalidInput, ModelNotFound
from dtrag.ports import Embedder
from dtrag.settings import Settings

EMBEDDERS = ("minilm",)


def choose(settings: Settings) -> Embedder | None:
    """`auto`: MiniLM where its weights are on this machine, else None.

    Raises `InvalidInput`, `ModelNotFound` and `MissingExtra`.
    """
    if settings.embedder == "none":
        return None
    if settings.embedder.partition(":")[0] == "openai":
        return remote.create(settings.embedder, settings)
    if settings.embedder.partition(":")[0] == fastembed.KEY:
        return fastembed.create(settings.embedder, settings)
    if settings.embedder not in {"auto", *EMBEDDERS}:
        raise InvalidInput(
            f"There is no embedder {settings.embedder!r}. Known: auto, none, {', '.join(EMBEDDERS)}, fastembed, openai."
        )
    if not minilm.available(settings):
        if settings.embedder == "auto":
            return None
        raise ModelNotFound(name=settings.embedder)
    return OnDemand(minilm.MiniLM, lambda: minilm.create(settings))


class OnDemand:
    """An embedder that loads at its first use (a third of a second), in the thread that needs it."""

    def __init__(self, declared: type[minilm.MiniLM], load: Callable[[], Embedder]):
        self.id = declared.id
        self.dim = declared.dim
        self.max_tokens = declared.max_tokens
        self.languages = declared.languages
        self._load = load
        self._loaded: Embedder | None = None
        self._lock = threading.Lock()

    def load(self) -> None:
        """See `Loadable`."""
        self.loaded()

    def loaded(self) -> Embedder:
        """The embedder itself. Raises `ModelDamaged`."""
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        """See `Embedder`."""
        return self.loaded().embed_documents(texts)

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        """See `Embedder`."""
        return self.loaded().embed_queries(texts)
