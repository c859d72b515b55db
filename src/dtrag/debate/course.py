"""What happens in a debate, kept while it goes on: who said what, how many calls, and how much time is left."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dtrag.core.chat import Usage
from dtrag.core.debate import DebateResult
from dtrag.errors import InvalidInput
from dtrag.pipeline.debate.agent import Argument, texts

MAX_QUERY = 1_000
"""Characters of the question that the agents are shown."""
MAX_PASSAGES = 10
"""Passages that the agents are shown; the pipeline gives five."""


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
        return max(0.0, self.ends - time.perf_counter())

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
