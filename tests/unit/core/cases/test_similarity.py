"""The formulas of similarity are those that the acceptance texts compute."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from dtrag.core.cases.case import QuestionVector, SimilarityMethod
from dtrag.core.cases.index import cosine, similarity, with_words
from dtrag.errors import InvalidInput


def vector(values: Sequence[float]) -> QuestionVector:
    return QuestionVector("toy", np.array(values, np.float32).tobytes())


@pytest.mark.parametrize("method", [SimilarityMethod.COSINE, SimilarityMethod.JACCARD])
def test_words_in_common(method: SimilarityMethod) -> None:
    assert similarity("Machine learning algorithms", "deep learning", method) == 1 / 4
    assert similarity("휴가는 며칠", "며칠 휴가는", method) == 1.0
    assert similarity("", " ", method) == 0.0
    assert similarity("a", "", method) == 0.0


def test_distance_of_word_counts() -> None:
    assert similarity("pay pay day", "pay day", SimilarityMethod.EUCLIDEAN) == 0.5
    assert similarity("a b", "c", SimilarityMethod.EUCLIDEAN) == 1 / (1 + math.sqrt(3))
    assert similarity("a b", "b A", SimilarityMethod.EUCLIDEAN) == 1.0


def test_meanings_are_compared_by_their_vectors() -> None:
    one, other, opposite, none = map(vector, ([3, 0], [1, 1], [-1, 0], [0, 0]))
    assert cosine(one, other) == pytest.approx(math.sqrt(0.5), abs=1e-6)
    assert cosine(one, opposite) == 0.0
    assert cosine(one, None) == cosine(one, vector([3])) == cosine(none, one) == 0.0
    assert cosine(one, replace(one, space="another model")) == 0.0
    assert (with_words(1.0, 0.5), with_words(None, 0.5)) == (0.95, 0.5)
    with pytest.raises(InvalidInput, match="vectors"):
        similarity("a", "b", SimilarityMethod.SEMANTIC)
