"""What happened in one run, kept so that it can be looked at later: steps against their budgets, calls of models."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class StepTrace:
    """One step: `seconds` it took, its `budget` in seconds, how it ended (done, skipped, timeout, failed), and facts
    such as numbers of candidates before and after."""

    name: str
    seconds: float
    budget: float
    outcome: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallTrace:
    """One call of a model. `prompt` and `reply` are empty unless DTRAG_TRACE_TEXT is on."""

    step: str
    model: str
    seconds: float
    input_tokens: int
    output_tokens: int
    cost: float
    error: str = ""
    prompt: str = ""
    reply: str = ""


@dataclass(slots=True)
class Recording:
    """A run while it goes on; the steps add to it."""

    trace_id: uuid.UUID = field(default_factory=uuid.uuid4)
    keeps_text: bool = False
    steps: list[StepTrace] = field(default_factory=list)
    calls: list[CallTrace] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    """Facts of the step that is running; moved into its StepTrace when it ends."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A run as it is kept. `scope` is what the caller saw then, as in api_keys: who sees less may not see the trace.

    `question` and `answer` are empty unless DTRAG_TRACE_TEXT is on. `owner` is the id of the key, "" without keys.
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
