"""What is asked of a search, checked at the door; and what it may reach, once the state of the index is known."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypedDict, get_args

from dtrag.core.access.scope import Scope, SearchFilters, Viewer
from dtrag.core.text.analysis import clean
from dtrag.errors import InvalidInput
from dtrag.ports import IndexSnapshot

Mode = Literal["hybrid", "lexical", "strict", "vector"]
MODES: tuple[str, ...] = get_args(Mode)
MAX_QUERY = 10_000
CANDIDATES = 100
"""Passages that each leg proposes, unless told otherwise: a passage that one side missed then counts for nearly what it
is, and exact scores for it gain nothing (bench/README.md)."""
MAX_TOP_K = 1_000
MAX_EXPLAINED = 20
"""Documents that one search explains: each costs a look at all its passages."""
MAX_ID = 200


class SearchOptions(TypedDict, total=False):
    """What every way to search takes besides the query; the meaning is that of `HybridSearchEngine.search`."""

    bm25_candidates: int
    vector_candidates: int
    correlation_id: str | None
    explain: bool
    explain_documents: Sequence[str]
    highlight: bool
    exact_candidates: bool
    seconds: float | None


class ScopedSearchOptions(SearchOptions, total=False):
    """The same, for searches whose scope the engine may know already."""

    scope: Viewer | None


class ModeSearchOptions(SearchOptions, total=False):
    """The same, for searches of any mode."""

    mode: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A search as it was asked for. `explained` are the documents whose absence is to be explained."""

    query: str
    top_k: int
    filters: SearchFilters
    bm25_candidates: int
    vector_candidates: int
    scope: Viewer
    mode: str
    correlation_id: str
    explain: bool
    explained: tuple[str, ...]
    highlight: bool

    @classmethod
    def parse(
        cls,
        query: object,
        top_k: object,
        filters: Mapping[str, Any] | None,
        *,
        bm25_candidates: object,
        vector_candidates: object,
        correlation_id: object,
        scope: Viewer | None,
        mode: object,
        explain: object,
        explain_documents: Sequence[str],
        highlight: object,
        keys: Collection[str],
        exact_candidates: bool = False,
    ) -> Asked:
        """Raises `InvalidInput` for the first thing that is wrong.

        Each leg proposes `top_k` at least, unless `exact_candidates` holds it to its number.
        """
        wanted = whole("top_k", top_k)
        least = 1 if exact_candidates else wanted
        if mode not in MODES:
            raise InvalidInput(f"There is no search mode of this name. Modes: {', '.join(MODES)}.")
        if correlation_id is not None and (not isinstance(correlation_id, str) or len(correlation_id) > MAX_ID):
            raise InvalidInput(f"correlation_id must be a text of at most {MAX_ID} characters.")
        if not isinstance(explain, bool) or not isinstance(highlight, bool):
            raise InvalidInput("explain and highlight must be True or False.")
        explained = _documents(explain_documents)
        return cls(
            query=text(query),
            top_k=wanted,
            filters=SearchFilters.parse(filters, keys),
            bm25_candidates=max(least, whole("bm25_candidates", bm25_candidates)),
            vector_candidates=max(least, whole("vector_candidates", vector_candidates)),
            scope=required(scope),
            mode=str(mode),
            correlation_id=correlation_id or "",
            explain=explain or bool(explained),
            explained=explained,
            highlight=highlight,
        )


@dataclass(frozen=True, slots=True)
class Reach:
    """The state of the index that a search sees, and which documents in it: those in `scope` that the filters admit.

    `caller` is the scope before the filters' paths narrowed it.
    """

    snapshot: IndexSnapshot
    caller: Scope
    scope: Scope
    filters: SearchFilters

    @classmethod
    def of(cls, snapshot: IndexSnapshot, filters: SearchFilters, viewer: Viewer) -> Reach:
        """What the viewer may see becomes nodes of the tree, and so do the paths among the filters, which narrow it."""
        caller = viewer.resolved(snapshot.taxonomy)
        return cls(snapshot, caller, filters.scope(snapshot.taxonomy, caller), replace(filters, paths=None))

    def identity(self) -> Hashable:
        """What tells the reach apart from any other, now and after the next write."""
        return (
            self.snapshot.generation,
            self.snapshot.taxonomy.version,
            self.rebuilding,
            self.scope.nodes,
            self.scope.server_paths,
            self.filters,
        )

    @property
    def rebuilding(self) -> bool:
        """Whether documents may be missing, because the index is being built anew."""
        return bool(self.snapshot.settings.get("rebuilding"))


def text(query: object) -> str:
    """The query without what no database can hold. Raises `InvalidInput`."""
    if not isinstance(query, str):
        raise InvalidInput("The query must be text.")
    if len(query) > MAX_QUERY:
        raise InvalidInput(f"The query has {len(query):,} characters; at most {MAX_QUERY:,} are taken.")
    return clean(query)


def whole(name: str, value: object) -> int:
    """A number of passages. Raises `InvalidInput`."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_TOP_K:
        raise InvalidInput(f"{name} must be a whole number from 1 to {MAX_TOP_K}.")
    return value


def required(scope: Viewer | None) -> Viewer:
    """The scope. Raises `InvalidInput` when it is none, such as a list of paths."""
    if not isinstance(scope, Viewer):
        raise InvalidInput("scope is not a scope: give one such as Scope.everything(), or leave it out.")
    return scope


def _documents(ids: object) -> tuple[str, ...]:
    if isinstance(ids, str) or not isinstance(ids, Sequence) or len(ids) > MAX_EXPLAINED:
        raise InvalidInput(f"explain_documents is a list of at most {MAX_EXPLAINED} ids of documents.")
    for document_id in ids:
        if not isinstance(document_id, str) or len(document_id) > MAX_ID:
            raise InvalidInput(f"explain_documents holds ids of documents, texts of at most {MAX_ID} characters.")
    return tuple(dict.fromkeys(ids))
