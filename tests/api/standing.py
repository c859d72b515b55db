"""That the service is whole after whatever was sent to it."""

from __future__ import annotations

import httpx2
from psycopg import sql

from dtrag.delivery.api.dependencies import Service


async def assert_standing(client: httpx2.AsyncClient) -> None:
    """The database answers, and a search goes through."""
    assert (await client.get("/readyz")).json() == {"status": "ready"}
    assert (await client.post("/search", json={"query": "standing"})).status_code == 200


async def rows(service: Service) -> dict[str, int]:
    """Each table and the number of its rows."""
    async with service.app.database.connection("owner") as connection:
        found = await connection.execute(
            "select oid::regclass::text as name from pg_class where relkind in ('r', 'p') "
            "and relnamespace not in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)"
        )
        names = [row["name"] for row in await found.fetchall()]
        counted = {}
        for name in names:
            query = sql.SQL("select count(*) as rows from {}").format(sql.Identifier(name))
            row = await (await connection.execute(query)).fetchone()
            assert row is not None
            counted[name] = int(row["rows"])
        return counted
