"""A scope only ever narrows; filters are checked at the door, and what does not exist matches nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrag.core.access.scope import (
    CONTENT_TYPES,
    MAX_METADATA,
    MAX_METADATA_CHARACTERS,
    MAX_PATHS,
    Scope,
    SearchFilters,
    filter_keys,
)
from dtrag.core.taxonomy.tree import ROOT, CategoryPath, Node, Taxonomy
from dtrag.errors import InvalidInput

TREE = Taxonomy.of(
    "1",
    [
        Node(2, ROOT, "AI", "ai"),
        Node(3, 2, "ML", "ml"),
        Node(4, ROOT, "HR", "hr"),
        Node(5, 4, "Salary", "salary"),
        Node(6, ROOT, "AIX", "aix"),
    ],
)
SCOPES = st.none() | st.frozensets(st.integers(0, 9))
EVERYTHING = Scope.everything()
PATHS = st.lists(st.sampled_from([["ai"], ["AI", "ML"], ["hr"], ["hr", "salary"], ["aix"], ["ghost"]]), max_size=4)


def _narrowed(raw: dict[str, Any], caller: Scope = EVERYTHING) -> set[int]:
    nodes = SearchFilters.parse(raw).scope(TREE, caller).nodes
    assert nodes is not None
    return set(nodes)


@settings(max_examples=100)
@given(SCOPES, st.lists(st.frozensets(st.integers(0, 9)), min_size=1, max_size=3))
def test_narrowing_never_widens(nodes: frozenset[int] | None, steps: list[frozenset[int]]) -> None:
    scope = Scope(nodes)
    for step in steps:
        narrower = scope.narrowed(step)
        assert narrower.nodes is not None
        assert narrower.nodes == (step if scope.nodes is None else step & scope.nodes)
        scope = narrower


@settings(max_examples=100)
@given(SCOPES, PATHS)
def test_a_filter_never_widens_and_a_longer_path_never_sees_more(
    nodes: frozenset[int] | None, paths: list[list[str]]
) -> None:
    seen = _narrowed({"taxonomy_paths": paths}, Scope(nodes))
    assert nodes is None or seen <= nodes
    wider = _narrowed({"taxonomy_paths": [path[:1] for path in paths]}, Scope(nodes))
    assert seen <= wider


def test_scope_case_1_the_request_is_intersected_with_the_callers_scope() -> None:
    caller = Scope(frozenset({2, 3}))
    assert _narrowed({"allowed_category_paths": [["hr"]]}, caller) == set()
    assert _narrowed({"canonical_in": [["hr"], ["AI", "ML"]]}, caller) == {3}


def test_no_filter_leaves_the_callers_scope() -> None:
    caller = Scope(frozenset({2, 3}))
    for raw in (None, {}, {"content_types": None}, {"date_from": None}):
        assert SearchFilters.parse(raw).scope(TREE, caller) == caller
        assert SearchFilters.parse(raw) == SearchFilters()


@pytest.mark.parametrize("key", ["taxonomy_paths", "allowed_category_paths", "canonical_in"])
def test_scope_case_3_an_empty_list_of_paths_sees_nothing(key: str) -> None:
    assert _narrowed({key: []}) == set()
    refused: list[object] = [[[]], None, [None], "ai", {"ai": 1}, 5, [5]]
    for value in refused:
        with pytest.raises(InvalidInput):
            SearchFilters.parse({key: value})


def test_a_path_is_a_branch_and_a_longer_name_another_branch() -> None:
    assert _narrowed({"taxonomy_paths": [["ai"]]}) == {2, 3}
    assert _narrowed({"taxonomy_paths": ["ＡＩ/ml", ["HR"]]}) == {3, 4, 5}


def test_a_path_that_does_not_exist_matches_nothing() -> None:
    assert _narrowed({"taxonomy_paths": [["ghost"], ["ai", "ghost"], ["АІ"]]}) == set()


def test_scope_case_2_climbing_out_of_a_branch_is_refused() -> None:
    with pytest.raises(InvalidInput, match="Unsafe characters"):
        SearchFilters.parse({"taxonomy_paths": [["AI", "ML", "..", "HR"]]})


def test_scope_case_10_ten_thousand_paths_are_refused() -> None:
    assert len(SearchFilters.parse({"taxonomy_paths": [["ai"]] * MAX_PATHS}).paths or ()) == MAX_PATHS
    with pytest.raises(InvalidInput, match="at most 100"):
        SearchFilters.parse({"taxonomy_paths": [["ai"]] * 10_000})


def test_scope_case_11_an_unknown_filter_is_refused_and_not_repeated() -> None:
    for key in ("bypass_attempt", "Taxonomy_Paths", "", "x" * 5_000):
        with pytest.raises(InvalidInput, match="Unknown filter") as caught:
            SearchFilters.parse({key: True})
        assert not key or key not in str(caught.value)


def test_only_one_filter_for_paths_is_allowed() -> None:
    with pytest.raises(InvalidInput, match="not several"):
        SearchFilters.parse({"taxonomy_paths": [["ai"]], "canonical_in": [["ai"]]})


def test_only_known_content_types_are_allowed() -> None:
    assert SearchFilters.parse({"content_types": sorted(CONTENT_TYPES)}).content_types == tuple(sorted(CONTENT_TYPES))
    assert SearchFilters.parse({"content_types": []}).content_types == ()
    for value in ("text/plain", ["text/x"], [None], [["text/plain"]], 5, {"text/plain": 1}, ["TEXT/PLAIN"]):
        with pytest.raises(InvalidInput, match="content"):
            SearchFilters.parse({"content_types": value})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2025-01-31", datetime(2025, 1, 31, tzinfo=UTC)),
        ("2025-01-31T09:00:00Z", datetime(2025, 1, 31, 9, tzinfo=UTC)),
        ("2025-01-31T09:00:00+09:00", datetime(2025, 1, 31, 0, tzinfo=UTC)),
    ],
)
def test_dates_are_read_as_utc(value: str, expected: datetime) -> None:
    filters = SearchFilters.parse({"date_from": value, "date_to": value})
    assert (filters.date_from, filters.date_to) == (expected, expected)
    assert filters.date_from is not None
    assert filters.date_from.utcoffset() == expected.utcoffset()


@pytest.mark.parametrize(
    "value", ["yesterday", "", "2025-13-01", 20250131, 1.5, True, ["2025-01-31"], "1" * 41, "0001-01-01T00:00+23:59"]
)
def test_invalid_dates_are_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match="date_to is not an ISO 8601 date"):
        SearchFilters.parse({"date_to": value})


def test_parsed_paths_keep_their_order() -> None:
    filters = SearchFilters.parse({"taxonomy_paths": (["HR"], "AI/ML")})
    assert filters.paths == (CategoryPath.parse(["HR"]), CategoryPath.parse(["AI", "ML"]))


KEYS = frozenset({"author", "year", "draft", "kind"})


@pytest.mark.parametrize("raw", [5, "taxonomy_paths", ["taxonomy_paths"], True, 0, ""])
def test_filters_that_are_not_an_object_are_refused(raw: Any) -> None:
    with pytest.raises(InvalidInput, match="filters are an object"):
        SearchFilters.parse(raw)


def test_empty_ranges_of_dates_are_refused() -> None:
    with pytest.raises(InvalidInput, match="later than date_to"):
        SearchFilters.parse({"date_from": "2025-02-01", "date_to": "2025-01-31T23:59:59Z"})
    SearchFilters.parse({"date_from": "2025-02-01T00:00:00+09:00", "date_to": "2025-01-31T15:00:00Z"})


def test_metadata_filters_use_declared_keys_in_a_fixed_order() -> None:
    facts = {"year": 2024, "author": "Kim", "draft": False}
    parsed = SearchFilters.parse({"metadata": facts}, KEYS)
    assert parsed.metadata == (("author", "Kim"), ("draft", False), ("year", 2024))
    assert parsed == SearchFilters.parse({"metadata": dict(reversed(facts.items()))}, KEYS)
    assert SearchFilters.parse({"metadata": None}, KEYS) == SearchFilters()


def test_a_boolean_is_not_a_number() -> None:
    """Python holds 1 and True equal, the database does not: caches must not, either."""
    one, true, float_one = (SearchFilters.parse({"metadata": {"year": value}}, KEYS) for value in (1, True, 1.0))
    assert one != true
    assert hash(one) != hash(true)
    assert one == float_one


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"salary": 1}, "filter_keys: author, draft, kind, year"),
        ({5: 1}, "cannot be filtered by"),
        ({"x" * 5_000: 1}, "cannot be filtered by"),
        ({}, "1 to 16 fields"),
        ({f"k{number}": 1 for number in range(MAX_METADATA + 1)}, "1 to 16 fields"),
        ([["author", "Kim"]], "1 to 16 fields"),
        ("author=Kim", "1 to 16 fields"),
        ({"author": None}, "author must be"),
        ({"author": ["Kim"]}, "author must be"),
        ({"author": {"name": "Kim"}}, "author must be"),
        ({"author": "x" * (MAX_METADATA_CHARACTERS + 1)}, "author must be"),
        ({"author": "Kim\x00"}, "author must be"),
        ({"author": "\ud800"}, "author must be"),
        ({"year": float("nan")}, "year must be"),
        ({"year": float("inf")}, "year must be"),
        ({"year": 10**30}, "year must be"),
    ],
)
def test_undeclared_metadata_fields_are_refused(metadata: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said) as caught:
        SearchFilters.parse({"metadata": metadata}, KEYS)
    assert len(str(caught.value)) < 200


def test_without_declared_keys_no_metadata_filter_is_allowed() -> None:
    with pytest.raises(InvalidInput, match="filter_keys: nothing"):
        SearchFilters.parse({"metadata": {"author": "Kim"}})


@pytest.mark.parametrize(
    ("raw", "admitted"),
    [
        ({}, True),
        ({"content_types": ["text/plain", "text/html"]}, True),
        ({"content_types": ["text/html"]}, False),
        ({"content_types": []}, False),
        ({"date_from": "2025-06-01"}, True),
        ({"date_from": "2025-06-02"}, False),
        ({"date_to": "2025-06-01"}, True),
        ({"date_to": "2025-05-31"}, False),
        ({"metadata": {"author": "Kim", "draft": True}}, True),
        ({"metadata": {"author": "Kim", "draft": 1}}, False),
        ({"metadata": {"author": "kim"}}, False),
        ({"metadata": {"kind": "x"}}, False),
    ],
)
def test_documents_that_filters_admit(raw: dict[str, Any], admitted: bool) -> None:
    filters = SearchFilters.parse(raw, KEYS)
    assert filters.admits("text/plain", datetime(2025, 6, 1, tzinfo=UTC), {"author": "Kim", "draft": True}) is admitted


def test_keys_are_declared_with_commas() -> None:
    assert filter_keys(" author, 저자 ,year,,") == {"author", "저자", "year"}
    assert filter_keys("") == frozenset()
    for declared in ("a b", "1st", "a;drop", "x" * 51):
        with pytest.raises(InvalidInput, match="is invalid"):
            filter_keys(declared)
