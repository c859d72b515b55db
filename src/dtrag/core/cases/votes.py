"""What a vote changes: quality, use and success of a case, and the interaction that it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dtrag.core.cases.case import Case, CaseLog, FeedbackType, ReuseDecision, Vote

STEP = {
    FeedbackType.THUMBS_UP: 0.1,
    FeedbackType.SELECTED: 0.1,
    FeedbackType.THUMBS_DOWN: -0.1,
    FeedbackType.IGNORED: 0.0,
}
VOTER_LIMIT = 0.3
"""The most that one voter can move the quality of a case, in either direction."""
POSITIVE = frozenset({FeedbackType.THUMBS_UP, FeedbackType.SELECTED})


@dataclass(frozen=True, slots=True)
class CountedVote:
    """A vote, and by how much it moved the quality of its case (less than its step at 0, at 1 and at the limit)."""

    vote: Vote
    moved: float


@dataclass(frozen=True, slots=True)
class Tally:
    """All votes on a case, and how many of them report a success."""

    votes: int = 0
    successes: int = 0


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """A case with everything that belongs to it, as it is moved from one store to another."""

    case: Case
    votes: tuple[CountedVote, ...] = ()
    decisions: tuple[ReuseDecision, ...] = ()


@dataclass(frozen=True, slots=True)
class Replacement:
    """A case that is replaced if it is stored as `before`; votes are added, or removed by their log ids."""

    before: Case
    after: Case
    added: tuple[CountedVote, ...] = ()
    removed: frozenset[str] = frozenset()


def records_of(
    cases: Sequence[Case], votes: Sequence[CountedVote], decisions: Sequence[ReuseDecision]
) -> list[CaseRecord]:
    """The cases, each with its votes and decisions of these."""
    votes_of: dict[str, list[CountedVote]] = {}
    decisions_of: dict[str, list[ReuseDecision]] = {}
    for counted in votes:
        votes_of.setdefault(counted.vote.case_id, []).append(counted)
    for decision in decisions:
        decisions_of.setdefault(decision.case_id, []).append(decision)
    return [
        CaseRecord(case, tuple(votes_of.get(case.case_id, ())), tuple(decisions_of.get(case.case_id, ())))
        for case in cases
    ]


def bounded(quality: float) -> float:
    """The quality within [0, 1], to six places."""
    return round(min(1.0, max(0.0, quality)), 6)


def count_vote(case: Case, vote: Vote, earlier: Sequence[CountedVote], tally: Tally) -> tuple[Case, CountedVote] | None:
    """The case after the vote, and the vote as it is stored; None when it repeats a stored one.

    `earlier` are the votes of the same voter on the case. One of the same interaction is replaced: the quality moves by
    the difference, and the use stays. Without keys all voters are "", and there is no limit.
    """
    replaced = next((counted for counted in earlier if counted.vote.log_id == vote.log_id), None)
    if replaced and (replaced.vote.feedback, replaced.vote.success) == (vote.feedback, vote.success):
        return None
    step = STEP[vote.feedback]
    if vote.voter:
        others = sum(counted.moved for counted in earlier if counted is not replaced)
        step = min(VOTER_LIMIT - others, max(-VOTER_LIMIT - others, step))
    before = bounded(case.quality_score - (replaced.moved if replaced else 0.0))
    quality = bounded(before + step)
    votes = tally.votes + (replaced is None)
    successes = tally.successes + vote.success - (replaced.vote.success if replaced else 0)
    changed = replace(
        case,
        quality_score=quality,
        usage_count=case.usage_count + (replaced is None),
        success_rate=round(successes / votes, 6),
        upvotes=case.upvotes + _change(replaced, vote, POSITIVE),
        downvotes=case.downvotes + _change(replaced, vote, frozenset({FeedbackType.THUMBS_DOWN})),
        updated_at=vote.at,
    )
    return changed, CountedVote(vote, round(quality - before, 6))


def _change(replaced: CountedVote | None, vote: Vote, kinds: frozenset[FeedbackType]) -> int:
    return (vote.feedback in kinds) - (replaced is not None and replaced.vote.feedback in kinds)


def one_of_each_voter(votes: Sequence[Vote]) -> list[Vote]:
    """The last vote of each voter, of votes oldest first; without a key ("") all of them."""
    last = {vote.voter or (vote.voter, number): vote for number, vote in enumerate(votes)}
    return list(last.values())


def voted_log(log: CaseLog | None, vote: Vote, case: Case) -> CaseLog:
    """The interaction after the vote; a new one when there was none."""
    log = log or CaseLog(
        log_id=vote.log_id,
        timestamp=vote.at,
        query=case.query,
        query_hash=case.query_hash,
        category_path=case.category_path,
        node_id=case.node_id,
        user_id=vote.voter,
        asked_in=case.asked_in,
    )
    picked = tuple(case_id for case_id in log.picked_case_ids if case_id != vote.case_id)
    if vote.feedback in POSITIVE:
        picked = (*picked, vote.case_id)
    log = replace(log, success=vote.success, feedback=vote.feedback, picked_case_ids=picked)
    if vote.case_id in log.case_ids:
        return log
    return replace(log, suggested_case_ids=(*log.suggested_case_ids, vote.case_id))
