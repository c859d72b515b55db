"""The seven steps: each takes the state, fills its fields and gives it back; each can be called alone.

A state without a `run` works with the open app and the whole tree. What a step leaves out because a flag is off is left
exactly as it was.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from dtrag.concurrency import limit_clock
from dtrag.core.access.visible_tree import seen_version
from dtrag.core.answers.confidence import SETTING, Confidence, confidence, confidence_of
from dtrag.core.ranking.bm25 import LexicalStatistics
from dtrag.errors import InvalidInput
from dtrag.pipeline.answer.citations import chunks_of, sources_of
from dtrag.pipeline.answer.compose import compose, unfinished
from dtrag.pipeline.answer.grounding import verified
from dtrag.pipeline.debate.step import debate
from dtrag.pipeline.intent import intent_of
from dtrag.pipeline.plan import planner
from dtrag.pipeline.rewrite import by_rules, standalone
from dtrag.pipeline.run import Run, counted, of_active_app
from dtrag.pipeline.state import Evidence, PipelineState
from dtrag.pipeline.timeouts import budget_of
from dtrag.pipeline.tree_version import paths_in_active_tree
from dtrag.settings import active_flags
from dtrag.tools.executor import execute_plan

_LOG = logging.getLogger(__name__)

SEARCHING = 0.75
"""Share of the retrieve step's time that the search has: what it has found by then is answered from."""
COUNTING = 0.95
"""Share of it by which the counts of the question's words must be there, without which nothing can be judged."""
UNJUDGED = Confidence(0.0, "review", "How far the passages answer could not be judged in time: check the sources.")


def running(state: PipelineState) -> Run:
    """What the state's run works with; the open app's where it has none. Raises `NoActiveApp`."""
    if state.run is None:
        state.run = of_active_app()
    return state.run


def enabled(state: PipelineState, name: str) -> bool:
    """Whether the flag was on when the state's run began; without a run, whether it is on now."""
    return name in (active_flags() if state.run is None else state.run.flags)


async def rewrite(state: PipelineState) -> PipelineState:
    """A follow-up question becomes one that can be searched for alone."""
    run = running(state)
    return _searching_for(state, await standalone(state.query, run.history, run))


async def rewrite_by_rules(state: PipelineState) -> PipelineState:
    """What stands in for a rewrite step that took too long."""
    return _searching_for(state, by_rules(state.query, running(state).history))


def _searching_for(state: PipelineState, found: tuple[str, str]) -> PipelineState:
    question, note = found
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


async def step2_retrieve(state: PipelineState) -> PipelineState:
    """`retrieved_chunks`, and the evidence they are made of with how far it answers the question."""
    run = running(state)
    started, budget = limit_clock(), budget_of("retrieve")
    question = state.search_query or state.query
    filters = dict(run.filters or {})
    paths = await paths_in_active_tree(state, run)
    if paths is not None:
        filters["taxonomy_paths"] = paths
    passages, metrics = await run.engine.search(
        question,
        run.retrieved,
        filters,
        *run.candidates,
        scope=run.scope,
        highlight=False,
        exact_candidates=True,
        seconds=SEARCHING * budget,
    )
    state.degraded += metrics.degraded
    state.retrieved_chunks = chunks_of(passages)
    # What is answered from if the counts are not there in time.
    state.evidence = Evidence(tuple(passages), LexicalStatistics(), metrics, UNJUDGED)
    try:
        async with asyncio.timeout(COUNTING * budget - (limit_clock() - started)):
            snapshot, statistics = await counted(question, run)
    except TimeoutError:
        return unjudged(state)
    found = confidence_of(question, passages, statistics, snapshot.settings.get(SETTING))
    state.evidence = Evidence(tuple(passages), statistics, metrics, found)
    state.taxonomy_version = seen_version(snapshot.taxonomy, run.scope.resolved(snapshot.taxonomy))
    state.notes += metrics.notes
    run.recording.facts |= {
        "lexical_candidates": metrics.bm25_candidates,
        "vector_candidates": metrics.vector_candidates,
        "passages": len(passages),
        "cache_hit": metrics.cache_hit,
        "confidence": found.value,
    }
    return state


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
    """The step's budget: rules need .5 s at most, a model that is asked needs more."""
    return budget_of("plan_by_model" if _asks_model(state) else "plan")


def _asks_model(state: PipelineState) -> bool:
    """No model is paid for a plan that nobody carries out."""
    return running(state).model is not None and enabled(state, "mcp_tools")


async def step4_tools_debate(state: PipelineState) -> PipelineState:
    """Runs the planned tools and the debate, each if its flag is on; what is off leaves the state as it was."""
    log_step4_flags(state)
    if enabled(state, "mcp_tools"):
        await _tools(state)
    return await debate(state, running(state)) if enabled(state, "debate_mode") else state


def log_step4_flags(state: PipelineState) -> None:
    """Log which parts of the fourth step are skipped because their flags are off."""
    if not enabled(state, "mcp_tools"):
        _LOG.info("Step 4 (tools) skipped (mcp_tools flag OFF)")
    if not enabled(state, "debate_mode"):
        _LOG.info("Step 4 (debate) skipped (feature flag OFF)")


async def _tools(state: PipelineState) -> None:
    names = (state.plan or {}).get("tools") or []
    if not names:
        _LOG.info("Step 4 (tools) skipped (no tools in plan)")
        return
    assert state.plan is not None  # noqa: S101 - it has names
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
    """`answer`: by the language model where there is one, else quoted; a debate's answer is left as it is."""
    return await compose(state, running(state))


async def step6_cite(state: PipelineState) -> PipelineState:
    """Checks every sentence that a model wrote; `citations` and `sources` are what the answer really cites."""
    run = running(state)
    if state.model is not None and state.answer:
        state = await verified(state, run)
    state.sources = sources_of(state)
    run.emit("citations", {"citations": state.sources})
    run.recording.facts |= {"citations": len(state.sources)}
    return state


async def step7_respond(state: PipelineState) -> PipelineState:
    """`confidence` and `decision`: calibrated where the retrieve step found evidence, else the formula of the text."""
    if state.evidence is None:
        state.confidence = baseline(state)
        state.decision = state.decision or ("answer" if state.citations else "abstain")
        return state
    found = state.evidence.confidence
    state.confidence = found.value
    state.reason = state.reason or found.reason
    state.decision = state.decision or (found.decision if state.citations else "abstain")
    return state


def baseline(state: PipelineState) -> float:
    """The confidence of the acceptance text: the best chunk's score, halved for one source, 0 without any."""
    top = max((float(chunk.get("score", 0.0)) for chunk in state.retrieved_chunks), default=0.0)
    return confidence(top, len(state.sources))


def unjudged(state: PipelineState) -> PipelineState:
    """The state with passages of which nobody knows how far they answer; without any, the search is not finished."""
    if not state.retrieved_chunks:
        return unfinished(state, running(state), "The search took longer than it may.", looked=False)
    state.degraded.append("confidence")
    return state


async def without_passages(state: PipelineState) -> PipelineState:
    """The alternative to a retrieve step that took too long: it asks nothing of a database that does not answer."""
    return unjudged(state)


def check_seconds(state: PipelineState) -> float:
    """The budget of citing: numbering quotations takes no time, checking what a model wrote does."""
    return budget_of("cite" if state.model is None else "check")
