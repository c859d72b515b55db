"""A process that consolidates the cases of a store and prints a line after every batch.

python -m tests.faults.case_consolidator FOLDER [DATABASE]
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dtrag.cases.maintenance import Consolidation
from dtrag.core.cases.votes import Replacement
from dtrag.ports import CaseStore
from dtrag.settings import set_feature_flag
from tests.faults.case_voter import opened


class Reporting:
    """The store, which prints a line after every batch."""

    def __init__(self, store: CaseStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def replace(self, replacements: Sequence[Replacement]) -> bool:
        """As the store."""
        replaced = await self._store.replace(replacements)
        sys.stdout.write(f"{len(replacements)}\n")
        sys.stdout.flush()
        return replaced


async def main() -> None:
    """Consolidate the store of the arguments."""
    set_feature_flag("cbr_enabled", True)
    async with opened(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None) as store:
        reporting: Any = Reporting(store)
        await Consolidation(reporting).run()


if __name__ == "__main__":
    asyncio.run(main())
