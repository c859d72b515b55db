"""The filter of documents in memory, and what counts as an attempt to get around one."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.access import category_filter
from dtrag.core.access.category_filter import CategoryFilter
from dtrag.core.access.filter_attacks import MOST_VALUES, attack_in
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.errors import InvalidInput

SPELLINGS = [["AI", "ML"], ["ai", "ml"], ["ＡＩ", "ＭＬ"], [" AI", "Ml "], ["AI", "ML", "Deep"], ("AI", "ML")]
OTHERS = [["AI"], ["AIX", "ML"], ["AI", "MLOps"], ["AI ML"], ["AI/ML"], ["ML", "AI"], ["АІ", "ML"], ["AI", "M\u200bL"]]


@pytest.mark.parametrize("path", SPELLINGS)
def test_all_spellings_of_an_allowed_branch_are_allowed(path: Any) -> None:
    made = CategoryFilter([["AI", "ML"]])
    assert made.is_allowed(path)
    assert made.is_allowed(path)
    assert made.apply_filter([{"canonical_path": path}]) == [{"canonical_path": path}]


@pytest.mark.parametrize(
    "path", [*OTHERS, None, [], (), "AI/ML", "AI", ["AI", None], ["AI", ["ML"]], [["AI", "ML"]], 7, {"AI": "ML"}]
)
def test_everything_else_is_blocked(path: Any) -> None:
    made = CategoryFilter([["AI", "ML"]])
    assert not made.is_allowed(path)
    assert not made.is_allowed(path)
    assert made.apply_filter([{"canonical_path": path}, {}]) == []


@pytest.mark.parametrize("allowed", [None, [], ()])
def test_without_a_path_nothing_is_allowed(allowed: Any) -> None:
    made = CategoryFilter(allowed)
    assert made.apply_filter([{"canonical_path": ["AI"]}, {"canonical_path": []}, {"canonical_path": None}, {}]) == []


@pytest.mark.parametrize("allowed", ["AI", [[]], [["AI", ".."]], [None], [["АI"]]])
def test_invalid_branches_are_refused(allowed: Any) -> None:
    with pytest.raises(InvalidInput):
        CategoryFilter(allowed)


def test_korean_in_both_normal_forms_is_the_same() -> None:
    made = CategoryFilter([[unicodedata.normalize("NFD", "학사")]])
    assert made.is_allowed(["학사", "졸업"])
    assert made.is_allowed([unicodedata.normalize("NFD", "학사")])


def test_strings_and_numbers_are_distinct() -> None:
    made = CategoryFilter([["1"]])
    number: Any = 1
    assert not made.is_allowed([number])
    assert made.is_allowed(["1"])
    assert not made.is_allowed([number])


def test_the_memory_of_known_entries_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(category_filter, "MOST_KNOWN", 10)
    made = CategoryFilter([["A7"]])
    assert sum(made.is_allowed([f"A{number}"]) for number in range(100)) == 1
    assert made.is_allowed(["A7"])
    assert len(made._known) <= 10


def test_its_actions_are_counted() -> None:
    made = CategoryFilter([["AI"]])
    assert made.statistics().pass_rate == made.statistics().documents_per_second == 0.0
    made.apply_filter([{"canonical_path": ["AI"]}, {"canonical_path": ["HR"]}, {}, {"canonical_path": ["ai", "x"]}])
    made.validate_filter_bypass_attempt({"canonical_path": ["..", "HR"]})
    made.validate_filter_bypass_attempt({"canonical_path": ["AI"]})
    found = made.statistics()
    assert (found.total, found.allowed, found.blocked, found.pass_rate) == (4, 2, 2, 0.5)
    assert found.documents_per_second > 0
    assert found.attempts == {"path_traversal": 1, "injection": 0, "bypass": 0}


@given(st.text(alphabet=st.one_of(st.characters(), st.sampled_from("aZ9 _-가힣ß")), max_size=60))
def test_names_are_folded_as_paths_fold_them(name: str) -> None:
    try:
        expected = CategoryPath.parse([name]).key
    except InvalidInput:
        expected = None
    assert CategoryFilter([])._key((name,)) == expected


NAMES = st.text(alphabet="aAbB가", min_size=1, max_size=3)
PATHS = st.lists(NAMES, min_size=1, max_size=4)


@given(allowed=st.lists(PATHS, max_size=4), path=PATHS, below=PATHS)
def test_descendants_of_an_allowed_path_are_allowed(
    allowed: list[list[str]], path: list[str], below: list[str]
) -> None:
    made = CategoryFilter(allowed)
    folded = [[name.casefold() for name in branch] for branch in allowed]
    expected = any([name.casefold() for name in path[: len(branch)]] == branch for branch in folded)
    assert made.is_allowed(path) is expected
    if expected:
        assert made.is_allowed([*path, *below])


ATTEMPTS: list[tuple[Any, str]] = [
    ({"canonical_path": None}, "bypass"),
    ({"canonical_path": ["AI", "ML", "..", "Database"]}, "path_traversal"),
    ({"canonical_path": "../../etc"}, "path_traversal"),
    ({"canonical_path": ["AI", "..\\HR"]}, "path_traversal"),
    ({"canonical_path": ["．．"]}, "path_traversal"),
    ({"canonical_path": ["%2e%2e", "HR"]}, "path_traversal"),
    ({"canonical_path": ["AI", None]}, "bypass"),
    ({"canonical_path": ["null"]}, "bypass"),
    ({"canonical_path": ["undefined"]}, "bypass"),
    ({"canonical_path": ["__proto__"]}, "injection"),
    ({"canonical_path": ["AI' OR 1=1 --"]}, "injection"),
    ({"canonical_path": ["x' or 'a'='a"]}, "injection"),
    ({"canonical_path": ["1 UNION  SELECT text FROM chunks"]}, "injection"),
    ({"canonical_path": ["union all select"]}, "injection"),
    ({"canonical_path": ["'; DROP TABLE chunks; --"]}, "injection"),
    ({"canonical_path": ["AI\x00"]}, "injection"),
    ({"canonical_path": ["AI\n"]}, "injection"),
    ({"allowed_category_paths": [["AI"]], "bypass_attempt": True}, "bypass"),
    ({"allowed_category_paths": [["AI"]], "Bypass-Attempt": False}, "bypass"),
    ({"allowed_category_paths": [["AI", ".."]]}, "path_traversal"),
    ({"taxonomy_paths": [None]}, "bypass"),
    ({"canonical_in": False}, "bypass"),
    ({"canonical_in": [["AI", None]]}, "bypass"),
    ({"__proto__": {"admin": True}}, "injection"),
    ({"metadata": {"constructor": 1}}, "injection"),
    ({"taxonomy_paths": {"$ne": []}}, "injection"),
    ({"metadata": {"author": "Kim\x00"}}, "injection"),
    ({"taxonomy_paths": [{"prototype": 1}]}, "injection"),
]


@pytest.mark.parametrize(("sent", "kind"), ATTEMPTS)
def test_attempts(sent: dict[str, Any], kind: str) -> None:
    found = attack_in(sent)
    assert found is not None
    assert found.kind == kind
    assert CategoryFilter([["AI"]]).validate_filter_bypass_attempt(sent)


@pytest.mark.parametrize("sent", [{}, {"title": "x"}, None, [], "AI", {"canonical_path": []}, {"canonical_path": ""}])
def test_an_entry_without_a_path_is_an_attempt(sent: object) -> None:
    assert CategoryFilter([["AI"]]).validate_filter_bypass_attempt(sent)


HONEST: list[dict[str, Any]] = [
    {"taxonomy_paths": [["AI", "ML"]], "date_from": "2025-01-31"},
    {"allowed_category_paths": [["Research and Development", "R-D_2"]]},
    {"canonical_in": [["Oregon"], ["학사", "휴학"]]},
    {"canonical_in": [["Union", "Select committees"]]},
    {"canonical_in": [["Constructors of bridges"], ["Nullity"]]},
    {"metadata": {"author": "O'Brien; DROP by", "source": "../shared", "status": "null"}},
    {"content_types": ["text/plain"]},
    {"canonical_path": ["AI"], "text": "first line\nsecond line", "vector": [0.1] * 3},
    {},
]


@pytest.mark.parametrize("sent", HONEST)
def test_ordinary_filters_are_not_attempts(sent: dict[str, Any]) -> None:
    assert attack_in(sent) is None


def test_filters_may_name_the_allowed_branches_and_their_ancestors() -> None:
    made = CategoryFilter([["AI", "ML"]])
    for inside in ([["AI", "ML"]], [["ai"]], [["AI", "ml", "Deep"]], []):
        assert not made.validate_filter_bypass_attempt({"taxonomy_paths": inside})
    for outside in ([["HR"]], [["AI", "ML"], ["AI", "NLP"]], None, "AI", [["AI", "M|L"]]):
        assert made.validate_filter_bypass_attempt({"taxonomy_paths": outside})
    assert not made.validate_filter_bypass_attempt({"canonical_path": ["HR"]})


def test_deep_nesting_and_large_filters_are_handled() -> None:
    deep: Any = "x"
    for _ in range(10_000):
        deep = [deep]
    assert attack_in({"taxonomy_paths": deep}) is None
    wide = {"content_types": ["x"] * (10 * MOST_VALUES), "bypass_attempt": True}
    found = attack_in(wide)
    assert found is not None
    assert found.kind == "bypass"
