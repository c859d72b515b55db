"""Stored vectors of sentences: their spans are those that answers quote, and int8 hardly changes a cosine."""

from __future__ import annotations

import numpy as np

from dtrag.core.answers.sentence_vectors import SentenceVectors, pack, quotable_spans, unpack
from dtrag.core.documents import SearchResult
from dtrag.pipeline.answer.candidates import candidates_of

TEXT = """# The kettle

The kettle has a valve. It closes at nine, e.g. in winter.
Close it:
- before the frost
- after the rain

| Hour | Valve |
|---|---|
| 9 | closed |
"""


def test_the_spans_are_those_that_an_answer_may_quote() -> None:
    spans = quotable_spans(TEXT)
    assert spans == [(each.start, each.end) for each in candidates_of([SearchResult("a", TEXT)])]
    assert TEXT[slice(*spans[0])] == "The kettle has a valve."


def test_a_vector_in_int8_has_nearly_the_same_cosines() -> None:
    random = np.random.default_rng(1)
    vectors = random.normal(size=(200, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    spans = [(place, place + 7) for place in range(200)]
    packed = pack(spans, list(vectors))
    assert len(packed) == 4 + 200 * (12 + 384)
    stored = unpack(packed)
    assert list(stored) == spans
    differences = np.abs(np.stack(list(stored.values())) @ vectors.T - vectors @ vectors.T)
    assert differences.max() < 0.004
    assert next(iter(stored.values())).dtype == np.float32


def test_a_passage_without_sentences_and_a_vector_of_zeros() -> None:
    assert unpack(pack([], [])) == {}
    [zeros] = unpack(pack([(0, 3)], [np.zeros(8, np.float32)])).values()
    assert not zeros.any()


def test_a_vector_of_another_model_is_not_used() -> None:
    stored = SentenceVectors("toy@1", {"a": {(0, 3): np.ones(8, np.float32)}})
    assert stored.of("a", (0, 3), "toy@1") is not None
    for chunk_id, span, space in (("a", (0, 3), "toy@2"), ("a", (0, 4), "toy@1"), ("b", (0, 3), "toy@1")):
        assert stored.of(chunk_id, span, space) is None
