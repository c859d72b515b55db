"""Sources of documents outside of this machine's folders, and what each has to hold to (tests/contracts)."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dtrag.core.source_rights import Membership, Rights


@dataclass(frozen=True, slots=True)
class SourceItem:
    """A file at a source.

    `uri` is its address, which citations show and by which it is known. `path` is its path below the source, with
    slashes; its last name decides the format. `mark` changes whenever the content does, and two files of one source
    with the same mark have the same content; "" where the source has no such thing, and the file is fetched every time.
    `rights`: who may read it at the source; None at a source without rights.
    """

    uri: str
    path: str
    mark: str
    rights: Rights | None = None


class Connector(Protocol):
    """One source. Everything raises `SourceUnavailable` for what an administrator has to know or to mend."""

    address: str
    """As it was named, without secrets."""
    site: str
    """Where its users and groups are known: the first part of their principals. "" for a source without rights."""

    async def items(self) -> Sequence[SourceItem]:
        """All files, in a stable order: whatever is not among them is taken to be gone.

        Raises `SourceUnavailable` when some of them may be missing from the list. A file whose rights cannot be read
        has `NO_READERS`.
        """

    async def fetch(self, item: SourceItem, path: Path) -> None:
        """Write the file's content to `path`. Raises `SourceUnavailable` when it cannot be had as it was listed."""

    async def members(self, group: str) -> Collection[str]:
        """The principals directly in a group of the site: users and groups. Raises `SourceUnavailable`."""

    async def close(self) -> None:
        """Release connections and temporary files."""


@dataclass(frozen=True, slots=True)
class StoredItem:
    """A file of a source as it was last read; `mark` is "" when it was not read to its end, `uri` may be masked."""

    source_id: uuid.UUID
    uri: str
    mark: str


class SourceStore(Protocol):
    """What is known of the files of sources, and of their rights. `origin` is the address of a source."""

    def alone(self, origin: str) -> AbstractAsyncContextManager[None]:
        """Keeps other processes from syncing this source. Raises `Conflict` while one does."""

    async def items(self, origin: str) -> list[StoredItem]:
        """The files of the source that were read."""

    async def note(self, origin: str, items: Sequence[StoredItem]) -> None:
        """Store what is known of these files."""

    async def forget(self, source_ids: Collection[uuid.UUID]) -> None:
        """Delete what is known of these files."""

    async def others_on(self, nodes: Collection[int], origin: str) -> int:
        """The number of documents in these categories that do not come from the source."""

    async def misplaced(self, places: Mapping[uuid.UUID, int]) -> dict[uuid.UUID, int]:
        """Document -> the category of its file in `places`, of documents that are in another one."""

    async def move(self, moves: Mapping[uuid.UUID, int]) -> None:
        """Move documents to other categories."""

    async def restrict(self, origin: str, rights: Mapping[int, Rights]) -> None:
        """Restrict categories to those whom the rights admit, from the next read on."""

    async def restricted(self) -> dict[int, str]:
        """The categories that are restricted, and by which source."""

    async def groups(self, origin: str) -> dict[str, Membership]:
        """The groups of the source, and who is in each."""

    async def set_groups(self, origin: str, groups: Mapping[str, Membership]) -> None:
        """Replace the groups of the source, all of them at once, from the next read on."""
