"""Multilingual embeddings by fastembed from local files; needs `dtrag[fastembed]`, downloads nothing by itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dtrag.adapters.embedders.fastembed_models import (
    PUBLISHED,
    Published,
    context_of,
    described,
    digest_of,
    installed,
    locate,
    text_embedding,
)
from dtrag.adapters.model_files import TRIAL_ANSWER, TRIAL_OTHER, TRIAL_QUESTION, OnDemand, verify
from dtrag.core.documents import Vector
from dtrag.errors import EmbedderFailed, MissingExtra, ModelDamaged, ModelNotFound
from dtrag.settings import Settings

KEY = "fastembed"
_CHARACTERS_PER_TOKEN = 40
"""More than a token ever holds on average: what is cut before tokenizing would not have been read."""


class FastembedEmbedder(OnDemand[Any]):
    """Blocking, CPU-bound, safe to call from several threads; loads at its first use.

    One text is one run of the model: the vector of a quantised model would otherwise depend on its neighbours.
    """

    floor = 0.0
    decides = True

    def __init__(self, model: Published, folder: Path, *, threads: int = 1) -> None:
        super().__init__(self._read)
        slug = re.sub(r"[^a-z0-9._-]+", "-", model.name.rpartition("/")[2].lower())
        self.id = f"{KEY}-{slug}@{digest_of(model, folder)[:8]}"
        self.dim = model.dim
        self.languages = model.languages
        self.max_tokens = context_of(folder)
        self._published, self._folder, self._threads = model, folder, max(1, threads)

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        """See `Embedder`. Raises `ModelDamaged` and `EmbedderFailed`."""
        return self._embed(texts, self._published.document_prefix)

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        """See `Embedder`. Raises `ModelDamaged` and `EmbedderFailed`."""
        return self._embed(texts, self._published.query_prefix)

    def _embed(self, texts: Sequence[str], prefix: str) -> Vector:
        if not texts:
            return np.empty((0, self.dim), np.float32)
        readable = [prefix + self._readable(text) for text in texts]
        vectors = np.asarray(list(self.loaded().embed(readable, batch_size=1)), np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True) if vectors.ndim == 2 else np.zeros((1, 1))
        if vectors.shape != (len(texts), self.dim) or not np.isfinite(vectors).all() or not lengths.all():
            raise EmbedderFailed(name=self.id, reason=f"it gave no {len(texts)} vectors of {self.dim} numbers.")
        return np.asarray(vectors / lengths, np.float32)

    def _readable(self, text: str) -> str:
        """Lone surrogates become "?": the tokenizer takes only what UTF-8 can carry."""
        return text[: _CHARACTERS_PER_TOKEN * self.max_tokens].encode("utf-8", "replace").decode("utf-8")

    def _read(self) -> Any:
        verify(self._published.name, self._folder)
        try:
            return text_embedding()(
                self._published.name,
                threads=self._threads,
                specific_model_path=str(self._folder),
                local_files_only=True,
            )
        except Exception as error:  # the boundary: fastembed and onnxruntime raise plain errors for a bad file
            reason = " ".join(str(error).split())[:200]
            raise ModelDamaged(
                f"The embedder {self._published.name!r} in {self._folder} cannot be used: {reason}. Fetch it again "
                f"with: dtrag models pull {self._published.name}"
            ) from error


def create(name: str, settings: Settings) -> FastembedEmbedder:
    """The embedder that `fastembed` or `fastembed:MODEL` names, not loaded yet.

    Raises `MissingExtra`, `InvalidInput` for a model that cannot be used, and `ModelNotFound` for one that is not on
    this machine.
    """
    if not installed():
        raise MissingExtra(feature=f"The embedder {name[:80]!r}", extra="fastembed")
    model = described(name.partition(":")[2] or PUBLISHED[0].name, settings.embed_languages)
    folder = locate(model, settings)
    if folder is None:
        raise ModelNotFound(name=model.name)
    return FastembedEmbedder(model, folder, threads=settings.embed_threads)


def try_out(model: Published, folder: Path) -> None:
    """Raises `ModelDamaged` when a model does not tell an answer from another sentence."""
    embedder = FastembedEmbedder(model, folder)
    try:
        [question] = embedder.embed_queries([TRIAL_QUESTION])
        answer, other = embedder.embed_documents([TRIAL_ANSWER, TRIAL_OTHER]) @ question
    except EmbedderFailed as error:
        raise ModelDamaged(f"The embedder {model.name!r} that was fetched does not work: {error}") from error
    if answer <= other:
        raise ModelDamaged(
            f"The embedder {model.name!r} that was fetched does not tell an answer from another sentence; nothing was "
            "installed. Try again later, or use another one: DTRAG_EMBEDDER=minilm"
        )
