"""Debates: rounds of two agents and a synthesis, within limits of time and model calls.

`debate` is the debate of step 4: the conditions for one, and what happens when it does not finish.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from dtrag.concurrency import limit_clock
from dtrag.core.chat import Usage
from dtrag.core.debate import DebateResult
from dtrag.core.statements import Statement, stated
from dtrag.destinations import Outgoing, limit_of
from dtrag.errors import InvalidInput, LanguageModelFailed, ModelNotAllowed, Overloaded
from dtrag.pipeline import model_calls
from dtrag.pipeline.answer.compose import tool_lines
from dtrag.pipeline.answer.extractive import PASSAGES, nothing_found
from dtrag.pipeline.debate.agent import (
    Argument,
    DebateAgent,
    argument_of,
    grade_of,
    merged,
    required,
    same,
    synthesis_prompt,
    texts,
)
from dtrag.pipeline.run_context import DebateEvent, Run, of_active_app
from dtrag.pipeline.state import PipelineState
from dtrag.pipeline.timeouts import budget_of

_LOG = logging.getLogger(__name__)

MAX_ROUNDS = 3
MAX_CALLS = 2 * MAX_ROUNDS + 1
"""Calls of the longest debate: two per round, and the synthesis. The default of two rounds takes five."""
SYNTHESIS_TOKENS = 800

Failure = LanguageModelFailed | Overloaded
MAX_QUERY = 1_000
"""Characters of the question in the prompts."""
MAX_PASSAGES = 10
"""Passages in the prompts; the pipeline passes five."""


class DebateEngine:
    """Runs debates with the models of a run (default: that of the open app).

    `max_calls` limits the calls of one debate. Rounds beyond it are left out, with a note in the result.
    """

    def __init__(self, run: Run | None = None, *, max_calls: int = MAX_CALLS) -> None:
        if max_calls < 2:
            raise InvalidInput("A debate takes at least 2 calls: one of each agent.")
        self._run = run
        self._max_calls = max_calls

    async def run_debate(
        self,
        query: str,
        context: Sequence[Mapping[str, Any] | str],
        max_rounds: int = 2,
        timeout: float = 10.0,  # noqa: ASYNC109 - the name in the specification of debates
    ) -> DebateResult:
        """The debate of a question over passages (dicts with `text`), in at most `timeout` seconds.

        One round takes two calls, two rounds and the synthesis five, three rounds and the synthesis seven. A debate of
        one round has no synthesis: its `final_answer` is None. It also ends after one round, with a note, when an agent
        fails in it or no time is left for the second one. Raises `TimeoutError` when the time is over (all calls have
        ended then), `LanguageModelFailed` when neither agent answered, and `InvalidInput` for an empty question,
        passages without text, fewer than one round, or without a model.
        """
        started = limit_clock()
        run = of_active_app() if self._run is None else self._run
        progress = begin(query, context, started + timeout)
        agents = (DebateAgent("affirmative", run=run), DebateAgent("critical", run=run))
        rounds = self._allowed_rounds(max_rounds, progress)
        with _observed(run, progress):
            try:
                async with asyncio.timeout(timeout) as deadline:
                    final, answered = await _run_rounds(run, agents, progress, rounds)
            except (TimeoutError, LanguageModelFailed) as error:
                if progress.remaining and not deadline.expired():
                    raise
                raise TimeoutError(_timeout_message(timeout)) from error
            if not progress.remaining:
                raise TimeoutError(_timeout_message(timeout))
        result = result_of(progress, final, answered, limit_clock() - started)
        _LOG.info("Debate finished: %d rounds, %d calls, %.2fs", result.rounds, result.llm_calls, result.elapsed)
        return result

    def _allowed_rounds(self, requested: int, progress: DebateProgress) -> int:
        if isinstance(requested, bool) or not isinstance(requested, int) or requested < 1:
            raise InvalidInput(f"max_rounds is {requested!r}, but must be a whole number from 1 to {MAX_ROUNDS}.")
        rounds = min(requested, MAX_ROUNDS)
        if requested > MAX_ROUNDS:
            progress.notes.append(
                stated(
                    "debate_rounds_limited",
                    "A debate has at most {most} rounds; {requested} were requested.",
                    most=MAX_ROUNDS,
                    requested=requested,
                )
            )
        while rounds > 1 and 2 * rounds + 1 > self._max_calls:
            rounds -= 1
        if rounds < min(requested, MAX_ROUNDS):
            progress.notes.append(
                stated(
                    "debate_calls_limited",
                    "{calls} calls allow a debate of {rounds} rounds; the others were left out.",
                    calls=self._max_calls,
                    rounds=rounds,
                )
            )
        return rounds


@contextmanager
def _observed(run: Run, progress: DebateProgress) -> Iterator[None]:
    """Report the start of the debate and its end to the run."""
    run.on_debate(DebateEvent("started"))
    outcome: Literal["finished", "failed", "timeout", "cancelled"] = "failed"
    try:
        yield
        outcome = "finished"
    except TimeoutError:
        outcome = "timeout"
        raise
    except asyncio.CancelledError:
        outcome = "cancelled"
        raise
    finally:
        run.on_debate(DebateEvent(outcome, progress.rounds, sum(progress.calls.values())))


def _timeout_message(timeout: float) -> str:
    return f"Debate exceeded timeout of {timeout:g}s"


async def _run_rounds(
    run: Run, agents: tuple[DebateAgent, DebateAgent], progress: DebateProgress, rounds: int
) -> tuple[str | None, bool]:
    """The final answer (None after one round), and False when the passages do not answer."""
    finished_rounds = 0
    for number in range(1, rounds + 1):
        if number > 1 and len(progress.latest) < 2:
            break  # an agent needs the answer of the other one
        if not progress.has_time_for(f"round {number}"):
            break
        await _run_round(agents, progress, number)
        finished_rounds = number
        if all(argument.abstains for argument in progress.latest):
            progress.notes.append(stated("agents_no_answer", "The agents found no answer in the passages."))
            return nothing_found(progress.query), False
    return (None, True) if finished_rounds == 1 else await _conclude(run, progress)


async def _run_round(agents: tuple[DebateAgent, DebateAgent], progress: DebateProgress, number: int) -> None:
    """Both agents at the same time. A failed agent keeps its previous answer. Raises if there is no answer at all."""
    started = limit_clock()
    previous = [(side[-1].text if side else None) for side in progress.sides]
    outcomes = await _gather(
        [
            _answer(agent, progress, own, other)
            for agent, own, other in zip(agents, previous, reversed(previous), strict=True)
        ]
    )
    progress.longest_round = max(progress.longest_round, limit_clock() - started)
    calls = sum(not isinstance(outcome, ModelNotAllowed) for outcome in outcomes)
    if calls:
        progress.calls[f"round_{number}"] = calls
    for agent, side, outcome in zip(agents, progress.sides, outcomes, strict=True):
        if isinstance(outcome, Argument):
            side.append(outcome)
            progress.record(outcome, f"{agent.role} answer of round {number}")
        else:
            progress.notes.append(
                stated(
                    "agent_failed_later" if side else "agent_failed_first",
                    "The {agent} agent failed in round {round}; "
                    + ("its previous answer is used: {error}" if side else "only the other answer is used: {error}"),
                    agent=agent.role,
                    round=number,
                    error=outcome,
                )
            )
    failures = [outcome for outcome in outcomes if not isinstance(outcome, Argument)]
    if not progress.latest:
        raise _failure_of_both(failures)


async def _answer(
    agent: DebateAgent, progress: DebateProgress, own: str | None, other: str | None
) -> Argument | Failure:
    try:
        context = [{"text": text, "grade": progress.grade} for text in progress.passages]
        return await agent.generate_answer(progress.query, context, own, other, seconds=progress.remaining)
    except (LanguageModelFailed, Overloaded) as error:
        return error


def _failure_of_both(failures: Sequence[Failure]) -> LanguageModelFailed:
    """The error when neither agent answered."""
    first = failures[0]
    if isinstance(first, LanguageModelFailed):
        return first
    return LanguageModelFailed(model="of the debate", reason=str(first))


async def _gather(calls: Sequence[Coroutine[Any, Any, Argument | Failure]]) -> list[Argument | Failure]:
    """All results; when a call raises or the time is over, the others are cancelled and awaited."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _conclude(run: Run, progress: DebateProgress) -> tuple[str, bool]:
    """The latest answers as one: by the synthesis, or merged without a call."""
    answers = [argument.text for argument in progress.latest]
    if same(*answers):
        progress.notes.append(stated("agents_agree", "Both agents gave the same answer."))
        answers = answers[:1]
    if progress.has_time_for("synthesis"):
        try:
            return await _synthesise(run, progress, answers)
        except (LanguageModelFailed, Overloaded) as error:
            if not progress.remaining:
                raise
            merged_note = "The synthesis failed; both answers were merged without it: {error}"
            progress.notes.append(stated("synthesis_failed", merged_note, error=error))
    usable = [argument.text for argument in progress.latest if not argument.abstains]
    if len(usable) < 2 or len(answers) == 1:
        return usable[0], True
    return merged(usable[0], usable[1], SYNTHESIS_TOKENS), True


async def _synthesise(run: Run, progress: DebateProgress, answers: Sequence[str]) -> tuple[str, bool]:
    model = required(run.model or run.critic)
    progress.calls["synthesis"] = 1
    try:
        reply = await model_calls.call(
            run,
            "debate",
            model,
            synthesis_prompt(
                progress.query, progress.passages, answers, max_tokens=SYNTHESIS_TOKENS, grade=progress.grade
            ),
            max_tokens=SYNTHESIS_TOKENS,
            seconds=progress.remaining,
        )
    except ModelNotAllowed:
        del progress.calls["synthesis"]
        raise
    synthesis = argument_of(reply, SYNTHESIS_TOKENS)
    progress.record(synthesis, "synthesis")
    if synthesis.abstains:
        progress.notes.append(stated("synthesis_no_answer", "The synthesis found no answer in the passages."))
        return nothing_found(progress.query), False
    return synthesis.text, True


@dataclass(slots=True)
class DebateProgress:
    """The state of a debate in progress."""

    query: str
    passages: list[str]
    ends: float
    grade: int | None = None
    sides: tuple[list[Argument], list[Argument]] = field(default_factory=lambda: ([], []))
    calls: dict[str, int] = field(default_factory=dict)
    notes: list[Statement] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    models: list[str] = field(default_factory=list)
    longest_round: float = 0.0
    """Seconds of the longest round so far."""

    @property
    def remaining(self) -> float:
        """Seconds until the debate must be over."""
        return max(0.0, self.ends - limit_clock())

    @property
    def latest(self) -> list[Argument]:
        """The latest answer of each side that has one."""
        return [side[-1] for side in self.sides if side]

    @property
    def rounds(self) -> int:
        """Rounds in which an agent answered."""
        return max(len(side) for side in self.sides)

    def has_time_for(self, phase: str) -> bool:
        """Whether one more phase will probably end in time; if not, the answers so far are used."""
        if self.remaining >= self.longest_round:
            return True
        self.notes.append(stated("debate_no_time", "There was no time left for the {phase}.", phase=phase))
        return False

    def record(self, answer: Argument, name: str) -> None:
        """Record the usage and the model of an answer, and a note if it was cut."""
        self.usage += answer.usage
        self.models.append(answer.model)
        if answer.cut:
            self.notes.append(stated("debate_text_cut", "The {text} was too long and was cut.", text=name))


def begin(query: str, context: Sequence[Mapping[str, Any] | str], ends: float) -> DebateProgress:
    """A new debate that must end at `ends` on `limit_clock`. Raises `InvalidInput`."""
    if not isinstance(query, str) or not query.strip():
        raise InvalidInput("The question is empty.")
    if isinstance(context, (str, Mapping)) or not isinstance(context, Sequence):
        raise InvalidInput("The context is a list of passages: dicts with the key 'text'.")
    progress = DebateProgress(query.strip(), texts(context[:MAX_PASSAGES]), ends, grade_of(context))
    if len(progress.query) > MAX_QUERY:
        trimmed = "The question was trimmed to its first {characters} characters."
        progress.notes.append(stated("debate_question_trimmed", trimmed, characters=f"{MAX_QUERY:,}"))
        progress.query = progress.query[:MAX_QUERY].rstrip()
    if len(context) > MAX_PASSAGES:
        shown = "The agents were shown the first {shown} of {passages} passages."
        progress.notes.append(stated("debate_passages_limited", shown, shown=MAX_PASSAGES, passages=len(context)))
    if not progress.passages:
        nothing = "There were no passages, so the agents could not cite anything."
        progress.notes.append(stated("debate_without_passages", nothing))
    return progress


def result_of(progress: DebateProgress, final: str | None, answered: bool, elapsed: float) -> DebateResult:
    """The result of a finished debate."""
    affirmative, critical = ([argument.text for argument in side] for side in progress.sides)
    return DebateResult(
        affirmative_answer=affirmative[-1] if affirmative else "",
        critical_answer=critical[-1] if critical else "",
        final_answer=final,
        rounds=progress.rounds,
        llm_calls=sum(progress.calls.values()),
        elapsed=elapsed,
        calls_by_phase=dict(progress.calls),
        affirmative_answers=tuple(affirmative),
        critical_answers=tuple(critical),
        notes=tuple(progress.notes),
        models=tuple(dict.fromkeys(progress.models)),
        usage=progress.usage,
        answered=answered,
    )


_UNFINISHED = "The debate did not finish ({reason}); the answer was composed without it."
SURE = 0.9
"""Calibrated confidence from which on there is no debate: at most one in ten such answers is wrong, so ten debates
(fifty model calls) could improve at most one answer."""


async def debate(state: PipelineState, run: Run) -> PipelineState:
    """The state with the debate's answer; without it if there is no debate, with a note if it fails."""
    limits = [limit_of(model) for model in (run.model, run.critic) if model is not None]
    outgoing = Outgoing(await run.tree_grades(), min(limits, default=0))
    reason = _reason_against(state, run, outgoing)
    if reason is not None:
        _LOG.info("Step 4 (debate) skipped (%s)", reason)
        run.recording.facts["debate"] = f"skipped: {reason}"
        return state
    passages = state.passages[:PASSAGES]
    question, of_question = state.question_for(outgoing.limit)
    grade = max(of_question, outgoing.grade(passages) or 0)
    context = [
        {"text": passage.text, "title": passage.title, "chunk_id": passage.chunk_id, "grade": grade}
        for passage in passages
    ]
    try:
        result = await DebateEngine(run).run_debate(question, context, timeout=budget_of("debate"))
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
        state.reason = (stated("debate_no_answer", "The debate found no answer in the passages."),)
    state.step_timings["debate"] = result.elapsed
    state.notes += result.notes
    run.recording.facts["debate"] = f"{result.rounds} rounds, {result.llm_calls} calls"
    run.emit("token", {"text": result.final_answer})
    return state


def _without_debate(state: PipelineState, run: Run, note: Statement, *, degraded: bool = True) -> PipelineState:
    """The state with a note about the debate that gave no answer."""
    state.degraded += ["debate"] if degraded else []
    state.notes.append(note)
    run.recording.facts["debate"] = note.values["reason"]
    return state


def _reason_against(state: PipelineState, run: Run, outgoing: Outgoing) -> str | None:
    """Why there is no debate, for the log; None if there is one."""
    judged = state.evidence.confidence if state.evidence is not None else None
    reasons = (
        (not run.debate_allowed, "not allowed here"),
        (run.model is None, "no language model"),
        (not state.retrieved_chunks, "no passages"),
        (not all(map(outgoing.admits, state.passages[:PASSAGES])), "passages above the grade that models may be sent"),
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
