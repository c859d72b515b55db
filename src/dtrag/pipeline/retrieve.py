"""The retrieve step: the passages for a question, and how sure it is that they answer it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from dtrag.concurrency import limit_clock
from dtrag.core.access.visible_tree import seen_version
from dtrag.core.answers.evidence import COMPARED, by_words
from dtrag.core.answers.passage_confidence import SETTING, Confidence, confidence_of
from dtrag.core.answers.sentence_vectors import NOTHING_STORED, SentenceVectors
from dtrag.core.cases.bandit import WayToAnswer
from dtrag.core.documents import FollowedCitation, SearchMetrics, SearchResult, TodaysResults
from dtrag.core.editions import ChangedText, changed_later
from dtrag.core.query_expansion import QueryFacts, TopKChoice
from dtrag.core.ranking.bm25 import LexicalStatistics
from dtrag.core.statements import Statement, stated
from dtrag.core.taxonomy.tree import CategoryPath, Taxonomy
from dtrag.core.taxonomy.versions import active_paths, parse_version
from dtrag.core.text.analysis import language
from dtrag.core.text.sentences import Preceding
from dtrag.errors import Advice, DtragError, NotFound
from dtrag.pipeline.answer.candidates import FURTHER
from dtrag.pipeline.answer.compose import unfinished
from dtrag.pipeline.answer.extractive import extract
from dtrag.pipeline.answer.parts import first_passages, found_parts, terms_of, with_best_of_parts
from dtrag.pipeline.answer.parts import judged as judged_parts
from dtrag.pipeline.answer.quoted_provisions import judged as judged_as_named
from dtrag.pipeline.answer.quoted_provisions import unanswered
from dtrag.pipeline.planner import complexity_of
from dtrag.pipeline.question import intent_of, is_greeting
from dtrag.pipeline.reader import PASSAGES as READ
from dtrag.pipeline.recall import recalling
from dtrag.pipeline.run_context import Run, preceding_texts, question_statistics
from dtrag.pipeline.state import Evidence, PipelineState, running
from dtrag.pipeline.timeouts import budget_of
from dtrag.ports import IndexSnapshot, NamedPassages, model_for, speaks

SEARCH_SHARE = 0.75
"""Share of the retrieve step's time until which the provisions that the question names are read and the search ends;
the answer is made from what it has found by then."""
LEAST_SHARE = 0.25
"""Share of that time for the search at least."""
STATISTICS_SHARE = 0.95
"""Share of that time until which the statistics of the question's terms, needed for the confidence, must arrive."""
CASES_SHARE = 0.1
"""Share of that time for which a finished search waits for the case memory, which works beside it."""
GREETED = Confidence(0.0, "abstain", (stated("greeting", "A greeting asks nothing of the documents."),))
UNJUDGED = Confidence(
    0.0,
    "review",
    (stated("not_judged", "How far the passages answer could not be judged in time: check the sources."),),
)


@dataclass(frozen=True, slots=True)
class _RetrieveTime:
    """The time of one retrieve step."""

    started: float = field(default_factory=limit_clock)
    budget: float = field(default_factory=lambda: budget_of("retrieve"))

    def left(self, share: float) -> float:
        """Seconds until this share of the step's time has passed; negative afterwards."""
        return share * self.budget - (limit_clock() - self.started)

    def left_after_search(self) -> float:
        """Seconds for which a finished search waits for the case memory."""
        return min(CASES_SHARE * self.budget, self.left(STATISTICS_SHARE))


async def step2_retrieve(state: PipelineState) -> PipelineState:
    """`retrieved_chunks`, `evidence` with the confidence that it answers the question, and `taxonomy_version`.

    Of a question that names provisions by number, these are the first passages. One that may mean several is answered
    with their names. The confidence is that of the passages as the search ordered them: the memory does not change it.
    """
    run = running(state)
    async with recalling(state, run) as recall:
        time = _RetrieveTime()
        filters = run.recording.filters = await _filters(state, run)
        (named, of_named), changed = await asyncio.gather(
            _named(state, run, filters, time.left(SEARCH_SHARE)),
            _named_later(state, run, filters, time.left(SEARCH_SHARE)),
        )
        if changed and not of_named:
            return await _without_text(state, run, changed)
        if named is not None and (answer := unanswered(state.query, named)):
            if recall is not None:
                await recall.raise_passages((), time.left_after_search())
            return await _without_provision(state, run, answer)
        if named is not None and named.asks_only:
            if recall is not None:
                await recall.raise_passages(of_named, time.left_after_search())
            return await _with_provision(state, run, named, of_named, changed, seconds=time.left(STATISTICS_SHARE))
        question = named.question if named is not None else state.search_query or state.query
        way = await _way_to_answer(state, run)
        search = partial(
            run.engine.search,
            top_k=run.retrieved,
            filters=filters,
            bm25_candidates=run.candidates[0],
            vector_candidates=run.candidates[1],
            scope=run.scope,
            highlight=False,
            exact_candidates=True,
            choose_weights=None if way is None else way.weights,
            at_least=COMPARED,
        )
        seconds = max(LEAST_SHARE * time.budget, time.left(SEARCH_SHARE))
        passages, metrics = await search(question, seconds=seconds, official_words=state.official_words)
        seconds = max(LEAST_SHARE * time.budget, time.left(SEARCH_SHARE))
        parts = await found_parts(passages, metrics, partial(search, seconds=seconds), state.degraded)
        ordered = passages if recall is None else await recall.raise_passages(passages, time.left_after_search())
        ordered = with_best_of_parts(ordered, parts)
        state = _with_passages(state, ordered, metrics)
        first = first_passages(parts, ordered, 1 + FURTHER)
        try:
            async with asyncio.timeout(time.left(STATISTICS_SHARE)):
                official = metrics.pack.terms if metrics.pack is not None else ()
                snapshot, statistics = await question_statistics(question, run, [*official, *terms_of(parts)])
                noted = {passage.chunk_id: passage for passage in (*passages, *first)}
                notes = await run.engine.notes_on(question, list(noted.values()), run.scope)
        except TimeoutError:
            return unjudged(state)
        followed, cited = await _followed(state, run, first, filters, time.left(STATISTICS_SHARE))
        quotable = [*ordered[:READ], *first, *cited]
        preceding = await _preceding(state, run, quotable, snapshot, time.left(STATISTICS_SHARE))
        judged, no_text = GREETED, ""
        if not is_greeting(question):
            decided_by = passages if speaks(run.embedder, language(question), deciding=True) else by_words(passages)
            judged = await asyncio.to_thread(
                confidence_of,
                question,
                decided_by,
                statistics,
                snapshot.settings.get(SETTING),
                metrics.pack,
                policy=run.policy,
            )
            judged, no_text = await as_of_day(
                judged, question, (passages, metrics), statistics, settings=snapshot.settings, run=run
            )
            if parts:
                judged, parts = await asyncio.to_thread(judged_parts, judged, parts, statistics, snapshot.settings, run)
        if no_text:
            state.answer, state.decision = no_text, judged.decision
            run.emit("replace", {"text": state.answer})
        judged = _explained(judged, metrics)
        assert state.evidence is not None  # noqa: S101 - it has the passages
        state.evidence = replace(
            state.evidence,
            statistics=statistics,
            confidence=judged,
            preceding=preceding,
            sentence_vectors=await _sentence_vectors(
                run,
                question,
                ordered[:READ] if judged.decision != "abstain" and metrics.pack is None else (),
                snapshot,
                time.left(STATISTICS_SHARE),
            ),
            named=named,
            notes=notes,
            followed=followed,
            cited=cited,
            parts=parts,
        )
        state.taxonomy_version = seen_version(snapshot.taxonomy, run.scope.resolved(snapshot.taxonomy))
        state.notes += metrics.note_statements
        _record_search(run, len(state.retrieved_chunks), metrics, judged)
        return state


async def _filters(state: PipelineState, run: Run) -> dict[str, Any]:
    """The filters of the run, with the categories of the state in the active tree."""
    filters = dict(run.filters or {})
    paths = await paths_in_active_tree(state, run)
    return filters if paths is None else filters | {"taxonomy_paths": paths}


async def _way_to_answer(state: PipelineState, run: Run) -> WayToAnswer | None:
    """The choice of fusion weights and composing for this question; None unless something is chosen or learned."""
    if run.learning is None:
        return None
    complexity, intent = complexity_of(state.query), state.intent or intent_of(state.query)
    run.recording.way = await run.learning.way_to_answer(complexity, intent, run.owner, run.flags)
    return run.recording.way


def _with_passages(state: PipelineState, passages: Sequence[SearchResult], metrics: SearchMetrics) -> PipelineState:
    """The state with the passages as evidence of unknown confidence, in case the statistics do not arrive in time."""
    state.degraded += metrics.degraded
    top_k = metrics.top_k.top_k if metrics.top_k is not None else None
    state.evidence = Evidence(tuple(passages), LexicalStatistics(), metrics, UNJUDGED, top_k=top_k)
    state.retrieved_chunks = list(state.evidence.used)
    return state


async def _followed(
    state: PipelineState, run: Run, passages: Sequence[SearchResult], filters: Mapping[str, Any], seconds: float
) -> tuple[Sequence[FollowedCitation], Sequence[SearchResult]]:
    """The citations in these passages with the passages that they cite; none if that fails or is late (`citations`)."""
    if state.evidence is None or state.evidence.metrics.pack is None:
        return (), ()
    try:
        async with asyncio.timeout(seconds):
            return await run.engine.followed(passages, filters, scope=run.scope)
    except (TimeoutError, DtragError):
        state.degraded.append("citations")
        return (), ()


async def _preceding(
    state: PipelineState, run: Run, passages: Sequence[SearchResult], snapshot: IndexSnapshot, seconds: float
) -> Mapping[str, Preceding]:
    """The text before the first passages; none if it is late (`context`)."""
    try:
        async with asyncio.timeout(seconds):
            return await preceding_texts(passages, run, snapshot.taxonomy)
    except TimeoutError:
        state.degraded.append("context")
        return {}


async def _sentence_vectors(
    run: Run, question: str, passages: Sequence[SearchResult], snapshot: IndexSnapshot, seconds: float
) -> SentenceVectors:
    """The stored vectors of the passages' sentences by the model that compares them with the question; what is missing
    is embedded when it is needed, and so is all of it when they are late."""
    code = language(question)
    model = model_for(run.embedder, code)
    if not passages or model is None or not model.decides:
        return NOTHING_STORED
    try:
        async with asyncio.timeout(seconds):
            return await run.index.sentence_vectors(passages, model.id, run.scope.resolved(snapshot.taxonomy))
    except (TimeoutError, DtragError):
        return NOTHING_STORED


def _explained(judged: Confidence, metrics: SearchMetrics) -> Confidence:
    """An abstention says first of which regulations there was no text of the day to search."""
    if judged.decision != "abstain" or metrics.missing_editions is None:
        return judged
    return replace(judged, reason=(metrics.missing_editions, *judged.reason))


def _record_search(run: Run, passages: int, metrics: SearchMetrics, judged: Confidence) -> None:
    run.recording.facts |= {
        "lexical_candidates": metrics.bm25_candidates,
        "vector_candidates": metrics.vector_candidates,
        "passages": passages,
        "cache_hit": metrics.cache_hit,
        "confidence": judged.value,
    }
    chosen = metrics.top_k or TopKChoice(passages, "requested")
    reason = f"{chosen.reason}, slow search" if chosen.reduced else chosen.reason
    run.recording.facts |= {"top_k": chosen.top_k, "top_k_reason": reason}
    if metrics.query is not None:
        run.recording.facts |= _query_facts(metrics.query, keeps_text=run.recording.keeps_text)
    if metrics.imagined_candidates:
        run.recording.facts["found_by_imagined_questions"] = metrics.imagined_candidates
    way = run.recording.way
    if way is not None and way.action is not None:
        run.recording.facts |= {"way_to_answer": way.action.name, "propensity": round(way.propensity, 6)}


def _query_facts(query: QueryFacts, *, keeps_text: bool) -> dict[str, object]:
    """The entities of the query by kind, and its words with those that were added; without texts, how many."""
    entities: dict[str, list[str]] = {}
    for entity in query.entities:
        entities.setdefault(entity.kind, []).append(entity.text)
    if not keeps_text:
        added = {term.text for row in query.expansions for term in row.official}
        return {"entities": {kind: len(texts) for kind, texts in entities.items()}, "expansions": len(added)}
    expansions: dict[str, dict[str, float]] = {}
    for row in query.expansions:
        added_words = expansions.setdefault(" ".join(row.words), {})
        for term in row.official:
            added_words[term.text] = max(round(term.weight, 3), added_words.get(term.text, 0.0))
    return {"entities": entities, "expansions": expansions}


async def _named(
    state: PipelineState, run: Run, filters: Mapping[str, Any], seconds: float
) -> tuple[NamedPassages | None, list[SearchResult]]:
    """The provisions that the question names, with their passages; none if that fails or is late (`references`)."""
    earlier = [message.content for message in run.history if message.role == "user"]
    try:
        async with asyncio.timeout(seconds):
            named = await run.engine.named(
                state.query, filters, scope=run.scope, earlier=earlier, documents=run.history_documents
            )
    except (TimeoutError, DtragError):
        state.degraded.append("references")
        return None, []
    if named is None or (named[0].chunk_ids and not named[1]):
        return None, []
    return named


async def _named_later(
    state: PipelineState, run: Run, filters: Mapping[str, Any], seconds: float
) -> Sequence[ChangedText]:
    """What the question names that is not the text of the run's earlier day; nothing if that is late (`references`)."""
    earlier = [message.content for message in run.history if message.role == "user"]
    try:
        async with asyncio.timeout(seconds):
            later = await run.engine.named_later(
                state.query, filters, scope=run.scope, earlier=earlier, documents=run.history_documents
            )
    except (TimeoutError, DtragError):
        state.degraded.append("references")
        return ()
    if later is None:
        return ()
    named, changed = later
    if named.paragraph is None:
        return changed
    return [text for text in changed if not text.start or text.name.endswith(f"제{named.paragraph}항")]


async def _with_provision(
    state: PipelineState,
    run: Run,
    named: NamedPassages,
    passages: Sequence[SearchResult],
    changed: Sequence[ChangedText],
    *,
    seconds: float,
) -> PipelineState:
    """The state with the passages of the provisions that the question asks for; nothing is searched.

    `changed` is what of them is not the text of the run's earlier day. Notes that are not there within `seconds` are
    left out.
    """
    judged = judged_as_named(named)
    if changed:
        judged, _ = without_text(judged, state.query, changed, run)
    state.retrieved_chunks = list(passages)
    notes: Mapping[str, Sequence[Statement]] = {}
    with suppress(TimeoutError, DtragError):
        async with asyncio.timeout(seconds):
            notes = await run.engine.notes_on(named.question, passages, run.scope)
    state.evidence = Evidence(tuple(passages), LexicalStatistics(), SearchMetrics(), judged, named=named, notes=notes)
    await _see_version(state, run)
    run.recording.facts |= {"passages": len(passages), "confidence": judged.value}
    return state


async def _without_provision(state: PipelineState, run: Run, answer: tuple[str, Statement]) -> PipelineState:
    """The state with the answer to a question that names no existing provision, or one of several."""
    state.answer, state.reason, state.decision = answer[0], (answer[1],), "abstain"
    await _see_version(state, run)
    run.emit("replace", {"text": state.answer})
    return state


async def _without_text(state: PipelineState, run: Run, changed: Sequence[ChangedText]) -> PipelineState:
    """The state with the answer that the text of the run's day is not stored of what the question names."""
    judged, state.answer = without_text(replace(GREETED, reason=()), state.query, changed, run)
    state.decision, state.reason = judged.decision, judged.reason
    await _see_version(state, run)
    run.emit("replace", {"text": state.answer})
    return state


async def _see_version(state: PipelineState, run: Run) -> None:
    taxonomy = (await run.index.snapshot()).taxonomy
    state.taxonomy_version = seen_version(taxonomy, run.scope.resolved(taxonomy))


def unjudged(state: PipelineState) -> PipelineState:
    """The state with passages of unknown confidence; without passages, the answer that the search did not finish."""
    if not state.retrieved_chunks:
        late = stated("search_late", "The search took longer than it may.")
        return unfinished(state, running(state), (late,), searched=False)
    state.degraded.append("confidence")
    return state


async def without_passages(state: PipelineState) -> PipelineState:
    """The fallback of the retrieve step: it uses no database, which may be what does not respond."""
    return unjudged(state)


ACTIVE = "active"
"""The name of the active version."""


async def paths_in_active_tree(state: PipelineState, run: Run) -> list[list[str]] | None:
    """The filter's paths translated to the active tree (None without a filter), with a note about the translation.

    Raises `InvalidInput` for an invalid version, and `NotFound` for an unknown one.
    """
    paths = state.canonical_filter
    if run.taxonomy_version in {None, ACTIVE}:
        return paths
    version = await _inactive(str(run.taxonomy_version), run)
    if version is None or paths is None:
        return paths
    active = (await run.index.snapshot()).taxonomy
    translated, missing = [], []
    for path in map(CategoryPath.parse, paths):
        active_ones = active_paths(path, version, active)
        translated += active_ones
        missing += [] if active_ones else [str(path)]
    state.notes.append(
        stated(
            "earlier_tree",
            "The categories are those of version {version} of the tree, with the documents that they have now, in "
            "version {active}.",
            version=version.version,
            active=active.version,
        )
    )
    if missing:
        gone = "Of these categories the active tree has none: {categories}."
        state.notes.append(stated("categories_gone", gone, categories=", ".join(missing)))
    return translated


async def _inactive(requested: str, run: Run) -> Taxonomy | None:
    """The tree of the requested version; None for the active one.

    To a caller with a scope only the active version is known: others would reveal changes in the rest of the tree.
    """
    parse_version(requested)
    active = (await run.index.snapshot()).taxonomy
    scope = run.scope.resolved(active)
    if requested == seen_version(active, scope):
        return None
    if scope.nodes is not None:
        raise NotFound("There is no such version of the category tree that you may see. Ask for active.")
    tree = await run.tree_of(requested)
    if tree is None:
        raise NotFound(f"There is no version {requested!r} of the category tree.", Advice.LIST_VERSIONS)
    return tree


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
        return replace(judged, decision="review", needs_check=True, reason=(late, *judged.reason)), ""
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
    return replace(judged, decision="review", reason=(differs, *judged.reason)), ""


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
    answer = str(named) if judged.decision == "abstain" else ""
    return replace(judged, decision="review", needs_check=True, reason=(named, *judged.reason)), answer


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
