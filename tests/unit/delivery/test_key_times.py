"""When a key ends, as people write it."""

from __future__ import annotations

import datetime

import pytest

from dtrag.delivery.cli.keys import expiry
from dtrag.errors import InvalidInput

NOW = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (None, None),
        ("90d", datetime.datetime(2026, 5, 30, 12, tzinfo=datetime.UTC)),
        ("2026-03-01", datetime.datetime(2026, 3, 2, tzinfo=datetime.UTC)),
        ("2026-03-01T18:00", datetime.datetime(2026, 3, 1, 18, tzinfo=datetime.UTC)),
        ("2026-03-01T18:00+09:00", datetime.datetime(2026, 3, 1, 9, tzinfo=datetime.UTC)),
    ],
)
def test_times(given: str | None, meant: datetime.datetime | None) -> None:
    assert expiry(given, NOW) == meant


@pytest.mark.parametrize(
    "given", ["", "d", "0d", "-1d", "99999d", "9999999999d", "soon", "2026-02-30", "90", "9999-12-31"]
)
def test_no_times(given: str) -> None:
    with pytest.raises(InvalidInput, match="90d"):
        expiry(given, NOW)
