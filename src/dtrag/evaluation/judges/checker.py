"""A judge with a claim checker: the model decides about support, words about relevance."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from dtrag.core.quality import lexical_judge
from dtrag.core.quality.judgement import Judgement, Relevance
from dtrag.core.text.analysis import sentences
from dtrag.evaluation.judges.lexical import relevance
from dtrag.ports.judges import ClaimChecker

SUPPORTED = 0.5
WINDOW = 1_200
"""Characters of a context that the model reads at once: about 300 tokens, which leaves space for the claim."""


class CheckerJudge:
    """A claim is supported by a context when the model says so of one window of it."""

    def __init__(self, checker: ClaimChecker):
        self._checker = checker
        self.id = checker.id

    async def support(self, claims: Sequence[str], contexts: Sequence[str], query: str) -> list[Judgement]:
        """See `Judge`. Raises `ModelDamaged`."""
        return await asyncio.to_thread(self._support, claims, contexts, query)

    async def relevance(self, query: str, answer: str) -> Relevance:
        """See `Judge`; by words."""
        return await asyncio.to_thread(relevance, query, answer)

    def _support(self, claims: Sequence[str], contexts: Sequence[str], query: str) -> list[Judgement]:
        spans = [(index, part) for index, context in enumerate(contexts) for part in windows(context)]
        judgements = []
        for claim in claims:
            scores = [0.0] * len(contexts)
            for (index, _), score in zip(spans, self._checker.check([(part, claim) for _, part in spans]), strict=True):
                scores[index] = max(scores[index], score)
            best = max(scores, default=0.0)
            supporting = tuple(index for index, score in enumerate(scores) if score >= SUPPORTED)
            reason = "" if supporting else f"{self.id} finds it in no context; by words: "
            if reason:
                reason += lexical_judge.judge(claim, contexts, query).reason or "its words are there"
            judgements.append(Judgement(claim, bool(supporting), round(best, 4), supporting, reason))
        return judgements


def windows(text: str) -> list[str]:
    """The text in runs of sentences of at most `WINDOW` characters; a longer sentence is one of its own."""
    runs: list[tuple[int, int]] = []
    for start, end in sentences(text):
        if runs and end - runs[-1][0] <= WINDOW:
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((start, end))
    return [text[start:end] for start, end in runs]
