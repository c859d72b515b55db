"""The fifth step: the model's answer where there is a model, sentences of the passages where there is none."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

from dtrag.core.chat import Reply
from dtrag.core.documents import SearchResult
from dtrag.core.ranking.bm25 import LexicalStatistics
from dtrag.core.text.analysis import language
from dtrag.errors import LanguageModelFailed, ModelNotAllowed, Overloaded
from dtrag.pipeline import model_calls
from dtrag.pipeline.answer.citations import cite, passages_of
from dtrag.pipeline.answer.extractive import PASSAGES, Quote, extract, nothing_found
from dtrag.pipeline.answer.generative import MAX_TOKENS, generate, messages
from dtrag.pipeline.run import Run, counted
from dtrag.pipeline.state import PipelineState
from dtrag.pipeline.timeouts import EMBEDDING_THREADS, budget_of
from dtrag.ports import Embedder, speaks

_LOG = logging.getLogger(__name__)

RESERVE = 0.3
"""Seconds of the step's budget that are kept for quoting when the model takes too long; quoting takes 20 ms."""
_UNAVAILABLE = {
    "ko": "언어 모델을 쓸 수 없어 문서의 문장을 그대로 인용합니다 (LLM unavailable).",
    "en": "The language model is unavailable; these sentences are quoted from the documents.",
}
_END = re.compile(r"[.!?。…](?:[\"'”’)]*)(?:\s*\[\d+\])*(?=\s|$)|\[\d+\]\.?(?=\s|$)")
_UNFINISHED = {
    "ko": "검색을 끝내지 못해 문서에 이 질문의 답이 있는지 알 수 없습니다. 다시 질문해 주세요.",
    "en": "The search was not finished, so whether the documents answer this question is not known. Please ask again.",
}
_TOO_LATE = {
    "ko": "제시간에 답변을 만들지 못했습니다. 다시 질문해 주세요.",
    "en": "No answer could be made in time. Please ask again.",
}
MAX_TOOL_LINE = 2_000
"""Characters of one tool's result that a model is shown."""


async def compose(state: PipelineState, run: Run) -> PipelineState:
    """Fill `answer`; with `citations` when it is quoted. The answer of a finished debate stays."""
    if state.answer and (hasattr(state, "debate_result") or state.decision == "abstain" or state.unfinished):
        return state
    passages, lines = passages_of(state)[:PASSAGES], tool_lines(state.tool_results)
    # Called alone, without a retrieve step before it, the model is asked all the same and told of no passages.
    found = state.evidence.confidence if state.evidence is not None else None
    if found is not None and not lines and (not passages or found.decision == "abstain"):
        return abstained(state, run, found.reason)
    seconds = max(0.05, budget_of("compose") - RESERVE)
    try:
        if run.model is None:
            prompt = messages(state.query, passages, lines, run.history)
            reply = await model_calls.call_without_model(prompt, max_tokens=MAX_TOKENS, seconds=seconds)
            if reply is None:
                return await quote(state, run)
        else:
            reply = await generate(
                run, run.model, state.query, passages, tool_lines=lines, history=run.history, seconds=seconds
            )
    except (LanguageModelFailed, Overloaded) as error:
        state.notes.append(str(error))
        # What may not be called has not failed.
        return await (quote if isinstance(error, ModelNotAllowed) else quote_instead)(state, run)
    return await _written(state, run, reply)


async def _written(state: PipelineState, run: Run, reply: Reply | None) -> PipelineState:
    if reply is None:
        return abstained(state, run, "The language model found no answer in the passages.")
    text = reply.text.strip() if reply.finished else whole_sentences(reply.text)
    if not text:
        state.notes.append("The language model's answer broke off in its first sentence.")
        return await quote_instead(state, run)
    if not reply.finished:
        state.notes.append("The language model's answer broke off; its last sentence is left out.")
    state.answer, state.model = text, reply.model
    return state


def whole_sentences(text: str) -> str:
    """The text up to the end of its last sentence that has one; "" when none has."""
    ends = [match.end() for match in _END.finditer(text)]
    return text[: ends[-1]].strip() if ends else ""


def abstained(state: PipelineState, run: Run, reason: str) -> PipelineState:
    """The state with the answer that there is none; or that this is not known, as a part of the search is missing."""
    if not {"lexical", "vector"}.isdisjoint(state.degraded):
        return unfinished(state, run, f"A part of the search failed or was late. {reason}", looked=False)
    state.answer, state.model, state.citations = nothing_found(state.query), None, ()
    state.decision, state.reason = "abstain", reason
    run.emit("replace", {"text": state.answer})
    return state


def unfinished(state: PipelineState, run: Run, reason: str, *, looked: bool) -> PipelineState:
    """The state with the answer that there was not time enough; `looked`: the search was finished, only no answer made.

    It says nothing about the documents, and so is nobody's answer: not to be queued, remembered or cached as one.
    """
    texts = _TOO_LATE if looked else _UNFINISHED
    state.answer, state.model, state.citations = texts["ko" if language(state.query) == "ko" else "en"], None, ()
    state.decision, state.reason, state.unfinished = "review", reason, True
    run.emit("replace", {"text": state.answer})
    return state


async def quote_instead(state: PipelineState, run: Run, *, by_meaning: bool = True) -> PipelineState:
    """Quotations where a model should have answered, and a first sentence that says so."""
    state.degraded.append("llm")
    state.model = None
    state = await quote(state, run, by_meaning=by_meaning)
    head = _UNAVAILABLE["ko" if language(state.query) == "ko" else "en"]
    state.answer = f"{head}\n{state.answer}"
    run.emit("replace", {"text": state.answer})
    return state


async def quote(state: PipelineState, run: Run, *, by_meaning: bool = True) -> PipelineState:
    """The sentences of the passages that answer, numbered, to the letter; results of calculations before them.

    Nothing is quoted from passages that do not answer. The embedder helps to choose, unless `by_meaning` is False.
    """
    question = state.search_query or state.query
    unfit = state.evidence is not None and state.evidence.confidence.decision == "abstain"
    passages = [] if unfit else passages_of(state)
    helps = by_meaning and speaks(run.embedder, language(question)) and "vector" not in state.degraded
    speaker = run.embedder if helps else None
    statistics = state.evidence.statistics if state.evidence is not None else (await counted(question, run))[1]
    quotes, failed = await _chosen(question, passages, statistics, speaker)
    if failed:
        state.degraded.append("compose")
    text, state.citations = cite(quotes, passages)
    asked = ((state.plan or {}).get("inputs") or {}).get("calculator") or {}
    calculated = [
        f"{asked.get('expression', '')} = {result['result']['text']}".removeprefix(" = ")
        for result in state.tool_results
        if result["success"] and result["tool"] == "calculator"
    ]
    if not calculated and not text:
        return abstained(state, run, state.reason)
    state.answer = "\n".join((*calculated, *([text] if text else [])))
    if calculated:
        state.decision = "answer" if text else "review"
    run.emit("replace", {"text": state.answer})
    return state


async def quoted_without_embedder(state: PipelineState, run: Run) -> PipelineState:
    """What stands in for a step that took too long: quick, and the same every time."""
    return await (quote if run.model is None else quote_instead)(state, run, by_meaning=False)


async def _chosen(
    question: str, passages: Sequence[SearchResult], statistics: LexicalStatistics, embedder: Embedder | None
) -> tuple[list[Quote], bool]:
    """The named seam where the embedder may fail while sentences are chosen: they are chosen without it then."""
    if embedder is not None:
        try:
            return await EMBEDDING_THREADS.run(extract, question, passages, statistics, embedder), False
        except Exception:  # noqa: BLE001 - the seam: the failure is shown as `degraded`
            _LOG.warning("the embedder failed while composing", exc_info=True)
    return await asyncio.to_thread(extract, question, passages, statistics), embedder is not None


def tool_lines(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """What succeeded and found something, a line each, for a model to read."""
    return [
        f"{result['tool']}: {json.dumps(result['result'], ensure_ascii=False, default=str)[:MAX_TOOL_LINE]}"
        for result in results
        if result["success"] and not _found_nothing(result["result"])
    ]


def _found_nothing(result: object) -> bool:
    return not result or (isinstance(result, Mapping) and result.get("results") == [])
