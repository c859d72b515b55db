"""A service of a test's own with documents in several branches, and clients that see all of it or one branch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, LiteralString

import httpx2
import uvicorn
from fastapi import FastAPI

from dtrag.app import App
from dtrag.core.access.api_key import Role
from dtrag.delivery.api.app import create_app
from dtrag.delivery.api.dependencies import Service
from dtrag.delivery.listening import listen
from dtrag.settings import Settings

CANARY = "zymurgite"
"""A word of the one document that only some may see; it is nowhere else."""

HOUSE = {
    ("AI", "ML"): {
        "trees.md": "# Trees\n\nMachine learning finds rules: a decision tree asks one question after another.",
        "descent.md": "# Descent\n\nMachine learning with gradient descent follows the slope of the loss.",
    },
    ("AI", "MLOps"): {"rollout.md": "# Rollout\n\nA machine learning model is rolled out behind a switch."},
    ("AIX", "Y"): {"unix.md": "# Unix\n\nA machine that runs for years is learning nothing."},
    ("HR", "Salary"): {"pay.md": f"# Pay\n\nThe machine shop pays {CANARY} for learning a second trade."},
    ("학사",): {"leave.md": "# 휴학\n\n휴학은 두 학기까지 할 수 있다."},
}


@dataclass
class House:
    """The running service, and a client for each of those who ask."""

    api: FastAPI
    exits: AsyncExitStack
    clients: dict[str, httpx2.AsyncClient] = field(default_factory=dict)

    @property
    def app(self) -> App:
        found: Service = self.api.state.service
        return found.app

    async def client(
        self,
        name: str,
        scope: list[str] | None,
        role: Role = "editor",
        principals: Sequence[str] = (),
        *,
        originals: bool = False,
    ) -> httpx2.AsyncClient:
        """A client with a key of its own; `scope` None is the whole tree, `principals` are its users of sources.

        `originals`: it may see them.
        """
        if name not in self.clients:
            created = await self.app.keys.create(
                name, scope, role, rate=1_000_000, principals=principals, originals=originals
            )
            self.clients[name] = await self.exits.enter_async_context(
                httpx2.AsyncClient(
                    transport=httpx2.ASGITransport(app=self.api),
                    base_url="http://localhost:8001",
                    headers={"authorization": f"Bearer {created.secret}"},
                    timeout=60,
                )
            )
        return self.clients[name]

    async def audited(self) -> list[dict[str, Any]]:
        """The audit log, the oldest line first."""
        return await self._rows(
            "select actor, action, scope, subjects, decision, details from audit_log order by number"
        )

    async def denials(self) -> list[dict[str, Any]]:
        """The lines of the audit log about filters that were refused."""
        return [line for line in await self.audited() if (line["action"], line["decision"]) == ("filters", "denied")]

    async def waiting(self) -> list[dict[str, Any]]:
        """The answers that wait for a person."""
        return await self._rows(
            "select agent_id::text, confidence from review_queue where kind = 'answer' and status = 'waiting'"
        )

    async def _rows(self, statement: LiteralString) -> list[dict[str, Any]]:
        async with self.app.database.connection("owner") as connection:
            return await (await connection.execute(statement)).fetchall()


@asynccontextmanager
async def house(settings: Settings, folder: Path | None = None) -> AsyncIterator[House]:
    """The service on a database with its documents in it (`houses` makes them); with a folder, it reads them there."""
    api = create_app(settings)
    async with api.router.lifespan_context(api), AsyncExitStack() as exits:
        built = House(api, exits)
        if folder is not None:
            await fill(built.app, folder)
        yield built


@asynccontextmanager
async def listening(api: FastAPI) -> AsyncIterator[str]:
    """The address at which the running service listens, for clients that need a socket."""
    listener = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(api, lifespan="off", log_config=None, ws="none"))
    serving = asyncio.create_task(server.serve([listener]))
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    await serving
    listener.close()


async def fill(app: App, folder: Path) -> None:
    """Write the documents into the folder, and read them."""
    for path, files in HOUSE.items():
        branch = folder.joinpath(*path)
        branch.mkdir(parents=True)
        for name, text in files.items():
            (branch / name).write_text(text, "utf-8")
        report = await app.ingest([branch / name for name in files], category=path)
        assert report.failed == []
