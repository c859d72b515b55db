"""A run while it goes on, noted so that it can be looked at later: steps against their budgets, calls of models."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

from dtrag.core.trace import CallTrace, StepTrace, Trace

__all__ = ["CallTrace", "Recording", "StepTrace", "Trace"]


@dataclass(slots=True)
class Recording:
    """A run while it goes on; the steps add to it."""

    trace_id: uuid.UUID = field(default_factory=uuid.uuid4)
    keeps_text: bool = False
    steps: list[StepTrace] = field(default_factory=list)
    calls: list[CallTrace] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    """Facts of the step that is running; moved into its StepTrace when it ends."""
