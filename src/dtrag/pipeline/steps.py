"""The seven steps: each takes the state, fills its fields and returns it; each can be called alone.

A state without a `run` works with the open app and the whole tree. A step whose flag is off leaves the state unchanged.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from dtrag.core.answers.answer_confidence import answer_confidence
from dtrag.core.answers.passage_confidence import confidence
from dtrag.core.answers.reasons import Decision, declined
from dtrag.core.documents import Declined
from dtrag.core.statements import stated
from dtrag.destinations import allows, embeds
from dtrag.errors import DatabaseUnavailable, InvalidInput, LanguageModelFailed, Overloaded
from dtrag.pipeline import planner
from dtrag.pipeline.answer.citations import highlighted
from dtrag.pipeline.answer.compose import compose, quote_withheld
from dtrag.pipeline.answer.grounding import verify
from dtrag.pipeline.debate.engine import debate
from dtrag.pipeline.question import by_rules, intent_of, may_suggest, standalone, suggested_words
from dtrag.pipeline.recall import show_cases
from dtrag.pipeline.retrieve import GREETED, UNJUDGED
from dtrag.pipeline.run_context import Run
from dtrag.pipeline.state import Evidence, Part, PipelineState, enabled, running
from dtrag.pipeline.timeouts import budget_of
from dtrag.tools.executor import execute_plan

_LOG = logging.getLogger(__name__)
MOST_UNCERTAIN = 0.5
"""Confidence of an answer that quotes an uncertain figure of a scanned page, at most."""


def rewrites(state: PipelineState) -> bool:
    """Whether the question may be a follow-up, or have official words that a model knows."""
    run = running(state)
    return bool(run.history) or may_suggest(state.query, run)


async def rewrite(state: PipelineState) -> PipelineState:
    """Sets `search_query` for a follow-up question: the question rewritten to be understood alone.

    At the same time a language model suggests `official_words`; if it fails or is late, there are none.
    """
    run = running(state)
    await run.index.snapshot()  # grades as they are now: nothing was searched yet
    rewritten, words = await asyncio.gather(standalone(state.query, run.history, run), _official_words(state, run))
    state.official_words = words
    state.search_query_grade = (await run.outgoing(None)).grade(messages=run.history) or 0
    if words and run.recording.keeps_text:
        run.recording.facts["official_words"] = ", ".join(words)
    return _with_query(state, rewritten)


async def _official_words(state: PipelineState, run: Run) -> tuple[str, ...]:
    question, _ = by_rules(state.query, run.history)
    outgoing = await run.outgoing(run.model)
    grade = outgoing.grade(messages=run.history) if question != state.query else 0
    if not allows(outgoing.limit, grade or 0):
        question, grade = state.query, 0
    try:
        return await suggested_words(question, run, grade)
    except (LanguageModelFailed, Overloaded, DatabaseUnavailable) as error:
        _LOG.info("no official words: %s", error)
        state.degraded.append("official_words")
        return ()


async def rewrite_by_rules(state: PipelineState) -> PipelineState:
    """The fallback of the rewrite step."""
    run = running(state)
    state.search_query_grade = (await run.outgoing(None)).grade(messages=run.history) or 0
    return _with_query(state, by_rules(state.query, run.history))


def _with_query(state: PipelineState, rewritten: tuple[str, str]) -> PipelineState:
    question, note = rewritten
    if question != state.query and embeds(running(state).embedder, state.search_query_grade):
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


async def step3_plan(state: PipelineState) -> PipelineState:
    """`plan`: which tools the question needs, each with its input."""
    run = running(state)
    await run.prepare()
    planning = run if _asks_model(state) else replace(run, model=None)
    question, grade = state.question_for(planner.lowest_limit(planning))
    state.plan = await planner.plan(question, planning, grade=grade, seconds=0.9 * plan_seconds(state))
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
        state = await quote_withheld(await verify(state, run), run)
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
    check_recognised(state)
    return state


def check_recognised(state: PipelineState) -> None:
    """An answer that quotes a figure of which OCR is not sure has to be checked on the page, which its notes name."""
    for citation in state.sources:
        for figure in citation.uncertain_figures:
            text = (
                "The figure {figure} in [{number}] was read by OCR (text recognition) with a confidence of "
                "{confidence}: check it on page {page} of {title}."
            )
            note = stated(
                "ocr_figure",
                text,
                figure=figure.text,
                number=citation.number,
                confidence=f"{figure.confidence}%",
                page=citation.page or 1,
                title=citation.title,
            )
            state.notes.append(note)
            state.confidence = min(state.confidence, MOST_UNCERTAIN, figure.confidence / 100)
            state.decision = "review" if state.decision == "answer" else state.decision
            if state.answer_confidence is not None:
                state.answer_confidence = min(state.answer_confidence, state.confidence)


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
        state.reason = (*((worst.lacking,) if worst.lacking is not None else ()), nearest, *judged.reason)
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


def check_seconds(state: PipelineState) -> float:
    """The budget of the cite step: checking a model's answer takes longer than numbering quotations."""
    return budget_of("cite" if state.model is None else "check")
