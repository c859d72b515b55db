"""What a model wrote, held against the passages it cites, before anybody may rely on it."""

from __future__ import annotations

import asyncio
import logging

from dtrag.core.text.analysis import language
from dtrag.pipeline.answer.compose import quote, tool_lines
from dtrag.pipeline.answer.extractive import PASSAGES
from dtrag.pipeline.answer.grounding import Checked, check
from dtrag.pipeline.run import Run
from dtrag.pipeline.sources import passages_of
from dtrag.pipeline.state import PipelineState
from dtrag.pipeline.threads import beside
from dtrag.pipeline.timeouts import budget_of
from dtrag.ports import speaks

_LOG = logging.getLogger(__name__)

_QUICK = 0.6
"""Share of the step's budget that looking by meaning may take, too; by words alone takes some 10 ms."""
UNSUPPORTED = "The language model's answer was not supported by the passages and is not shown."


async def verified(state: PipelineState, run: Run) -> PipelineState:
    """The checked answer with its citations; quotations where no sentence of the answer is supported."""
    passages = passages_of(state)[:PASSAGES]
    assert state.answer is not None  # noqa: S101 - the caller has looked
    checked = await asyncio.to_thread(check, state.answer, passages)
    if not all(sentence.supported for sentence in checked.sentences):
        checked = await _by_meaning(state, run) or checked
    kept = [sentence for sentence in checked.sentences if sentence.supported]
    run.recording.facts |= {"sentences": len(checked.sentences), "supported": len(kept)}
    if not kept and not tool_lines(state.tool_results):
        state.notes.append(UNSUPPORTED)
        state.model = None
        state = await quote(state, run)
        state.decision = "review" if state.citations else "abstain"
        return state
    if len(kept) < len(checked.sentences):
        state.decision = "review"
        state.reason = f"{len(checked.sentences) - len(kept)} of {len(checked.sentences)} sentences have no support."
    if checked.text != state.answer:
        run.emit("replace", {"text": checked.text})
    state.answer, state.citations = checked.text, checked.citations
    state.notes += checked.notes
    return state


async def _by_meaning(state: PipelineState, run: Run) -> Checked | None:
    """The check with the embedder's help; None where there is none, it takes too long, or fails (the named seam)."""
    answer = state.answer or ""
    if run.embedder is None or not speaks(run.embedder, language(answer)) or "vector" in state.degraded:
        return None
    passages = passages_of(state)[:PASSAGES]
    try:
        async with asyncio.timeout(_QUICK * budget_of("check")):
            return await beside(check, answer, passages, embedder=run.embedder)
    except TimeoutError:
        return None
    except Exception:  # noqa: BLE001 - the seam: words alone decide then
        _LOG.warning("the embedder failed while an answer was checked", exc_info=True)
        return None
