"""How a list of documents is searched, filtered, sorted and continued."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args
from urllib.parse import unquote, urldefrag

from dtrag.core.access.scope import SearchFilters
from dtrag.core.documents import DocumentSummary, uuid_or_none
from dtrag.core.text.analysis import clean, normalise
from dtrag.errors import InvalidInput

Sort = Literal["newest", "oldest", "title", "largest", "smallest"]
SORTS: tuple[Sort, ...] = get_args(Sort)
MAX_TEXT = 200
"""Characters of a text that titles and names are searched for."""
TITLE_KEY = 100
"""Characters of a title that documents are sorted by."""
MAX_SIZE = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a sorted list: the sort key of a document (time, title or size) and its id."""

    key: datetime | str | int
    document_id: uuid.UUID


@dataclass(frozen=True, slots=True)
class DocumentListing:
    """Which documents a list has, and in which order.

    `text` is folded and occurs in the title or the name of the source. None in `content_types`: all. The list begins
    behind the position `after`.
    """

    text: str = ""
    content_types: tuple[str, ...] | None = None
    sort: Sort = "newest"
    after: Position | None = None

    @classmethod
    def parse(
        cls, text: str = "", content_types: Sequence[str] | None = None, sort: Sort = "newest", after: str = ""
    ) -> DocumentListing:
        """Validate the options of a request. Raises `InvalidInput`."""
        if len(text) > MAX_TEXT:
            raise InvalidInput(f"The text has {len(text):,} characters; titles are searched for {MAX_TEXT} at most.")
        if sort not in SORTS:
            raise InvalidInput(f"There is no order {sort[:20]!r}. Orders: {', '.join(SORTS)}.")
        types = SearchFilters.parse({"content_types": list(content_types)}).content_types if content_types else None
        return cls(normalise(clean(text)), types, sort, _position(after, sort) if after else None)


WHOLE_LIST = DocumentListing()
"""All documents, the newest first."""


def search_name(title: str, source_uri: str, source_path: str) -> str:
    """The folded text that lists are searched in: title and name of the source.

    Of a file it is the path below the ingested folder, which everyone may see who sees the document; folders of the
    server must not be found by those who may not see them.
    """
    return normalise(clean(f"{title} {_source_name(source_uri, source_path)}"))


def sort_title(title: str) -> str:
    """The folded beginning of a title; titles are sorted by its code points."""
    return normalise(clean(title))[:TITLE_KEY]


def continuation(document: DocumentSummary, sort: Sort) -> str:
    """Where a list goes on behind this document, as text for the next request."""
    match sort:
        case "newest" | "oldest":
            key = document.processed_at
        case "title":
            key = sort_title(document.title)
        case "largest" | "smallest":
            key = str(document.characters)
    return f"{sort}:{document.document_id}:{key}"


def _source_name(source_uri: str, source_path: str) -> str:
    if not source_uri.startswith("file:"):
        return unquote(source_uri.removeprefix("upload:"))
    return source_path or unquote(urldefrag(source_uri).url.rpartition("/")[2])


def _position(text: str, sort: Sort) -> Position:
    """Raises `InvalidInput` for a text that `continuation` did not give for this order."""
    order, _, rest = text.partition(":")
    name, _, value = rest.partition(":")
    document_id = uuid_or_none(name)
    key = _sort_key(value, sort)
    if order != sort or document_id is None or key is None:
        raise InvalidInput("`after` is the `next` of a list in the same order. Begin the list again without it.")
    return Position(key, document_id)


def _sort_key(value: str, sort: Sort) -> datetime | str | int | None:
    if sort == "title":
        return clean(value)[:TITLE_KEY]
    try:
        if sort in {"largest", "smallest"}:
            size = int(value)
            return size if 0 <= size <= MAX_SIZE else None
        time = datetime.fromisoformat(value)
    except ValueError:
        return None
    return time if time.tzinfo is not None else None
