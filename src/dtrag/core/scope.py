"""What a caller may see, and what a request narrows it to. Parsed once at the door, trusted everywhere deeper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dtrag.core.taxonomy import CategoryPath, Taxonomy
from dtrag.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Scope:
    """The taxonomy nodes whose documents a caller may see: a required argument of every read.

    `nodes` is None for the whole tree including the unclassified; an empty set sees nothing.
    """

    nodes: frozenset[int] | None

    @classmethod
    def everything(cls) -> Scope:
        """The scope of an administrator."""
        return cls(None)

    def narrowed(self, nodes: Iterable[int]) -> Scope:
        """The intersection with `nodes`; never wider than self."""
        wanted = frozenset(nodes)
        return Scope(wanted if self.nodes is None else self.nodes & wanted)


CONTENT_TYPES = frozenset(
    {
        "text/plain",
        "text/markdown",
        "text/html",
        "text/csv",
        "application/pdf",
        "application/json",
        "application/hwp+zip",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    }
)
_PATH_KEYS = ("taxonomy_paths", "allowed_category_paths", "canonical_in")
MAX_PATHS = 100


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """A request's filters, checked. None means: not asked for."""

    paths: tuple[CategoryPath, ...] | None = None
    content_types: tuple[str, ...] | None = None
    date_from: datetime | None = None
    date_to: datetime | None = None
    metadata: tuple[tuple[str, str | int | float | bool], ...] | None = None

    @classmethod
    def parse(cls, raw: Mapping[str, Any] | None) -> SearchFilters:
        """From the plain dictionary of a request. Raises `InvalidInput` for unknown keys and bad values."""
        raw = raw or {}
        known = {*_PATH_KEYS, "content_types", "date_from", "date_to"}
        for key in raw:
            if key not in known:
                raise InvalidInput(f"There is no filter {str(key)[:40]!r}. Known filters: {', '.join(sorted(known))}.")
        asked = [_paths(key, raw[key]) for key in _PATH_KEYS if key in raw]
        if len(asked) > 1:
            raise InvalidInput(f"Give one of {', '.join(_PATH_KEYS)}, not several.")
        types = raw.get("content_types")
        return cls(
            paths=asked[0] if asked else None,
            content_types=_content_types(types) if types is not None else None,
            date_from=_date("date_from", raw.get("date_from")),
            date_to=_date("date_to", raw.get("date_to")),
        )

    def scope(self, taxonomy: Taxonomy, caller: Scope) -> Scope:
        """The caller's scope narrowed to the asked branches; a path that does not exist matches nothing."""
        if self.paths is None:
            return caller
        nodes: set[int] = set()
        for path in self.paths:
            found = taxonomy.find(path)
            if found is not None:
                nodes |= taxonomy.subtree(found)
        return caller.narrowed(nodes)


def _paths(key: str, value: object) -> tuple[CategoryPath, ...]:
    if not isinstance(value, (list, tuple)):
        raise InvalidInput(f"{key} is a list of category paths, such as [['AI', 'ML']].")
    if len(value) > MAX_PATHS:
        raise InvalidInput(f"{key} takes at most {MAX_PATHS} paths.")
    return tuple(CategoryPath.parse(path) for path in value)


def _content_types(value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)):
        raise InvalidInput("content_types is a list, such as ['application/pdf'].")
    for item in value:
        if not isinstance(item, str) or item not in CONTENT_TYPES:
            raise InvalidInput(
                f"There is no content type {str(item)[:60]!r}. Known: {', '.join(sorted(CONTENT_TYPES))}."
            )
    return tuple(value)


def _date(key: str, value: object) -> datetime | None:
    if value is None:
        return None
    try:
        if not isinstance(value, str) or len(value) > 40:
            raise ValueError
        parsed = datetime.fromisoformat(value)
        return parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"{key} is not an ISO 8601 date, such as 2025-01-31 or 2025-01-31T09:00:00Z.") from error
