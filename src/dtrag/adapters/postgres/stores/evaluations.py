"""Runs of evaluations in the database: `EvaluationStore` over the table evaluations."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from psycopg.types.json import Json

from dtrag.adapters.postgres.database import Database
from dtrag.adapters.postgres.queries import queries
from dtrag.core.evaluation_run import EvaluationRun, Measure, RunSummary
from dtrag.core.response import plain


class PostgresEvaluations:
    """The runs of one database."""

    def __init__(self, database: Database):
        self._database = database
        self._sql = queries("evaluations")

    async def add(self, run: EvaluationRun) -> None:
        """See `EvaluationStore`."""
        self._database.require_space()
        values = {"run_id": run.run_id, "created_at": run.created_at, "run": Json(plain(run.report()))}
        async with self._database.connection("owner") as connection:
            await connection.execute(self._sql["add"], values)

    async def get(self, run_id: uuid.UUID) -> EvaluationRun | None:
        """See `EvaluationStore`."""
        async with self._database.connection("owner") as connection:
            row = await (await connection.execute(self._sql["get"], {"run_id": run_id})).fetchone()
        return EvaluationRun.from_dict(row["run"]) if row else None

    async def newest(self, limit: int, after: EvaluationRun | None) -> list[RunSummary]:
        """See `EvaluationStore`."""
        values = {
            "limit": limit,
            "last_at": after.created_at if after else None,
            "last_id": after.run_id if after else None,
        }
        async with self._database.connection("owner") as connection:
            rows = await (await connection.execute(self._sql["newest"], values)).fetchall()
        return [RunSummary(**{**row, "measures": _measures(row["measures"])}) for row in rows]

    async def delete(self, run_id: uuid.UUID) -> bool:
        """See `EvaluationStore`."""
        async with self._database.connection("owner") as connection:
            return (await connection.execute(self._sql["delete"], {"run_id": run_id})).rowcount > 0


def _measures(stored: Mapping[str, Mapping[str, float] | None]) -> dict[str, Measure | None]:
    return {name: None if measure is None else Measure(**measure) for name, measure in stored.items()}
