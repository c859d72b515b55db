"""The embedder that the settings name, loaded when it is first used.

An embedder is a module of this package whose name is its key, with `create(settings)`, `available(settings)` and a
class `Embedder`-like whose properties are known before anything is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dtrag.adapters.embedders import fastembed, minilm, remote
from dtrag.adapters.model_files import OnDemand
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
    return EmbedderOnDemand(minilm.MiniLM, lambda: minilm.create(settings))


class EmbedderOnDemand(OnDemand[Embedder]):
    """An embedder that loads at its first use: MiniLM takes a third of a second."""

    def __init__(self, declared: type[minilm.MiniLM], load: Callable[[], Embedder]) -> None:
        super().__init__(load)
        self.id = declared.id
        self.dim = declared.dim
        self.max_tokens = declared.max_tokens
        self.languages = declared.languages
        self.floor = declared.floor
        self.decides = declared.decides

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        """See `Embedder`."""
        return self.loaded().embed_documents(texts)

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        """See `Embedder`."""
        return self.loaded().embed_queries(texts)
