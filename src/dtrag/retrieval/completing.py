"""Gives the candidates of one leg their scores of the other, so that both sides say something of every passage.

A passage that only one leg proposed would otherwise count as the other's worst. With the true scores, brought onto one
scale over all candidates of both, nDCG@10 rises by .002 to .012 on each of five English sets (bench/README.md).
"""

from __future__ import annotations

import asyncio

from dtrag.core.scope import Scope
from dtrag.ports import Index
from dtrag.retrieval.legs import Leg


async def complete(index: Index, lexical: Leg, vector: Leg, scope: Scope) -> None:
    """Fill `known` of both legs; a leg that did not run keeps what it has."""
    lexical.known, vector.known = dict(lexical.scores), dict(vector.scores)
    if lexical.asked is None or vector.vector is None or lexical.candidates is None or vector.candidates is None:
        return
    sums, cosines = await asyncio.gather(
        index.lexical_scores(lexical.asked, [key for key in vector.scores if key not in lexical.scores], scope),
        index.vector_scores(vector.vector, [key for key in lexical.scores if key not in vector.scores], scope),
    )
    lexical.known |= {key: lexical.asked.share(total) for key, total in sums.items()}
    vector.known |= {key: min(1.0, max(0.0, cosine)) for key, cosine in cosines.items()}
