"""How well the best articles explain a question: signals for the confidence of an answer (core/answers/evidence.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dtrag.core.answers.evidence import PACK_SIGNALS
from dtrag.regulations.korean.lexicon import words_of
from dtrag.regulations.korean.question_concepts import QuestionReading
from dtrag.regulations.korean.ranking import Article, Scorer, regulation_scores

SIMILARITY = "regulation_similarity"
COMPARED = 5
"""First articles that must have vectors for `SIMILARITY`: else the nearest one may not have been compared."""
FULL_SCORE = 2.0
"""Regulation score, in saturated rare terms, that counts as 1: nine of ten answerable questions stay below it."""


def signals(
    reading: QuestionReading, ranked: Sequence[Article], lexical: Mapping[str, float], scorer: Scorer, rare_term: float
) -> dict[str, float]:
    """The signals of `ranked`, best first; each in [0, 1].

    `lexical` is the BM25 score of each article, not divided by what the question can reach: people who use everyday
    words reach little. `rare_term` is the highest score of a term that one passage contains.
    """
    if not ranked:
        return dict.fromkeys((name for name in PACK_SIGNALS if name != SIMILARITY), 0.0)
    regulation = {article.key: article.regulation for article in ranked}
    best = max(regulation_scores({key: lexical[key] for key in regulation}, regulation).values())
    is_named = scorer.exact(ranked[:1]) is not None
    if is_named:
        best = FULL_SCORE * rare_term
    words = len(words_of(reading.question))
    explained = {position for match in reading.matches if match.size > 1 for position in match.words}
    first = ranked[0]
    similarities = [article.similarity for article in ranked if article.similarity is not None]
    known = all(article.similarity is not None for article in ranked[:COMPARED])
    return {
        "regulation_score": min(1.0, best / rare_term / FULL_SCORE) if rare_term > 0.0 else 0.0,
        "regulation_situations": min(1.0, len(explained) / words) if words else 0.0,
        "regulation_covered": float(scorer.covers_all(first) or is_named),
        **({SIMILARITY: max(similarities)} if known else {}),
    }
