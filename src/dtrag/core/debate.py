"""The result of a debate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dtrag.core.chat import Usage
from dtrag.core.statements import Statements


@dataclass(frozen=True, slots=True, kw_only=True)
class DebateResult:
    """A finished debate. `affirmative_answer` and `critical_answer` are the last answers of the two agents ("" for one
    that failed); `affirmative_answers` and `critical_answers` are all of them, by round.

    `rounds` counts those in which an agent answered (1 to 3). `llm_calls` includes failed calls; `calls_by_phase` has
    the phases round_1, round_2, round_3, synthesis. `elapsed` is in seconds. `final_answer` is None after a single
    round, which has no synthesis. `answered` is False when the passages do not answer the question; `final_answer`
    says so then. `notes` describes what was cut, merged, left out or failed. `models` lists distinct models that
    answered. `usage` is that of all calls.
    """

    affirmative_answer: str
    critical_answer: str
    final_answer: str | None
    rounds: int
    llm_calls: int
    elapsed: float
    calls_by_phase: Mapping[str, int]
    affirmative_answers: tuple[str, ...]
    critical_answers: tuple[str, ...]
    notes: Statements = ()
    models: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    answered: bool = True

    def as_dict(self) -> dict[str, object]:
        """For a trace, with plain values."""
        return {
            "final_answer": self.final_answer,
            "answered": self.answered,
            "affirmative_answers": list(self.affirmative_answers),
            "critical_answers": list(self.critical_answers),
            "rounds": self.rounds,
            "llm_calls": self.llm_calls,
            "calls_by_phase": dict(self.calls_by_phase),
            "elapsed": round(self.elapsed, 3),
            "models": list(self.models),
            "notes": list(map(str, self.notes)),
            "tokens": self.usage.tokens,
            "cost": self.usage.cost,
        }
