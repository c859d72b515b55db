"""The trace of a pipeline run: steps with their budgets, and model calls."""

from __future__ import annotations

import datetime
import math
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from dtrag.core.answer_record import AnswerRecord
from dtrag.core.response import INTERNAL, response
from dtrag.core.text.analysis import clean

MOST_TEXT = 20_000
"""Longest stored text, in characters; a prompt with five long passages has about 13,000."""


@dataclass(frozen=True, slots=True)
class StepTrace:
    """One step of a run."""

    __pydantic_config__ = response("StepShape")

    name: str
    """The step."""
    seconds: float
    """Its duration in seconds."""
    budget: float
    """Its time budget in seconds."""
    outcome: str
    """done, skipped, timeout or failed."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Details, such as numbers of candidates before and after."""
    # They contain no text of questions, answers or documents.
    started: float | None = None
    """Seconds since the run began; null in traces of earlier versions."""


@dataclass(frozen=True, slots=True)
class CallTrace:
    """One call of a language model."""

    __pydantic_config__ = response("CallShape")

    step: str
    """The calling step."""
    model: str
    """The model."""
    seconds: float
    """Its duration in seconds."""
    input_tokens: int
    """Input tokens."""
    output_tokens: int
    """Output tokens."""
    cost: float
    """Cost in won; 0 for a model without a known price."""
    error: str = ""
    """The error; empty on success."""
    prompt: str = ""
    """The prompt; empty unless texts are stored."""
    reply: str = ""
    """The reply; empty unless texts are stored."""
    prompt_hash: str = field(default="", metadata=INTERNAL)
    """SHA-256 of the prompt without its random delimiters; empty in traces of earlier versions."""
    started: float | None = None
    """Seconds since the run began; null in traces of earlier versions."""


@dataclass(frozen=True, slots=True)
class TracedPassage:
    """A passage behind an answer."""

    __pydantic_config__ = response("TracePassage")

    document_id: str
    """Its document."""
    label: str | None
    """Title with article or headings; null where it is not there any more, or you may not see it."""
    cited: bool
    """Whether the answer cites it."""


@dataclass(frozen=True, slots=True)
class Trace:
    """How an answer was produced."""

    # `question`, `answer` and the texts of calls and debate are empty unless DTRAG_TRACE_TEXT is on.
    __pydantic_config__ = response()

    trace_id: uuid.UUID
    """Its id."""
    created_at: datetime.datetime
    """When the answer was given, ISO 8601 in UTC."""
    owner: str = field(metadata=INTERNAL)
    """The id of the caller's key, "" without keys."""
    question: str
    """The question; empty unless texts are stored."""
    answer: str
    """The answer; empty unless texts are stored."""
    decision: str
    """answer, review or abstain."""
    confidence: float
    """Confidence in [0, 1]."""
    taxonomy_version: str
    """The version of the category tree."""
    seconds: float
    """Total duration in seconds."""
    degraded: tuple[str, ...]
    """Parts that failed and were left out."""
    document_ids: tuple[str, ...]
    """The documents used for the answer."""
    # All that contributed to it: only callers who may see all of them may see the trace.
    steps: tuple[StepTrace, ...]
    """The steps in order of execution."""
    calls: tuple[CallTrace, ...]
    """The language model calls, in order."""
    debate: Mapping[str, Any] | None = None
    """The debate: its numbers, and its texts if they are stored."""
    # rounds, llm_calls, elapsed · affirmative_answers, critical_answers, final_answer
    cited: tuple[str, ...] = field(default=(), metadata=INTERNAL)
    """Ids of the passages that the answer cites."""
    as_of: str = field(default="", metadata=INTERNAL)
    """The day of the question; "" for today's texts."""
    record: AnswerRecord | None = field(default=None, metadata=INTERNAL)
    """What a replay compares; None in traces of earlier versions."""

    @property
    def cited_documents(self) -> tuple[str, ...]:
        """The documents that the answer cites, each once."""
        return tuple(dict.fromkeys(chunk_id.rpartition(":")[0] for chunk_id in self.cited))

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
        values["record"] = None if self.record is None else self.record.as_dict()
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
            "record": AnswerRecord.from_dict(record) if (record := row.get("record")) else None,
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
