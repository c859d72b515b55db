"""The record of an answer, made from the state of its run: see `core/answer_record.py`."""

from __future__ import annotations

import functools
import hashlib
import secrets
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from dtrag.core.access.filter_attacks import PATH_KEYS
from dtrag.core.access.scope import EVERYTHING, SearchFilters
from dtrag.core.answer_record import (
    AnswerRecord,
    RecordedCall,
    RecordedPassage,
    RecordedQuote,
    canonical,
    content_hash,
    ranges,
)
from dtrag.core.documents import SearchResult
from dtrag.core.response import plain
from dtrag.core.taxonomy.tree import CategoryPath, Taxonomy
from dtrag.core.text.questions import content_terms, weighted_terms
from dtrag.pipeline.run_context import Run
from dtrag.pipeline.state import Evidence, PipelineResponse, PipelineState, running
from dtrag.ports import IndexSnapshot, valid_day

SCORE_DIGITS = 6


def record_of(state: PipelineState, response: PipelineResponse, at: datetime) -> AnswerRecord:
    """The record of the answer."""
    run, evidence = running(state), state.evidence
    recording, snapshot = run.recording, run.index.latest
    key, recalled = run.text_key(), recording.recalled
    filters = {name: value for name, value in recording.filters.items() if name not in PATH_KEYS}
    return AnswerRecord(
        trace_id=recording.trace_id,
        created_at=at,
        salt=secrets.token_hex(16),
        key_id="" if key is None else key.id,
        question="" if key is None else key.hash(state.query),
        standalone="" if key is None or state.search_query is None else key.hash(state.search_query),
        filters="" if key is None else key.hash_of_filters(filters),
        earlier=len(run.history),
        day=(run.scope.as_of or valid_day(EVERYTHING)).isoformat(),
        nodes=None if snapshot is None else _nodes(run, snapshot.taxonomy),
        tree=response.taxonomy_version,
        options=options_of(run),
        settings=_settings(run, snapshot),
        text=content_hash(response.text),
        decision=response.decision,
        confidence=round(response.confidence, SCORE_DIGITS),
        answer_confidence=None
        if response.answer_confidence is None
        else round(response.answer_confidence, SCORE_DIGITS),
        reasons=tuple(statement.code for statement in response.reason_statements),
        model=response.model or "",
        passages=() if snapshot is None else tuple(recorded(each, snapshot.taxonomy) for each in state.passages),
        quotes=tuple(
            RecordedQuote(each.number, each.chunk_id, each.start, each.end, content_hash(each.quote))
            for each in response.citations
        ),
        calls=tuple(RecordedCall(call.step, call.model, call.prompt_hash) for call in recording.calls),
        searched=0 if evidence is None else evidence.statistics.chunks,
        words="" if evidence is None else _words(state.search_query or state.query, evidence),
        degraded=response.degraded,
        unfinished=response.unfinished,
        vectors_pending=evidence is not None and evidence.metrics.vectors_pending,
        tools=tuple(str(result["tool"]) for result in state.tool_results),
        cases=() if recalled is None else tuple(case.case_id for case in (*recalled.same, *recalled.offered)),
        weighted=recording.way is not None and recording.way.action is not None,
    )


def recorded(passage: SearchResult, taxonomy: Taxonomy) -> RecordedPassage:
    """What is recorded of a passage; its category is that of this version of the tree."""
    metadata = passage.metadata
    return RecordedPassage(
        passage.chunk_id,
        content_hash(passage.text),
        round(passage.hybrid_score, SCORE_DIGITS),
        taxonomy.find(CategoryPath.parse(passage.taxonomy_path)) if passage.taxonomy_path else None,
        str(metadata.get("processed_at", "")),
        str(metadata.get("effective_from", "")),
        str(metadata.get("superseded_from", "")),
    )


def options_of(run: Run) -> dict[str, Any]:
    """What can be set again for another run, as JSON values."""
    return {
        "flags": sorted(run.flags),
        "policy": run.policy,
        "debates": run.debates,
        "debate_allowed": run.debate_allowed,
        "reads": run.reads,
        "memory": run.memory,
        "retrieved": run.retrieved,
        "candidates": list(run.candidates),
    }


def _settings(run: Run, snapshot: IndexSnapshot | None) -> dict[str, str]:
    """What of the service decides an answer, beside its documents."""
    stored: Mapping[str, Any] = {} if snapshot is None else snapshot.settings
    return {
        **run.identity,
        "model": "none" if run.model is None else run.model.id,
        "critic": "none" if run.critic is None else run.critic.id,
        "calibration": _short_hash(stored.get("calibration")),
        "lexicon": _short_hash(stored.get("lexicon")),
    }


def _short_hash(value: object) -> str:
    return hashlib.sha256(canonical(plain(value))).hexdigest()[:16] if value else "none"


def _nodes(run: Run, taxonomy: Taxonomy) -> tuple[tuple[int, int], ...] | None:
    """The categories that the run searched, as ranges of ids; None for the whole tree."""
    paths = {name: value for name, value in run.recording.filters.items() if name in PATH_KEYS}
    nodes = SearchFilters.parse(paths).scope(taxonomy, run.scope.resolved(taxonomy)).nodes
    return None if nodes is None else _ranges(nodes)


@functools.lru_cache(maxsize=64)
def _ranges(nodes: Collection[int]) -> tuple[tuple[int, int], ...]:
    return ranges(nodes)


def _words(question: str, evidence: Evidence) -> str:
    """A hash of how often the question's words occur in the passages in scope, and of the numbers of these."""
    statistics = evidence.statistics
    terms = sorted({*content_terms(question), *(term for term, _ in weighted_terms(question))})
    lengths = sorted((language, list(counts)) for language, counts in statistics.lengths.items())
    counted = [statistics.chunks, lengths, statistics.document_frequencies(terms)]
    return hashlib.sha256(canonical(counted)).hexdigest()
