"""The debate in step 4: the conditions for one, and what happens when it does not finish."""

from __future__ import annotations

import logging

from dtrag.core.statements import CodedText, stated
from dtrag.errors import InvalidInput, LanguageModelFailed, ModelNotAllowed
from dtrag.pipeline.answer.compose import tool_lines
from dtrag.pipeline.answer.extractive import PASSAGES
from dtrag.pipeline.debate.engine import DebateEngine
from dtrag.pipeline.run import Run
from dtrag.pipeline.state import PipelineState
from dtrag.pipeline.timeouts import budget_of

_LOG = logging.getLogger(__name__)
_UNFINISHED = "The debate did not finish ({reason}); the answer was composed without it."
SURE = 0.9
"""Calibrated confidence from which on there is no debate: at most one in ten such answers is wrong, so ten debates
(fifty model calls) could improve at most one answer."""


def debate_policy(setting: str) -> str:
    """The value of DTRAG_DEBATE: always or auto. Raises `InvalidInput` for another one."""
    if setting not in {"always", "auto"}:
        raise InvalidInput(f"DTRAG_DEBATE is {setting[:40]!r}, but must be always or auto.")
    return setting


async def debate(state: PipelineState, run: Run) -> PipelineState:
    """The state with the debate's answer; without it if there is no debate, with a note if it fails."""
    reason = _reason_against(state, run)
    if reason is not None:
        _LOG.info("Step 4 (debate) skipped (%s)", reason)
        run.recording.facts["debate"] = f"skipped: {reason}"
        return state
    context = [
        {"text": passage.text, "title": passage.title, "chunk_id": passage.chunk_id}
        for passage in state.passages[:PASSAGES]
    ]
    try:
        result = await DebateEngine(run).run_debate(
            state.search_query or state.query, context, timeout=budget_of("debate")
        )
    except TimeoutError:
        _LOG.warning("Debate timeout - using initial answer (from step5)")
        return _without_debate(state, run, stated("debate_late", _UNFINISHED, reason="timeout"))
    except ModelNotAllowed as error:
        # A used-up budget is not a failure.
        return _without_debate(state, run, stated("debate_not_allowed", _UNFINISHED, reason=error), degraded=False)
    except LanguageModelFailed as error:
        _LOG.warning("Debate failed - using initial answer (from step5): %s", error)
        return _without_debate(state, run, stated("debate_failed", _UNFINISHED, reason="failed"))
    if result.final_answer is None:
        state.notes += result.notes
        return _without_debate(state, run, stated("debate_short", _UNFINISHED, reason="it ended after one round"))
    state.answer, state.debate_result = result.final_answer, result
    if result.answered:
        state.model = " + ".join(result.models)
    else:
        state.decision = "abstain"
        state.reason = stated("debate_no_answer", "The debate found no answer in the passages.")
    state.step_timings["debate"] = result.elapsed
    state.notes += result.notes
    run.recording.facts["debate"] = f"{result.rounds} rounds, {result.llm_calls} calls"
    run.emit("token", {"text": result.final_answer})
    return state


def _without_debate(state: PipelineState, run: Run, note: CodedText, *, degraded: bool = True) -> PipelineState:
    """The state with a note about the debate that gave no answer."""
    state.degraded += ["debate"] if degraded else []
    state.notes.append(note)
    run.recording.facts["debate"] = note.statements[0].values["reason"]
    return state


def _reason_against(state: PipelineState, run: Run) -> str | None:
    """Why there is no debate, for the log; None if there is one."""
    judged = state.evidence.confidence if state.evidence is not None else None
    reasons = (
        (not run.debate_allowed, "not allowed here"),
        (run.model is None, "no language model"),
        (not state.retrieved_chunks, "no passages"),
        (bool(tool_lines(state.tool_results)), "a tool has answered"),
        (judged is not None and judged.decision == "abstain", "the passages do not answer"),
        (
            judged is not None and run.debates == "auto" and not worth_a_debate(judged.value, judged.decision),
            "the confidence leaves no doubt",
        ),
    )
    return next((reason for holds, reason in reasons if holds), None)


def worth_a_debate(confidence: float, decision: str) -> bool:
    """Whether a debate may improve an answer with this calibrated confidence in [0, 1].

    `review`: always. `abstain`: never, because two agents with passages that do not answer only talk each other into an
    answer. `answer`: below SURE.
    """
    if decision == "abstain":
        return False
    return decision == "review" or confidence < SURE
