"""The seven steps: each takes the state, fills its fields and returns it; each can be called alone.

A state without a `run` works with the open app and the whole tree. A step whose flag is off leaves the state unchanged.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from dtrag.concurrency import limit_clock
from dtrag.core.access.visible_tree import seen_version
from dtrag.core.answers.answer_confidence import answer_confidence
from dtrag.core.answers.confidence import SETTING, Confidence, confidence, confidence_of
from dtrag.core.answers.evidence import COMPARED, by_words
from dtrag.core.answers.reasons import Decision, declined
from dtrag.core.documents import Declined, FollowedCitation, SearchMetrics, SearchResult
from dtrag.core.editions import ChangedText
from dtrag.core.query_expansion import QueryFacts, TopKChoice
from dtrag.core.ranking.bm25 import LexicalStatistics
from dtrag.core.statements import joined, stated
from dtrag.core.text.analysis import language
from dtrag.core.text.sentences import Preceding
from dtrag.errors import DatabaseUnavailable, DtragError, InvalidInput, LanguageModelFailed, Overloaded
from dtrag.memory.weight_learning import WayToAnswer
from dtrag.pipeline.answer.candidates import FURTHER
from dtrag.pipeline.answer.citations import highlighted
from dtrag.pipeline.answer.compose import compose, unfinished
from dtrag.pipeline.answer.grounding import verify
from dtrag.pipeline.answer.named_provisions import judged as judged_as_named
from dtrag.pipeline.answer.named_provisions import unanswered
from dtrag.pipeline.day_evidence import as_of_day, without_text
from dtrag.pipeline.debate.step import debate
from dtrag.pipeline.intent import intent_of, is_greeting
from dtrag.pipeline.official_words import may_suggest, suggested
from dtrag.pipeline.parts import first_passages, found_parts, terms_of, with_best_of_parts
from dtrag.pipeline.parts import judged as judged_parts
from dtrag.pipeline.plan import planner
from dtrag.pipeline.plan.planner import complexity_of
from dtrag.pipeline.reader import PASSAGES as READ
from dtrag.pipeline.recall import recalling, show_cases
from dtrag.pipeline.rewrite import by_rules, standalone
from dtrag.pipeline.run import Run, of_active_app, preceding_texts, question_statistics
from dtrag.pipeline.state import Evidence, Part, PipelineState
from dtrag.pipeline.timeouts import budget_of
from dtrag.pipeline.tree_version import paths_in_active_tree
from dtrag.ports import IndexSnapshot, NamedPassages, speaks
from dtrag.settings import active_flags
from dtrag.tools.executor import execute_plan

_LOG = logging.getLogger(__name__)

SEARCH_SHARE = 0.75
"""Share of the retrieve step's time until which the provisions that the question names are read and the search ends;
the answer is made from what it has found by then."""
LEAST_SHARE = 0.25
"""Share of that time for the search at least."""
STATISTICS_SHARE = 0.95
"""Share of that time until which the statistics of the question's terms, needed for the confidence, must arrive."""
CASES_SHARE = 0.1
"""Share of that time for which a finished search waits for the case memory, which works beside it."""
GREETED = Confidence(0.0, "abstain", stated("greeting", "A greeting asks nothing of the documents."))
UNJUDGED = Confidence(
    0.0,
    "review",
    stated("not_judged", "How far the passages answer could not be judged in time: check the sources."),
)


def running(state: PipelineState) -> Run:
    """The state's run, or one of the open app if it has none. Raises `NoActiveApp`."""
    if state.run is None:
        state.run = of_active_app()
    return state.run


def enabled(state: PipelineState, name: str) -> bool:
    """Whether the flag was on when the state's run began; without a run, whether it is on now."""
    return name in (active_flags() if state.run is None else state.run.flags)


def rewrites(state: PipelineState) -> bool:
    """Whether the question may be a follow-up, or have official words that a model knows."""
    run = running(state)
    return bool(run.history) or may_suggest(state.query, run)


async def rewrite(state: PipelineState) -> PipelineState:
    """Sets `search_query` for a follow-up question: the question rewritten to be understood alone.

    At the same time a language model suggests `official_words`; if it fails or is late, there are none.
    """
    run = running(state)
    rewritten, words = await asyncio.gather(standalone(state.query, run.history, run), _official_words(state, run))
    state.official_words = words
    if words and run.recording.keeps_text:
        run.recording.facts["official_words"] = ", ".join(words)
    return _with_query(state, rewritten)


async def _official_words(state: PipelineState, run: Run) -> tuple[str, ...]:
    question, _ = by_rules(state.query, run.history)
    try:
        return await suggested(question, run)
    except (LanguageModelFailed, Overloaded, DatabaseUnavailable) as error:
        _LOG.info("no official words: %s", error)
        state.degraded.append("official_words")
        return ()


async def rewrite_by_rules(state: PipelineState) -> PipelineState:
    """The fallback of the rewrite step."""
    return _with_query(state, by_rules(state.query, running(state).history))


def _with_query(state: PipelineState, rewritten: tuple[str, str]) -> PipelineState:
    question, note = rewritten
    if question != state.query:
        recording = running(state).recording
        state.search_query = question
        recording.facts |= {"search_query": question} if recording.keeps_text else {}
        recording.facts["note"] = note
    return state


async def step1_intent(state: PipelineState) -> PipelineState:
    """`intent`: question, explanation, search or general. Raises `InvalidInput` for an empty question."""
    if not isinstance(state.query, str) or not state.query.strip():
        raise InvalidInput("The question is empty.")
    state.intent = intent_of(state.query)
    return state


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
        filters = await _filters(state, run)
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
        stored = snapshot.settings.get(SETTING)
        judged, no_text = GREETED, ""
        if not is_greeting(question):
            decided_by = passages if speaks(run.embedder, language(question), deciding=True) else by_words(passages)
            judged = await asyncio.to_thread(
                confidence_of, question, decided_by, statistics, stored, metrics.pack, policy=run.policy
            )
            judged, no_text = await as_of_day(
                judged, question, (passages, metrics), statistics, settings=snapshot.settings, run=run
            )
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
            named=named,
            notes=notes,
            followed=followed,
            cited=cited,
            parts=parts,
        )
        state.taxonomy_version = seen_version(snapshot.taxonomy, run.scope.resolved(snapshot.taxonomy))
        state.notes += metrics.notes
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


def _explained(judged: Confidence, metrics: SearchMetrics) -> Confidence:
    """An abstention says first of which regulations there was no text of the day to search."""
    if judged.decision != "abstain" or not metrics.missing_editions:
        return judged
    return replace(judged, reason=joined(metrics.missing_editions, judged.reason))


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
    notes: Mapping[str, Sequence[str]] = {}
    with suppress(TimeoutError, DtragError):
        async with asyncio.timeout(seconds):
            notes = await run.engine.notes_on(named.question, passages, run.scope)
    state.evidence = Evidence(tuple(passages), LexicalStatistics(), SearchMetrics(), judged, named=named, notes=notes)
    await _see_version(state, run)
    run.recording.facts |= {"passages": len(passages), "confidence": judged.value}
    return state


async def _without_provision(state: PipelineState, run: Run, answer: tuple[str, str]) -> PipelineState:
    """The state with the answer to a question that names no existing provision, or one of several."""
    (state.answer, state.reason), state.decision = answer, "abstain"
    await _see_version(state, run)
    run.emit("replace", {"text": state.answer})
    return state


async def _without_text(state: PipelineState, run: Run, changed: Sequence[ChangedText]) -> PipelineState:
    """The state with the answer that the text of the run's day is not stored of what the question names."""
    judged, state.answer = without_text(GREETED, state.query, changed, run)
    state.decision, state.reason = judged.decision, state.answer
    await _see_version(state, run)
    run.emit("replace", {"text": state.answer})
    return state


async def _see_version(state: PipelineState, run: Run) -> None:
    taxonomy = (await run.index.snapshot()).taxonomy
    state.taxonomy_version = seen_version(taxonomy, run.scope.resolved(taxonomy))


async def step3_plan(state: PipelineState) -> PipelineState:
    """`plan`: which tools the question needs, each with its input."""
    run = running(state)
    await run.prepare()
    question = state.search_query or state.query
    planning = run if _asks_model(state) else replace(run, model=None)
    state.plan = await planner.plan(question, planning, seconds=0.9 * plan_seconds(state))
    state.notes += state.plan["notes"]
    run.recording.facts |= {"tools": list(state.plan["tools"]), "strategy": state.plan["strategy"]}
    return state


def plan_seconds(state: PipelineState) -> float:
    """The step's budget: rules need .5 s at most, a model more."""
    return budget_of("plan_by_model" if _asks_model(state) else "plan")


def _asks_model(state: PipelineState) -> bool:
    """Whether a model plans: only if the plan will be executed."""
    return running(state).model is not None and enabled(state, "mcp_tools")


async def step4_tools_debate(state: PipelineState) -> PipelineState:
    """Runs the planned tools and the debate, each if its flag is on."""
    log_step4_flags(state)
    if enabled(state, "mcp_tools"):
        await _tools(state)
    return await debate(state, running(state)) if enabled(state, "debate_mode") else state


def log_step4_flags(state: PipelineState) -> None:
    """Log the parts of the fourth step whose flags are off."""
    if not enabled(state, "mcp_tools"):
        _LOG.info("Step 4 (tools) skipped (mcp_tools flag OFF)")
    if not enabled(state, "debate_mode"):
        _LOG.info("Step 4 (debate) skipped (feature flag OFF)")


async def _tools(state: PipelineState) -> None:
    names = (state.plan or {}).get("tools") or []
    if not names:
        _LOG.info("Step 4 (tools) skipped (no tools in plan)")
        return
    assert state.plan is not None  # noqa: S101 - it names tools
    run = running(state)
    state.tool_results = await execute_plan(
        state.plan,
        registry=run.tools,
        allowed=run.tools_allowed,
        seconds=budget_of("tools") * len(names),
        policy="tools_policy" in run.flags,
    )
    _LOG.info("Step 4 (tools) executed: %d tools", len(state.tool_results))
    run.recording.facts["tools"] = {result["tool"]: result["success"] for result in state.tool_results}


async def step5_compose(state: PipelineState) -> PipelineState:
    """`answer`: by the language model if there is one, else quoted; a debate's answer is left unchanged."""
    return await compose(state, running(state))


async def step6_cite(state: PipelineState) -> PipelineState:
    """Checks every sentence of a model's answer; `sources` are what the answer cites after that."""
    run = running(state)
    if state.model is not None and state.answer:
        state = await verify(state, run)
    state.sources = highlighted(state.search_query or state.query, state.sources)
    show_cases(state, run)
    if state.evidence is not None:
        of_passage = state.evidence.notes
        state.notes += [note for citation in state.sources for note in of_passage.get(citation.chunk_id, ())]
    run.emit("citations", {"citations": state.sources})
    run.recording.facts |= {"citations": len(state.sources)}
    return state


async def step7_respond(state: PipelineState) -> PipelineState:
    """`confidence` and `decision`: calibrated if there is evidence, else by the formula of the acceptance text."""
    if state.evidence is None:
        state.confidence = baseline(state)
        state.decision = state.decision or ("answer" if state.sources else "abstain")
        return state
    judged = state.evidence.confidence
    state.confidence = judged.value
    decision: Decision = judged.decision if state.sources else "abstain"
    if decision != "abstain" and _is_selected(state):
        decision = _judged_by_quotations(state, state.evidence)
    state.reason = state.reason or judged.reason
    state.decision = state.decision or decision
    return state


def _is_selected(state: PipelineState) -> bool:
    """Whether the answer is quotations that were selected, for a question that was judged, by no language model."""
    evidence = state.evidence
    if evidence is None or evidence.confidence is UNJUDGED or evidence.reading is not None:
        return False
    is_written = state.model is not None or hasattr(state, "debate_result") or state.unfinished
    return not is_written and not (evidence.named is not None and evidence.named.asks_only)


def _judged_by_quotations(state: PipelineState, evidence: Evidence) -> Decision:
    """Set `answer_confidence`, and return the decision by it."""
    judged = evidence.confidence
    question = state.search_query or state.query
    whole = Part(question, evidence.passages, evidence.metrics.pack, judged, tuple(state.sources))
    rated = [
        answer_confidence(
            part.question,
            part.citations,
            part.passages,
            statistics=evidence.statistics,
            documents=part.confidence,
            pack=part.pack,
            policy=running(state).policy,
        )
        for part in ([part for part in evidence.parts if part.citations] or [whole])
    ]
    worst = min(rated, key=lambda each: (each.sure, each.value))
    state.answer_confidence = worst.value
    running(state).recording.facts["answer_signals"] = {name: round(value, 4) for name, value in worst.signals.items()}
    if worst.sure and not judged.needs_check:
        return "answer"
    if judged.decision == "answer":
        nearest = stated(
            "nearest_passages",
            "These are the nearest passages; that they answer the question is {probability} probable.",
            probability=f"{worst.value:.0%}",
        )
        state.reason = joined(*(part for part in (worst.lacking, nearest, judged.reason) if part))
    return "review"


def declined_of(state: PipelineState) -> Declined | None:
    """What was searched for a question that the documents do not answer; None when nothing was searched for it."""
    evidence = state.evidence
    if state.decision != "abstain" or evidence is None or evidence.confidence is GREETED:
        return None
    return declined(state.search_query or state.query, evidence.passages, evidence.statistics)


def baseline(state: PipelineState) -> float:
    """The confidence of the acceptance text: the best chunk's score, halved for one source, 0 without any."""
    top = max((passage.ordering_score for passage in state.retrieved_chunks), default=0.0)
    return confidence(top, len(state.sources))


def unjudged(state: PipelineState) -> PipelineState:
    """The state with passages of unknown confidence; without passages, the answer that the search did not finish."""
    if not state.retrieved_chunks:
        late = stated("search_late", "The search took longer than it may.")
        return unfinished(state, running(state), late, searched=False)
    state.degraded.append("confidence")
    return state


async def without_passages(state: PipelineState) -> PipelineState:
    """The fallback of the retrieve step: it uses no database, which may be what does not respond."""
    return unjudged(state)


def check_seconds(state: PipelineState) -> float:
    """The budget of the cite step: checking a model's answer takes longer than numbering quotations."""
    return budget_of("cite" if state.model is None else "check")
