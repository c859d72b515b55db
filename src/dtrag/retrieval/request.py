"""A validated search request, and its target: the state of the index with the documents that the search may return."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Literal, TypedDict, get_args

from dtrag.core.access.scope import Scope, SearchFilters, Viewer
from dtrag.core.editions import parse_date
from dtrag.core.text.analysis import clean
from dtrag.errors import InvalidInput
from dtrag.ports import IndexSnapshot, valid_day

Mode = Literal["hybrid", "lexical", "strict", "vector"]
MODES: tuple[str, ...] = get_args(Mode)
MAX_QUERY = 10_000
CANDIDATES = 100
"""Default number of candidates per retriever: with that many, a passage that one retriever missed gets nearly its true
score, and exact scores for it improve nothing (bench/README.md)."""
MAX_TOP_K = 1_000
DEFAULT_TOP_K = 10
"""Results of a search whose caller requests no number, where no pack chooses one."""
MAX_CHOSEN = 20
"""The highest number that is chosen."""
MAX_EXPLAINED = 20
"""Documents that one search explains: each costs a read of all its passages."""
MAX_ID = 200
MAX_SUGGESTED = 20
"""Suggested official words of one search."""

WeightChoice = Callable[[int, int], tuple[float, float]]
"""Numbers of lexical and vector candidates -> weights of the two scores."""


class SearchOptions(TypedDict, total=False):
    """Options of every search function besides the query; `HybridSearchEngine.search` defines them."""

    bm25_candidates: int
    vector_candidates: int
    correlation_id: str | None
    explain: bool
    explain_documents: Sequence[str]
    highlight: bool
    exact_candidates: bool
    seconds: float | None
    as_of: date | str | None
    official_words: Sequence[str]
    choose_weights: WeightChoice | None
    at_least: int


class ScopedSearchOptions(SearchOptions, total=False):
    """`SearchOptions` and a scope, which defaults to that of the engine."""

    scope: Viewer | None


class ModeSearchOptions(SearchOptions, total=False):
    """`SearchOptions` and the search mode."""

    mode: str


@dataclass(frozen=True, slots=True)
class SearchArguments:
    """The validated arguments of one search.

    `filter_values` are the filters as the caller passed them, `official_words` suggestions for a pack, `added_terms`
    further term ids with weights (from a pack). The absence of `explained_documents` is explained.
    `choose_weights` decides the weights of the two scores, None: the configured ones.
    With `chooses_top_k` the number of results is chosen after the ranking, and `top_k` is the highest possible one;
    there are `at_least` that many.
    """

    query: str
    top_k: int
    filters: SearchFilters
    filter_values: Mapping[str, Any]
    bm25_candidates: int
    vector_candidates: int
    scope: Viewer
    mode: str
    correlation_id: str
    explain: bool
    explained_documents: tuple[str, ...]
    highlight: bool
    official_words: tuple[str, ...] = ()
    added_terms: tuple[tuple[int, float], ...] = ()
    choose_weights: WeightChoice | None = None
    chooses_top_k: bool = False
    at_least: int = 0

    @classmethod
    def parse(
        cls,
        query: object,
        top_k: object,
        filters: Mapping[str, Any] | None,
        *,
        bm25_candidates: object,
        vector_candidates: object,
        scope: Viewer | None,
        mode: object,
        filter_keys: Collection[str],
        correlation_id: object = None,
        explain: object = False,
        explain_documents: Sequence[str] = (),
        highlight: object = True,
        exact_candidates: bool = False,
        as_of: object = None,
        official_words: Sequence[str] = (),
        choose_weights: WeightChoice | None = None,
        at_least: int = 0,
    ) -> SearchArguments:
        """Raises `InvalidInput` for the first invalid argument.

        `as_of` (2024-03-01) is the day whose editions are searched: it becomes a part of the scope.
        Each retriever returns `top_k` candidates at least; with `exact_candidates`, its own number.
        """
        requested_k = max(MAX_CHOSEN, at_least) if top_k is None else passage_count("top_k", top_k)
        min_candidates = 1 if exact_candidates else requested_k
        if mode not in MODES:
            raise InvalidInput(f"There is no search mode of this name. Modes: {', '.join(MODES)}.")
        if correlation_id is not None and (not isinstance(correlation_id, str) or len(correlation_id) > MAX_ID):
            raise InvalidInput(f"correlation_id must be a string of at most {MAX_ID} characters.")
        if not isinstance(explain, bool) or not isinstance(highlight, bool):
            raise InvalidInput("explain and highlight must be True or False.")
        explained = _document_ids(explain_documents)
        return cls(
            query=query_text(query),
            top_k=requested_k,
            filters=SearchFilters.parse(filters, filter_keys),
            filter_values=filters or {},
            bm25_candidates=max(min_candidates, passage_count("bm25_candidates", bm25_candidates)),
            vector_candidates=max(min_candidates, passage_count("vector_candidates", vector_candidates)),
            scope=require_scope(scope).at(parse_date("as_of", as_of)),
            mode=str(mode),
            correlation_id=correlation_id or "",
            explain=explain or bool(explained),
            explained_documents=explained,
            highlight=highlight,
            official_words=_words(official_words),
            choose_weights=choose_weights,
            chooses_top_k=top_k is None,
            at_least=at_least,
        )


@dataclass(frozen=True, slots=True)
class SearchTarget:
    """One state of the index, and the documents in it that a search may return: those in `scope` that pass `filters`.

    `caller` is the caller's scope before category filters narrowed it to `scope`. `version` is that of the snapshot if
    it must still be the index's when the texts are read, else None.
    """

    snapshot: IndexSnapshot
    caller: Scope
    scope: Scope
    filters: SearchFilters
    version: tuple[int, int] | None = None

    @classmethod
    def of(cls, snapshot: IndexSnapshot, filters: SearchFilters, viewer: Viewer) -> SearchTarget:
        """Resolve the viewer and the category paths of the filters to nodes of the snapshot's taxonomy."""
        caller = viewer.resolved(snapshot.taxonomy)
        return cls(snapshot, caller, filters.scope(snapshot.taxonomy, caller), replace(filters, paths=None))

    def today(self) -> SearchTarget:
        """The same target with today's texts, of whatever version."""
        caller, scope = replace(self.caller, as_of=None), replace(self.scope, as_of=None)
        return replace(self, caller=caller, scope=scope, version=None)

    def cache_key(self) -> Hashable:
        """A key that no other target has, and that changes with every write to the index."""
        return (
            self.snapshot.version,
            self.snapshot.taxonomy.version,
            self.is_rebuilding,
            self.caller.nodes,  # term statistics are counted in it
            self.scope.nodes,
            self.scope.server_paths,
            valid_day(self.scope),
            self.filters,
        )

    @property
    def is_rebuilding(self) -> bool:
        """Whether documents may be missing because the index is being rebuilt."""
        return bool(self.snapshot.settings.get("rebuilding"))


def is_earlier(scope: Scope) -> bool:
    """Whether the day of the scope is before today."""
    return scope.as_of is not None and scope.as_of < valid_day(Scope(scope.nodes))


def query_text(query: object) -> str:
    """The query without characters that PostgreSQL cannot store. Raises `InvalidInput`."""
    if not isinstance(query, str):
        raise InvalidInput("The query must be a string.")
    if len(query) > MAX_QUERY:
        raise InvalidInput(f"The query has {len(query):,} characters; the limit is {MAX_QUERY:,}.")
    return clean(query)


def passage_count(name: str, value: object) -> int:
    """The value of the argument `name` as a number of passages, from 1 to `MAX_TOP_K`. Raises `InvalidInput`."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_TOP_K:
        raise InvalidInput(f"{name} must be a whole number from 1 to {MAX_TOP_K}.")
    return value


def require_scope(scope: Viewer | None) -> Viewer:
    """The scope itself. Raises `InvalidInput` for any other value, such as a list of paths."""
    if not isinstance(scope, Viewer):
        raise InvalidInput("Invalid scope: pass a scope such as Scope.everything(), or omit it.")
    return scope


def _words(words: object) -> tuple[str, ...]:
    if isinstance(words, str) or not isinstance(words, Sequence) or len(words) > MAX_SUGGESTED:
        raise InvalidInput(f"official_words is a list of at most {MAX_SUGGESTED} words.")
    for word in words:
        if not isinstance(word, str) or len(word) > MAX_ID:
            raise InvalidInput(f"official_words contains words of at most {MAX_ID} characters.")
    return tuple(words)


def _document_ids(ids: object) -> tuple[str, ...]:
    if isinstance(ids, str) or not isinstance(ids, Sequence) or len(ids) > MAX_EXPLAINED:
        raise InvalidInput(f"explain_documents is a list of at most {MAX_EXPLAINED} document ids.")
    for document_id in ids:
        if not isinstance(document_id, str) or len(document_id) > MAX_ID:
            raise InvalidInput(f"explain_documents contains document ids: strings of at most {MAX_ID} characters.")
    return tuple(dict.fromkeys(ids))
