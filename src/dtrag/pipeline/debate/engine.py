"""A debate from its first round to its one answer, within its time and its number of calls."""

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
from dtrag.errors import InvalidInput, LanguageModelFailed, ModelNotAllowed, Overloaded
from dtrag.pipeline import model_calls
from dtrag.pipeline.answer.extractive import nothing_found
from dtrag.pipeline.debate.agent import Argument, DebateAgent, argument, required, texts
from dtrag.pipeline.debate.merge import merged, same
from dtrag.pipeline.debate.prompts import weigh
from dtrag.pipeline.run import DebateEvent, Run, of_active_app

_LOG = logging.getLogger(__name__)

MAX_ROUNDS = 3
MAX_CALLS = 2 * MAX_ROUNDS + 1
"""Calls of the longest debate: two for each round, and the synthesis. The default of two rounds makes five."""
SYNTHESIS_TOKENS = 800

Failure = LanguageModelFailed | Overloaded
MAX_QUERY = 1_000
"""Characters of the question that the agents are shown."""
MAX_PASSAGES = 10
"""Passages that the agents are shown; the pipeline gives five."""


class DebateEngine:
    """Runs debates with the models of a run: the open app's without one.

    `max_calls` bounds the calls of one debate. Rounds that do not fit into it are left out, and the result says so.
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

        One round is two calls, two rounds and the synthesis are five, three rounds and the synthesis seven. A debate
        of one round has no synthesis: its `final_answer` is None. So it is when one agent fails in the first round, or
        no time is left for the second; a note says so then. Raises `TimeoutError` when the time is
        over (nothing goes on behind it), `LanguageModelFailed` when neither agent answered, and `InvalidInput` for an
        empty question, passages without text, fewer than one round, or when no model is configured.
        """
        started = limit_clock()
        run = of_active_app() if self._run is None else self._run
        course = opened(query, context, started + timeout)
        agents = (DebateAgent("affirmative", run=run), DebateAgent("critical", run=run))
        rounds = self._rounds(max_rounds, course)
        with _counted(run, course):
            try:
                async with asyncio.timeout(timeout) as deadline:
                    final, answered = await _held(run, agents, course, rounds)
            except (TimeoutError, LanguageModelFailed) as error:
                if course.left and not deadline.expired():
                    raise
                raise TimeoutError(_late(timeout)) from error
            if not course.left:
                raise TimeoutError(_late(timeout))
        result = closed(course, final, answered, limit_clock() - started)
        _LOG.info("Debate finished: %d rounds, %d calls, %.2fs", result.rounds, result.llm_calls, result.elapsed)
        return result

    def _rounds(self, wanted: int, course: Course) -> int:
        if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
            raise InvalidInput(f"max_rounds is {wanted!r}, but must be a whole number from 1 to {MAX_ROUNDS}.")
        rounds = min(wanted, MAX_ROUNDS)
        if wanted > MAX_ROUNDS:
            course.notes.append(f"A debate has at most {MAX_ROUNDS} rounds; {wanted} were asked for.")
        while rounds > 1 and 2 * rounds + 1 > self._max_calls:
            rounds -= 1
        if rounds < min(wanted, MAX_ROUNDS):
            course.notes.append(f"{self._max_calls} calls allow a debate of {rounds} rounds; the others were left out.")
        return rounds


@contextmanager
def _counted(run: Run, course: Course) -> Iterator[None]:
    """Tell the run that a debate started, and how it ended."""
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
        run.on_debate(DebateEvent(outcome, course.rounds, sum(course.calls.values())))


def _late(timeout: float) -> str:
    return f"Debate exceeded timeout of {timeout:g}s"


async def _held(
    run: Run, agents: tuple[DebateAgent, DebateAgent], course: Course, rounds: int
) -> tuple[str | None, bool]:
    """The final answer (None after one round), and False when the passages do not answer."""
    rounds_held = 0
    for number in range(1, rounds + 1):
        if number > 1 and len(course.last) < 2:
            break  # one agent alone has nobody to argue with
        if not course.has_time_for(f"round {number}"):
            break
        await _round(agents, course, number)
        rounds_held = number
        if all(said.abstains for said in course.last):
            course.notes.append("The agents found no answer in the passages.")
            return nothing_found(course.query), False
    return (None, True) if rounds_held == 1 else await _concluded(run, course)


async def _round(agents: tuple[DebateAgent, DebateAgent], course: Course, number: int) -> None:
    """Both agents at once. A failed one keeps its answer of before. Raises when nobody has said anything yet."""
    started = limit_clock()
    mine, theirs = course.sides
    before = [(side[-1].text if side else None) for side in (mine, theirs)]
    outcomes = await _together(
        [_tried(agent, course, own, other) for agent, own, other in zip(agents, before, reversed(before), strict=True)]
    )
    course.longest = max(course.longest, limit_clock() - started)
    made = sum(not isinstance(outcome, ModelNotAllowed) for outcome in outcomes)
    if made:
        course.calls[f"round_{number}"] = made
    for agent, side, outcome in zip(agents, course.sides, outcomes, strict=True):
        if isinstance(outcome, Argument):
            side.append(outcome)
            course.heard(outcome, f"{agent.role} answer of round {number}")
        else:
            kept = "its answer before stands" if side else "the other answer is given"
            course.notes.append(f"The {agent.role} agent failed in round {number}; {kept}: {outcome}")
    failures = [outcome for outcome in outcomes if not isinstance(outcome, Argument)]
    if not course.last:
        raise _both(failures)


async def _tried(agent: DebateAgent, course: Course, own: str | None, other: str | None) -> Argument | Failure:
    try:
        return await agent.generate_answer(course.query, course.passages, own, other, seconds=course.left)
    except (LanguageModelFailed, Overloaded) as error:
        return error


def _both(failures: Sequence[Failure]) -> LanguageModelFailed:
    """What is raised when neither agent answered."""
    first = failures[0]
    if isinstance(first, LanguageModelFailed):
        return first
    return LanguageModelFailed(model="of the debate", reason=str(first))


async def _together(asked: Sequence[Coroutine[Any, Any, Argument | Failure]]) -> list[Argument | Failure]:
    """All at once; when one raises or time is over, the others are cancelled and have ended before this returns."""
    tasks = [asyncio.ensure_future(one) for one in asked]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _concluded(run: Run, course: Course) -> tuple[str, bool]:
    """The last answers as one: by the synthesis, or merged without a call."""
    answers = [said.text for said in course.last]
    if same(*answers):
        course.notes.append("Both agents gave the same answer.")
        answers = answers[:1]
    if course.has_time_for("synthesis"):
        try:
            return await _synthesised(run, course, answers)
        except (LanguageModelFailed, Overloaded) as error:
            if not course.left:
                raise
            course.notes.append(f"The synthesis failed; both answers were merged without it: {error}")
    given = [said.text for said in course.last if not said.abstains]
    if len(given) < 2 or len(answers) == 1:
        return given[0], True
    return merged(given[0], given[1], SYNTHESIS_TOKENS), True


async def _synthesised(run: Run, course: Course, answers: Sequence[str]) -> tuple[str, bool]:
    model = required(run.model or run.critic)
    course.calls["synthesis"] = 1
    try:
        reply = await model_calls.call(
            run,
            "debate",
            model,
            weigh(course.query, course.passages, answers, max_tokens=SYNTHESIS_TOKENS),
            max_tokens=SYNTHESIS_TOKENS,
            seconds=course.left,
        )
    except ModelNotAllowed:
        del course.calls["synthesis"]
        raise
    said = argument(reply, SYNTHESIS_TOKENS)
    course.heard(said, "synthesis")
    if said.abstains:
        course.notes.append("The synthesis found no answer in the passages.")
        return nothing_found(course.query), False
    return said.text, True


@dataclass(slots=True)
class Course:
    """A debate while it goes on."""

    query: str
    passages: list[str]
    ends: float
    sides: tuple[list[Argument], list[Argument]] = field(default_factory=lambda: ([], []))
    calls: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    models: list[str] = field(default_factory=list)
    longest: float = 0.0
    """Seconds of the longest round so far."""

    @property
    def left(self) -> float:
        """Seconds until the debate must be over."""
        return max(0.0, self.ends - limit_clock())

    @property
    def last(self) -> list[Argument]:
        """What each side that has said anything said last."""
        return [side[-1] for side in self.sides if side]

    @property
    def rounds(self) -> int:
        """Rounds in which an agent answered."""
        return max(len(side) for side in self.sides)

    def has_time_for(self, phase: str) -> bool:
        """Whether one more phase can be expected to end in time; answers that are there are not risked for it."""
        if self.left >= self.longest:
            return True
        self.notes.append(f"There was no time left for the {phase}.")
        return False

    def heard(self, said: Argument, who: str) -> None:
        """Keep account of an answer."""
        self.usage += said.usage
        self.models.append(said.model)
        if said.cut:
            self.notes.append(f"The {who} was too long and was cut.")


def opened(query: str, context: Sequence[Mapping[str, Any] | str], ends: float) -> Course:
    """The beginning of a debate that is over at `ends` on the clock of `time.perf_counter`. Raises `InvalidInput`."""
    if not isinstance(query, str) or not query.strip():
        raise InvalidInput("The question is empty.")
    if isinstance(context, (str, Mapping)) or not isinstance(context, Sequence):
        raise InvalidInput("The context is a list of passages: dicts with the key 'text'.")
    course = Course(query.strip(), texts(context[:MAX_PASSAGES]), ends)
    if len(course.query) > MAX_QUERY:
        course.notes.append(f"The question was trimmed to its first {MAX_QUERY:,} characters.")
        course.query = course.query[:MAX_QUERY].rstrip()
    if len(context) > MAX_PASSAGES:
        course.notes.append(f"The agents were shown the first {MAX_PASSAGES} of {len(context)} passages.")
    if not course.passages:
        course.notes.append("There were no passages: the agents were told so and cannot cite anything.")
    return course


def closed(course: Course, final: str | None, answered: bool, elapsed: float) -> DebateResult:
    """What the debate has come to."""
    affirmative, critical = ([said.text for said in side] for side in course.sides)
    return DebateResult(
        affirmative_answer=affirmative[-1] if affirmative else "",
        critical_answer=critical[-1] if critical else "",
        final_answer=final,
        rounds=course.rounds,
        llm_calls=sum(course.calls.values()),
        elapsed=elapsed,
        calls_by_phase=dict(course.calls),
        affirmative_answers=tuple(affirmative),
        critical_answers=tuple(critical),
        notes=tuple(course.notes),
        models=tuple(dict.fromkeys(course.models)),
        usage=course.usage,
        answered=answered,
    )
