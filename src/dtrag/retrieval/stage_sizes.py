"""How many passages each stage of a search passes on to the next one.

Both retrievers return candidates (`CANDIDATES` in request.py by default), which are fused. The best of the fused
passages are fetched, ordered by the pack or the reranker, and cut to `top_k`. Every limit here is raised to `top_k`
where that is larger.
"""

from __future__ import annotations

PACK_LEXICAL_CANDIDATES = 200
"""Lexical candidates of a query that a pack has added terms to."""
PACK_PASSAGES = 120
"""Fused passages that are fetched for a pack, which joins the pieces of one article."""
PACK_NEAREST = 20
"""Passages nearest to the question that are fetched beside them."""
PACK_ARTICLES = 50
"""Articles that the pack ranks a second time; the others keep the order of the fused scores."""
RERANKED_PASSAGES = 50
"""Passages that a reranker reads: those that are fetched without a pack, or the best of the pack's order."""
LINKED_AFTER = 7
"""Passages that keep their places before those that they mention or cite: the first results answer the question
itself."""
LINKED_PASSAGES = 3
"""Mentioned documents, or cited provisions, that are inserted."""
