"""When a case may be reused: properties over counts of decisions and votes."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.cases.case import Case, CitedPassage, DecisionCounts, FeedbackType, Vote, content_hash
from dtrag.core.cases.reuse_verdict import (
    DELTA,
    MIN_DECISIONS,
    MIN_QUALITY,
    REVIEW_LOG,
    CaseStanding,
    CollectionEvidence,
    collection_evidence,
    counts_as_decision,
    reusable,
    standing_of,
)
from dtrag.core.metrics.intervals import clopper_pearson
from dtrag.settings import Settings
from tests.builders import MINUTE, NOON
from tests.cases import each

PASSAGE = CitedPassage("d:0", content_hash("text"))
CASE = Case(
    case_id="c",
    query="How many days?",
    category_path=("HR",),
    content="Leave",
    created_at=NOON,
    updated_at=NOON,
    passages=(PASSAGE,),
    origin="answer",
)
COMMITTED = DecisionCounts(600, 0)
COUNTS = st.builds(DecisionCounts, st.integers(0, 400), st.integers(0, 400))
STANDINGS = st.builds(CaseStanding, COUNTS, st.frozensets(st.sampled_from("abc")), st.integers(0, 3))
CASES = st.builds(
    replace,
    st.just(CASE),
    quality_score=st.floats(0, 1),
    origin=st.sampled_from(["manual", "answer", "review"]),
    passages=st.sampled_from([(), (PASSAGE,)]),
)


@given(COUNTS, COUNTS)
def test_a_collection_is_allowed_exactly_when_its_bound_suffices(
    decisions: DecisionCounts, committed: DecisionCounts
) -> None:
    evidence = collection_evidence(decisions, committed)
    counts = decisions if decisions.total >= MIN_DECISIONS else committed
    assert evidence.lower_bound == clopper_pearson(counts.correct, counts.total)[0]
    assert evidence.allowed == (evidence.lower_bound >= 1 - DELTA)
    assert evidence.reason.endswith(".")


def test_a_stricter_delta_silences_the_memory_and_the_setting_has_the_documented_default() -> None:
    decisions = DecisionCounts(100, 0)
    assert collection_evidence(decisions, COMMITTED).allowed
    strict = collection_evidence(decisions, COMMITTED, 0.01)
    assert (strict.allowed, strict.delta) == (False, 0.01)
    assert strict.reason.endswith("is less than 0.99.")
    assert Settings.load(environ={}).cbr_delta == DELTA


@given(st.builds(DecisionCounts, st.integers(MIN_DECISIONS, 400), st.integers(0, 40)))
def test_another_wrong_decision_lowers_the_bound_and_allows_no_more(decisions: DecisionCounts) -> None:
    before = collection_evidence(decisions, COMMITTED)
    after = collection_evidence(replace(decisions, wrong=decisions.wrong + 1), COMMITTED)
    assert (before.basis, after.basis) == ("decisions", "decisions")
    assert after.lower_bound < before.lower_bound
    assert before.allowed or not after.allowed


@given(CASES, STANDINGS, st.builds(collection_evidence, COUNTS, st.sampled_from([COMMITTED, DecisionCounts()])))
def test_what_is_reused_meets_every_rule(case: Case, standing: CaseStanding, collection: CollectionEvidence) -> None:
    verdict = reusable(case, standing, collection)
    assert verdict.allowed == (verdict.code == "reused")
    assert verdict.reason.endswith(".")
    if not verdict.allowed:
        return
    assert collection.allowed
    assert case.passages
    assert standing.decisions.wrong <= standing.decisions.correct
    assert case.origin != "manual" or standing.supporters or standing.decisions.correct
    if collection.basis == "committed pairs":
        assert case.quality_score >= MIN_QUALITY
        assert not standing.open_thumbs_down


@each(
    "standing, changes, code",
    [
        (CaseStanding(), {}, "reused"),
        (CaseStanding(), {"passages": ()}, "no_passages"),
        (CaseStanding(DecisionCounts(1, 2)), {}, "wrong"),
        (CaseStanding(), {"origin": "manual"}, "unconfirmed"),
        (CaseStanding(supporters=frozenset("a")), {"origin": "manual"}, "reused"),
        (CaseStanding(DecisionCounts(1, 0)), {"origin": "manual"}, "reused"),
        (CaseStanding(open_thumbs_down=1), {}, "thumbs_down"),
        (CaseStanding(), {"quality_score": 0.4}, "quality"),
    ],
)
def test_each_rule_has_its_code(standing: CaseStanding, changes: dict[str, object], code: str) -> None:
    case = replace(CASE, **changes)  # type: ignore[arg-type]
    assert reusable(case, standing, collection_evidence(DecisionCounts(), COMMITTED)).code == code


def test_with_enough_decisions_a_bad_record_of_the_collection_silences_every_case() -> None:
    good = collection_evidence(DecisionCounts(60, 0), DecisionCounts())
    assert reusable(CASE, CaseStanding(), good).code == "reused"
    bad = collection_evidence(DecisionCounts(59, 1), COMMITTED)
    assert (bad.basis, bad.allowed) == ("decisions", False)
    assert reusable(CASE, CaseStanding(), bad).code == "collection"
    assert "59 of 60" in bad.reason


def vote(voter: str, feedback: FeedbackType, minute: int, log_id: str = "") -> Vote:
    success = feedback is FeedbackType.THUMBS_UP
    at = NOON + minute * MINUTE
    return Vote(log_id=log_id or f"l{minute}", case_id="c", feedback=feedback, success=success, voter=voter, at=at)


UP, DOWN, IGNORED = FeedbackType.THUMBS_UP, FeedbackType.THUMBS_DOWN, FeedbackType.IGNORED


def test_the_last_vote_of_each_voter_counts() -> None:
    case = replace(CASE, author="kim")
    votes = [vote("kim", UP, 0), vote("lee", DOWN, 1), vote("lee", UP, 2), vote("lee", IGNORED, 3), vote("han", UP, 4)]
    assert standing_of(case, votes, DecisionCounts()).supporters == {"lee", "han"}
    assert standing_of(case, [*votes, vote("han", DOWN, 5)], DecisionCounts()) == CaseStanding(
        supporters=frozenset({"lee"}), open_thumbs_down=1
    )


def test_a_review_closes_earlier_thumbs_down_only() -> None:
    review = vote("han", UP, 2, f"{REVIEW_LOG}7")
    closed = standing_of(CASE, [vote("lee", DOWN, 1), review], DecisionCounts())
    assert closed == CaseStanding(supporters=frozenset({"han"}))
    assert standing_of(CASE, [vote("lee", DOWN, 1), review, vote("lee", DOWN, 3)], DecisionCounts()).open_thumbs_down


def test_without_keys_a_vote_counts_as_one_voter() -> None:
    assert standing_of(CASE, [vote("", UP, 1), vote("", UP, 2)], DecisionCounts()).supporters == {""}


def test_authors_do_not_decide_about_their_own_cases() -> None:
    own = replace(CASE, author="kim", origin="manual")
    assert not counts_as_decision(own, vote("kim", UP, 0))
    assert not counts_as_decision(own, vote("kim", DOWN, 0))
    assert counts_as_decision(own, vote("lee", UP, 0))
    assert not counts_as_decision(replace(CASE, author="kim"), vote("kim", UP, 0))
    assert counts_as_decision(replace(own, author=""), vote("", UP, 0))
    assert not counts_as_decision(CASE, vote("lee", IGNORED, 0))
