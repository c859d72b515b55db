"""The formula of the text to the letter; the calibrated probability, its weights and thresholds; what helps."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrag.core.answers.evidence import SIGNALS
from dtrag.core.answers.passage_confidence import (
    COSTS,
    LogisticModel,
    Thresholds,
    confidence,
    confidence_of,
    decide,
    model_name,
    models_of,
    policy_of,
    shipped,
    weights_for,
)
from dtrag.core.answers.reasons import advice, declined, unknown_words
from dtrag.core.documents import PackFindings, SearchResult
from dtrag.core.ranking.bm25 import LexicalStatistics
from dtrag.core.statements import text_of
from dtrag.core.text.analysis import term_id, terms
from dtrag.errors import InvalidInput

WORDS = "kettle boiler valve ticket harbour lantern winter garden".split()
SENTENCES = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)


def _statistics(*texts: str) -> LexicalStatistics:
    counts = Counter(term for text in texts for term in set(map(term_id, terms(text))))
    ids = sorted(counts)
    return LexicalStatistics(np.array(ids, np.int64), np.array([counts[i] for i in ids], np.int64), len(texts))


STATISTICS = _statistics("kettle boiler valve", "kettle ticket", "kettle harbour lantern", "winter", "garden")


def _passage(text: str, score: float = 0.0, cosine: float = 0.0) -> SearchResult:
    return SearchResult("c", text, bm25_score=score, vector_score=cosine)


@pytest.mark.parametrize(
    ("top", "sources", "expected"),
    [(0.9, 2, 0.9), (0.9, 5, 0.9), (0.8, 1, 0.4), (0.5, 0, 0.0), (1.7, 3, 1.0), (-0.3, 2, 0.0), (float("nan"), 2, 0.0)],
)
def test_the_baseline_is_the_formula_of_the_text(top: float, sources: int, expected: float) -> None:
    assert confidence(top, sources) == pytest.approx(expected)


def test_the_baseline_takes_less_than_a_millisecond() -> None:
    started = time.perf_counter()
    for _ in range(1000):
        confidence(0.7, 2)
    assert (time.perf_counter() - started) / 1000 < 0.001


def test_the_shipped_weights_have_a_model_for_every_question() -> None:
    weights = shipped()
    assert set(weights.models) == {"korean", "regulations", "regulations_vectors", "words", "vectors"}
    for limits in weights.thresholds.values():
        assert 0 < limits.abstain < limits.review < 1
    assert set(weights.thresholds) == set(weights.models)
    for model in weights.models.values():
        for name, weight in model.weights.items():
            # More evidence never makes less sure.
            assert weight <= 0 if name in {"numbers", "names"} else weight >= 0, name


@pytest.mark.parametrize(
    ("question", "cosine", "name"),
    [
        ("휴학은 몇 번?", 0.0, "korean"),
        ("휴학은 몇 번?", 0.4, "korean"),
        ("How?", 0.0, "words"),
        ("How?", 0.4, "vectors"),
    ],
)
def test_which_model_speaks(question: str, cosine: float, name: str) -> None:
    assert model_name(question, dict.fromkeys(SIGNALS, 0.0) | {"cosine": cosine}) == name


def test_without_passages_the_confidence_is_zero() -> None:
    found = confidence_of("zeppelin", [], STATISTICS)
    assert (found.value, found.decision) == (0.0, "abstain")
    assert '"zeppelin"' in text_of(found.reason)


def test_strong_evidence_answers_and_weak_evidence_abstains() -> None:
    answer = confidence_of("kettle valve", [_passage("The kettle valve leaks.", 0.8), _passage("winter")], STATISTICS)
    nothing = confidence_of("kettle valve", [_passage("garden")] * 10, STATISTICS)
    assert [answer.decision, nothing.decision] == ["answer", "abstain"]
    assert "100%" in text_of(answer.reason)
    assert "Too little evidence" in text_of(nothing.reason)
    assert set(answer.signals) == set(SIGNALS)


def test_a_missing_number_lowers_the_confidence_and_is_reported() -> None:
    passages = [_passage("The kettle valve leaked in 1984.", 0.6)]
    there = confidence_of("kettle valve 1984", passages, STATISTICS)
    missing = confidence_of("kettle valve 1985", passages, STATISTICS)
    assert missing.value < there.value
    assert "a number of the question is not in it" in text_of(missing.reason)


@settings(max_examples=100)
@given(SENTENCES, SENTENCES, st.floats(0, 0.5), st.floats(0, 0.5))
def test_a_better_first_passage_never_lowers_the_confidence(question: str, text: str, one: float, other: float) -> None:
    low, high = sorted((one, other))
    rest = [_passage("garden", 0.0)] * 4
    base = confidence_of(question, [_passage(text, low), *rest], STATISTICS)
    scored = confidence_of(question, [_passage(text, high), *rest], STATISTICS)
    assert 0.0 <= base.value <= scored.value <= 1.0


@pytest.mark.parametrize(("value", "decision"), [(0.0, "abstain"), (0.2, "review"), (0.49, "review"), (0.5, "answer")])
def test_decisions_follow_the_thresholds(value: float, decision: str) -> None:
    assert decide(value, Thresholds(abstain=0.2, review=0.5)) == decision


def test_stored_weights_replace_the_models_that_they_name() -> None:
    sure = {"intercept": 9.0, "weights": {"lexical": 1.0}}
    limits = {"abstain": 0.3, "review": 0.6}
    stored = {"signals": shipped().signals, "models": {"words": sure}, "thresholds": {"words": limits}}
    passages = [_passage("garden", cosine=0.0)]
    assert confidence_of("kettle", passages, STATISTICS, stored).decision == "answer"
    assert confidence_of("kettle", passages, STATISTICS).decision == "abstain"
    assert weights_for(stored).models["korean"] == shipped().models["korean"]
    assert weights_for(stored).models["words"] == LogisticModel(9.0, {"lexical": 1.0})
    assert weights_for(stored).thresholds == {**shipped().thresholds, "words": Thresholds(0.3, 0.6)}
    never = {**stored, "thresholds": {"words": {"abstain": 1.01, "review": 1.01}}}
    assert confidence_of("kettle", passages, STATISTICS, never).decision == "abstain"


def test_a_calibration_without_thresholds_is_ignored() -> None:
    """It was stored before calibrations were checked against the shipped confidence."""
    sure = {"intercept": 9.0, "weights": {"lexical": 1.0}}
    assert weights_for({"signals": shipped().signals, "models": {"words": sure}}) == shipped()


def test_weights_of_other_signals_are_ignored() -> None:
    stored = {"signals": -1, "models": {"words": {"intercept": 9.0, "weights": {"forgotten": 1.0}}}}
    assert weights_for(stored) == shipped()
    with pytest.raises(ValueError, match="no signal 'forgotten'"):
        models_of(stored["models"])  # type: ignore[arg-type]


def test_extreme_weights_stay_within_0_and_1() -> None:
    found = dict.fromkeys(SIGNALS, 1.0)
    assert LogisticModel(0.0, {"lexical": 1e6}).probability(found) <= 1.0
    assert LogisticModel(0.0, {"lexical": -1e6}).probability(found) >= 0.0


def test_the_advice_names_words_that_occur_nowhere() -> None:
    assert unknown_words("Does the kettle fly to Saturn, Saturn?", STATISTICS) == ["fly", "saturn"]
    told = text_of(advice("Does the kettle fly to Saturn?", STATISTICS))
    assert "5 passages that you may see" in told
    assert '"fly", "saturn"' in told
    assert "Nowhere" not in text_of(advice("kettle winter", STATISTICS))
    assert "nothing that you may see" in text_of(advice("kettle", LexicalStatistics()))
    assert len(unknown_words(" ".join(f"word{n}x" for n in range(50)), STATISTICS)) == 5


def test_a_declined_question_says_what_was_searched_and_each_heading_once() -> None:
    passages = [_passage("kettle valve", 0.1), _passage("boiler ticket", 0.1)]
    told = declined("Does the kettle fly?", passages, STATISTICS)
    assert (told.searched, told.unknown_words) == (5, ("fly",))
    assert [heading.chunk_id for heading in told.nearest] == [passages[0].chunk_id]
    assert declined("제12조", passages, LexicalStatistics()).searched == 2


def test_korean_words_that_occur_in_part_count_as_known() -> None:
    statistics = _statistics("기숙사 신청 기간")
    assert unknown_words("기숙사에서 자전거 보관이 가능한가요?", statistics) == ["자전거", "보관"]


def test_the_reason_of_a_regulation_names_the_signals_that_decided() -> None:
    strong = PackFindings({"regulation_score": 0.9, "regulation_situations": 0.5, "regulation_covered": 1.0})
    near = PackFindings(dict(strong.signals) | {"regulation_similarity": 0.62})
    weak = PackFindings({"regulation_score": 0.1, "regulation_situations": 0.0, "regulation_covered": 0.0})
    passages = [_passage("휴학은 두 학기까지 한다.", 0.8)]
    answered = confidence_of("학교 쉬고 싶어요", passages, STATISTICS, None, strong)
    refused = confidence_of("학교 쉬고 싶어요", passages, STATISTICS, None, weak)
    nearest = confidence_of("학교 쉬고 싶어요", passages, STATISTICS, None, near)
    assert answered.decision == nearest.decision == "answer"
    assert text_of(nearest.reason) == f"{text_of(answered.reason)[:-1]}; the nearest one is 62% similar."
    assert text_of(answered.reason).startswith("The best regulation reaches 90% of a full text score")
    assert refused.decision == "abstain"
    assert "reaches 10%" in text_of(refused.reason)
    assert "a part of the question" in text_of(refused.reason)
    assert [each.code for each in refused.reason] == [
        "evidence_regulations_part",
        "searched",
        "unknown_words",
        "nearest_headings",
    ]


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_a_careful_policy_raises_every_threshold_and_an_eager_one_lowers_it(abstain: float, review: float) -> None:
    limits = Thresholds(abstain, review)
    careful, balanced, eager = (limits.at_cost(COSTS[policy]) for policy in ("careful", "balanced", "eager"))
    assert (balanced.abstain, balanced.review) == pytest.approx((abstain, review))
    for name in ("abstain", "review"):
        assert 0.0 < getattr(eager, name) < getattr(balanced, name) < getattr(careful, name) < 1.0
    odds = careful.abstain / (1 - careful.abstain), abstain / (1 - abstain)
    assert odds[0] / odds[1] == pytest.approx(COSTS["careful"])


def test_the_policy_decides_about_the_same_confidence() -> None:
    passages = [SearchResult("c", "The boiler valve is inspected.", bm25_score=0.5)]
    question = "When is the boiler valve inspected in winter?"
    decisions = [
        confidence_of(question, passages, STATISTICS, policy=policy) for policy in ("careful", "balanced", "eager")
    ]
    assert len({judged.value for judged in decisions}) == 1
    order = [("abstain", "review", "answer").index(judged.decision) for judged in decisions]
    assert order == sorted(order)


def test_an_unknown_policy_is_refused() -> None:
    assert policy_of("careful") == "careful"
    with pytest.raises(InvalidInput, match="DTRAG_DECISION is 'brave', but must be careful, balanced or eager"):
        policy_of("brave")
