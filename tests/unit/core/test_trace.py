"""A trace as plain values and back."""

from __future__ import annotations

import datetime
import json
import uuid

from dtrag.core.trace import MOST_TEXT, CallTrace, StepTrace, Trace


def trace(**facts: object) -> Trace:
    return Trace(
        trace_id=uuid.UUID(int=7),
        created_at=datetime.datetime(2030, 1, 31, 12, tzinfo=datetime.UTC),
        owner="",
        question="q",
        answer="a",
        decision="answer",
        confidence=0.5,
        taxonomy_version="1.0.0",
        seconds=0.25,
        degraded=("vector",),
        document_ids=("d",),
        steps=(StepTrace("retrieve", 0.1, 2.0, "done", facts),),
        calls=(CallTrace("compose", "m", 0.1, 10, 5, 0.0, prompt="p", reply="r"),),
        debate={"rounds": 2, "elapsed": 1.5, "final_answer": "x", "answers": ["x", "y"], "calls": {"a": 1, "b": "x"}},
    )


def test_a_trace_can_be_stored_and_loaded() -> None:
    given = trace(passages=10, tools={"calculator": True})
    assert Trace.from_dict(json.loads(json.dumps(given.as_dict()))) == given


def test_values_that_no_database_takes_become_plain() -> None:
    facts = {"nan": float("nan"), "inf": float("-inf"), "nul": "a\x00\ud800b", "odd": uuid.UUID(int=1), "set": {3}}
    [step] = trace(**facts, long="x" * (2 * MOST_TEXT)).as_dict()["steps"]
    assert step["facts"] == {
        "nan": None,
        "inf": None,
        "nul": "ab",
        "odd": str(uuid.UUID(int=1)),
        "set": [3],
        "long": "x" * MOST_TEXT,
    }


def test_without_text_only_numbers_and_names_remain() -> None:
    left = trace(passages=10).without_text()
    assert (left.question, left.answer, left.calls[0].prompt, left.calls[0].reply) == ("", "", "", "")
    assert left.debate == {"rounds": 2, "elapsed": 1.5, "calls": {"a": 1}}
    assert left.steps == trace(passages=10).steps
    assert (left.calls[0].model, left.calls[0].input_tokens) == ("m", 10)


def test_a_trace_that_was_stored_without_start_times_is_loaded() -> None:
    row = trace(passages=10).as_dict()
    for part in (*row["steps"], *row["calls"]):
        del part["started"]
    loaded = Trace.from_dict(row)
    assert (loaded.steps[0].started, loaded.calls[0].started) == (None, None)
    assert loaded == trace(passages=10)
