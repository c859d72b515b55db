"""An embedder without a model, for the proof of isolation and for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from dtrag.core.documents import Vector
from dtrag.core.text.analysis import terms

WORDS_READ = 512
"""Words of a text that are read; the rest is cut off."""


@dataclass(frozen=True)
class HashEmbedder:
    """A bag of stemmed words, hashed into a few dimensions: texts with common words are near to each other.

    It knows no meanings: "refund" and "money back" are far apart. It reads the first `max_tokens` words.
    """

    id: str = "hash@00000001"
    dim: int = 64
    max_tokens: int = WORDS_READ
    languages: frozenset[str] = frozenset({"*"})
    floor: float = 0.0
    decides: bool = True

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        """Shape (len(texts), dim), L2-normalised."""
        vectors = np.full((len(texts), self.dim), 0.01, np.float32)
        for row, text in enumerate(texts):
            for term in terms(first_words(text, self.max_tokens)):
                digest = blake2b(f"{self.id}{term}".encode("utf-8", "replace"), digest_size=8).digest()
                vectors[row, int.from_bytes(digest, "big") % self.dim] += 1
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        """As `embed_documents`."""
        return self.embed_documents(texts)


def first_words(text: str, words: int) -> str:
    """The first words of the text, one blank apart."""
    return " ".join(text.split(maxsplit=words)[:words])
