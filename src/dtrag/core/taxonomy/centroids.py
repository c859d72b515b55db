"""Centroids of the documents of each category, and the similarity of a new document to them.

A category's centroid is the mean of its documents' unit vectors (Rocchio 1971, *Relevance feedback in information
retrieval*), once over words, once over meanings. On newsgroups20-dev the nearest centroid of words alone is right for
.76 of the documents; neighbours (k 10-40: .70-.73) and naive Bayes (multinomial .69, complement .75) are not, and add
nothing beside it (bench/README.md).
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtrag.core.documents import Terms, Vector

DECIDED_WEIGHT = 3.0
"""Weight of a reviewed document: reviews are about documents that others leave open."""
FIRST_PASSAGES = 8
"""Passages of a document that are used, about 3,000 words, so that a book does not dominate its category."""
UNSEEN_WORDS = 4
"""Number of unseen words that is added to every document, so that one or two shared words are not a high similarity;
for a document of ordinary length it makes little difference."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TermCounts:
    """The terms of one document: `ids` (int32, ascending, distinct) and `counts` (float64, field-weighted) parallel."""

    ids: Terms
    counts: Floats

    @classmethod
    def of(cls, ids: Sequence[Terms], counts: Sequence[NDArray[np.floating[Any]]]) -> TermCounts:
        """The sum of the passages of a document."""
        distinct, place = np.unique(np.concatenate([np.empty(0, np.int32), *ids]), return_inverse=True)
        weights = np.concatenate([np.empty(0, np.float64), *counts])
        sums: Floats = np.bincount(place, weights, len(distinct)).astype(np.float64)
        return cls(distinct.astype(np.int32), sums)

    def count(self, term: int) -> float:
        """How often the term occurs."""
        place = int(self.ids.searchsorted(np.int32(term)))
        return float(self.counts[place]) if place < len(self.ids) and self.ids[place] == term else 0.0


@dataclass(frozen=True, slots=True)
class Sample:
    """A document whose category is known. `vector` is the mean of its passages' vectors, or None."""

    document_id: uuid.UUID
    node_id: int
    terms: TermCounts
    vector: Vector | None = None
    decided: bool = False

    @property
    def weight(self) -> float:
        """As how many documents it counts."""
        return DECIDED_WEIGHT if self.decided else 1.0


@dataclass(frozen=True)
class Centroids:
    """The centroids of the categories that have documents.

    `nodes` (int, ascending) and `sizes` (documents of each) are parallel. Words: term `vocabulary[i]` with `idf[i]` has
    the weights `weights[starts[i]:starts[i + 1]]` in the nodes at `rows[...]`. `vectors` has a unit row for each node,
    or is None where a node has no document with a vector: categories must be compared by the same measure.
    """

    nodes: NDArray[np.int64]
    sizes: NDArray[np.int64]
    vocabulary: Terms
    idf: Floats
    starts: NDArray[np.int64]
    rows: NDArray[np.int64]
    weights: Floats
    vectors: Floats | None
    samples: int

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> Centroids:
        """From documents in any order."""
        ordered = sorted(samples, key=lambda sample: sample.document_id)
        nodes, rows = np.unique(np.array([s.node_id for s in ordered], np.int64), return_inverse=True)
        terms = np.concatenate([np.empty(0, np.int32), *(s.terms.ids for s in ordered)])
        owners = np.repeat(np.arange(len(ordered)), [len(s.terms.ids) for s in ordered])
        vocabulary, places, found_in = np.unique(terms, return_inverse=True, return_counts=True)
        idf = np.log1p((len(ordered) - found_in + 0.5) / (found_in + 0.5))  # as core/ranking/bm25.py: never 0
        counts = np.concatenate([np.empty(0, np.float64), *(s.terms.counts for s in ordered)])
        weights = np.log1p(counts) * idf[places]
        lengths = np.sqrt(np.bincount(owners, weights**2, len(ordered)))
        shares = np.array([s.weight for s in ordered]) / np.maximum(lengths, 1e-12)
        # One number for each pair of term and node, ascending: the pairs come out grouped by term.
        pairs, pair_of = np.unique(places.astype(np.int64) * max(1, len(nodes)) + rows[owners], return_inverse=True)
        sums = np.bincount(pair_of, weights * shares[owners], len(pairs))
        pair_rows = pairs % max(1, len(nodes))
        norms = np.sqrt(np.bincount(pair_rows, sums**2, len(nodes)))
        return cls(
            nodes=nodes,
            sizes=np.bincount(rows, minlength=len(nodes)),
            vocabulary=vocabulary.astype(np.int32),
            idf=idf,
            starts=np.searchsorted(pairs // max(1, len(nodes)), np.arange(len(vocabulary) + 1)),
            rows=pair_rows,
            weights=sums / np.maximum(norms[pair_rows], 1e-12),
            vectors=_vectors(ordered, rows, len(nodes)),
            samples=len(ordered),
        )

    def __len__(self) -> int:
        return len(self.nodes)

    def by_words(self, document: TermCounts) -> Floats:
        """Cosine with each node's centroid of words, in [0, 1]; UNSEEN_WORDS unseen words are added to the document."""
        places, known = self._known(document)
        places, weights = places[known], np.log1p(document.counts[known])
        weights *= self.idf[places]
        unseen = math.log(2.0) * math.log1p(2.0 * self.samples + 1.0)
        length = math.sqrt(float((weights**2).sum()) + UNSEEN_WORDS * unseen**2)
        if not len(weights):
            return np.zeros(len(self))
        sizes = self.starts[places + 1] - self.starts[places]
        spans = np.repeat(self.starts[places] - (np.cumsum(sizes) - sizes), sizes) + np.arange(int(sizes.sum()))
        sums = np.bincount(self.rows[spans], self.weights[spans] * np.repeat(weights, sizes), len(self))
        return np.clip(sums / length, 0.0, 1.0)

    def shared(self, document: TermCounts) -> int:
        """Number of the document's distinct words that occur in a sample."""
        return int(self._known(document)[1].sum())

    def _known(self, document: TermCounts) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Positions of the document's words in the vocabulary, and which of them are in it."""
        if not len(self.vocabulary):
            return np.zeros(len(document.ids), np.intp), np.zeros(len(document.ids), bool)
        places = self.vocabulary.searchsorted(document.ids)
        places[places == len(self.vocabulary)] = 0
        return places, self.vocabulary[places] == document.ids

    def by_meaning(self, vector: Vector | None) -> Floats | None:
        """Cosine with each node's centroid of vectors, in [-1, 1]; None without comparable vectors."""
        if vector is None or self.vectors is None or self.vectors.shape[1] != len(vector):
            return None
        length = float(np.linalg.norm(vector))
        return self.vectors @ (vector.astype(np.float64) / length) if length > 0 else None


def mean_vector(vectors: Sequence[Vector]) -> Vector | None:
    """The mean of a document's passages; None without any."""
    if not vectors:
        return None
    mean: Vector = np.mean(np.stack(vectors), axis=0, dtype=np.float32)
    return mean


def _vectors(samples: Sequence[Sample], rows: NDArray[np.intp], nodes: int) -> Floats | None:
    known = [(row, sample) for row, sample in zip(rows, samples, strict=True) if sample.vector is not None]
    if not known or len({int(row) for row, _ in known}) < nodes:
        return None
    owners = np.array([row for row, _ in known])
    unit = np.stack([np.asarray(s.vector, np.float64) for _, s in known])
    unit *= np.array([s.weight for _, s in known])[:, None] / np.maximum(np.linalg.norm(unit, axis=1), 1e-12)[:, None]
    sums = np.zeros((nodes, unit.shape[1]))
    np.add.at(sums, owners, unit)
    centroids: Floats = sums / np.maximum(np.linalg.norm(sums, axis=1), 1e-12)[:, None]
    return centroids
