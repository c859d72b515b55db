"""As of an earlier day: whether what answers today is known to have been the text of that day."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dtrag.core.answers.confidence import SETTING, Confidence, confidence_of
from dtrag.core.answers.evidence import by_words
from dtrag.core.documents import SearchMetrics, SearchResult, TodaysResults
from dtrag.core.editions import ChangedText, changed_later
from dtrag.core.ranking.bm25 import LexicalStatistics
from dtrag.core.statements import joined, stated
from dtrag.core.text.analysis import language
from dtrag.pipeline.answer.extractive import extract
from dtrag.pipeline.run import Run
from dtrag.ports import speaks

NEAR = 0.97
"""Share of the first passage's score from which on the second one of today may answer as well (bench/README.md)."""


async def as_of_day(
    judged: Confidence,
    question: str,
    results: tuple[Sequence[SearchResult], SearchMetrics],
    statistics: LexicalStatistics,
    *,
    settings: Mapping[str, Any],
    run: Run,
) -> tuple[Confidence, str]:
    """The confidence in an answer as of the run's earlier day; and, if there is only a later text, that as the answer.

    An answer is never sure if today's rests on a text that is not known to have been the same on the day, or on another
    one that was.
    """
    passages, metrics = results
    if metrics.today is None:
        if "editions" not in metrics.degraded or judged.decision != "answer":
            return judged, ""
        late = stated("day_not_checked", "What has changed since {day} could not be read in time.", day=run.scope.as_of)
        return replace(judged, decision="review", needs_check=True, reason=joined(late, judged.reason)), ""
    changed = await asyncio.to_thread(_changed, question, metrics.today, statistics, settings, run)
    if changed:
        return without_text(judged, question, changed, run)
    first = next(iter(metrics.today.passages), None)
    if (
        judged.decision != "answer"
        or first is None
        or first.id == passages[0].id
        or not _same_then(first, metrics, run)
    ):
        return judged, ""
    name = f"{first.metadata.get('regulation') or first.title} {first.metadata.get('article') or ''}".rstrip()
    differs = stated("first_differs", "Today {name} comes first: check the sources.", name=name)
    return replace(judged, decision="review", reason=joined(differs, judged.reason)), ""


def _same_then(passage: SearchResult, metrics: SearchMetrics, run: Run) -> bool:
    """Whether the passage of today is as a whole one of the run's day."""
    since = passage.metadata.get("effective_from")
    is_known = run.scope.as_of is not None and since is not None and since <= run.scope.as_of.isoformat()
    return is_known and metrics.today is not None and passage.id not in metrics.today.changed


def without_text(judged: Confidence, question: str, changed: Sequence[ChangedText], run: Run) -> tuple[Confidence, str]:
    """The confidence in an answer when that has changed since the run's day; and the answer if there is no other."""
    if run.scope.as_of is None:
        return judged, ""
    named = changed_later(changed, run.scope.as_of, korean=language(question) == "ko")
    answer = named if judged.decision == "abstain" else ""
    return replace(judged, decision="review", needs_check=True, reason=joined(named, judged.reason)), answer


def _changed(
    question: str, today: TodaysResults, statistics: LexicalStatistics, settings: Mapping[str, Any], run: Run
) -> list[ChangedText]:
    """What today's answer rests on that is not the text of the day; nothing where the documents do not answer today."""
    stored = settings.get(SETTING)
    if not today.changed:
        return []
    decides = speaks(run.embedder, language(question), deciding=True)
    decided_by = today.passages if decides else by_words(today.passages)
    judged = confidence_of(question, decided_by, statistics, stored, today.pack, policy=run.policy)
    if judged.decision == "abstain":
        return []
    quotes = extract(question, today.passages, statistics, None, today.pack)
    spans = [
        (today.passages[quote.passage].chunk_id, *(quote.marked or (quote.start, quote.end)))
        for quote in quotes  # of a provision that is quoted whole, the sentence that answers
    ]
    quoted = {chunk_id for chunk_id, _, _ in spans}  # of these, only what is quoted counts
    spans += [
        (passage.chunk_id, 0, len(passage.text))
        for passage in today.passages[:2]
        if passage.chunk_id not in quoted and passage.hybrid_score >= NEAR * today.passages[0].hybrid_score
    ]
    return list(
        dict.fromkeys(
            text
            for chunk_id, start, end in spans
            for text in today.changed.get(chunk_id, ())
            if start < text.end and text.start < end
        )
    )
