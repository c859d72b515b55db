"""Command lines of a module's own on the server of the run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pytest

from dtrag.adapters.postgres.server.server import EmbeddedServer
from tests.integration.cli_process import Cli
from tests.store import Databases


class MakeCli(Protocol):
    def __call__(self, **environment: str) -> Cli: ...


@pytest.fixture(scope="module")
def make_cli(embedded: EmbeddedServer, template: str) -> Iterator[MakeCli]:
    """Makes command lines, each with a new database; fails when a command has left a connection open."""
    databases = Databases(embedded.address, template)

    def make(**environment: str) -> Cli:
        settings = databases.settings()
        own = {"DTRAG_DATABASE_NAME": settings.database_name, "DTRAG_EMBEDDER": "none"}
        return Cli(settings.data_dir, tuple((own | environment).items()))

    yield make
    databases.drop()
