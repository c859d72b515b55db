"""`POST /search/neural` over HTTP: off, not ready, and within the caller's scope."""

from __future__ import annotations

import pytest

from tests.api.confined import House
from tests.api.shape import assert_failure
from tests.builders import case


async def test_it_is_unavailable_until_the_flag_is_on(built: House, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = await built.client("reader", None, "reader")
    refused = await reader.post("/search/neural", json={"query": "machine"})
    assert_failure(refused, 503)
    assert "the setting neural_case_selector" in refused.json()["detail"]
    monkeypatch.setenv("FEATURE_NEURAL_CASE_SELECTOR", "true")
    without_memory = await reader.post("/search/neural", json={"query": "machine"})
    assert_failure(without_memory, 501)
    assert "CBR system is not enabled" in without_memory.json()["detail"]
    monkeypatch.setenv("CBR_ENABLED", "true")
    found = await reader.post("/search/neural", json={"query": "machine"})
    assert found.status_code == 200
    assert found.json()["mode"] == "bm25_fallback" and "1,000" in found.json()["reason"]
    assert_failure(await reader.post("/search/neural", json={"query": " "}), 422)
    assert_failure(await reader.post("/search/neural", json={"query": "a", "mode": "best"}), 422)


async def test_only_cases_in_scope_are_found(built: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEATURE_NEURAL_CASE_SELECTOR", "true")
    monkeypatch.setenv("CBR_ENABLED", "true")
    taxonomy = (await built.app.index.snapshot()).taxonomy
    for path in (("AI", "ML"), ("HR",)):
        node = next((number for number in taxonomy.nodes if tuple(taxonomy.path(number)) == path), None)
        question = f"What does {path[-1]} mean?"
        await built.app.case_store.add(case(path[-1], question, path, node_id=node))
    limited, whole = await built.client("branch", ["AI/ML"], "reader"), await built.client("whole", None, "reader")
    seen = []
    for client in (limited, whole):
        found = await client.post("/search/neural", json={"query": "What does it mean?"})
        seen.append({hit["case_id"] for hit in found.json()["hits"]})
    assert seen == [{"ML"}, {"ML", "HR"}]
