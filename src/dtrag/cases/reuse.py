"""Verified reuse: whether a question was answered before, by a case that may be shown and whose passages are current.

A case is reused when the gate takes its question for the same, the evidence allows it, all its passages have the text
that they had, and no other such case contradicts it. Otherwise the memory is silent, with the reason as a code.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from cachetools import TTLCache

from dtrag.cases import case_input
from dtrag.cases.suggesting import CandidateCases, Suggester
from dtrag.cases.views import JudgedCase
from dtrag.core.access.scope import Scope, Viewer
from dtrag.core.cases.case import (
    Case,
    CaseQuery,
    CitedPassage,
    DecisionCounts,
    ScoredCases,
    content_hash,
)
from dtrag.core.cases.index import question_hash
from dtrag.core.cases.reuse_verdict import (
    DELTA,
    MIN_DECISIONS,
    CaseStanding,
    CollectionEvidence,
    collection_evidence,
    reusable,
    standing_of,
)
from dtrag.core.cases.same_question import same_question
from dtrag.core.response import extended
from dtrag.core.taxonomy.tree import Taxonomy
from dtrag.errors import InvalidInput
from dtrag.ports import CaseStore, Index
from dtrag.ports.cases import Recalled
from dtrag.settings import timeout_multiplier

MOST_CANDIDATES = 20
"""Nearest cases that the gate compares with a question."""
VECTOR_S = 0.5
"""Longest time until words alone count, in seconds: a slow embedder must not silence the memory."""
MOST_OFFERED = 3
"""Similar questions that are offered with an answer."""
LEAST_SIMILARITY = 0.5
"""Of an offered question. Over `bench/cases.py paraphrases`, the right case is among the offered ones for .87 of the
Korean and .74 of the English paraphrases; .4 gives .89 and .85, but twice as many others."""
GATE_S = 0.5
"""Time for these comparisons in seconds, times PIPELINE_TIMEOUT_MULTIPLIER; after it the memory is silent."""
COUNTS_S = 10.0
"""How long the counts of a restricted scope are kept, in seconds, once the decisions count instead of the pairs."""


@dataclass(frozen=True, slots=True)
class _Verified:
    case: Case
    standing: CaseStanding
    chunk_ids: tuple[str, ...] = field(default=())


class Reuse:
    """Finds the verified case of a question in the cases of one store.

    `committed` counts the decisions of the gate on the committed trap pairs; they are the evidence until the collection
    has enough decisions of its own. `delta` is the largest accepted share of wrong decisions. Raises `InvalidInput` for
    one outside of (0, 1).
    """

    def __init__(
        self,
        store: CaseStore,
        index: Index,
        suggester: Suggester | None = None,
        *,
        committed: DecisionCounts,
        delta: float = DELTA,
    ) -> None:
        if not 0.0 < delta < 1.0:
            raise InvalidInput(f"DTRAG_CBR_DELTA is {delta:g}, but must be above 0 and below 1.")
        self._store = store
        self._index = index
        self._committed = committed
        self.suggester = suggester or Suggester(store)
        self._vectors = replace(self.suggester.vectors, seconds=VECTOR_S)
        self._delta = delta
        self._counts: TTLCache[Scope, DecisionCounts] = TTLCache(256, COUNTS_S)

    async def evidence_for(self, viewer: Viewer) -> CollectionEvidence:
        """As `evidence`, for what the viewer may see."""
        return await self.evidence(viewer.resolved((await self._index.snapshot()).taxonomy))

    async def evidence(self, scope: Scope) -> CollectionEvidence:
        """The evidence of all cases in scope: foreign ones have no influence on what a caller is shown."""
        return collection_evidence(await self._decisions(scope), self._committed, self._delta)

    async def _decisions(self, scope: Scope) -> DecisionCounts:
        """The counts of the scope. Which cases a restricted scope holds is checked one by one, so they are kept."""
        known = self._counts.get(scope)
        if known is not None:
            return known
        counts = await self._store.decisions(scope=scope)
        if scope.nodes is not None and counts.total >= MIN_DECISIONS:
            self._counts[scope] = counts
        return counts

    async def judged(self, case: Case, viewer: Viewer) -> JudgedCase:
        """The case, and whether it may be shown to the viewer as answered before when the same is asked."""
        taxonomy = (await self._index.snapshot()).taxonomy
        scope = viewer.resolved(taxonomy)
        stale = (await stale_passages([case], self._index, scope, taxonomy)).get(case.case_id, ())
        votes = (await self._store.votes([case.case_id], scope)).get(case.case_id, ())
        standing = standing_of(case, votes, await self._store.decisions(case.case_id, scope))
        verdict = reusable(case, standing, await self.evidence(scope))
        return extended(
            JudgedCase,
            case,
            stale=bool(stale),
            stale_passages=stale,
            reuse="archived" if case.status == "archived" else "stale" if stale else verdict.code,
            supporters=len(standing.supporters),
            supported_at=max((vote.at for vote in votes if vote.voter in standing.supporters), default=None),
            right=standing.decisions.correct,
            wrong=standing.decisions.wrong,
        )

    async def recall(self, question: str, viewer: Viewer) -> Recalled:
        """What the memory knows about the question, for this viewer on this day.

        The passages are checked in one statement, after everything else. Raises `DatabaseUnavailable`.
        """
        taxonomy = (await self._index.snapshot()).taxonomy
        scope = viewer.resolved(taxonomy)
        near = await self._candidates(question, scope)
        recalled, same = await self._asking_the_same(question, near, scope)
        similar = offerable(near.combined(), scope.as_of)[: 2 * MOST_OFFERED]
        current = {case.case_id for case in await self.current([*same, *similar], scope, taxonomy)}
        offered = await self._confirmed([case for case in similar if case.case_id in current], scope)
        recalled = replace(recalled, offered=offered[:MOST_OFFERED])
        if not same:
            return recalled
        same_now = tuple(case for case in same if case.case_id in current)
        stale = sum(bool(case.passages) for case in same) - len(same_now)
        recalled = replace(recalled, same=same_now, with_same_question=len(same), stale=stale)
        if not same_now and stale:
            return replace(recalled, silence="stale")
        return await self._decided(recalled, scope)

    async def _asking_the_same(self, question: str, near: CandidateCases, scope: Scope) -> tuple[Recalled, list[Case]]:
        """Those of the candidates that ask the same and were answered in a scope that holds this one; without any, with
        the reason for silence."""
        try:
            matching, compared = await self._of_candidates(question, near, scope)
        except TimeoutError:
            return Recalled(silence="late"), []
        recalled = Recalled(candidates=compared)
        if not matching:
            return replace(recalled, silence="other_question" if compared else "no_case"), []
        same = [case for case in matching if case.answers_for(scope.nodes)]
        return (recalled if same else replace(recalled, silence="other_scope")), same

    async def _decided(self, recalled: Recalled, scope: Scope) -> Recalled:
        """With the case that the evidence allows and that no other contradicts, or the reason for silence."""
        verified, code = await self._allowed(recalled.same, scope) if recalled.same else ([], "no_passages")
        if not verified:
            return replace(recalled, silence="evidence", code=code)
        # Anybody who may write chooses passages by hand, and may have several keys to confirm the choice: such cases
        # count where there is no other, are shown, and change no ranking.
        from_answers = [each for each in verified if each.case.origin != "manual"]
        best, passages = _agreed(from_answers or verified)
        if best is None:
            return replace(recalled, silence="conflict")
        return replace(recalled, case=best, passages=passages, raises=bool(from_answers))

    async def with_same_question(self, question: str, scope: Scope) -> list[Case]:
        """The cases in scope that ask the same about the same day, most similar first.

        Candidates are the nearest by words; when none of them asks the same, those by meaning, where the cosines of the
        embedder for the language decide. Raises `TimeoutError` when the comparisons take too long.
        """
        same, _ = await self._of_candidates(question, await self._candidates(question, scope), scope)
        return same

    async def _candidates(self, question: str, scope: Scope) -> CandidateCases:
        vector = await self._vectors.of(question)
        return await self.suggester.candidates(CaseQuery(text=question, limit=MOST_CANDIDATES, vector=vector), scope)

    async def _of_candidates(self, question: str, near: CandidateCases, scope: Scope) -> tuple[list[Case], int]:
        """As `with_same_question`, and the number of compared cases."""
        by_words = [case for case, score in near.by_words if score > 0]
        same = await asyncio.to_thread(self._same, question, by_words, scope)
        if same or near.model is None or not near.model.decides:
            return same, len(by_words)
        compared = {case.case_id for case in by_words}
        others = [case for case, score in near.by_meaning if score > 0 and case.case_id not in compared]
        return await asyncio.to_thread(self._same, question, others, scope), len(by_words) + len(others)

    async def _confirmed(self, cases: Sequence[Case], scope: Scope) -> tuple[Case, ...]:
        """The cases, without those whose passages were chosen by hand and that no other voter confirmed."""
        by_hand = [case.case_id for case in cases if case.origin == "manual"]
        votes = await self._store.votes(by_hand, scope) if by_hand else {}
        standings = {case.case_id: standing_of(case, votes.get(case.case_id, ()), DecisionCounts()) for case in cases}
        return tuple(case for case in cases if case.origin != "manual" or standings[case.case_id].supporters)

    def _same(self, question: str, cases: Sequence[Case], scope: Scope) -> list[Case]:
        """Those of the cases that ask the same about the same day. One without text must be literally the same.

        Raises `TimeoutError` after the time for the comparisons, so that no thread is busy with an answered question.
        """
        asked_hash = question_hash(question)
        end = time.monotonic() + GATE_S * timeout_multiplier()
        same = []
        for case in cases:
            if time.monotonic() >= end:
                raise TimeoutError
            if case.as_of != scope.as_of:
                continue
            if same_question(case.query, question).same if case.query else case.query_hash == asked_hash:
                same.append(case)
        return same

    async def current(self, cases: Sequence[Case], scope: Scope, taxonomy: Taxonomy) -> list[Case]:
        """Those of the cases that cite passages, all of which are in scope and valid and have the cited text."""
        stale = await stale_passages(cases, self._index, scope, taxonomy)
        return [case for case in cases if case.passages and case.case_id not in stale]

    async def _allowed(self, cases: Sequence[Case], scope: Scope) -> tuple[list[_Verified], str]:
        """The cases that the evidence allows; without any, the code of the rule that the first one breaks."""
        collection = await self.evidence(scope)
        votes = await self._store.votes([case.case_id for case in cases], scope)
        verified, codes = [], []
        for case in cases:
            own = await self._store.decisions(case.case_id, scope)
            standing = standing_of(case, votes.get(case.case_id, ()), own)
            verdict = reusable(case, standing, collection)
            codes.append(verdict.code)
            if verdict.allowed:
                verified.append(_Verified(case, standing, tuple(passage.chunk_id for passage in case.passages)))
        return verified, codes[0]


def offerable(similar: ScoredCases, day: date | None) -> list[Case]:
    """Those with a sufficiently similar question about the same day, and more votes for their passages than against."""
    return [
        case
        for case, score in similar
        if score >= LEAST_SIMILARITY and case.query and case.as_of == day and case.passages
        if case.upvotes > case.downvotes
    ]


def _agreed(verified: Sequence[_Verified]) -> tuple[Case | None, tuple[str, ...]]:
    """The case that is shown, and the passages that count.

    Of cases that cite different passages those with the most supporters win. When several have as many, the passages
    that all of these cite count; without any, the cases contradict each other, and none is shown.
    """
    supporters: dict[Collection[str], set[str]] = {}
    for each in verified:
        supporters.setdefault(frozenset(each.chunk_ids), set()).update(each.standing.supporters)
    most = max(len(voters) for voters in supporters.values())
    winning = [cited for cited, voters in supporters.items() if len(voters) == most]
    common = frozenset.intersection(*(frozenset(cited) for cited in winning))
    if not common:
        return None, ()
    shown = next(each for each in verified if frozenset(each.chunk_ids) in winning)
    return shown.case, tuple(chunk_id for chunk_id in shown.chunk_ids if chunk_id in common)


async def passages_today(
    index: Index, chunk_ids: Sequence[str], scope: Scope, taxonomy: Taxonomy
) -> dict[str, CitedPassage]:
    """Chunk id -> passage with the hash of its current text; absent when it does not exist or is out of scope."""
    current = await index.fetch(chunk_ids, scope, taxonomy)
    return {key: CitedPassage(key, content_hash(result.text)) for key, result in current.items()}


async def stale_passages(
    cases: Iterable[Case], index: Index, scope: Scope, taxonomy: Taxonomy
) -> dict[str, tuple[str, ...]]:
    """Case id -> the passages that it cites and whose text changed, that are gone, or are not valid on its day.

    Cases whose passages are all unchanged are absent. One statement per day that the cases name, usually one.
    """
    by_day: dict[date | None, list[Case]] = defaultdict(list)
    for case in cases:
        if case.passages:
            by_day[case.as_of].append(case)
    stale: dict[str, tuple[str, ...]] = {}
    for day, of_day in by_day.items():
        cited = list(dict.fromkeys(passage.chunk_id for case in of_day for passage in case.passages))
        current = await passages_today(index, cited, scope.at(day), taxonomy)
        for case in of_day:
            changed = tuple(p.chunk_id for p in case.passages if current.get(p.chunk_id) != p)
            if changed:
                stale[case.case_id] = changed
    return stale


async def cited_passages(
    index: Index, chunk_ids: Sequence[str], scope: Scope, taxonomy: Taxonomy
) -> tuple[CitedPassage, ...]:
    """The passages with the hashes of their texts. Raises `InvalidInput` for one that cannot be seen."""
    ids = case_input.chunk_ids(chunk_ids)
    if not ids:
        return ()
    current = await passages_today(index, ids, scope, taxonomy)
    for chunk_id in ids:
        if chunk_id not in current:
            raise InvalidInput(
                f"There is no passage {chunk_id[:60]!r} that you may see and that is valid on the day of the case. "
                "Use the chunk_id of a search result."
            )
    return tuple(current[chunk_id] for chunk_id in ids)
