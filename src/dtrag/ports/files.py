"""Ports of source files: reading them, and following them through renames."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dtrag.core.documents import Draft, ParsedDocument


class Parser(Protocol):
    """Parses files of the supported formats, in a process with limited memory and time."""

    def knows(self, name: str) -> bool:
        """Whether the format of a file with this name is supported."""

    def parse(self, path: Path, name: str) -> AsyncGenerator[ParsedDocument, None]:
        """Yields the documents in the file at `path`; `name` is its display name and decides the format.

        Raises `ParseFailed` with a reason that users understand, possibly after some documents were yielded.
        """

    async def close(self) -> None:
        """Stop the process."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file with indexed documents, or with editions whose documents belong to another file.

    `fingerprint` is b"" when the file was not read to its end.
    """

    source_id: uuid.UUID
    uri: str
    fingerprint: bytes
    documents: int


class FolderStore(Protocol):
    """Indexed files by address, and what has to follow a renamed file."""

    async def files_below(self, prefix: str) -> list[StoredFile]:
        """Files with documents whose addresses start with `prefix`, ordered by address."""

    async def drafts_of(self, source_id: uuid.UUID, after: uuid.UUID | None, limit: int) -> list[Draft]:
        """The next `limit` documents of a file as they were written, ordered by id, after the id `after`."""

    async def copy_vectors(self, moved: Mapping[uuid.UUID, uuid.UUID]) -> None:
        """Copy the vectors of the passages of old documents to those of new ones, which have the same passages."""

    async def move_review_state(self, moved: Mapping[uuid.UUID, uuid.UUID]) -> None:
        """Transfer decisions, placements and review items from old document ids to new ones."""

    async def retained_below(self, prefix: str) -> list[uuid.UUID]:
        """Superseded editions from files with such addresses that do not contain them any more."""
