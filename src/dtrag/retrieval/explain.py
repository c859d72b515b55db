"""Explains the rank of each result, and why a document is missing from the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dtrag.core.access.scope import SearchFilters
from dtrag.core.documents import Absence, Explanation, SearchResult, uuid_or_none
from dtrag.core.query_expansion import QueryExpansion
from dtrag.core.statements import Statement, Statements, stated
from dtrag.core.text.analysis import Analyzer, term_id
from dtrag.core.text.questions import content
from dtrag.ports import Index, similarity
from dtrag.retrieval.hybrid import Ranking
from dtrag.retrieval.request import SearchArguments, SearchTarget
from dtrag.retrieval.retrievers import RetrieverOutcome

NOT_FOUND = stated("absent_unknown", "There is no such document that you may see.")
"""For documents that do not exist and for those outside the caller's scope, so that the two cannot be told apart."""
NOT_IN_CATEGORIES = stated("absent_category", "The filters exclude it: it is in none of the requested categories.")
NOT_ADMITTED = stated(
    "absent_filtered", "The filters exclude it: its content type, its date or its metadata do not match."
)
_NO_CANDIDATE = "Its best passage is not a candidate: "


@dataclass(slots=True)
class Explainer:
    """Explains the results of one search."""

    index: Index
    analyzer: Analyzer
    request: SearchArguments
    target: SearchTarget
    ranking: Ranking
    rerank_scores: Mapping[str, float] = field(default_factory=dict)
    """Scores of the passages that a reranker has read."""
    expansions: Sequence[QueryExpansion] = ()
    """The words that a lexicon added to the query."""

    async def explained(self, results: Sequence[SearchResult]) -> list[SearchResult]:
        """The results, each with its explanation."""
        keys = [result.chunk_id for result in results]
        sums, cosines = await self._raw_scores(keys)
        by_questions = [key for key in keys if key in self.ranking.imagined.scores]
        questions = await self.index.imagined_questions(by_questions, self.target.scope) if by_questions else {}
        explained = []
        for result in results:
            explanation = self._explanation(result.chunk_id, sums, cosines, result)
            imagined = tuple(questions.get(result.chunk_id, ()))
            explained.append(replace(result, explanation=replace(explanation, imagined_questions=imagined)))
        return explained

    async def absences(self, results: Sequence[SearchResult]) -> tuple[Absence, ...]:
        """The reason for each document of the request that has no passage among the results."""
        present = {result.chunk_id.rpartition(":")[0] for result in results}
        missing = [name for name in self.request.explained_documents if str(uuid_or_none(name)) not in present]
        return tuple([await self._absence(name) for name in missing])

    async def _absence(self, name: str) -> Absence:
        target, document_id = self.target, uuid_or_none(name)
        visible = await self.index.chunk_ids(document_id, target.caller) if document_id else []
        if document_id is None or not visible:
            return Absence(name, (NOT_FOUND,))
        if target.scope != target.caller and not await self.index.chunk_ids(document_id, target.scope):
            return Absence(name, (NOT_IN_CATEGORIES,))
        if target.filters != SearchFilters() and not await self._is_admitted(visible[0]):
            return Absence(name, (NOT_ADMITTED,))
        sums, cosines = await self._raw_scores(visible)
        shares = similarity(self.ranking.vector.model, cosines)
        ranks = {key: rank for rank, key in enumerate(self.ranking.order)}
        best = min(
            visible,
            key=lambda key: (
                ranks.get(key, len(ranks)),
                -self._share(sums.get(key, 0.0)) - shares.get(key, 0.0),
            ),
        )
        passages = await self.index.fetch([best], target.scope, target.snapshot.taxonomy)
        reason = (
            (self._ranked_too_low(ranks[best] + 1, best),)
            if best in ranks
            else self._not_a_candidate(sums.get(best, 0.0), cosines.get(best), passages.get(best))
        )
        return Absence(name, reason, best, self._explanation(best, sums, cosines, passages.get(best)))

    async def _is_admitted(self, chunk_id: str) -> bool:
        taxonomy = self.target.snapshot.taxonomy
        return chunk_id in await self.index.fetch([chunk_id], self.target.scope, taxonomy, self.target.filters)

    async def _raw_scores(self, chunk_ids: Sequence[str]) -> tuple[dict[str, float], dict[str, float]]:
        """BM25 sums and cosines of the passages, whether they are candidates or not, of retrievers that ran."""
        lexical, vector, scope = self.ranking.lexical, self.ranking.vector, self.target.scope
        sums, missing = _of_candidates(lexical, chunk_ids)
        if missing and lexical.lexical_query is not None:
            sums |= await self.index.lexical_scores(lexical.lexical_query, missing, scope)
        cosines, missing = _of_candidates(vector, chunk_ids)
        if missing and vector.vector is not None and vector.model is not None:
            cosines |= await self.index.vector_scores(vector.vector, vector.model.id, missing, scope)
        return sums, cosines

    def _share(self, total: float) -> float:
        """The BM25 sum as a share of the highest one that the query can reach."""
        query = self.ranking.lexical.lexical_query
        if query is None:
            return total
        return min(1.0, total / query.ceiling) if query.ceiling else 0.0

    def _explanation(
        self, key: str, sums: Mapping[str, float], cosines: Mapping[str, float], passage: SearchResult | None
    ) -> Explanation:
        passage_terms = self._terms(passage) if passage is not None else frozenset()
        return Explanation(
            bm25=sums.get(key, 0.0),
            bm25_score=self._share(sums.get(key, 0.0)),
            cosine=cosines.get(key),
            fused=self.ranking.fused.get(key),
            rerank=self.rerank_scores.get(key),
            lexical_rank=_rank(self.ranking.lexical.scores, key),
            vector_rank=_rank(self.ranking.vector.scores, key),
            fused_rank=_rank(self.ranking.order, key),
            terms=self._matched_words(passage_terms),
            expansions=self._matched_expansions(passage_terms),
            imagined=self.ranking.imagined.scores.get(key),
        )

    def _terms(self, passage: SearchResult) -> frozenset[str]:
        return frozenset(self.analyzer.terms(" ".join((passage.title, *passage.breadcrumb, passage.text))))

    def _matched_expansions(self, passage_terms: frozenset[str]) -> tuple[str, ...]:
        """The added words of which the passage contains every index term."""
        texts = dict.fromkeys(term.text for expansion in self.expansions for term in expansion.official)
        return tuple(text for text in texts if passage_terms.issuperset(self.analyzer.terms(text)))

    def _matched_words(self, passage_terms: frozenset[str]) -> tuple[str, ...]:
        """The words of the query, as the caller wrote them, that share an index term with the passage."""
        matched_terms = passage_terms.intersection(self.analyzer.terms(content(self.request.query)))
        words = [word.strip(".,;:!?\"'“”()[]") for word in self.request.query.split()]
        return tuple(dict.fromkeys(word for word in words if not matched_terms.isdisjoint(self.analyzer.terms(word))))

    def _ranked_too_low(self, rank: int, key: str) -> Statement:
        total, top_k = len(self.ranking.order), self.request.top_k
        if key in self.rerank_scores:
            return stated(
                "absent_reranked",
                "Its best passage had rank {rank} of {total} candidates before the reranker, "
                "and is not among the first {last} after it.",
                rank=rank,
                total=total,
                last=top_k,
            )
        text = "Its best passage has rank {rank} of {total} candidates; the list ends with rank {last}."
        return stated("absent_low", text, rank=rank, total=total, last=top_k)

    def _not_a_candidate(self, total: float, cosine: float | None, passage: SearchResult | None) -> Statements:
        reasons: list[Statement] = []
        lexical, vector = self.ranking.lexical, self.ranking.vector
        if lexical.candidates is not None:
            if total > 0 and not self._lacks_words(passage):
                reasons.append(_low_lexical(f"{total:.2f}", lexical))
            elif self.request.mode == "strict":
                reasons.append(stated("absent_words", f"{_NO_CANDIDATE}it does not contain every word of the query."))
            else:
                reasons.append(stated("absent_no_word", f"{_NO_CANDIDATE}it contains no word of the query."))
        if vector.candidates is not None:
            reasons.append(
                stated("absent_no_vector", f"{_NO_CANDIDATE}it has no vector.")
                if cosine is None
                else _low_vector(f"{cosine:.3f}", vector)
            )
        return tuple(reasons)

    def _lacks_words(self, passage: SearchResult | None) -> bool:
        """Whether the passage lacks a term that each candidate contains."""
        query = self.ranking.lexical.lexical_query
        if query is None or not query.required or passage is None:
            return False
        return not query.required <= {term_id(term) for term in self._terms(passage)}


def _of_candidates(outcome: RetrieverOutcome, chunk_ids: Sequence[str]) -> tuple[dict[str, float], list[str]]:
    """The raw scores of those passages that are candidates, and the others, unless the retriever failed."""
    scores = {key: outcome.raw_scores[key] for key in chunk_ids if key in outcome.raw_scores}
    missing = [key for key in chunk_ids if key not in scores] if outcome.failure is None else []
    return scores, missing


def _low_lexical(score: str, outcome: RetrieverOutcome) -> Statement:
    if not outcome.raw_scores:
        text = f"{_NO_CANDIDATE}its lexical score is {{score}}, and there are no candidates."
        return stated("absent_lexical_none", text, score=score)
    text = f"{_NO_CANDIDATE}its lexical score is {{score}}, the last of the {{count}} candidates has {{last}}."
    return stated("absent_lexical", text, score=score, **_last_of(outcome))


def _low_vector(score: str, outcome: RetrieverOutcome) -> Statement:
    if not outcome.raw_scores:
        text = f"{_NO_CANDIDATE}its similarity is {{score}}, and there are no candidates."
        return stated("absent_vector_none", text, score=score)
    text = f"{_NO_CANDIDATE}its similarity is {{score}}, the last of the {{count}} candidates has {{last}}."
    return stated("absent_vector", text, score=score, **_last_of(outcome))


def _last_of(outcome: RetrieverOutcome) -> dict[str, str]:
    """Number and lowest score of the candidates."""
    return {"count": str(len(outcome.raw_scores)), "last": f"{min(outcome.raw_scores.values()):.3f}"}


def _rank(keys: Mapping[str, float] | Sequence[str], key: str) -> int | None:
    return next((rank for rank, other in enumerate(keys, start=1) if other == key), None)
