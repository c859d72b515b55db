"""What a debate comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dtrag.core.chat import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class DebateResult:
    """A finished debate. `affirmative_answer` and `critical_answer` are the last ones of the two agents ("" for one
    that failed); `affirmative_answers` and `critical_answers` all of them, by rounds.

    `rounds` in which somebody answered (1 to 3), `llm_calls` that were made, failed ones included, and the same by
    phase: round_1, round_2, round_3, synthesis. `elapsed` in seconds. `final_answer` is None after a single round,
    which has no synthesis. `answered` is False when the agents found that the passages do not answer; `final_answer`
    says so then. `notes` tell in words what was cut, merged, left out or
    failed. `models` are those that answered, each once. `usage` is what all calls used.
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
    notes: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    answered: bool = True

    def as_dict(self) -> dict[str, Any]:
        """What a trace keeps, made of what JSON knows."""
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
            "notes": list(self.notes),
            "tokens": self.usage.tokens,
            "cost": self.usage.cost,
        }
