"""Runs of evaluations that were kept, for administrators."""

from __future__ import annotations

from dtrag.core.documents import uuid_or_none
from dtrag.core.evaluation_run import EvaluationRun, RunSummary
from dtrag.errors import NotFound
from dtrag.ports import EvaluationStore

MAX_LISTED = 100


class Evaluations:
    """The kept runs of one app. They show questions and answers: callers must be administrators of the whole tree."""

    def __init__(self, store: EvaluationStore):
        self._store = store

    async def keep(self, run: EvaluationRun) -> None:
        """Store a run."""
        await self._store.add(run)

    async def newest(self, limit: int = 20, after: str | None = None) -> list[RunSummary]:
        """Summaries of the newest runs, or those that follow the run with the id `after`. Raises `NotFound`."""
        return await self._store.newest(min(limit, MAX_LISTED), await self.get(after) if after else None)

    async def get(self, run_id: str) -> EvaluationRun:
        """One run. Raises `NotFound`."""
        key = uuid_or_none(run_id)
        run = await self._store.get(key) if key is not None else None
        if run is None:
            raise NotFound(f"There is no run of an evaluation {run_id[:60]!r}. GET /evaluations lists them.")
        return run

    async def delete(self, run_id: str) -> None:
        """Delete one run. Raises `NotFound`."""
        run = await self.get(run_id)
        await self._store.delete(run.run_id)
