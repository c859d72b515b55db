"""How alike two questions are, in [0, 1]; core/cases/index.py computes the same for all cases at once.

Words are what white space separates, in lower case, as the acceptance texts define them.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from dtrag.core.cases.case import Case, CaseQuery, QuestionVector, SimilarityMethod, content_hash
from dtrag.core.text.analysis import normalise
from dtrag.errors import InvalidInput

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
