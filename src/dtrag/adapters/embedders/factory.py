"""The embedder that the settings name; its models load when they are first used, and vectors are cached."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from threading import Lock

import numpy as np
from cachetools import LRUCache

from dtrag.adapters.embedders import fastembed, folder, remote
from dtrag.adapters.embedders.bert import BertEmbedder, MiniLM
from dtrag.adapters.embedders.e5 import E5
from dtrag.adapters.model_files import OnDemand
from dtrag.adapters.onnx_model import DIR
from dtrag.core.access.grade_limits import UNLIMITED
from dtrag.core.documents import Vector
from dtrag.core.text.analysis import language
from dtrag.errors import InvalidInput, ModelNotFound
from dtrag.ports import Embedder, Loadable, Tokenizing, model_for
from dtrag.settings import Settings

LOCAL: Mapping[str, tuple[type[BertEmbedder], ...]] = {
    "auto": (MiniLM, E5),
    "minilm": (MiniLM,),
    "e5": (E5,),
}
"""Value of the setting -> its models. Of two the first embeds English and the second everything else; one is used alone
where the other is not installed."""


def choose(settings: Settings) -> Embedder | None:
    """The embedder of the setting; None for `none`, and for `auto` where no weights are on this machine.

    Raises `InvalidInput`, `ModelDamaged`, `ModelNotFound` and `MissingExtra`.
    """
    if settings.embedder == "none":
        return None
    if settings.embedder.partition(":")[0] == "openai":
        return remote.create(settings.embedder, settings)
    if settings.embedder.partition(":")[0] == fastembed.KEY:
        return fastembed.create(settings.embedder, settings)
    if settings.embedder.startswith(DIR):
        return folder.create(settings)
    if settings.embedder not in LOCAL:
        local = ", ".join(name for name in LOCAL if name != "auto")
        raise InvalidInput(
            f"There is no embedder {settings.embedder!r}. Known: auto, none, {local}, fastembed, openai, dir:PATH."
        )
    models = [_on_demand(model, settings) for model in LOCAL[settings.embedder] if model.available(settings)]
    if len(models) == 2:
        return ByLanguage(*models)
    if not models and settings.embedder != "auto":
        raise ModelNotFound(name=LOCAL[settings.embedder][-1].model.name)
    return models[0] if models else None


def _on_demand(model: type[BertEmbedder], settings: Settings) -> Embedder:
    return EmbedderOnDemand(model, lambda: model.create(settings))


class EmbedderOnDemand(OnDemand[Embedder]):
    """An embedder that loads at its first use: MiniLM takes a third of a second, e5 half a second."""

    def __init__(self, declared: type[BertEmbedder], load: Callable[[], Embedder]) -> None:
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

    def unknown_tokens(self, texts: Sequence[str]) -> tuple[int, int]:
        """See `Tokenizing`."""
        model = self.loaded()
        return model.unknown_tokens(texts) if isinstance(model, Tokenizing) else (0, 0)


class ByLanguage:
    """See `EmbedderRouter`. Each model loads at its own first use. Vectors of the two are unrelated: the cosine of a
    question of the one with the nearest of 12,000 passages of the other was .10 on average.
    """

    floor = 0.0
    decides = False

    def __init__(self, english: Embedder, others: Embedder) -> None:
        if english.dim != others.dim:
            raise ValueError(f"{english.id} and {others.id} have vectors of different lengths")
        self._english, self._others = english, others
        self.id = f"{english.id}+{others.id}"
        self.dim = english.dim
        self.max_tokens = min(english.max_tokens, others.max_tokens)
        self.languages = english.languages | others.languages

    def of(self, code: str) -> Embedder:
        """See `EmbedderRouter`."""
        return self._english if code == "en" else self._others

    def load(self) -> None:
        """See `Loadable`: both. Raises what the first that fails raises, after both were tried."""
        failures: list[Exception] = []
        for model in (self._english, self._others):
            if isinstance(model, Loadable):
                try:
                    model.load()
                except Exception as error:  # noqa: BLE001 - raised below: the other model must load anyway
                    failures.append(error)
        if failures:
            raise failures[0]

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        """See `Embedder`: each text by the model for its own language."""
        return self._embed(texts, lambda model, part: model.embed_documents(part))

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        """See `Embedder`: each text by the model for its own language."""
        return self._embed(texts, lambda model, part: model.embed_queries(part))

    def _embed(self, texts: Sequence[str], vectors_of: Callable[[Embedder, Sequence[str]], Vector]) -> Vector:
        vectors = np.empty((len(texts), self.dim), np.float32)
        models = [self.of(language(text)) for text in texts]
        for model in (self._english, self._others):
            rows = [row for row, chosen in enumerate(models) if chosen is model]
            if rows:
                vectors[rows] = vectors_of(model, [texts[row] for row in rows])
        return vectors


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
        self.decides = embedder.decides

    @property
    def floor(self) -> float:
        """As the embedder's, which may have to load for it."""
        return self._embedder.floor

    @property
    def limit(self) -> int:
        """The highest grade of text that the embedder may be sent."""
        return getattr(self._embedder, "limit", UNLIMITED)

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
