"""Contents of passages that were read before, so that a search does not transfer and decode them again.

The cache never decides who sees a passage: every read asks the database which passages the caller may see now, and in
which version (gate 2), and only takes the contents of that version from here.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote, urldefrag

from psycopg.rows import DictRow

from dtrag.core.access.scope import Scope, SearchFilters
from dtrag.core.documents import SearchResult
from dtrag.core.editions import ValidPassages, days
from dtrag.core.taxonomy.tree import Taxonomy

CACHE_BYTES = 32 * 2**20
"""Estimated size of all cached contents: some 10,000 passages."""
_OVERHEAD = 2_000
"""Bytes of a passage's metadata and objects, about."""
_CONTAINERS = frozenset({list, dict})
Version = tuple[datetime, bytes]
"""When the document was written, and its fingerprint: a document that is written again differs in one of them."""


@dataclass(frozen=True, slots=True)
class PassageContent:
    """A passage without what depends on the caller or on the taxonomy."""

    chunk_id: str
    version: Version
    text: str
    title: str
    source_uri: str
    source_path: str
    content_type: str
    breadcrumb: tuple[str, ...]
    start: int
    end: int
    metadata: Mapping[str, Any]
    document_metadata: Mapping[str, Any]
    is_flat: bool
    """Whether all values of `metadata` are immutable."""

    @classmethod
    def of(cls, chunk_id: str, row: DictRow) -> PassageContent:
        """The content of a row of `passages_in_scope`."""
        metadata = {
            **row["document_metadata"],
            **row["metadata"],
            "document_id": chunk_id.rpartition(":")[0],
            "content_type": row["content_type"],
            "language": row["language"],
            "processed_at": row["processed_at"].isoformat(),
        }
        return cls(
            chunk_id=chunk_id,
            version=version_of(row),
            text=row["text"],
            title=row["title"],
            source_uri=row["source_uri"],
            source_path=row["source_path"],
            content_type=row["content_type"],
            breadcrumb=tuple(row["breadcrumb"]),
            start=row["start_offset"],
            end=row["end_offset"],
            metadata=metadata,
            document_metadata=row["document_metadata"],
            is_flat=_CONTAINERS.isdisjoint(map(type, metadata.values())),
        )

    def passes(self, filters: SearchFilters) -> bool:
        """Whether its document passes the filters."""
        return filters.admits(self.content_type, self.version[0], self.document_metadata)

    def shown(self, node_id: int, taxonomy: Taxonomy, scope: Scope, valid: ValidPassages | None = None) -> SearchResult:
        """The passage as the caller sees it; nothing mutable is shared with other callers.

        `valid` is its validity if it belongs to a dated edition.
        """
        metadata = dict(self.metadata) if self.is_flat else copy.deepcopy(dict(self.metadata))
        if valid is not None:
            metadata |= days(valid.start, valid.end)
        return SearchResult(
            chunk_id=self.chunk_id,
            text=self.text,
            title=self.title,
            source_url=shown_address(self.source_uri, self.source_path, server_paths=scope.server_paths),
            taxonomy_path=list(taxonomy.path(node_id)),
            metadata=metadata,
            breadcrumb=self.breadcrumb,
            start=self.start,
            end=self.end,
        )


def version_of(row: DictRow) -> Version:
    """The version of the document that a passage belongs to."""
    return row["processed_at"], bytes(row["fingerprint"])


class PassageCache:
    """The contents of the passages that were read last, by chunk id."""

    def __init__(self, cache_bytes: int = CACHE_BYTES) -> None:
        self._contents: OrderedDict[str, PassageContent] = OrderedDict()
        self._most = self._free = cache_bytes

    def known(self, chunk_ids: Iterable[str]) -> dict[str, PassageContent]:
        """The contents that are cached, of whatever version."""
        contents = {}
        for chunk_id in chunk_ids:
            if (content := self._contents.get(chunk_id)) is not None:
                self._contents.move_to_end(chunk_id)
                contents[chunk_id] = content
        return contents

    def add(self, content: PassageContent) -> None:
        """Cache a content in place of an older version."""
        size, replaced = _size(content), self._contents.pop(content.chunk_id, None)
        if replaced is not None:
            self._free += _size(replaced)
        if size > self._most:
            return
        self._contents[content.chunk_id] = content
        self._free -= size
        while self._free < 0:
            self._free += _size(self._contents.popitem(last=False)[1])


def _size(content: PassageContent) -> int:
    return 2 * len(content.text) + _OVERHEAD


def shown_address(source_uri: str, source_path: str, *, server_paths: bool | None) -> str:
    """The address of a document: complete with `server_paths`, else for a file only its path below the ingested folder.

    `source_path` is that path; documents indexed by versions that did not store it have "", and show the file name.
    The fragment, which distinguishes documents of one file, is kept.
    """
    if server_paths or not source_uri.startswith("file:"):
        return source_uri
    address, fragment = urldefrag(source_uri)
    path = quote(source_path) or address.rsplit("/", 1)[-1]
    return f"{path}#{fragment}" if fragment else path
