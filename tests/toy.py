"""Toy corpora and a toy embedder: deterministic, quick, and with many ties."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np

from dtrag.core.documents import Vector
from dtrag.core.text.analysis import terms

ENGLISH = tuple("kettle boiler valve leave library refund wage garden winter ticket harbour lantern".split())
KOREAN = tuple("휴학 등록금 도서관 졸업 학점 기숙사 장학금 연구실".split())


@dataclass(frozen=True)
class ToyEmbedder:
    """A bag of words, hashed into a few dimensions. Speaks English only unless told otherwise."""

    id: str = "toy@00000001"
    dim: int = 8
    max_tokens: int = 256
    languages: frozenset[str] = frozenset({"en"})
    floor: float = 0.0
    decides: bool = True

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        vectors = np.full((len(texts), self.dim), 0.01, np.float32)
        for row, text in enumerate(texts):
            for term in terms(text):
                digest = blake2b(f"{self.id}{term}".encode(), digest_size=2).digest()
                vectors[row, digest[0] % self.dim] += 1 + digest[1] % 2
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        return self.embed_documents(texts)


def sentence(random: random.Random, words: int) -> str:
    """Some words of one of the two languages, or of both."""
    vocabulary = random.choice((ENGLISH, KOREAN, ENGLISH + KOREAN))
    return " ".join(random.choices(vocabulary, k=words)) + "."


def lines(path: Path, count: int, seed: int = 0, words: int = 12) -> Path:
    """A JSON lines file of documents `n0000`, `n0001` …, each with a title and a word of its own."""
    chance = random.Random(seed)
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            text = f"{sentence(chance, words)} serial{number:04}"
            file.write(json.dumps({"id": f"n{number:04}", "title": f"Note {number:04}", "text": text}) + "\n")
    return path
