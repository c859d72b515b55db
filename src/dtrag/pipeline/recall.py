"""The case memory in a run: recalled beside the search, shown with an answer that cites the case's passages.

It never delays an answer by more than its share of the retrieve step, and never fails one: when it fails or is late, it
is left out (a failure is `cases` in `degraded`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

from dtrag.core.cases.case import Case
from dtrag.core.documents import CaseVotes, EarlierQuestion, SearchResult
from dtrag.pipeline.question import is_greeting
from dtrag.pipeline.run_context import Run
from dtrag.pipeline.state import PipelineResponse, PipelineState
from dtrag.ports.cases import AnsweredQuestion, NotRetained, Recalled

_LOG = logging.getLogger(__name__)
FLAG = "cbr_enabled"
MOST_RAISED = 3
"""Passages of a case that are raised: the first ones that it cites."""
MOST_PLACES = 9
"""Places by which a passage rises at most: to the top from the last of ten."""
LEAST_SHARE = 0.5
"""A passage rises above passages of at most twice its score: a case cannot bring up what the search finds unrelated."""


def remembers(run: Run) -> bool:
    """Whether the run uses the case memory."""
    return run.reuse is not None and run.memory and FLAG in run.flags


class Recall:
    """The recall of one run, in progress."""

    def __init__(self, state: PipelineState, run: Run, task: asyncio.Task[Recalled]) -> None:
        self._state = state
        self._run = run
        self._task = task

    async def raise_passages(self, passages: Sequence[SearchResult], seconds: float) -> Sequence[SearchResult]:
        """The passages of the search, those of a verified case further up; unchanged when it is not there in time.

        Sets `recording.recalled`, and the facts of the step: numbers and names of rules, nothing of any case.
        """
        facts: dict[str, Any] = {"outcome": "silent"}
        self._run.recording.facts["cases"] = facts
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                recalled = await self._task
        except TimeoutError:
            facts["outcome"] = "late"
            return passages
        except Exception as error:  # noqa: BLE001 - boundary: an answer does not depend on the memory
            _LOG.warning("the case memory failed; the answer is made without it", exc_info=error)
            facts["outcome"] = "failed"
            self._state.degraded.append("cases")
            return passages
        self._run.recording.recalled = recalled
        facts |= {
            "candidates": recalled.candidates,
            "same_question": recalled.with_same_question,
            "stale": recalled.stale,
        }
        if recalled.case is None:
            facts["reason"] = recalled.code or recalled.silence
            return passages
        facts["outcome"] = "verified"
        ranked = raised(passages, recalled.passages) if recalled.raises else passages
        if list(ranked) == list(passages):
            self._run.recording.recalled = replace(recalled, raises=False)
        return ranked


@asynccontextmanager
async def recalling(state: PipelineState, run: Run) -> AsyncIterator[Recall | None]:
    """Recalls the question in the background until the block ends; None when the memory is not used for it."""
    if run.reuse is None or not remembers(run) or not _stands_alone(state) or is_greeting(state.query):
        yield None
        return
    task = asyncio.create_task(run.reuse.recall(state.query, run.scope))
    try:
        yield Recall(state, run, task)
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # reported by `raise_passages`, or of no interest any more


def _stands_alone(state: PipelineState) -> bool:
    """Whether the question is understood without the conversation: it was not rewritten."""
    return state.search_query is None


def show_cases(state: PipelineState, run: Run) -> None:
    """Set `answered_before` when the answer cites a passage of the verified case, and `offered` to the other similar
    questions; with events. Nothing else of the answer depends on them."""
    recalled = run.recording.recalled
    if recalled is None:
        return
    if recalled.case is not None:
        is_shown = any(citation.chunk_id in recalled.passages for citation in state.sources)
        run.recording.facts["answered_before"] = is_shown
        if is_shown:
            state.answered_before = _earlier(recalled.case)
            run.emit("answered_before", asdict(state.answered_before))
    shown = state.answered_before
    state.offered = tuple(_earlier(case) for case in recalled.offered if shown is None or case.case_id != shown.case_id)
    if state.offered:
        run.recording.facts["offered"] = len(state.offered)
        run.emit("offered", {"offered": [asdict(each) for each in state.offered]})


def _earlier(case: Case) -> EarlierQuestion:
    return EarlierQuestion(
        case_id=case.case_id,
        question=case.query,
        date=case.created_at.date().isoformat(),
        votes=CaseVotes(case.upvotes, case.downvotes),
    )


def answered_question(state: PipelineState, run: Run, response: PipelineResponse) -> AnsweredQuestion:
    """The answered question as the memory keeps it."""
    passages = {passage.chunk_id: passage for passage in state.passages}
    cited = dict.fromkeys(citation.chunk_id for citation in state.sources)
    shown = state.answered_before
    return AnsweredQuestion(
        trace_id=response.trace_id,
        question=state.query,
        owner=run.owner,
        viewer=run.scope,
        answered_at=datetime.now(UTC),
        cited=tuple(passages[chunk_id] for chunk_id in cited if chunk_id in passages),
        decision=response.decision,
        confidence=response.confidence,
        seconds=response.latency,
        not_retained=_not_retained(state, run),
        recalled=run.recording.recalled,
        shown_case_id=shown.case_id if shown is not None else None,
    )


def _not_retained(state: PipelineState, run: Run) -> NotRetained:
    if state.unfinished:
        return "unfinished"
    if not state.sources or state.decision == "abstain" or is_greeting(state.query):
        return "declined"
    if not _stands_alone(state):
        return "follow_up"
    return "filtered" if run.filters or state.canonical_filter else ""


def raised(passages: Sequence[SearchResult], chunk_ids: Sequence[str]) -> list[SearchResult]:
    """The same passages, the first few of `chunk_ids` further up; no passage is added or removed.

    Among themselves they keep the order of the search: an answer that cites several is right as a whole, and says
    little about which of them is. Scores stay as they are.
    """
    cited = frozenset(chunk_ids[:MOST_RAISED])
    scores = [_score(passage) for passage in passages]

    def sort_key(position: int) -> tuple[int, int, int]:
        if passages[position].chunk_id not in cited:
            return position, 1, position
        lowest = max(0, position - MOST_PLACES)
        above = (
            higher for higher in range(position, lowest, -1) if scores[position] < LEAST_SHARE * scores[higher - 1]
        )
        return next(above, lowest), 0, position

    return [passages[position] for position in sorted(range(len(passages)), key=sort_key)]


def _score(passage: SearchResult) -> float:
    return passage.rerank_score if passage.rerank_score > 0 else passage.hybrid_score
