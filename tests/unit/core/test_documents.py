"""What travels is frozen, and a document's id depends on nothing but where it came from."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import subprocess
import sys

import pytest
from pydantic import TypeAdapter

from dtrag.core import documents
from dtrag.core.documents import SearchMetrics, SearchResult, document_id


def test_the_id_of_a_source_never_changes() -> None:
    assert str(document_id("file:///규정집.hwpx#1-1-1")) == str(document_id("file:///규정집.hwpx#1-1-1"))
    assert document_id("a") != document_id("A")
    assert document_id("a").version == 5
    assert str(document_id("handbook.md")) == HANDBOOK


HANDBOOK = "f097143a-4d2d-5d16-acb3-1a2c7ea80462"


def test_value_types_are_frozen() -> None:
    shapes = [shape for shape in vars(documents).values() if dataclasses.is_dataclass(shape)]
    assert len(shapes) >= 12
    for shape in shapes:
        assert isinstance(shape, type)
        assert shape.__dataclass_params__.frozen, shape.__name__  # type: ignore[attr-defined]


def test_results_do_not_share_their_lists() -> None:
    one, other = SearchResult("a", ""), SearchResult("b", "")
    one.taxonomy_path.append("AI")
    assert other.taxonomy_path == []
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.bm25_score = 1.0  # type: ignore[misc]


def test_a_rerank_score_may_be_computed_when_it_is_first_read() -> None:
    calls = list[str]()

    def score(result: SearchResult) -> float:
        calls.append(result.chunk_id)
        return result.hybrid_score / 2

    result = SearchResult("a", "").with_scores(0.1, 0.2, 0.5, score)
    copied = result.with_own(["AI"], {})
    assert calls == []
    assert (copied.rerank_score, copied.ordering_score, copied.rerank_score) == (0.25, 0.25, 0.25)
    assert calls == ["a"]
    for again in (dataclasses.replace(result, title="t"), copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert again.rerank_score == 0.25
    assert json.loads(TypeAdapter(SearchResult).dump_json(copied))["rerank_score"] == 0.25
    assert calls == ["a", "a"]
    assert result.with_own([], {}) == SearchResult("a", "", "", "", [], 0.1, 0.2, 0.5, 0.25)


def test_a_search_that_did_not_run_took_no_time() -> None:
    metrics = SearchMetrics()
    assert {value for name, value in dataclasses.asdict(metrics).items() if name.endswith("_time")} == {0.0}


def test_the_parser_process_can_import_it_without_numpy() -> None:
    check = "import sys, dtrag.core.documents; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
