"""Runs of evaluations: saved, read, compared question by question, and reported."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from dtrag import InvalidInput
from dtrag.core.evaluation_run import EvaluationRun, Measure, RunRow
from dtrag.core.metrics.intervals import estimates, paired_differences
from dtrag.core.response import plain
from dtrag.evaluation.report import compare, html, markdown, read_run, write_report

HOSTILE = 'Why <script>alert("x")</script> & *so*?'


def run_of(*values: float, name: str = "accepted", wrong: float = 0.0) -> EvaluationRun:
    rows = tuple(
        RunRow(
            str(number),
            f"Question {number}?",
            {name: (value, 1.0), "answer.wrong": (wrong, 1.0)},
            {"answer": "26 days"},
        )
        for number, value in enumerate(values)
    )
    return EvaluationRun("quality", "handbook", "0.1.0", {"judge": "lexical"}, rows)


def test_a_saved_run_is_read_as_it_was(tmp_path: Path) -> None:
    run = run_of(1.0, 0.0, 0.5)
    write_report(tmp_path / "run.json", run, None)
    assert read_run(tmp_path / "run.json") == run
    assert run.summary().measures["accepted"] == Measure(0.5, 0.0, 1.0)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"format": 2}, "is no run of an evaluation"),
        ({"kind": "other"}, "is no run of an evaluation"),
        ({"rows": [{"id": "1"}]}, "is damaged"),
        ({"rows": [{"id": "1", "question": "?", "ratios": {"x": 1}}]}, "is damaged"),
        ({"run_id": "x"}, "is damaged"),
        ({"created_at": "yesterday"}, "is damaged"),
        ({"settings": None}, "is damaged"),
    ],
)
def test_damaged_runs_are_refused(tmp_path: Path, damage: dict[str, Any], message: str) -> None:
    (tmp_path / "run.json").write_text(json.dumps(plain(run_of(1.0).report()) | damage))
    with pytest.raises(InvalidInput, match=rf"run\.json {message}"):
        read_run(tmp_path / "run.json")


def test_files_that_are_no_runs_are_refused(tmp_path: Path) -> None:
    for text in ("", "{", "[]", "[" * 100_000):
        (tmp_path / "run.json").write_text(text)
        with pytest.raises(InvalidInput, match=r"run\.json"):
            read_run(tmp_path / "run.json")
    with pytest.raises(InvalidInput, match="must end in one of"):
        write_report(tmp_path / "run.pdf", run_of(1.0), None)
    with pytest.raises(InvalidInput, match="cannot be written"):
        write_report(tmp_path / "none" / "run.md", run_of(1.0), None)


def test_a_paired_interval_is_narrower_than_those_of_the_runs() -> None:
    hard_and_easy = [float(number % 2) for number in range(60)]
    better = [min(1.0, value + 0.1) if value == 0 else value for value in hard_and_easy]
    rows, others = [{"m": (value, 1.0)} for value in better], [{"m": (value, 1.0)} for value in hard_and_easy]
    difference = paired_differences(rows, others)["m"]
    assert difference.value == pytest.approx(0.05)
    assert difference.interval is not None
    low, high = difference.interval
    assert 0.03 < low < high < 0.07
    alone = estimates(rows)["m"].interval
    assert alone is not None and alone[1] - alone[0] > 3 * (high - low)
    assert paired_differences([], []) == {}
    with pytest.raises(ValueError, match="same questions"):
        paired_differences(rows, others[:-1])


def test_a_comparison_says_what_is_better_and_worse() -> None:
    before, now = run_of(*[0.0] * 20), run_of(*[1.0] * 20, wrong=1.0)
    comparison = compare(now, before)
    verdicts = {change.name: (change.difference, change.verdict) for change in comparison.measures}
    assert verdicts == {"accepted": (1.0, "better"), "answer.wrong": (1.0, "worse")}
    assert {change.verdict for change in compare(now, now).measures} == {"no difference"}
    assert len(comparison.changed) == 40
    json.dumps(comparison.as_dict())


def test_only_the_same_questions_are_compared() -> None:
    before = run_of(1.0, 1.0, 0.0)
    comparison = compare(replace(before, rows=before.rows[1:]), before)
    assert (comparison.questions, comparison.unmatched) == (2, 1)
    with pytest.raises(InvalidInput, match="none of the questions"):
        compare(replace(before, rows=()), before)
    with pytest.raises(InvalidInput, match="eval answers"):
        compare(before, replace(before, kind="answers"))


def test_reports_show_what_is_in_the_run() -> None:
    run = run_of(1.0, 0.0)
    row = RunRow("h", HOSTILE, {"accepted": (0.25, 1.0), "answer.wrong": (0.0, 0.0)}, {"reasons": ["<b>no</b>", "two"]})
    run = replace(run, rows=(*run.rows, row))
    comparison = compare(run, run_of(0.0, 0.0))
    text = markdown(run, comparison)
    assert "| accepted | 0.4167 |" in text and "## Against quality on handbook" in text
    assert text.index("alert") < text.index("Question 1?") < text.index("Question 0?"), "the worst first"
    page = html(run, comparison)
    assert "<script" not in page and "&lt;script&gt;" in page and "<b>no" not in page
    assert not re.search(r"(?:src|href)=|url\(|@import", page)
    plots = re.findall(r"<svg.*?</svg>", page, re.S)
    assert len(plots) >= 3
    for plot in plots:
        ElementTree.fromstring(plot)


def test_an_empty_run_has_a_report() -> None:
    run = run_of()
    assert "0" in markdown(run, None) and "<svg" in html(run, None)
