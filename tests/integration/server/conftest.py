"""Data folders for the tests of the embedded server."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dtrag.adapters.postgres.server import server
from dtrag.adapters.postgres.server.server import EmbeddedServer
from tests.integration.server.attached import (
    copy,
)


@pytest.fixture(scope="session")
def initialised(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder whose server has been started once and stopped."""
    folder = tmp_path_factory.mktemp("initialised") / "data"
    EmbeddedServer.open(folder).close()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def data_dir(initialised: Path, tmp_path: Path) -> Iterator[Path]:
    """A data folder of the test's own, with a cluster in it; at the end no server may be left running."""
    folder = tmp_path / "data"
    copy(initialised, folder)
    yield folder
    assert server.status(folder).pid is None
    shutil.rmtree(folder)


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that every user of the machine can enter."""
    folder = Path(tempfile.mkdtemp(prefix="test-dtrag-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)
