"""Why a passage stands where it stands, and why a document is not in the list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dtrag.core.access.scope import SearchFilters
from dtrag.core.documents import Absence, Explanation, SearchResult, uuid_or_none
from dtrag.core.text.analysis import Analyzer
from dtrag.core.text.questions import content
from dtrag.ports import Index
from dtrag.retrieval.request import Asked, Reach
from dtrag.retrieval.results import Ranking
from dtrag.retrieval.retrievers import Leg

NOT_THERE = "There is no such document that you may see."
"""Of one that is not there, and of one outside the caller's scope: who may not see it learns nothing."""
NOT_IN_CATEGORIES = "The filters leave it out: it is in none of the categories that were asked for."
NOT_ADMITTED = "The filters leave it out: its kind, its time or its facts are not those that were asked for."


@dataclass(slots=True)
class Explainer:
    """Explains one search: what was asked, what it could reach, and how it ranked."""

    index: Index
    analyzer: Analyzer
    asked: Asked
    reach: Reach
    ranking: Ranking
    reranked: Mapping[str, float] = field(default_factory=dict)
    """Scores of the passages that a reranker has read."""

    async def of(self, results: Sequence[SearchResult]) -> list[SearchResult]:
        """The results, each with its explanation."""
        sums, cosines = await self._scores([result.chunk_id for result in results])
        return [
            replace(result, explanation=self._explanation(result.chunk_id, sums, cosines, self._matched(result)))
            for result in results
        ]

    async def absences(self, results: Sequence[SearchResult]) -> tuple[Absence, ...]:
        """For each document that was asked about and has no passage among the results, why not."""
        there = {result.chunk_id.rpartition(":")[0] for result in results}
        missing = [name for name in self.asked.explained if str(uuid_or_none(name)) not in there]
        return tuple([await self._absence(name) for name in missing])

    async def _absence(self, name: str) -> Absence:
        document_id = uuid_or_none(name)
        visible = await self.index.chunk_ids(document_id, self.reach.caller) if document_id else []
        if document_id is None or not visible:
            return Absence(name, NOT_THERE)
        if self.reach.scope != self.reach.caller and not await self.index.chunk_ids(document_id, self.reach.scope):
            return Absence(name, NOT_IN_CATEGORIES)
        if self.reach.filters != SearchFilters() and not await self._admitted(visible[0]):
            return Absence(name, NOT_ADMITTED)
        sums, cosines = await self._scores(visible)
        places = {key: place for place, key in enumerate(self.ranking.order)}
        best = min(
            visible,
            key=lambda key: (
                places.get(key, len(places)),
                -self._share(sums.get(key, 0.0)) - max(0.0, cosines.get(key) or 0.0),
            ),
        )
        passages = await self.index.fetch([best], self.reach.scope, self.reach.snapshot.taxonomy)
        matched = self._matched(passages[best]) if best in passages else ()
        reason = (
            self._too_low(places[best] + 1, best)
            if best in places
            else self._no_candidate(sums.get(best, 0.0), cosines.get(best))
        )
        return Absence(name, reason, best, self._explanation(best, sums, cosines, matched))

    async def _admitted(self, chunk_id: str) -> bool:
        taxonomy = self.reach.snapshot.taxonomy
        return chunk_id in await self.index.fetch([chunk_id], self.reach.scope, taxonomy, self.reach.filters)

    async def _scores(self, chunk_ids: Sequence[str]) -> tuple[dict[str, float], dict[str, float]]:
        """BM25 sums and cosines of the passages, of candidates or not; of a leg that ran."""
        found = []
        lexical, vector = self.ranking.lexical, self.ranking.vector
        scope = self.reach.scope
        for leg in (lexical, vector):
            known = {key: leg.raw[key] for key in chunk_ids if key in leg.raw}
            unknown = [key for key in chunk_ids if key not in known]
            if leg.failure is None and unknown:
                if leg.asked is not None:
                    known |= await self.index.lexical_scores(leg.asked, unknown, scope)
                elif leg.vector is not None:
                    known |= await self.index.vector_scores(leg.vector, unknown, scope)
            found.append(known)
        return found[0], found[1]

    def _share(self, total: float) -> float:
        """The sum as a share of the highest that the query could reach."""
        asked = self.ranking.lexical.asked
        if asked is None:
            return total
        return min(1.0, total / asked.ceiling) if asked.ceiling else 0.0

    def _explanation(
        self, key: str, sums: Mapping[str, float], cosines: Mapping[str, float], matched: tuple[str, ...]
    ) -> Explanation:
        return Explanation(
            bm25=sums.get(key, 0.0),
            bm25_score=self._share(sums.get(key, 0.0)),
            cosine=cosines.get(key),
            fused=self.ranking.fused.get(key),
            rerank=self.reranked.get(key),
            lexical_rank=_rank(self.ranking.lexical.scores, key),
            vector_rank=_rank(self.ranking.vector.scores, key),
            fused_rank=_rank(self.ranking.order, key),
            terms=matched,
        )

    def _matched(self, passage: SearchResult) -> tuple[str, ...]:
        """The words of the query, as they were written, of which the index has a term for the passage."""
        held = set(self.analyzer.terms(" ".join((passage.title, *passage.breadcrumb, passage.text))))
        held &= set(self.analyzer.terms(content(self.asked.query)))
        words = [word.strip(".,;:!?\"'“”()[]") for word in self.asked.query.split()]
        return tuple(dict.fromkeys(word for word in words if not held.isdisjoint(self.analyzer.terms(word))))

    def _too_low(self, place: int, key: str) -> str:
        of = len(self.ranking.order)
        if key in self.reranked:
            return (
                f"Its best passage came to the reranker as number {place} of {of} candidates, "
                f"and is not among the first {self.asked.top_k} after it."
            )
        return f"Its best passage is number {place} of {of} candidates; the list ends with number {self.asked.top_k}."

    def _no_candidate(self, total: float, cosine: float | None) -> str:
        reasons = []
        lexical, vector = self.ranking.lexical, self.ranking.vector
        if lexical.candidates is not None:
            if total > 0:
                reasons.append(f"its words reach {total:.2f}, {_last(lexical)}")
            else:
                reasons.append(
                    "it does not hold every word of the query"
                    if self.asked.mode == "strict"
                    else "it holds no word of the query"
                )
        if vector.candidates is not None:
            reasons.append(
                "it has no vector" if cosine is None else f"its meaning is {cosine:.3f} near, {_last(vector)}"
            )
        return f"Its best passage is no candidate: {'; '.join(reasons)}."


def _last(leg: Leg) -> str:
    if not leg.raw:
        return "and there are no candidates"
    return f"the last of the {len(leg.raw)} candidates {min(leg.raw.values()):.3f}"


def _rank(keys: Mapping[str, float] | Sequence[str], key: str) -> int | None:
    return next((rank for rank, other in enumerate(keys, start=1) if other == key), None)
