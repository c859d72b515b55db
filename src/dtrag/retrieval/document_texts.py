"""Documents part by part: a span of the text with its passages, so that a citation can be shown in its source."""

from __future__ import annotations

import uuid

from dtrag.core.access import confinement
from dtrag.core.access.scope import Scope, Viewer
from dtrag.core.document_text import DocumentText, PassageSpan
from dtrag.core.documents import uuid_or_none
from dtrag.errors import InvalidInput, NotFound
from dtrag.ports import DocumentIndex

MAX_CHARACTERS = 200_000
"""Of one part of a text."""
MAX_PASSAGES = 1_000


class DocumentTexts:
    """The texts of the documents of an index. `scope` defaults to the owner's, and inside a run to that of the run."""

    def __init__(self, index: DocumentIndex) -> None:
        self._index = index

    async def part(
        self, document_id: str, start: int = 0, end: int | None = None, *, scope: Viewer | None = None
    ) -> DocumentText:
        """The text from `start` to `end` in code points, at most `MAX_CHARACTERS`; without `end` as much as that.

        A span beyond the text is empty. Raises `NotFound`, and `InvalidInput` for a span that is too long.
        """
        last = start + MAX_CHARACTERS if end is None else end
        if not 0 <= start <= last or last - start > MAX_CHARACTERS:
            raise InvalidInput(f"start is at least 0, and end from start to start + {MAX_CHARACTERS:,}.")
        part = await self._index.document_text(_key(document_id), start, last, await self._resolved(scope))
        if part is None:
            raise _not_found(document_id)
        return part

    async def passages(
        self, document_id: str, limit: int = 100, offset: int = 0, *, scope: Viewer | None = None
    ) -> tuple[list[PassageSpan], int]:
        """A page of the passages in their order, without text, and their total number. Raises `NotFound`."""
        if not (1 <= limit <= MAX_PASSAGES and offset >= 0):
            raise InvalidInput(f"limit must be from 1 to {MAX_PASSAGES:,} and offset at least 0.")
        listed = await self._index.passage_spans(_key(document_id), limit, offset, await self._resolved(scope))
        if listed is None:
            raise _not_found(document_id)
        return listed

    async def _resolved(self, viewer: Viewer | None) -> Scope:
        taxonomy = (await self._index.snapshot()).taxonomy
        return confinement.bounded(viewer).resolved(taxonomy)


def _key(document_id: str) -> uuid.UUID:
    key = uuid_or_none(document_id)
    if key is None:
        raise _not_found(document_id)
    return key


def _not_found(document_id: str) -> NotFound:
    return NotFound(kind="document", name=str(document_id)[:60])
