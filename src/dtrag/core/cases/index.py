"""How alike two questions are, in [0, 1], and an inverted index of the questions of all cases, which finds the exact
nearest ones without comparing text by text.

Words are what white space separates, in lower case, as the acceptance texts define them.
"""

from __future__ import annotations

import math
import time
import uuid
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtrag.core.cases.case import Case, CaseQuery, QuestionVector, SimilarityMethod, content_hash
from dtrag.core.text.analysis import normalise
from dtrag.errors import InvalidInput

NO_NODE = -1
_GROWTH = 1_024
_MOST_CACHED = 500
_ID_BYTES = 16
"""Leading bytes of an id that are compared as numbers; only equal ones are compared as text."""


@dataclass(frozen=True, slots=True)
class CaseEntry:
    """What the index holds of a case."""

    case_id: str
    query: str
    query_hash: bytes
    category_path: tuple[str, ...]
    node_id: int | None
    quality: float
    usage: int
    active: bool
    vector: QuestionVector | None = None
    document_ids: frozenset[uuid.UUID] = frozenset()
    asked_in: frozenset[int] | None = None


class CaseIndex:
    """The questions of one store at one revision. Not for concurrent use.

    Every case has a slot: a position in all columns. A case whose question changes gets a new slot, and the index is
    compacted when half of the slots are unused. `vectors`: whether it holds embeddings, for `SEMANTIC`. The nearest of
    a query are cached for `cache_seconds`, until the next change.
    """

    def __init__(
        self, *, vectors: bool = False, cache_seconds: float = 0.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.revision = -1
        self.vectors = vectors
        self.cache_seconds = cache_seconds
        self._clock = clock
        self._cached: dict[tuple[CaseQuery, frozenset[int] | None, int], tuple[float, list[tuple[str, float]]]] = {}
        self._clear()

    def _clear(self) -> None:
        self._slots: dict[str, int] = {}
        self._entries: list[CaseEntry | None] = []
        self._postings: dict[str, array[int]] = {}
        self._repeats: dict[str, dict[int, int]] = {}
        self._textless: dict[bytes, set[int]] = {}
        self._categories: dict[tuple[str, ...], int] = {}
        self._columns: dict[str, NDArray[Any]] = {
            "quality": np.zeros(_GROWTH),
            "usage": np.zeros(_GROWTH, np.int64),
            "words": np.zeros(_GROWTH, np.int64),
            "squares": np.zeros(_GROWTH, np.int64),
            "node": np.zeros(_GROWTH, np.int64),
            "category": np.zeros(_GROWTH, np.int64),
            "active": np.zeros(_GROWTH, bool),
            "textless": np.zeros(_GROWTH, bool),
            "id_high": np.zeros(_GROWTH, np.uint64),
            "id_low": np.zeros(_GROWTH, np.uint64),
        }
        self._matrices: dict[str, NDArray[np.float32]] = {}

    def emptied(self, *, vectors: bool) -> CaseIndex:
        """An empty index with the same settings; `vectors` as there."""
        return CaseIndex(vectors=vectors, cache_seconds=self.cache_seconds, clock=self._clock)

    def apply(self, changes: Iterable[Mapping[str, Any]], entry_of: Callable[[Any], CaseEntry]) -> None:
        """Add, replace and remove what these rows of `changes` name, up to the revision of the last one."""
        for row in changes:
            if row["case_id"] is None:
                self.remove(row["changed_id"])
            else:
                self.put(entry_of(row))
            self.revision = row["revision"]

    def __len__(self) -> int:
        return len(self._slots)

    def entry(self, case_id: str) -> CaseEntry:
        """The entry of a case that is in the index."""
        entry = self._entries[self._slots[case_id]]
        if entry is None:
            raise KeyError(case_id)
        return entry

    def put(self, entry: CaseEntry) -> None:
        """Add the case, or replace it."""
        self._cached.clear()
        slot = self._slots.get(entry.case_id)
        known = self._entries[slot] if slot is not None else None
        same_question = known is not None and (known.query, known.query_hash) == (entry.query, entry.query_hash)
        if slot is None or not same_question:
            self.remove(entry.case_id)
            slot = self._new_slot(entry)
        self._entries[slot] = entry
        category = self._categories.setdefault(entry.category_path, len(self._categories))
        values = {
            "quality": entry.quality,
            "usage": entry.usage,
            "node": NO_NODE if entry.node_id is None else entry.node_id,
            "category": category,
            "active": entry.active,
        }
        for name, value in values.items():
            self._columns[name][slot] = value
        if self.vectors:
            self._put_vector(slot, entry.vector)

    def remove(self, case_id: str) -> None:
        """Remove the case, if it is there."""
        self._cached.clear()
        slot = self._slots.pop(case_id, None)
        if slot is None:
            return
        entry, self._entries[slot] = self._entries[slot], None
        self._columns["active"][slot] = False
        if entry is not None and not entry.query:
            self._textless[entry.query_hash].discard(slot)
        if len(self._entries) > _GROWTH and len(self._slots) * 2 < len(self._entries):
            self._compact()

    def _compact(self) -> None:
        entries = [entry for entry in self._entries if entry is not None]
        self._clear()
        for entry in entries:
            self.put(entry)

    def _new_slot(self, entry: CaseEntry) -> int:
        slot = len(self._entries)
        self._entries.append(entry)
        self._slots[entry.case_id] = slot
        if slot >= len(self._columns["quality"]):
            self._columns = {name: np.concatenate([old, np.zeros_like(old)]) for name, old in self._columns.items()}
        counts = Counter(words(entry.query))
        for word, count in counts.items():
            self._postings.setdefault(word, array("i")).append(slot)
            if count > 1:
                self._repeats.setdefault(word, {})[slot] = count
        columns, key = self._columns, entry.case_id.encode("utf-8", "replace")[:_ID_BYTES].ljust(_ID_BYTES, b"\0")
        columns["words"][slot] = len(counts)
        columns["squares"][slot] = sum(count * count for count in counts.values())
        columns["textless"][slot] = not entry.query
        columns["id_high"][slot] = int.from_bytes(key[:8])
        columns["id_low"][slot] = int.from_bytes(key[8:])
        if not entry.query:
            self._textless.setdefault(entry.query_hash, set()).add(slot)
        return slot

    def _put_vector(self, slot: int, vector: QuestionVector | None) -> None:
        """In the matrix of its space, whose rows are slots; no other one has a vector of this slot then."""
        for matrix in self._matrices.values():
            matrix[slot : slot + 1] = 0.0
        unit = None if vector is None else _unit(vector.values)
        if vector is None or unit is None:
            return
        matrix = self._matrices.get(vector.space, np.zeros((0, len(unit)), np.float32))
        if slot >= len(matrix):
            missing = np.zeros((len(self._columns["quality"]) - len(matrix), matrix.shape[1]), np.float32)
            matrix = self._matrices[vector.space] = np.concatenate([matrix, missing])
        if len(unit) == matrix.shape[1]:
            matrix[slot] = unit

    def nearest(self, query: CaseQuery, nodes: frozenset[int] | None, count: int) -> list[tuple[str, float]]:
        """The first `count` cases in the order of `similarity.order`, with their similarities.

        Only cases in one of the `nodes` (None: all), whatever `query.limit` is.
        """
        if not self.cache_seconds:
            return self._nearest(query, nodes, count)
        key, now = (query, nodes, count), self._clock()
        expires, ranked = self._cached.get(key, (now, None))
        if ranked is None or expires <= now:
            ranked = self._nearest(query, nodes, count)
            if len(self._cached) >= _MOST_CACHED:
                del self._cached[next(iter(self._cached))]
            self._cached[key] = (now + self.cache_seconds, ranked)
        return ranked

    def _nearest(self, query: CaseQuery, nodes: frozenset[int] | None, count: int) -> list[tuple[str, float]]:
        scores, mask, columns = self._scores(query), self._mask(query, nodes), self._columns
        slots = np.flatnonzero(mask & (scores > 0))
        if len(slots) < count:
            slots = np.flatnonzero(mask)
        falling, rising = (scores, columns["quality"], columns["usage"]), (columns["id_high"], columns["id_low"])
        chosen: list[tuple[tuple[float, float, int, str], str, float]] = []
        for slot in _first(slots, falling, rising, count).tolist():
            entry, score = self._entries[slot], float(scores[slot])
            if entry is not None:
                chosen.append(((-score, -entry.quality, -entry.usage, entry.case_id), entry.case_id, score))
        return [(case_id, score) for _, case_id, score in sorted(chosen)[:count]]

    def _mask(self, query: CaseQuery, nodes: frozenset[int] | None) -> NDArray[np.bool_]:
        size, columns = len(self._entries), self._columns
        mask: NDArray[np.bool_] = columns["active"][:size].copy()
        if query.min_quality > 0:
            mask &= columns["quality"][:size] >= query.min_quality
        if query.category_path is not None:
            categories = [
                number
                for path, number in self._categories.items()
                if in_category(path, query.category_path, prefix=query.prefix)
            ]
            in_path = np.isin(columns["category"][:size], categories)
            if query.nodes is not None:
                node = columns["node"][:size]
                in_path = np.where(node == NO_NODE, in_path, np.isin(node, list(query.nodes)))
            mask &= in_path
        if nodes is not None:
            mask &= np.isin(columns["node"][:size], list(nodes))
        return mask

    def _scores(self, query: CaseQuery) -> NDArray[np.float64]:
        size, columns = len(self._entries), self._columns
        if query.method is SimilarityMethod.SEMANTIC:
            return self._meaning(query.vector)
        counts = Counter(words(query.text))
        if query.method is SimilarityMethod.EUCLIDEAN:
            products = self._shared(counts, counted=True)
            own = sum(count * count for count in counts.values())
            scores = 1 / (1 + np.sqrt(own + columns["squares"][:size] - 2 * products))
            if self._textless:
                scores[columns["textless"][:size]] = 0.0
        else:
            shared = self._shared(counts, counted=False)
            scores, alike = np.zeros(size), np.flatnonzero(shared)
            scores[alike] = shared[alike] / (len(counts) + columns["words"][alike] - shared[alike])
        for slot in self._textless.get(question_hash(query.text), ()) if self._textless else ():
            scores[slot] = 1.0
        return scores

    def _shared(self, counts: Counter[str], *, counted: bool) -> NDArray[np.int64]:
        """For every slot the number of words that it shares with the query; `counted`: the product of their counts."""
        shared = np.zeros(len(self._entries), np.int64)
        for word, count in counts.items():
            posting = self._postings.get(word)
            if posting is None:
                continue
            shared[np.frombuffer(posting, dtype=np.intc)] += count if counted else 1
            if counted:
                for slot, repeated in self._repeats.get(word, {}).items():
                    shared[slot] += count * (repeated - 1)
        return shared

    def _meaning(self, vector: QuestionVector | None) -> NDArray[np.float64]:
        scores = np.zeros(len(self._entries))
        unit = None if vector is None else _unit(vector.values)
        matrix = None if vector is None else self._matrices.get(vector.space)
        if unit is None or matrix is None or len(unit) != matrix.shape[1]:
            return scores
        products = (matrix[: len(scores)] @ unit).astype(np.float64)
        scores[: len(products)] = np.round(np.clip(products, 0.0, 1.0), 6)
        return scores


def _unit(vector: bytes) -> NDArray[np.float32] | None:
    if not vector or len(vector) % 4:
        return None
    values = np.frombuffer(vector, dtype=np.float32)
    length = float(np.linalg.norm(values))
    return (values / length).astype(np.float32) if length else None


def _first(
    slots: NDArray[np.intp], falling: Sequence[NDArray[Any]], rising: Sequence[NDArray[Any]], count: int
) -> NDArray[np.intp]:
    """The first `count` slots by these columns, unsorted, with all ties of the last.

    Each column is only read at the slots that tie in the columns before it, so that nothing large is sorted.
    """
    certain: list[NDArray[np.intp]] = []
    tied, missing = slots, count
    for number, column in enumerate((*falling, *rising)):
        if len(tied) <= missing:
            break
        values = -column[tied] if number < len(falling) else column[tied]
        last = np.partition(values, missing - 1)[missing - 1]
        before = tied[values < last]
        certain.append(before)
        missing -= len(before)
        tied = tied[values == last]
    return np.concatenate([*certain, tied])


MEANING_SHARE = 0.9
"""Weight of the embeddings when they are combined with words; the words have the rest. Of .6 to 1, the share of right
cases among the first three is nearly the same from .8 on, and .02 to .03 lower below (`bench/cases.py paraphrases`)."""


def question_hash(text: str) -> bytes:
    """Identifies the normalised question, also where questions are stored without text."""
    return content_hash(normalise(text))


def words(text: str) -> list[str]:
    """The words that similarity compares."""
    return text.lower().split()


def similarity(first: str, second: str, method: SimilarityMethod) -> float:
    """How alike the texts are by their words.

    `COSINE` and `JACCARD` are the same: shared words divided by all words (the acceptance text defines its cosine so);
    0.0 for two texts without words. `EUCLIDEAN` is 1 / (1 + distance between the counts of words). `SEMANTIC` compares
    vectors (`cosine`) and raises `InvalidInput` here.
    """
    if method is SimilarityMethod.SEMANTIC:
        raise InvalidInput("The similarity `semantic` compares embeddings: give the vectors of both texts.")
    if method is SimilarityMethod.EUCLIDEAN:
        first_counts, second_counts = Counter(words(first)), Counter(words(second))
        every = first_counts.keys() | second_counts.keys()
        return 1 / (1 + math.sqrt(sum((first_counts[word] - second_counts[word]) ** 2 for word in every)))
    first_words, second_words = set(words(first)), set(words(second))
    union = len(first_words | second_words)
    return len(first_words & second_words) / union if union else 0.0


def comparable(first: QuestionVector | None, second: QuestionVector | None) -> bool:
    """Whether both are there and of one model."""
    return first is not None and second is not None and first.space == second.space


def cosine(first: QuestionVector | None, second: QuestionVector | None) -> float:
    """The cosine of two vectors, at least 0.0, to six places; 0.0 unless they are comparable."""
    if first is None or second is None or first.space != second.space or len(first.values) != len(second.values):
        return 0.0
    first_values, second_values = (
        np.frombuffer(vector.values, dtype=np.float32).astype(np.float64) for vector in (first, second)
    )
    lengths = float(np.linalg.norm(first_values)) * float(np.linalg.norm(second_values))
    return round(min(1.0, max(0.0, float(first_values @ second_values) / lengths)), 6) if lengths else 0.0


def admits(query: CaseQuery, case: Case) -> bool:
    """Whether the search considers the case: active, of sufficient quality, and in the category."""
    if case.status != "active" or case.quality_score < query.min_quality:
        return False
    if query.category_path is None:
        return True
    if query.nodes is not None and case.node_id is not None:
        return case.node_id in query.nodes
    return in_category(case.category_path, query.category_path, prefix=query.prefix)


def in_category(path: tuple[str, ...], category: tuple[str, ...], *, prefix: bool) -> bool:
    """Whether the path is the category, or with `prefix` in the branch below it."""
    return path[: len(category)] == category if prefix else path == category


def order(case: Case, score: float) -> tuple[float, float, int, str]:
    """Sorts suggestions: most similar first, then by quality, use and id."""
    return (-score, -case.quality_score, -case.usage_count, case.case_id)


def with_words(meaning: float | None, shared_words: float) -> float:
    """The similarity of embeddings combined with that of words, for suggestions by `SEMANTIC`; None: words alone."""
    if meaning is None:
        return shared_words
    return round(MEANING_SHARE * meaning + (1 - MEANING_SHARE) * shared_words, 6)
