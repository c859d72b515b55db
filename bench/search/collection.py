"""A made-up collection of any size, the same everywhere: passages of Zipf words, vectors in clusters, a node each.

Passages are made in blocks with a seed of their own, so the first 10,000 of a million are the 10,000, and a million is
never in memory as text. Everything is kept as .npy below one folder.

What is like real text: how often words occur, the lengths of passages, the dimension and the clustering of the vectors.
What is not: words stand independently of each other, and passages of one node have nothing in common.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Integers = NDArray[np.int32]

BLOCK = 10_000
VOCABULARY = 300_000
ZIPF = (1.05, 2.7)
"""Exponent and offset of Zipf-Mandelbrot, as English prose has them; the commonest word is in most passages."""
LENGTH = (120, 25)
"""Mean and deviation of a passage's words."""
DIMENSION = 384
CENTRES = (50, 2_000)
"""Subjects, and topics within them."""
SPREAD = 0.7
"""Length of a passage's own part beside its topic's: the nearest neighbours come from several topics."""
SHARES = {1: 0.001, 2: 0.009, 3: 0.09, 4: 0.4, 5: 0.5}
"""Node -> share of the passages."""
SCOPES = {"50 %": (1, 2, 3, 4), "10 %": (1, 2, 3), "1 %": (1, 2), "0.1 %": (1,)}
_SYLLABLES = [consonant + vowel for consonant in "bdfgkmnprtvz" for vowel in "aou"]


@dataclass(frozen=True)
class Block:
    """Up to `BLOCK` passages; `first` is the number of the first of them."""

    first: int
    texts: list[str]
    vectors: Floats
    nodes: Integers


@dataclass(frozen=True)
class Query:
    """What is asked: a text and a vector."""

    words: str
    vector: Floats


class Collection:
    """`size` passages, of which the numbers are 0 ... size - 1."""

    def __init__(self, size: int, folder: Path, seed: int = 20_240_301):
        self.size = size
        self._folder = folder / f"seed-{seed}"
        self._seed = seed
        self._folder.mkdir(parents=True, exist_ok=True)

    def blocks(self) -> Iterator[Block]:
        """The passages, in order."""
        words = self._vocabulary
        for number in range(-(-self.size // BLOCK)):
            kept = min(BLOCK, self.size - number * BLOCK)
            tokens, lengths, vectors, nodes = self._arrays(number)
            ends = np.cumsum(lengths[:kept])
            texts = [" ".join(words[part]) for part in np.split(tokens[: ends[-1]], ends[:-1])]
            yield Block(number * BLOCK, texts, np.asarray(vectors[:kept]), nodes[:kept])

    def vector_blocks(self) -> Iterator[tuple[int, Floats, Integers]]:
        """Number of the first passage, vectors and nodes of each block, without making texts."""
        for number in range(-(-self.size // BLOCK)):
            kept = min(BLOCK, self.size - number * BLOCK)
            _, _, vectors, nodes = self._arrays(number)
            yield number * BLOCK, np.asarray(vectors[:kept]), nodes[:kept]

    def queries(self, words: int, count: int = 200) -> list[Query]:
        """Queries of so many different words, with vectors from the same clusters as the passages."""
        rng = np.random.default_rng((self._seed, 7, words))
        drawn = []
        while len(drawn) < count:
            found = list(dict.fromkeys(self._words(rng, words * 4).tolist()))[:words]
            if len(found) == words:
                drawn.append(" ".join(self._vocabulary[number] for number in found))
        return [Query(text, vector) for text, vector in zip(drawn, self._vectors(rng, count), strict=True)]

    def nearest(self, queries: list[Query], wanted: int, nodes: tuple[int, ...] | None = None) -> list[list[int]]:
        """Numbers of the nearest passages in these nodes for each query, by looking at every one."""
        asked = np.stack([query.vector for query in queries])
        scores = np.empty((len(queries), 0), np.float32)
        numbers = np.empty((len(queries), 0), np.int64)
        for first, vectors, hung in self.vector_blocks():
            reach = np.arange(len(vectors)) if nodes is None else np.flatnonzero(np.isin(hung, nodes))
            scores = np.hstack([scores, asked @ vectors[reach].T])
            numbers = np.hstack([numbers, np.broadcast_to(first + reach, (len(queries), len(reach)))])
            best = np.argsort(-scores, axis=1, kind="stable")[:, :wanted]
            scores, numbers = np.take_along_axis(scores, best, 1), np.take_along_axis(numbers, best, 1)
        return [row.tolist() for row in numbers]

    @cached_property
    def _vocabulary(self) -> NDArray[np.object_]:
        """Words that no stemmer changes and no list of stop words holds; the commoner the shorter."""
        return np.array([_word(number) for number in range(VOCABULARY)], dtype=object)

    @cached_property
    def _reached(self) -> NDArray[np.float64]:
        exponent, offset = ZIPF
        share = 1 / (np.arange(VOCABULARY) + offset) ** exponent
        return np.cumsum(share / share.sum())

    @cached_property
    def _centres(self) -> Floats:
        rng = np.random.default_rng((self._seed, 5))
        subjects, topics = (_unit(rng.standard_normal((count, DIMENSION))) for count in CENTRES)
        return _unit(subjects[rng.integers(0, len(subjects), len(topics))] + 0.6 * topics)

    def _words(self, rng: np.random.Generator, count: int) -> Integers:
        return np.minimum(np.searchsorted(self._reached, rng.random(count)), VOCABULARY - 1).astype(np.int32)

    def _vectors(self, rng: np.random.Generator, count: int) -> Floats:
        own = rng.standard_normal((count, DIMENSION), dtype=np.float32) * (SPREAD / DIMENSION**0.5)
        return _unit(self._centres[rng.integers(0, len(self._centres), count)] + own)

    def _arrays(self, number: int) -> tuple[Integers, Integers, Floats, Integers]:
        """Tokens, lengths, vectors and nodes of a block, from the folder or made now and put there."""
        paths = [self._folder / f"{number:04}-{name}.npy" for name in ("tokens", "lengths", "vectors", "nodes")]
        if not all(path.exists() for path in paths):
            rng = np.random.default_rng((self._seed, 1, number))
            lengths = np.clip(rng.normal(*LENGTH, BLOCK), 20, 240).astype(np.int32)
            nodes = rng.choice(list(SHARES), BLOCK, p=list(SHARES.values())).astype(np.int32)
            made = (self._words(rng, int(lengths.sum())), lengths, self._vectors(rng, BLOCK), nodes)
            for path, array in zip(paths, made, strict=True):
                partial = path.with_suffix(".part.npy")
                np.save(partial, array)
                partial.replace(path)
        tokens, lengths, vectors, nodes = (np.load(path) for path in paths)
        return tokens, lengths, vectors, nodes


def _word(number: int) -> str:
    """Two syllables or more."""
    syllables = []
    rest = number + len(_SYLLABLES)
    while rest or len(syllables) < 2:
        rest, place = divmod(rest, len(_SYLLABLES))
        syllables.append(_SYLLABLES[place])
    return "".join(reversed(syllables))


def _unit(vectors: NDArray[np.floating]) -> Floats:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
