"""A source with rights in both worlds. A visitor is one of its users; what only others read there differs."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from dtrag.core.source_rights import Rights, RightsEntry, everyone, group, user
from dtrag.ports import SourceItem

SITE = "drive"
BRANCH = ("Drive",)
READER, OTHER_READER = user(SITE, "ann"), user(SITE, "bo")
STAFF, BOARD = group(SITE, "staff"), group(SITE, "board")
MEMBERS = {everyone(SITE): {READER, OTHER_READER}, STAFF: {READER, BOARD}, BOARD: {OTHER_READER}}
VISIBLE = Rights.of([[RightsEntry(STAFF, True)]])
HIDDEN = (
    Rights.of([[RightsEntry(BOARD, True)]]),
    Rights.of([[RightsEntry(READER, False), RightsEntry(everyone(SITE), True)]]),
    Rights.of([[RightsEntry(STAFF, True)], [RightsEntry(OTHER_READER, True)]]),
)
"""Rights that do not let `READER` in: of a group inside of its own, by a refusal, and of a folder above."""


@dataclass(slots=True)
class Drive:
    """`Connector`: the texts of files by name, and who may read each."""

    files: Mapping[str, tuple[str, Rights]]
    address: str = "drive:twins"
    site: str = SITE

    async def items(self) -> Sequence[SourceItem]:
        """See `Connector`."""
        return [
            SourceItem(f"drive://twins/{name}", name, blake2b(text.encode()).hexdigest(), rights)
            for name, (text, rights) in self.files.items()
        ]

    async def fetch(self, item: SourceItem, path: Path) -> None:
        """See `Connector`."""
        await asyncio.to_thread(path.write_text, self.files[item.path][0], "utf-8")

    async def members(self, group: str) -> Collection[str]:
        """See `Connector`."""
        return MEMBERS[group]

    async def close(self) -> None:
        """See `Connector`."""
