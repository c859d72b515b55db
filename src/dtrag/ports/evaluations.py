"""Port of the store of evaluation runs."""

from __future__ import annotations

import uuid
from typing import Protocol

from dtrag.core.evaluation_run import EvaluationRun, RunSummary


class EvaluationStore(Protocol):
    """Runs of evaluations that were kept."""

    async def add(self, run: EvaluationRun) -> None:
        """Store the run; one with a known id is ignored."""

    async def get(self, run_id: uuid.UUID) -> EvaluationRun | None:
        """The run; None when it is unknown."""

    async def newest(self, limit: int, after: EvaluationRun | None) -> list[RunSummary]:
        """Summaries of the next `limit` runs after `after` (None: from the start), newest first, as stored."""

    async def delete(self, run_id: uuid.UUID) -> bool:
        """Delete the run; False when it is unknown."""
