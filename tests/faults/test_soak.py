"""Half a minute of `make soak`: nothing acknowledged is lost, nothing leaks, only kills leave requests unanswered."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from tests.faults.soak import Moves, Soak

pytestmark = pytest.mark.long_fault


def test_a_short_soak() -> None:
    folder = Path(tempfile.mkdtemp(prefix="test-soak-"))
    folder.chmod(0o755)
    soak = Soak(folder, 36, "none", 60)
    soak.run()
    assert soak.ledger.lost == []
    assert soak.ledger.leaks == []
    assert soak.ledger.unexplained == []
    assert soak.kills["workers"] and soak.kills["database"] and soak.kills["clients"]
    assert soak.ledger.total("answered") > 30
    assert soak.readings[-1].temporary == 0
    shutil.rmtree(folder)


def test_the_moved_branch_is_allowed_only_while_it_may_be_there() -> None:
    moves = Moves()
    assert (moves.allowed("open", 0.0), moves.allowed("closed", 0.0)) == (True, False)
    moves.begin("closed")
    assert (moves.allowed("open", 0.0), moves.allowed("closed", 0.0)) == (True, True)
    moves.settle("closed")
    assert moves.allowed("closed", float("inf"))
    assert not moves.allowed("open", float("inf"))
