"""Lists of documents: searched, filtered, sorted, continued; selections of them; and parts of the text of one."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import Literal, get_args
from urllib.parse import unquote, urldefrag

from dtrag.core.access.scope import SearchFilters
from dtrag.core.documents import DocumentSummary, Scalar, uuid_or_none
from dtrag.core.page_starts import page_at
from dtrag.core.response import response
from dtrag.core.taxonomy.tree import CategoryPath
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


@dataclass(frozen=True, slots=True)
class PassageSpan:
    """A passage without its text; positions are code points of the document's text."""

    __pydantic_config__ = response("PassageSpanShape")

    chunk_id: str
    """Id of the passage: document id, colon, position."""
    ordinal: int
    """Its position among the passages, from 0."""
    start: int
    """Its start."""
    end: int
    """Its end (exclusive)."""
    breadcrumb: tuple[str, ...] = ()
    """Headings above it, outermost first."""
    page: int | None = field(init=False, default=None)
    """Page of the PDF on which it begins; null if unknown."""
    metadata: Mapping[str, Scalar] = field(default_factory=dict)
    """Its own metadata, such as article and article_title."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "page", page_at(self.metadata))


@dataclass(frozen=True, slots=True)
class DocumentText:
    """A part of a document's text."""

    __pydantic_config__ = response("DocumentTextShape")

    document_id: str
    """The document."""
    characters: int
    """Length of the whole text in code points."""
    start: int
    """Start of this part, in code points."""
    end: int
    """Its end (exclusive)."""
    text: str
    """The text of this part, verbatim."""
    passages: tuple[PassageSpan, ...]
    """The passages that overlap with it, in order."""
    original: bool = False
    """Whether you may see the pages of the file that it was read from."""


PATTERN_CHARACTERS = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class DocumentTarget:
    """An id, path or pattern as typed, and its parsed form."""

    text: str
    document_id: str = ""
    address: str = ""
    pattern: re.Pattern[str] | None = None

    @classmethod
    def parse(cls, text: str, address: str) -> DocumentTarget:
        """`address` is `text` as an absolute path; a pattern without "/" is compared with file names."""
        try:
            return cls(text, document_id=str(uuid.UUID(text)))
        except ValueError:
            pass
        if PATTERN_CHARACTERS & set(text):
            return cls(text, pattern=re.compile(_expression(address if "/" in text else text)))
        return cls(text, address=address.rstrip("/") or "/")

    def matches(self, document_id: str, path: str) -> bool:
        """Whether it selects the document with this path: by its id, its file, or a folder above it."""
        if self.document_id:
            return document_id == self.document_id
        if self.pattern is None:
            return path == self.address or path.startswith(self.address.rstrip("/") + "/")
        whole = self.pattern.pattern.startswith("/")
        return self.pattern.fullmatch(path if whole else PurePosixPath(path).name) is not None


def file_path(source_url: str) -> str:
    """The path of the source file of a document; for another source, its address without the fragment."""
    address = source_url.partition("#")[0]
    return unquote(address.removeprefix("file://"))


def select(
    documents: Iterable[tuple[DocumentSummary, str]], targets: Sequence[DocumentTarget], category: CategoryPath | None
) -> tuple[list[DocumentSummary], list[str]]:
    """The documents (with the paths of their files) that match a target and are in the category, and the targets
    without a match. Without targets: all documents of the category."""
    chosen: list[DocumentSummary] = []
    used: set[str] = set()
    branch = category.key if category is not None else ()
    for document, path in documents:
        if branch and CategoryPath.parse(document.taxonomy_path or ("-",)).key[: len(branch)] != branch:
            continue
        matching = [target.text for target in targets if target.matches(document.document_id, path)]
        used.update(matching)
        if matching or not targets:
            chosen.append(document)
    return chosen, [target.text for target in targets if target.text not in used]


def _expression(pattern: str) -> str:
    """A regular expression for a shell pattern: `*` and `?` do not match "/", `**` does."""
    special = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(
        special.get(piece) or (_character_class(piece) if len(piece) > 1 else re.escape(piece))
        for piece in re.findall(r"\*\*/|\*\*|\*|\?|\[!?[^]/]+\]|.", pattern, re.DOTALL)
    )


def _character_class(piece: str) -> str:
    negated, characters = ("^", piece[2:-1]) if piece[1] == "!" else ("", piece[1:-1])
    return "[" + negated + re.sub(r"([\\\[^])", r"\\\1", characters) + "]"
