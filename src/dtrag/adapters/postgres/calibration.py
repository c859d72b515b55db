"""Where the weights that a user's own questions gave are kept: beside the index that they were fitted on.

They take effect with the next question, in every process on the database: a new generation tells them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psycopg.types.json import Jsonb

from dtrag.adapters.postgres.database import Database
from dtrag.adapters.postgres.queries import queries
from dtrag.core.answers.confidence import SETTING


async def keep(database: Database, value: Mapping[str, Any]) -> None:
    """Put the calibration in the place of the one before."""
    async with database.connection("owner") as connection, connection.transaction():
        await connection.execute(queries("writing")["set_setting"], {"name": SETTING, "value": Jsonb(dict(value))})
        await connection.execute(queries("writing")["bump_generation"])


async def forget(database: Database) -> bool:
    """Back to the shipped weights; whether there was a calibration."""
    async with database.connection("owner") as connection, connection.transaction():
        cursor = await connection.execute(queries("writing")["forget_setting"], {"name": SETTING})
        await connection.execute(queries("writing")["bump_generation"])
        return cursor.rowcount > 0
