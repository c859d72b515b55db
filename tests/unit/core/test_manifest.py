"""Manifests of agents: what is accepted, what is refused and in which words, and that storing changes nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.manifest import TOOLS, AgentManifest, FromCategoryRequest, checked_version, manifest_from_category
from dtrag.errors import InvalidInput

USUAL = {
    "name": "Agent-HR/Leave",
    "taxonomy_version": "1.4.2",
    "allowed_category_paths": [["hr", "leave"]],
    "retrieval": {
        "bm25_topk": 12,
        "vector_topk": 12,
        "rerank": {"candidates": 50, "final_topk": 5},
        "filter": {"canonical_in": True},
    },
    "features": {"debate": False, "hitl_below_conf": 0.7, "cost_guard": True},
    "mcp_tools_allowlist": [],
    "budgets": {"tokens_per_day": None, "krw_per_day": None},
}


def made(options: Any = None, paths: Any = None, version: Any = "1.4.2", **more: Any) -> AgentManifest:
    return manifest_from_category(version, [["HR", "Leave"]] if paths is None else paths, options, **more)


def test_without_options_a_manifest_has_the_defaults() -> None:
    assert made().as_dict() == USUAL
    assert made({}).as_dict() == USUAL


def test_every_option_is_in_the_manifest() -> None:
    manifest = made(
        {
            "mcp_tools": ["searcher", "calculator", "searcher"],
            "custom_features": {"debate": True, "formal_tone": False},
            "override_settings": {
                "retrieval": {"bm25_topk": 50, "vector_topk": 1},
                "features": {"hitl_below_conf": 0.9},
            },
            "budgets": {"tokens_per_day": 0, "krw_per_day": 12.5},
        },
        name=" Leave desk ",
    )
    shown = manifest.as_dict()
    assert shown["name"] == "Leave desk"
    assert shown["mcp_tools_allowlist"] == ["searcher", "calculator"]
    assert shown["features"] == {"debate": True, "hitl_below_conf": 0.9, "cost_guard": True, "formal_tone": False}
    assert (shown["retrieval"]["bm25_topk"], shown["retrieval"]["vector_topk"]) == (50, 1)
    assert shown["budgets"] == {"tokens_per_day": 0, "krw_per_day": 12.5}
    assert AgentManifest.from_dict(json.loads(json.dumps(shown))).as_dict() == shown


@pytest.mark.parametrize(
    "version", ["0.0.0", "10.20.30", "1.0.0-alpha", "2.5.3-beta.1", "1.0.0-0A.is.legal", "1.0.0+b.1"]
)
def test_semantic_versions(version: str) -> None:
    assert checked_version(version) == version


@pytest.mark.parametrize(
    "version",
    [
        "",
        "1",
        "1.0",
        "v1.0.0",
        "1.0.0.0",
        "abc.def.ghi",
        "01.0.0",
        "1.0.0-",
        "1.0.0-01",
        "1.0.0-a..b",
        "1.0.0\n",
        " 1.0.0",
        "１.０.０",
        "1.0.٣",
        "1.0.0-" + "a" * 100,
        None,
        1.0,
        ["1.0.0"],
    ],
)
def test_other_versions(version: object) -> None:
    with pytest.raises(InvalidInput, match="Invalid version format"):
        checked_version(version)


@pytest.mark.parametrize(
    "path",
    [
        ["AI", "..", "root"],
        ["/etc/passwd"],
        ["AI\\ML"],
        ["<script>alert('xss')</script>"],
        ["AI|ML"],
        ["AI/ML"],
        ["A:B"],
        ["A*"],
        ["A?"],
        ['A"'],
        ["A\u200bI"],
        ["A\u202eI"],
        ["A\xadI"],
        ["AI\n"],
        ["\tAI"],
        ["A\x00I"],
        ["AI", "AІ"],
    ],
)
def test_unsafe_paths(path: list[str]) -> None:
    with pytest.raises(InvalidInput, match="Unsafe characters detected"):
        made(paths=[["AI"], path])


@pytest.mark.parametrize(
    ("paths", "words"),
    [
        ([["Path", str(number)] for number in range(11)], "Max 10 paths allowed"),
        ([["x"] * 6], "Max 5 levels allowed"),
        ([], "1 to 10 category paths"),
        ([[]], "a list of names"),
        ([["AI"], None], "a list of names"),
        ("AI/ML", "1 to 10 category paths"),
        (["AI", "ML"], "a list of names"),
        ({"AI": "ML"}, "1 to 10 category paths"),
        ([["AI", ""]], "1 to 50 characters"),
        ([["AI", "x" * 51]], "1 to 50 characters"),
        ([["AI", 7]], "a list of names"),
    ],
)
def test_invalid_paths(paths: object, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        made(paths=paths)


def test_ten_paths_of_five_levels_are_taken() -> None:
    paths = [[f"P{number}", *"bcde"] for number in range(10)]
    assert len(made(paths=paths).allowed_category_paths) == 10


def test_spellings_of_one_path_are_one_entry() -> None:
    paths = [["Ｆoo", "Straße"], ["FOO", "STRASSE"], ["Bar"], ["foo", "strasse"], [" bar "]]
    manifest = made(paths=paths)
    assert manifest.as_dict()["allowed_category_paths"] == [["foo", "strasse"], ["bar"]]
    assert manifest.name == "Agent-Foo/Straße"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "options is an object"),
        ({"tools": []}, "Unknown key 'tools' in options"),
        ({"mcp_tools": "searcher"}, "list of at most 20 tools"),
        ({"mcp_tools": ["Searcher"]}, "Unknown tool"),
        ({"mcp_tools": ["searcher\u200b"]}, "Unknown tool"),
        ({"mcp_tools": ["*"]}, "Unknown tool"),
        ({"mcp_tools": [*TOOLS] * 5}, "list of at most 20 tools"),
        ({"mcp_tools": [["searcher"]]}, "Unknown tool"),
        ({"override_settings": {"filter": {"canonical_in": False}}}, "Unknown key 'filter' in override_settings"),
        ({"override_settings": {"retrieval": {"rerank": 1}}}, "Unknown key 'rerank' in override_settings.retrieval"),
        ({"override_settings": {"retrieval": {"bm25_topk": 0}}}, "from 1 to 50"),
        ({"override_settings": {"retrieval": {"bm25_topk": 51}}}, "from 1 to 50"),
        ({"override_settings": {"retrieval": {"vector_topk": True}}}, "from 1 to 50"),
        ({"override_settings": {"retrieval": {"vector_topk": 2.0}}}, "from 1 to 50"),
        ({"override_settings": {"features": {"cost_guard": False}}}, "Unknown key 'cost_guard'"),
        ({"override_settings": {"features": {"hitl_below_conf": 0.05}}}, r"from 0\.1 to 0\.9"),
        ({"override_settings": {"features": {"hitl_below_conf": float("nan")}}}, r"from 0\.1 to 0\.9"),
        ({"override_settings": {"features": {"hitl_below_conf": "0.5"}}}, r"from 0\.1 to 0\.9"),
        ({"custom_features": {"cost_guard": False}}, "always on"),
        ({"custom_features": {"hitl_below_conf": 0.5}}, r"override_settings\.features"),
        ({"custom_features": {"debate": 1}}, "true or false"),
        ({"custom_features": {"__proto__": True}}, "true or false"),
        ({"custom_features": {f"f{number}": True for number in range(21)}}, "at most 20 switches"),
        ({"budgets": {"won": 1}}, "Unknown key 'won' in budgets"),
        ({"budgets": {"tokens_per_day": -1}}, "tokens_per_day"),
        ({"budgets": {"tokens_per_day": 1.5}}, "tokens_per_day"),
        ({"budgets": {"krw_per_day": float("inf")}}, "krw_per_day"),
        ({"budgets": {"krw_per_day": False}}, "krw_per_day"),
    ],
)
def test_options_that_are_refused(options: object, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        made(options)


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 121, "a\u202eb", 7, "a\u200bb"])
def test_names_that_are_refused(name: object) -> None:
    with pytest.raises(InvalidInput, match="name of an agent"):
        made(name=name)


def test_a_long_first_path_still_gives_a_name() -> None:
    assert len(made(paths=[["x" * 50] * 5]).name) == 120


def test_a_request_has_the_values_of_its_body() -> None:
    asked = FromCategoryRequest(version="1.0.0", node_paths=[("AI", "ML")], options={})
    assert asked.dict() == {"version": "1.0.0", "node_paths": [["AI", "ML"]], "options": {}}


@given(st.lists(st.lists(st.text(min_size=1, max_size=60), max_size=6), max_size=12))
def test_any_accepted_manifest_can_be_stored_and_loaded(paths: list[list[str]]) -> None:
    try:
        manifest = made(paths=paths)
    except InvalidInput:
        return
    shown = manifest.as_dict()
    assert AgentManifest.from_dict(shown).as_dict() == shown
    assert len({tuple(path) for path in shown["allowed_category_paths"]}) == len(shown["allowed_category_paths"])
