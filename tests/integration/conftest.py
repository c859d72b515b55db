"""Command lines of a module's own on the server of the run."""

from __future__ import annotations

from typing import Protocol

import pytest

from tests.integration.cli_process import Cli
from tests.store import Databases


class MakeCli(Protocol):
    def __call__(self, **environment: str) -> Cli: ...


@pytest.fixture(scope="module")
def make_cli(databases_of_module: Databases) -> MakeCli:
    """Makes command lines, each with a new database."""

    def make(**environment: str) -> Cli:
        settings = databases_of_module.settings()
        own = {"DTRAG_DATABASE_NAME": settings.database_name, "DTRAG_EMBEDDER": "none"}
        return Cli(settings.data_dir, tuple((own | environment).items()))

    return make
