"""The default judge: lexical support with reasons, without a model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from dtrag.core.quality import lexical_judge, relevancy
from dtrag.core.quality.judgement import Judgement, Relevance


def _judged(claims: Sequence[str], contexts: Sequence[str], query: str) -> list[Judgement]:
    distinct = {claim: lexical_judge.judge(claim, contexts, query) for claim in dict.fromkeys(claims)}
    return [distinct[claim] for claim in claims]


class LexicalJudge:
    """Compares words, numbers, names and negations; the same result every time."""

    id = "lexical"

    async def support(self, claims: Sequence[str], contexts: Sequence[str], query: str) -> list[Judgement]:
        """See `Judge`."""
        return await asyncio.to_thread(_judged, claims, contexts, query)

    async def relevance(self, query: str, answer: str) -> Relevance:
        """See `Judge`."""
        return relevancy.relevance(query, answer)
