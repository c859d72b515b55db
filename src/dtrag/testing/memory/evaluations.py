"""Runs of evaluations in memory: `EvaluationStore`."""

from __future__ import annotations

import json
import uuid
from datetime import datetime

from dtrag.core.evaluation_run import EvaluationRun, RunSummary
from dtrag.testing.memory.state import MemoryState


class MemoryEvaluations:
    """The runs of one state."""

    def __init__(self, state: MemoryState):
        self._runs = state.evaluations

    async def add(self, run: EvaluationRun) -> None:
        """See `EvaluationStore`; stored as a database would give it back."""
        self._runs.setdefault(run.run_id, EvaluationRun.from_dict(json.loads(json.dumps(run.as_dict()))))

    async def get(self, run_id: uuid.UUID) -> EvaluationRun | None:
        """See `EvaluationStore`."""
        return self._runs.get(run_id)

    async def newest(self, limit: int, after: EvaluationRun | None) -> list[RunSummary]:
        """See `EvaluationStore`."""
        following = [run for run in self._runs.values() if after is None or _position(run) < _position(after)]
        return [run.summary() for run in sorted(following, key=_position, reverse=True)[:limit]]

    async def delete(self, run_id: uuid.UUID) -> bool:
        """See `EvaluationStore`."""
        return self._runs.pop(run_id, None) is not None


def _position(run: EvaluationRun) -> tuple[datetime, uuid.UUID]:
    return run.created_at, run.run_id
