"""The default judge: lexical support with reasons, without a model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from dtrag.core.quality import lexical_judge, relevancy
from dtrag.core.quality.judgement import Judgement, Relevance
from dtrag.core.quality.relevancy import AskedConcept
from dtrag.core.text.analysis import language
from dtrag.packs.regulation_ko.question_concepts import read
from dtrag.retrieval.lexicon_reader import lexicon_in_use


def _judged(claims: Sequence[str], contexts: Sequence[str], query: str) -> list[Judgement]:
    distinct = {claim: lexical_judge.judge(claim, contexts, query) for claim in dict.fromkeys(claims)}
    return [distinct[claim] for claim in claims]


def relevance(query: str, answer: str) -> Relevance:
    """How well the answer replies to the query, in its words or in the official ones of an everyday Korean question.

    The first question takes .13 s for the lexicon.
    """
    return relevancy.relevance(query, answer, _concepts(query) if language(query) == "ko" else ())


def _concepts(query: str) -> list[AskedConcept]:
    return [
        AskedConcept(
            tuple(wording.text for wording in concept.wordings if wording.own),
            tuple(wording.text for wording in concept.wordings if not wording.own),
        )
        for concept in read(query, lexicon_in_use()).concepts
    ]


class LexicalJudge:
    """Compares words, numbers, names and negations; the same result every time."""

    id = "lexical"

    async def support(self, claims: Sequence[str], contexts: Sequence[str], query: str) -> list[Judgement]:
        """See `Judge`."""
        return await asyncio.to_thread(_judged, claims, contexts, query)

    async def relevance(self, query: str, answer: str) -> Relevance:
        """See `Judge`."""
        return await asyncio.to_thread(relevance, query, answer)
