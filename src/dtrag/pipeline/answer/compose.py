"""The compose step: the language model's answer if there is a model, else sentences of the passages."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice

from dtrag.core.answers.sentence_vectors import NOTHING_STORED
from dtrag.core.chat import Reply
from dtrag.core.documents import SearchResult
from dtrag.core.statements import Statement, Statements, stated
from dtrag.core.text.analysis import language
from dtrag.destinations import Outgoing, embeds
from dtrag.errors import LanguageModelFailed, ModelNotAllowed, Overloaded
from dtrag.pipeline import model_calls
from dtrag.pipeline.answer.candidates import Quote
from dtrag.pipeline.answer.citations import cite
from dtrag.pipeline.answer.extractive import PASSAGES, extract, nothing_found
from dtrag.pipeline.answer.generative import MAX_TOKENS, generate, messages
from dtrag.pipeline.answer.parts import answered, not_found
from dtrag.pipeline.answer.quoted_provisions import quoted_whole
from dtrag.pipeline.run_context import Run, question_statistics
from dtrag.pipeline.state import Evidence, PipelineState, running
from dtrag.pipeline.timeouts import EMBEDDING_THREADS, budget_of
from dtrag.ports import Embedder, model_for, speaks
from dtrag.tools.registry import ToolResult

_LOG = logging.getLogger(__name__)

RESERVE = 0.3
"""Seconds of the step's budget reserved for quoting when the model takes too long; quoting takes 20 ms."""
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
"""Characters of one tool's result in a prompt."""


async def compose(state: PipelineState, run: Run) -> PipelineState:
    """Fill `answer`, and `citations` when it is quoted. A finished debate's or decided answer is left unchanged."""
    if state.answer and (hasattr(state, "debate_result") or state.decision or state.unfinished):
        return state
    passages, lines = state.passages[:PASSAGES], tool_lines(state.tool_results)
    # Called alone, without a retrieve step before it, this calls the model with a prompt without passages.
    judged = state.evidence.confidence if state.evidence is not None else None
    if judged is not None and not lines and (not passages or judged.decision == "abstain"):
        return abstained(state, run, judged.reason)
    reading = state.evidence.reading if state.evidence is not None else None
    outgoing = await run.outgoing(run.model)
    if note := withheld_note(passages, outgoing, run):
        state.notes.append(note)
    nothing_sent = bool(passages) and not any(map(outgoing.admits, passages))
    if not lines and (nothing_sent or (reading is not None and reading.answer == "none")):
        return await quote(state, run)
    seconds = max(0.05, budget_of("compose") - RESERVE)
    try:
        if run.model is None:
            prompt = partial(messages, state.query, passages, lines, run.history, outgoing=outgoing)
            reply = await model_calls.call_without_model(prompt, max_tokens=MAX_TOKENS, seconds=seconds)
            if reply is None:
                return await quote(state, run)
        else:
            preceding = state.evidence.preceding if state.evidence is not None else {}
            reply = await generate(
                run,
                run.model,
                state.query,
                passages,
                tool_lines=lines,
                history=run.history,
                preceding=preceding,
                composing="direct" if run.recording.way is None else run.recording.way.composing,
                outgoing=outgoing,
                seconds=seconds,
            )
    except (LanguageModelFailed, Overloaded) as error:
        has_failed = not isinstance(error, ModelNotAllowed)  # a model that must not be called has not failed
        state.notes.append(stated("model_failed" if has_failed else "model_not_allowed", "{error}", error=error))
        return await (quote_after_failure if has_failed else quote)(state, run)
    return await _with_reply(state, run, reply, whole=all(map(outgoing.admits, passages)))


def withheld_note(passages: Sequence[SearchResult], outgoing: Outgoing, run: Run) -> Statement | None:
    """The note on passages that the model may not be sent; None without any."""
    withheld = [passage for passage in passages if not outgoing.admits(passage)]
    if not withheld or run.model is None:
        return None
    names = run.grades.names
    return stated(
        "passages_withheld",
        "{withheld} of {passages} passages were not sent to the language model {model}, but are quoted where they "
        "answer: they have the grade {grade}, and it may be sent {limit} at most (setting grade_limits).",
        withheld=len(withheld),
        passages=len(passages),
        model=run.model.id,
        grade=names[outgoing.grade(withheld) or 0],
        limit=names[outgoing.limit],
    )


async def quote_withheld(state: PipelineState, run: Run) -> PipelineState:
    """The state with a model's answer, followed by quotations of the passages that the model was not sent."""
    outgoing, evidence = await run.outgoing(run.model), state.evidence
    passages = [passage for passage in state.passages[:PASSAGES] if not outgoing.admits(passage)]
    if not passages or state.model is None or evidence is None or evidence.confidence.decision == "abstain":
        return state
    select = partial(extract, state.search_query or state.query, passages, evidence.statistics)
    quotes, _ = await _select(partial(select, pack=evidence.metrics.pack, preceding=evidence.preceding), None)
    text, citations, marked = cite(quotes, passages, evidence.preceding, first=len(state.sources) + 1)
    if text:
        state.sources = (*state.sources, *citations)
        start = len(state.answer or "") + 1
        state.marked = (*state.marked, *((start + first, start + last) for first, last in marked))
        state.answer = f"{state.answer}\n{text}"
        run.emit("replace", {"text": state.answer})
    return state


async def _with_reply(state: PipelineState, run: Run, reply: Reply | None, *, whole: bool) -> PipelineState:
    """`whole`: the model was sent all passages; otherwise the answer may be in the others."""
    if reply is None:
        if not whole:
            return await quote(state, run)
        nothing = stated("model_no_answer", "The language model found no answer in the passages.")
        return abstained(state, run, (nothing,))
    text = reply.text.strip() if reply.finished else whole_sentences(reply.text)
    if not text:
        state.notes.append(
            stated("model_broke_off_early", "The language model's answer broke off in its first sentence.")
        )
        return await quote_after_failure(state, run)
    if not reply.finished:
        state.notes.append(
            stated("model_broke_off", "The language model's answer broke off; its last sentence is left out.")
        )
    state.answer, state.model = text, reply.model
    return state


def whole_sentences(text: str) -> str:
    """The text up to the end of its last complete sentence; "" without one."""
    ends = [match.end() for match in _END.finditer(text)]
    return text[: ends[-1]].strip() if ends else ""


def abstained(state: PipelineState, run: Run, reason: Statements) -> PipelineState:
    """The state with the answer that the documents do not answer, or that a partial search cannot tell."""
    if not {"lexical", "vector"}.isdisjoint(state.degraded):
        partial = stated("search_partial", "A part of the search failed or was late.")
        return unfinished(state, run, (partial, *reason), searched=False)
    state.answer, state.model, state.sources, state.marked = nothing_found(state.query), None, (), ()
    state.decision, state.reason = "abstain", reason
    run.emit("replace", {"text": state.answer})
    return state


def unfinished(state: PipelineState, run: Run, reason: Statements, *, searched: bool) -> PipelineState:
    """The state with the answer that there was not enough time; `searched`: the search finished, composing did not.

    It says nothing about the documents, and must not be queued for review, remembered or cached as an answer.
    """
    texts = _TOO_LATE if searched else _UNFINISHED
    state.answer = texts["ko" if language(state.query) == "ko" else "en"]
    state.model, state.sources, state.marked = None, (), ()
    state.decision, state.reason, state.unfinished = "review", reason, True
    run.emit("replace", {"text": state.answer})
    return state


async def quote_after_failure(state: PipelineState, run: Run, *, by_meaning: bool = True) -> PipelineState:
    """Quotations in place of a failed model's answer, after a sentence that says so."""
    state.degraded.append("llm")
    state.model = None
    state = await quote(state, run, by_meaning=by_meaning)
    head = _UNAVAILABLE["ko" if language(state.query) == "ko" else "en"]
    _put_above(state, head)
    run.emit("replace", {"text": state.answer})
    return state


async def quote(state: PipelineState, run: Run, *, by_meaning: bool = True) -> PipelineState:
    """Exact, numbered quotations of the sentences that answer, after the results of calculations.

    Passages that do not answer are not quoted: where a model has named those that do, no others are. The embedder helps
    to select sentences, unless `by_meaning` is False.
    """
    question = state.search_query or state.query
    irrelevant = state.evidence is not None and state.evidence.confidence.decision == "abstain"
    passages = [] if irrelevant else state.passages
    reading = state.evidence.reading if state.evidence is not None else None
    if reading is not None and reading.named:
        passages = passages[: len(reading.named)]
    code = language(question)
    grade = (await run.outgoing(None)).grade(passages) or 0
    by_meaning = by_meaning and embeds(run.embedder, grade)
    usable = by_meaning and speaks(run.embedder, code, deciding=True) and "vector" not in state.degraded
    embedder = model_for(run.embedder, code) if usable else None
    if state.evidence is not None:
        statistics = state.evidence.statistics
    else:
        _, statistics = await question_statistics(question, run)
    pack = state.evidence.metrics.pack if state.evidence is not None else None
    preceding = state.evidence.preceding if state.evidence is not None else {}
    named = state.evidence.named if state.evidence is not None else None
    if named is not None and named.asks_only:
        quotes, failed = quoted_whole(named, passages), False
    elif state.evidence is not None and state.evidence.parts and reading is None:
        return await _quote_parts(state, run, state.evidence)
    else:
        followed = state.evidence.followed if state.evidence is not None else ()
        passages += state.evidence.cited if state.evidence is not None and passages else ()
        select = partial(
            extract,
            question,
            passages,
            statistics,
            pack=pack,
            preceding=preceding,
            stored=state.evidence.sentence_vectors if state.evidence is not None else NOTHING_STORED,
            followed=followed,
        )
        quotes, failed = await _select(select, embedder)
    if failed:
        state.degraded.append("compose")
    text, state.sources, marked = cite(quotes, passages, preceding)
    calculation = ((state.plan or {}).get("inputs") or {}).get("calculator") or {}
    calculated = [
        f"{calculation.get('expression', '')} = {result['result']['text']}".removeprefix(" = ")
        for result in state.tool_results
        if result["success"] and result["tool"] == "calculator"
    ]
    if not calculated and not text:
        return abstained(state, run, state.reason)
    state.answer, state.marked = text, marked
    if calculated:
        _put_above(state, "\n".join(calculated))
        state.decision = "answer" if text else "review"
    run.emit("replace", {"text": state.answer})
    return state


async def _quote_parts(state: PipelineState, run: Run, evidence: Evidence) -> PipelineState:
    """The provision of each part of the question, or that there is none; then the decision is at most `review`."""
    parts, quotes, passages = await asyncio.to_thread(answered, evidence)
    text, state.sources, state.marked = cite([each for part in quotes for each in part], passages, evidence.preceding)
    if not text:
        return abstained(state, run, state.reason)
    citations, counts = iter(state.sources), [*map(len, quotes), *(0 for _ in parts[len(quotes) :])]
    parts = [
        replace(part, citations=tuple(islice(citations, count))) for part, count in zip(parts, counts, strict=True)
    ]
    missing, judged = [not_found(part.question) for part in parts if part.absent], evidence.confidence
    if missing:
        judged = replace(judged, needs_check=True, reason=(*missing, *judged.reason))
    state.evidence = replace(evidence, parts=parts, confidence=judged)
    state.answer = "\n".join((text, *map(str, missing)))
    run.emit("replace", {"text": state.answer})
    return state


def _put_above(state: PipelineState, lines: str) -> None:
    """Put lines above the answer; what is marked in it moves along."""
    state.marked = tuple((start + len(lines) + 1, end + len(lines) + 1) for start, end in state.marked)
    state.answer = f"{lines}\n{state.answer}" if state.answer else lines


async def quoted_without_embedder(state: PipelineState) -> PipelineState:
    """The fallback of the compose step: fast and deterministic quotations."""
    run = running(state)
    return await (quote if run.model is None else quote_after_failure)(state, run, by_meaning=False)


async def _select(
    select: Callable[[Embedder | None], list[Quote]], embedder: Embedder | None
) -> tuple[list[Quote], bool]:
    """The sentences to quote, and whether the embedder failed; then they are selected by words alone."""
    if embedder is not None:
        try:
            return await EMBEDDING_THREADS.run(select, embedder), False
        except Exception:  # noqa: BLE001 - a boundary with an alternative, reported in `degraded`
            _LOG.warning("the embedder failed while composing", exc_info=True)
    return await asyncio.to_thread(select, None), embedder is not None


def tool_lines(results: Sequence[ToolResult]) -> list[str]:
    """The results of successful tools that found something, a line each, for a prompt."""
    return [
        f"{result['tool']}: {json.dumps(result['result'], ensure_ascii=False, default=str)[:MAX_TOOL_LINE]}"
        for result in results
        if result["success"] and not _is_empty(result["result"])
    ]


def _is_empty(result: object) -> bool:
    return not result or (isinstance(result, Mapping) and result.get("results") == [])
