"""An embedder with a cache of its latest vectors: for questions, and for sentences that are quoted repeatedly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from threading import Lock

import numpy as np
from cachetools import LRUCache

from dtrag.core.documents import Vector
from dtrag.ports import Embedder, Loadable, model_for

CACHE_BYTES = 16 * 2**20
"""Of vectors: 10,000 of 384 dimensions, which are the sentences of about 2,000 passages."""
_KEY_BYTES = 16
_ASKED = 64
"""Locks of questions: the search and the case memory embed the same one side by side."""


class CachedEmbedder:
    """The same vectors as `embedder`, computed once while they stay in the cache; safe to call from several threads.

    For question time. Ingestion has no use for it: no text of a document comes twice.
    """

    def __init__(
        self, embedder: Embedder, cache_bytes: int = CACHE_BYTES, *, router: CachedEmbedder | None = None
    ) -> None:
        self._embedder = embedder
        most = max(1, cache_bytes // (4 * embedder.dim + _KEY_BYTES))
        self._vectors: LRUCache[bytes, Vector] = LRUCache(most) if router is None else router._vectors
        self._lock: Lock = Lock() if router is None else router._lock
        self._models: dict[str, CachedEmbedder] = {}
        self._asked = tuple(Lock() for _ in range(_ASKED))
        self.id = embedder.id
        self.dim = embedder.dim
        self.max_tokens = embedder.max_tokens
        self.languages = embedder.languages
        self.floor = embedder.floor
        self.decides = embedder.decides

    def of(self, code: str) -> Embedder | None:
        """See `EmbedderRouter`: the model for the language, with this cache."""
        model = model_for(self._embedder, code)
        if model is None or model is self._embedder:
            return self if model is not None else None
        if model.id not in self._models:
            self._models.setdefault(model.id, CachedEmbedder(model, router=self))
        return self._models[model.id]

    def load(self) -> None:
        """See `Loadable`."""
        embedder: object = self._embedder
        if isinstance(embedder, Loadable):
            embedder.load()

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        """As the embedder's."""
        return self._embed(b"document", texts, self._embedder.embed_documents)

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        """As the embedder's. One question that several threads ask for at the same time is computed once."""
        if len(texts) != 1:
            return self._embed(b"query", texts, self._embedder.embed_queries)
        with self._asked[_key(b"query", texts[0])[0] % _ASKED]:
            return self._embed(b"query", texts, self._embedder.embed_queries)

    def _embed(self, kind: bytes, texts: Sequence[str], compute: Callable[[Sequence[str]], Vector]) -> Vector:
        keys = [_key(kind, f"{self.id}\n{text}") for text in texts]
        vectors = self._cached(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        if missing:
            computed = compute(list(missing.values()))
            if len(computed) != len(missing):
                raise ValueError(f"the embedder returned {len(computed)} vectors for {len(missing)} texts")
            new = {key: np.array(vector) for key, vector in zip(missing, computed, strict=True)}
            self._keep(new)
            vectors |= new
        return np.stack([vectors[key] for key in keys]) if keys else compute([])

    def _cached(self, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        with self._lock:
            return {key: self._vectors[key] for key in keys if key in self._vectors}

    def _keep(self, vectors: dict[bytes, Vector]) -> None:
        """Only finite ones: after a failure of the model the next call computes them again."""
        finite = {key: vector for key, vector in vectors.items() if np.isfinite(vector).all()}
        with self._lock:
            self._vectors.update(finite)


def _key(kind: bytes, text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_KEY_BYTES, person=kind).digest()
