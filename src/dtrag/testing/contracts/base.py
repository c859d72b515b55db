"""The fixture that suites of stores share."""

from __future__ import annotations

import pytest

from dtrag.ports import Stores


class StoreContract:
    """Override the fixture `stores`."""

    @pytest.fixture
    def stores(self) -> Stores:
        """The stores of one empty database. Only the audit log may hold lines of earlier tests."""
        raise NotImplementedError("Override the fixture `stores` with the stores of an empty database.")
