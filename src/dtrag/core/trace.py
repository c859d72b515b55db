"""The trace of a pipeline run: steps with their budgets, and model calls."""

from __future__ import annotations

import datetime
import math
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from dtrag.core.text.analysis import clean

MOST_TEXT = 20_000
"""Longest stored text, in characters; a prompt with five long passages has about 13,000."""


@dataclass(frozen=True, slots=True)
class StepTrace:
    """One step: its duration and budget in seconds, its outcome (done, skipped, timeout, failed), and facts such as
    numbers of candidates. Facts contain no text of questions, answers or documents. `started` is in seconds since the
    run began; None in traces of earlier versions, which did not store it."""

    name: str
    seconds: float
    budget: float
    outcome: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    started: float | None = None


@dataclass(frozen=True, slots=True)
class CallTrace:
    """One model call. `prompt` and `reply` are empty unless DTRAG_TRACE_TEXT is on. `started` is as for a step."""

    step: str
    model: str
    seconds: float
    input_tokens: int
    output_tokens: int
    cost: float
    error: str = ""
    prompt: str = ""
    reply: str = ""
    started: float | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """A stored run. `owner` is the id of the caller's key, "" without keys.

    `document_ids` are all documents that contributed to the answer: only callers who may see all of them may see the
    trace. `question`, `answer` and the texts of calls and debate are empty unless DTRAG_TRACE_TEXT is on. `debate` has
    numbers (rounds, llm_calls, elapsed) and texts (affirmative_answers, critical_answers, final_answer).
    """

    trace_id: uuid.UUID
    created_at: datetime.datetime
    owner: str
    question: str
    answer: str
    decision: str
    confidence: float
    taxonomy_version: str
    seconds: float
    degraded: tuple[str, ...]
    document_ids: tuple[str, ...]
    steps: tuple[StepTrace, ...]
    calls: tuple[CallTrace, ...]
    debate: Mapping[str, Any] | None = None
    cited: tuple[str, ...] = ()
    """Ids of the passages that the answer cites."""
    as_of: str = ""
    """The day of the question; "" for today's texts."""

    @property
    def troubled(self) -> bool:
        """Whether a step failed or timed out, a model call failed, or the result is degraded."""
        failed = any(step.outcome in {"timeout", "failed"} for step in self.steps)
        return failed or bool(self.degraded) or any(call.error for call in self.calls)

    def without_text(self) -> Trace:
        """The run without questions, answers and prompts: with times, numbers and names only."""
        return replace(
            self,
            question="",
            answer="",
            calls=tuple(replace(call, prompt="", reply="") for call in self.calls),
            debate=None if self.debate is None else _numbers(self.debate),
        )

    def as_dict(self) -> dict[str, Any]:
        """With values that JSON and PostgreSQL can store; long texts are truncated."""
        values = {declared.name: getattr(self, declared.name) for declared in fields(self)}
        values["created_at"] = self.created_at.isoformat()
        values["steps"] = [_row(step) for step in self.steps]
        values["calls"] = [_row(call) for call in self.calls]
        plain: dict[str, Any] = _plain(values)
        return plain

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Trace:
        """The inverse of `as_dict`."""
        parts = {
            "trace_id": uuid.UUID(row["trace_id"]),
            "created_at": datetime.datetime.fromisoformat(row["created_at"]),
            "steps": tuple(StepTrace(**step) for step in row["steps"]),
            "calls": tuple(CallTrace(**call) for call in row["calls"]),
            "degraded": tuple(row["degraded"]),
            "document_ids": tuple(row["document_ids"]),
            "cited": tuple(row.get("cited", ())),
        }
        return cls(**{**row, **parts})


def _row(part: StepTrace | CallTrace) -> dict[str, object]:
    return {declared.name: getattr(part, declared.name) for declared in fields(part)}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int)):
        return value
    return clean(str(value)[:MOST_TEXT])


def _numbers(debate: Mapping[str, Any]) -> dict[str, object]:
    """The numbers of a debate, also one level deeper (calls by phase)."""
    numbers: dict[str, object] = {}
    for name, value in debate.items():
        if isinstance(value, (bool, int, float)):
            numbers[name] = value
        elif isinstance(value, Mapping):
            numbers[name] = {inner: number for inner, number in value.items() if isinstance(number, (int, float))}
    return numbers
