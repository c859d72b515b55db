"""Pages of the files that documents were read from, and where a text of a document is on them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from dtrag.core.access.scope import Viewer
from dtrag.core.document_listing import DocumentText
from dtrag.core.originals import CONTEXT, MarkedPage, OriginalPages, sought_on_pages
from dtrag.core.page_starts import stored_page_starts
from dtrag.errors import InvalidInput, NoOriginal, OriginalUnreadable, ParseFailed
from dtrag.governance.visibility import DocumentTexts
from dtrag.ports import OriginalReader
from dtrag.settings import Settings

MAX_SPAN = 20_000
"""Code points of a text that is looked for on the pages."""
Shown = TypeVar("Shown")


class Originals:
    """The originals of an index. `shown`: the settings keep them. `scope` is that of `DocumentTexts`."""

    def __init__(self, texts: DocumentTexts, reader: OriginalReader, *, shown: bool) -> None:
        self._texts = texts
        self._reader = reader
        self.shown = shown

    async def picture(self, document_id: str, page: int, *, scope: Viewer | None = None) -> bytes:
        """A page of the original, counted from 1, as a PNG.

        Raises `NotFound` for a document that is not in scope, `NoOriginal`, `OriginalUnreadable` and `MissingExtra`.
        """
        pdf = await self._content(await self._texts.part(document_id, 0, 0, scope=scope), scope)
        return await _read(lambda: self._reader.picture(pdf, page))

    async def pages(self, document_id: str, start: int, end: int, *, scope: Viewer | None = None) -> OriginalPages:
        """How many pages there are, and where on them the text of the document from `start` to `end` is.

        Raises as `picture` does, and `InvalidInput` for a text that is too long.
        """
        if not 0 <= start <= end <= start + MAX_SPAN:
            raise InvalidInput(f"start is at least 0, and end from start to start + {MAX_SPAN:,}.")
        first = max(0, start - CONTEXT)
        part = await self._texts.part(document_id, first, end + CONTEXT, scope=scope)
        pdf = await self._content(part, scope)
        starts = [each for passage in part.passages for each in stored_page_starts(passage.metadata, passage.start)]
        sought = sought_on_pages(starts, part.text, first, start, end)
        count, boxes = await _read(lambda: self._reader.places(pdf, sought))
        marked = [MarkedPage(text.page, tuple(each)) for text, each in zip(sought, boxes, strict=True)]
        return OriginalPages(part.document_id, count, tuple(marked))

    async def close(self) -> None:
        """End the process that reads originals."""
        await self._reader.close()

    async def _content(self, part: DocumentText, scope: Viewer | None) -> bytes:
        content = await self._texts.original(part.document_id, scope=scope) if self.shown and part.original else None
        if content is None:
            raise NoOriginal(name=part.document_id)
        return content


def keeps_originals(settings: Settings) -> bool:
    """Whether originals are stored and shown: never while texts are masked. Raises `InvalidInput`."""
    if settings.keep_originals not in {"on", "off"}:
        raise InvalidInput(f"DTRAG_KEEP_ORIGINALS is {settings.keep_originals[:20]!r}, but must be on or off.")
    return settings.keep_originals == "on" and settings.pii != "mask"


async def _read(reading: Callable[[], Awaitable[Shown]]) -> Shown:
    try:
        return await reading()
    except ParseFailed as error:
        raise OriginalUnreadable(reason=error) from error
