"""Judged questions are read strictly; what is fitted helps questions that were not fitted on, or is not taken."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from dtrag.core.answers.evidence import SIGNALS
from dtrag.core.answers.passage_confidence import ConfidenceWeights, confidence_of, decide, shipped, weights_for
from dtrag.core.documents import SearchResult
from dtrag.core.metrics.calibration import sigmoid
from dtrag.core.ranking.bm25 import LexicalStatistics
from dtrag.errors import InvalidInput
from dtrag.evaluation.calibration import FEWEST, calibrate, read_questions
from dtrag.evaluation.confidence_cases import Judged, MeasuredQuestion, answers


def write(path: Path, rows: list[str]) -> Path:
    path.write_text("\n".join(rows), "utf-8")
    return path


def made(count: int, shift: float, *, seed: int = 1, noise: bool = False) -> list[MeasuredQuestion]:
    """Cases whose truth is the shipped model's logit moved by `shift`, or nothing at all (`noise`)."""
    chance = np.random.default_rng(seed)
    model = shipped().models["words"]
    cases = []
    for number in range(count):
        signals = {name: float(chance.random()) for name in SIGNALS} | {"cosine": 0.0, "together": 0.0}
        logit = model.intercept + sum(weight * signals[name] for name, weight in model.weights.items())
        p = 0.5 if noise else float(sigmoid(np.array([logit + shift]))[0])
        label = float(chance.random() < p)
        cases.append(
            MeasuredQuestion(f"q{number}", f"q{number}", "answerable" if label else "absent", label, signals, "words")
        )
    return cases


GOOD = [json.dumps({"question": f"What is number {n}?", "answerable": n % 2 == 0}) for n in range(FEWEST)]


def test_the_three_forms_are_read(tmp_path: Path) -> None:
    rows = [
        '{"question": "one", "document": "doc-1"}',
        '{"question": "two", "answer": ["4 %", "four percent"]}',
        '{"question": "three", "answerable": false, "document": "doc-2"}',
    ]
    found = read_questions(write(tmp_path / "q.jsonl", [*rows, "", *GOOD]))
    assert found[0] == Judged("one", True, frozenset({"doc-1"}))
    assert found[1] == Judged("two", True, frozenset(), frozenset({"4 %", "four percent"}))
    assert found[2] == Judged("three", False)
    assert len(found) == 3 + FEWEST


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nothing", "line 2: invalid JSON"),
        ("[1]", "line 2: no question"),
        ('{"question": " "}', "line 2: no question"),
        ('{"question": "x"}', "line 2: answerable must be true or false"),
        ('{"question": "x", "answerable": "yes"}', "line 2: answerable must be"),
        ('{"question": "x", "document": 7}', "line 2: document must be a string"),
        ('{"question": "x", "answer": [""]}', "line 2: answer must be a string"),
        (json.dumps({"question": "x" * 10_001, "answerable": True}), "line 2: the question has more than 10,000"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read_questions(write(tmp_path / "q.jsonl", [GOOD[0], line]))


def test_too_few_cases_and_a_missing_file_are_reported(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="has 3 questions; at least 20"):
        read_questions(write(tmp_path / "q.jsonl", GOOD[:3]))
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_questions(tmp_path / "none.jsonl")
    (tmp_path / "bytes.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match="cannot be read as UTF-8"):
        read_questions(tmp_path / "bytes.jsonl")


def test_a_confidence_that_is_far_off_is_put_right() -> None:
    found = calibrate(made(300, 3.0), 300)
    assert found.methods["words"] in {"line", "weights"}
    assert found.before.calibration_error > 0.15
    assert found.after.calibration_error < 0.6 * found.before.calibration_error
    assert found.after.log_loss < found.before.log_loss


def test_few_questions_move_the_line_only() -> None:
    found = calibrate(made(60, 3.0), 60)
    assert found.methods == {"words": "line"}
    weights = found.models["words"].weights
    ratios = {round(weights[name] / weight, 6) for name, weight in shipped().models["words"].weights.items()}
    assert len(ratios) == 1


def test_what_is_right_already_is_left_alone() -> None:
    found = calibrate(made(60, 0.0, seed=4), 60)
    assert found.after.log_loss <= found.before.log_loss
    if found.methods["words"] == "shipped":
        assert found.models == {}
        assert found.before == found.after


def test_questions_of_one_kind_only_teach_nothing() -> None:
    cases = [case for case in made(100, 0.0) if case.label]
    with pytest.raises(InvalidInput, match="All of these questions are answered"):
        calibrate(cases, len(cases))
    with pytest.raises(InvalidInput, match="unanswered"):
        calibrate([case for case in made(100, 0.0) if not case.label], 50)


def test_labels_without_reason_do_not_make_it_sure() -> None:
    found = calibrate(made(400, 0.0, noise=True), 400)
    assert 0.3 < found.after.auroc < 0.7
    assert found.after.calibration_error < found.before.calibration_error
    assert found.after.log_loss < 0.75


def unlike_the_shipped(count: int, *, seed: int, right: float = 0.5) -> list[MeasuredQuestion]:
    """Cases of a book that says it in other words: the shipped model is far too careful, and ranks like a coin.

    Its logit is spread around the thresholds; labels depend on it hardly at all.
    """
    chance = np.random.default_rng(seed)
    model = shipped().models["korean"]
    cases = []
    for number in range(count):
        label = float(chance.random() < right)
        signals = dict.fromkeys(SIGNALS, 0.0)
        signals["lexical"] = float(np.clip(0.3 + 0.02 * label + 0.12 * chance.standard_normal(), 0.0, 1.0))
        signals["coverage"] = float(chance.random())
        assert model.probability(signals) < 0.9
        cases.append(
            MeasuredQuestion(f"q{number}", f"q{number}", "answerable" if label else "absent", label, signals, "korean")
        )
    return cases


def decided(cases: list[MeasuredQuestion], weights: ConfidenceWeights) -> list[tuple[str, float]]:
    """The decision on each case, and its label."""
    return [
        (decide(weights.models[c.model].probability(c.signals), weights.thresholds[c.model]), c.label) for c in cases
    ]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("count", [42, 90, 300])
def test_a_calibration_never_answers_what_was_abstained_from(count: int, seed: int) -> None:
    """Everything near the base rate and above a fixed threshold would answer all unanswerable questions."""
    cases = unlike_the_shipped(count, seed=seed, right=35 / 42 if count == 42 else 0.5)
    found = calibrate(cases, count)
    assert found.after.auroc >= found.before.auroc - 1e-4
    assert found.after.abstention >= found.before.abstention
    assert found.after.selective_risk <= max(found.before.selective_risk, 0.1) or found.before.answered < 10
    now = decided(cases, weights_for(found.stored(datetime(2026, 1, 2, tzinfo=UTC))))
    abstained = [
        sum(decision == "abstain" for decision, label in each if not label) for each in (decided(cases, shipped()), now)
    ]
    assert abstained[1] >= abstained[0]


def test_a_refusal_has_the_figures_on_the_same_held_out_cases() -> None:
    refusals = [refusal for seed in range(8) for refusal in calibrate(unlike_the_shipped(90, seed=seed), 90).refusals]
    assert refusals
    for refusal in refusals:
        assert refusal.model == "korean"
        assert refusal.after.log_loss < refusal.before.log_loss
        assert refusal.reasons
        for reason in refusal.reasons:
            assert re.search(r"\d\.\d{3}", reason)


def test_thresholds_are_chosen_together_with_the_fit() -> None:
    """Right and wrong lie apart, both below what the shipped thresholds ask for."""
    found = calibrate(made(300, 3.0), 300)
    limits = found.thresholds["words"]
    assert limits != shipped().thresholds["words"]
    assert found.after.abstention >= found.before.abstention
    assert found.after.selective_risk <= max(found.before.selective_risk, 0.1)


def test_what_is_stored_is_what_the_next_question_is_weighed_with() -> None:
    stored = calibrate(made(300, 3.0), 300).stored(datetime(2026, 1, 2, tzinfo=UTC))
    again = json.loads(json.dumps(stored))
    assert set(weights_for(again).models) == set(shipped().models)
    passages = [SearchResult("c", "A kettle.", bm25_score=0.3), SearchResult("d", "A kettle.", bm25_score=0.2)]
    before = confidence_of("What kettle boils?", passages, LexicalStatistics(chunks=9))
    after = confidence_of("What kettle boils?", passages, LexicalStatistics(chunks=9), again)
    assert after.value > before.value


def test_a_passage_answers_by_document_or_by_what_it_holds() -> None:
    passage = SearchResult(
        "c", "Up to 4 % a year.", title="Rates", source_url="file:///x/rates.md", metadata={"id": "r1"}
    )
    for name in ("r1", "Rates", passage.source_url, "rates.md"):
        assert answers(passage, Judged("q", True, frozenset({name})))
    assert answers(passage, Judged("q", True, frozenset(), frozenset({"4%"})))
    assert not answers(passage, Judged("q", True, frozenset({"r2"}), frozenset({"5%"})))
    assert not answers(passage, Judged("q", True))
