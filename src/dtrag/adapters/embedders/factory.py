"""The embedder that the settings name; its models load when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from dtrag.adapters.embedders import fastembed, remote
from dtrag.adapters.embedders.bert import BertEmbedder
from dtrag.adapters.embedders.e5 import E5
from dtrag.adapters.embedders.minilm import MiniLM
from dtrag.adapters.model_files import OnDemand
from dtrag.core.documents import Vector
from dtrag.core.text.analysis import language
from dtrag.errors import InvalidInput, ModelNotFound
from dtrag.ports import Embedder, Loadable
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

    Raises `InvalidInput`, `ModelNotFound` and `MissingExtra`.
    """
    if settings.embedder == "none":
        return None
    if settings.embedder.partition(":")[0] == "openai":
        return remote.create(settings.embedder, settings)
    if settings.embedder.partition(":")[0] == fastembed.KEY:
        return fastembed.create(settings.embedder, settings)
    if settings.embedder not in LOCAL:
        local = ", ".join(name for name in LOCAL if name != "auto")
        raise InvalidInput(
            f"There is no embedder {settings.embedder!r}. Known: auto, none, {local}, fastembed, openai."
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
