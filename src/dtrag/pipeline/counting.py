"""How often the words of a question occur where the caller may see: what confidence and quoting weigh them by."""

from __future__ import annotations

from dtrag.core.ranking.bm25 import LexicalStatistics
from dtrag.core.text.questions import content_terms, weighted_terms
from dtrag.pipeline.run import Run
from dtrag.ports import IndexSnapshot


async def counted(question: str, run: Run) -> tuple[IndexSnapshot, LexicalStatistics]:
    """The state of the index, and the counts of the question's terms in the caller's scope of it."""
    snapshot = await run.index.snapshot()
    asked = {*content_terms(question), *(term for term, _ in weighted_terms(question))}
    return snapshot, await run.index.statistics(asked, run.scope.resolved(snapshot.taxonomy))
