"""`make eval-gate` as a test: no sample question is answered worse than in examples/baseline.json."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
import pytest_asyncio

from dtrag.app import open_app
from dtrag.core.evaluation_run import EvaluationRun
from dtrag.evaluation.baseline import passes, regressions
from dtrag.evaluation.report import read_run
from tests.store import Databases

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = spec_from_file_location("eval_gate", ROOT / "scripts" / "eval_gate.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest_asyncio.fixture(scope="module")
async def run(databases_of_module: Databases, script: ModuleType) -> AsyncIterator[EvaluationRun]:
    async with open_app(databases_of_module.settings(embedder="auto")) as app:
        yield await script.gate_run(app)


@pytest.fixture(scope="module")
def baseline() -> EvaluationRun:
    return read_run(ROOT / "examples" / "baseline.json")


def test_no_sample_question_is_answered_worse_than_in_the_baseline(run: EvaluationRun, baseline: EvaluationRun) -> None:
    worse, _ = regressions(run, baseline)
    assert worse == []
    assert {row.question for row in run.rows} == {row.question for row in baseline.rows}


def test_the_answerable_ones_are_answered_right(run: EvaluationRun) -> None:
    answerable = [row for row in run.rows if row.ratios["sufficient"][1]]
    questions = (ROOT / "examples" / "questions.jsonl").read_text("utf-8").splitlines()
    assert len(answerable) == sum(bool(json.loads(line)["expect"]) for line in questions)
    assert [row.question for row in answerable if not passes(row.ratios)] == []
    assert run.estimates()["contextual_recall"].value == 1.0


def test_a_worse_answer_fails_the_gate(baseline: EvaluationRun) -> None:
    first = baseline.rows[0]
    wrong = replace(first, ratios={**first.ratios, "sufficient": (0.0, 1.0)}, details={"answer": "wrong"})
    worse, better = regressions(replace(baseline, rows=(wrong, *baseline.rows[2:])), baseline)
    assert worse == [
        f"{first.question} (sufficient); the answer is now: wrong",
        f"{baseline.rows[1].question} is not asked any more",
    ]
    assert better == []
    assert regressions(baseline, replace(baseline, rows=(wrong, *baseline.rows[1:]))) == ([], [first.question])
