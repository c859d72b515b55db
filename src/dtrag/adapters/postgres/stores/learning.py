"""Experiences in the database: `LearningStore` over the tables experiences and exploration."""

from __future__ import annotations

from collections.abc import Sequence

from dtrag.adapters.postgres.database import Database
from dtrag.adapters.postgres.queries import queries
from dtrag.core.cases.bandit import Experience


class PostgresLearning:
    """The experiences of one database."""

    def __init__(self, database: Database):
        self._database = database
        self._sql = queries("learning")

    async def add(self, experiences: Sequence[Experience], most: int) -> None:
        """See `LearningStore`."""
        self._database.require_space()
        values = {
            "ids": [each.experience_id for each in experiences],
            "times": [each.at for each in experiences],
            "states": [each.state for each in experiences],
            "actions": [each.action for each in experiences],
            "propensities": [each.propensity for each in experiences],
            "rewards": [each.reward for each in experiences],
            "next_states": [each.next_state for each in experiences],
            "explored": [each.explored for each in experiences],
        }
        async with self._database.connection("owner") as connection, connection.transaction():
            await connection.execute(self._sql["add"], values)
            await connection.execute(self._sql["trim"], {"most": most})

    async def follow(self, experience_id: str, state: int) -> None:
        """See `LearningStore`."""
        async with self._database.connection("owner") as connection:
            await connection.execute(self._sql["follow"], {"experience_id": experience_id, "state": state})

    async def experiences(self) -> list[Experience]:
        """See `LearningStore`."""
        async with self._database.connection("owner") as connection:
            rows = await (await connection.execute(self._sql["experiences"])).fetchall()
        return [Experience(**row) for row in rows]

    async def exploration(self) -> float:
        """See `LearningStore`."""
        async with self._database.connection("owner") as connection:
            row = await (await connection.execute(self._sql["exploration"])).fetchone()
        return float(row["share"]) if row else 0.0

    async def explore(self, share: float) -> None:
        """See `LearningStore`."""
        async with self._database.connection("owner") as connection:
            await connection.execute(self._sql["explore"], {"share": share})
