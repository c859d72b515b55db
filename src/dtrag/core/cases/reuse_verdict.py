"""Evidence: when a case may be reused, from the reuse decisions of the collection and of the case, and from votes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from dtrag.core.cases.case import Case, DecisionCounts, FeedbackType, Vote
from dtrag.core.metrics.intervals import clopper_pearson
from dtrag.core.response import Written, response
from dtrag.core.statements import Statements, stated, text_of

DELTA = 0.05
"""Largest accepted share of wrong reuse decisions."""
MIN_DECISIONS = 60
"""Decisions from which on they count instead of the committed pairs: 60 of 60 have a lower bound of .951, 58 of 58 one
of .9497."""
COMMITTED_PAIRS = DecisionCounts(correct=660, wrong=0)
"""What the gate decides about the trap pairs of bench/cases (`dtrag cbr same`): how many it refuses, and how many it
takes for the same. A test compares these numbers with the pairs."""
MIN_QUALITY = 0.5
"""Least quality of a case that is reused while the collection has fewer decisions."""
REVIEW_LOG = "review-"
"""Beginning of the log ids of reviewers' votes. Such a vote closes the earlier thumbs-down of everybody."""

Basis = Literal["decisions", "committed pairs"]
Code = Literal["reused", "collection", "wrong", "unconfirmed", "thumbs_down", "quality", "no_passages"]


@dataclass(frozen=True, slots=True)
class CaseStanding:
    """What votes and replays tell about one case.

    `decisions` are its own reuse decisions. `supporters` are the voters, its author not counted, whose last vote up or
    down on it is up; `open_thumbs_down` counts those whose last one is down, unless a review followed.
    """

    decisions: DecisionCounts = DecisionCounts()
    supporters: frozenset[str] = frozenset()
    open_thumbs_down: int = 0

    @property
    def confirmed(self) -> bool:
        """Whether another voter or a replay found it right (`counts_as_decision`)."""
        return bool(self.supporters) or self.decisions.correct > 0


def standing_of(case: Case, votes: Sequence[Vote], decisions: DecisionCounts) -> CaseStanding:
    """The standing of a case by the votes on it, oldest first, and its decisions.

    Votes without a key ("") count as those of one voter, who is not the author.
    """
    last: dict[str, FeedbackType] = {}
    for vote in votes:
        if vote.log_id.startswith(REVIEW_LOG):
            last = {voter: kind for voter, kind in last.items() if kind is not FeedbackType.THUMBS_DOWN}
        if vote.feedback is not FeedbackType.IGNORED:
            last[vote.voter] = vote.feedback
    down = {voter for voter, kind in last.items() if kind is FeedbackType.THUMBS_DOWN}
    author = {case.author} if case.author else frozenset()
    return CaseStanding(decisions, frozenset(last.keys() - down - author), len(down))


def counts_as_decision(case: Case, vote: Vote) -> bool:
    """Whether a vote on the case, when it was shown or raised, is evidence about reuse.

    Neither a rating of 3 nor a vote of the case's author is.
    """
    return vote.feedback is not FeedbackType.IGNORED and not is_author(case, vote.voter)


def is_author(case: Case, owner: str) -> bool:
    """Whether the caller made the case; False without keys."""
    return bool(case.author) and owner == case.author


@dataclass(frozen=True, slots=True)
class CollectionEvidence:
    """Whether the cases in your scope may be shown with answers."""

    __pydantic_config__ = response("ReuseShape")

    allowed: bool
    """Whether the lower bound is at least 1 - delta."""
    lower_bound: Annotated[float, Written(lambda value: round(value, 6), {"type": "float"})]
    """One-sided 95 % lower bound of the share of correct reuse decisions."""  # Clopper-Pearson
    delta: float
    """Largest accepted share of wrong decisions."""
    basis: Basis
    """decisions, or committed pairs while there are fewer than 60."""
    correct: int
    """Correct reuse decisions."""
    wrong: int
    """Wrong ones."""
    reason: str
    """The same as a sentence."""
    reason_statements: Statements
    """The sentences of reason with codes."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a case may be reused: a code for traces and counters, and the reason as a sentence."""

    allowed: bool
    code: Code
    reason: str


def collection_evidence(
    decisions: DecisionCounts, committed: DecisionCounts, delta: float = DELTA
) -> CollectionEvidence:
    """The evidence of the collection's reuse decisions; with fewer than 60, that of the committed pairs.

    `committed` counts the trap pairs that the gate refuses (correct) and takes for the same (wrong).
    """
    basis: Basis = "decisions" if decisions.total >= MIN_DECISIONS else "committed pairs"
    counts = decisions if basis == "decisions" else committed
    lower, _ = clopper_pearson(counts.correct, counts.total)
    allowed = lower >= 1.0 - delta
    share = {"correct": f"{counts.correct:,}", "total": f"{counts.total:,}"}
    if basis == "decisions":
        source = stated("reuse_decisions", "{correct} of {total} reuse decisions were correct.", **share)
    else:
        source = stated(
            "reuse_pairs",
            "There are {decisions} reuse decisions, fewer than {least}; of the committed pairs {correct} of {total} "
            "were refused as they must be.",
            decisions=f"{decisions.total:,}",
            least=MIN_DECISIONS,
            **share,
        )
    bound = {"lower": f"{lower:.3f}", "limit": f"{1.0 - delta:.2f}"}
    reason = (
        source,
        stated("reuse_bound_enough", "The lower bound {lower} is at least {limit}.", **bound)
        if allowed
        else stated("reuse_bound_low", "The lower bound {lower} is less than {limit}.", **bound),
    )
    return CollectionEvidence(allowed, lower, delta, basis, decisions.correct, decisions.wrong, text_of(reason), reason)


def reusable(case: Case, standing: CaseStanding, collection: CollectionEvidence) -> Verdict:
    """Whether the case may be reused, by everything but its passages' freshness."""
    own, few_decisions = standing.decisions, collection.basis == "committed pairs"
    rules: tuple[tuple[bool, Code, str], ...] = (
        (not case.passages, "no_passages", "The case cites no passages."),
        (not collection.allowed, "collection", collection.reason),
        (
            own.wrong > own.correct,
            "wrong",
            f"Reusing the case was wrong {own.wrong:,} times and right {own.correct:,} times.",
        ),
        (
            case.origin == "manual" and not standing.confirmed,
            "unconfirmed",
            "The passages were chosen by hand; neither another voter nor a replay has confirmed them.",
        ),
        (
            standing.open_thumbs_down > 0,
            "thumbs_down",
            f"The case has {standing.open_thumbs_down:,} open thumbs-down.",
        ),
        (
            few_decisions and case.quality_score < MIN_QUALITY,
            "quality",
            f"The quality {case.quality_score:.2f} of the case is below {MIN_QUALITY:.2f}.",
        ),
    )
    broken = next(((code, reason) for is_broken, code, reason in rules if is_broken), None)
    return Verdict(True, "reused", collection.reason) if broken is None else Verdict(False, *broken)
