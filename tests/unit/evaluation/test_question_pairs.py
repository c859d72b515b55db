"""Pairs of questions: reading them, counting, and the promises about the committed pairs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dtrag.core.cases.same_question import SameQuestion
from dtrag.errors import InvalidInput
from dtrag.evaluation.question_pairs import MAX_PAIRS, PairsReport, QuestionPair, judged, read_pairs

PAIRS = Path(__file__).parents[3] / "bench" / "cases"


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("{", "line 2: this is not JSON"),
        ("[]", "line 2: a line must be an object"),
        ('{"id": 1, "base": "a"}', 'line 2: "other" must be'),
        ('{"id": 1, "base": " ", "other": "b"}', 'line 2: "base" must be'),
        ('{"id": null, "base": "a", "other": "b"}', 'line 2: "id" must be'),
        ('{"id": 1, "base": "a", "other": "b", "same": "yes"}', 'line 2: "same" must be'),
        ("[" * 100_000, "line 2: this is not JSON"),
    ],
)
def test_a_wrong_line_is_named_by_its_number(line: str, part: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        read_pairs(['{"id": "x", "base": "a", "other": "b"}', line], "pairs.jsonl")
    assert part in str(raised.value)


def test_empty_lines_are_left_out() -> None:
    assert read_pairs(["", '{"id": 7, "base": "a", "other": "b", "kind": "date"}', " "], "x") == [
        QuestionPair("7", "a", "b", None, "date")
    ]


def test_too_many_pairs_are_refused() -> None:
    line = '{"id": 1, "base": "a", "other": "b"}'
    with pytest.raises(InvalidInput, match="Split it"):
        read_pairs([line] * (MAX_PAIRS + 1), "x")


def test_the_counts_are_those_of_labelled_pairs() -> None:
    pairs = [
        QuestionPair("1", "yes", "", True, "light"),
        QuestionPair("2", "no", "", True, "light"),
        QuestionPair("3", "yes", "", False, "date"),
        QuestionPair("4", "no", "", False, "date"),
        QuestionPair("5", "yes", ""),
    ]
    report = PairsReport(tuple((pair, SameQuestion(pair.base == "yes", "why")) for pair in pairs))
    shown = report.as_dict()
    assert shown["pairs"][2] == {"id": "3", "same": True, "reason": "why"}
    assert (shown["traps"], shown["false_hits"], shown["paraphrases"], shown["hits"]) == (2, 1, 2, 1)
    assert shown["upper_bound"] == pytest.approx(0.9747, abs=1e-4)
    assert [(row.kind, row.pairs, row.accepted) for row in report.kinds()] == [
        ("date", 2, 1),
        ("light", 2, 1),
        ("unlabelled", 1, 1),
    ]


def test_without_traps_nothing_is_promised() -> None:
    assert judged([]).upper_bound == 1.0


@pytest.mark.skipif(not PAIRS.is_dir(), reason="the committed pairs are in the source tree only")
def test_the_gate_keeps_its_promises_on_the_committed_pairs() -> None:
    lines = [line for file in sorted(PAIRS.glob("*.jsonl")) for line in file.read_text("utf-8").splitlines()]
    report = judged(read_pairs(lines, "bench/cases"))
    accepted = {row.kind: row.accepted / row.pairs for row in report.kinds()}
    assert report.traps >= 600 and report.paraphrases >= 600
    assert report.upper_bound <= 0.01, [
        pair.id for pair, decision in report.decisions if decision.same and pair.same is False
    ]
    assert accepted["light"] >= 0.25
    assert len(json.dumps(report.as_dict()["pairs"])) > 0
