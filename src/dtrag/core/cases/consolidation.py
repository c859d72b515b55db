"""Which cases are merged, and which are archived: pure rules. Every change notes its run, so that it can be undone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from dtrag.core.cases.case import ALIASES, NOTE, Case, Vote
from dtrag.core.cases.same_question import same_question
from dtrag.core.cases.votes import CountedVote, Replacement, bounded, one_of_each_voter
from dtrag.core.response import TEXT, Written, response

POOR_SUCCESS = 0.3
POOR_USAGE = 10
"""Cases with a lower success rate and more use are poor."""
PROTECTED_USAGE = 500
"""Cases with more use are never archived as poor."""
UNUSED = timedelta(days=90)
UNUSED_USAGE = 100
"""Cases with more use are never archived as unused."""
RECENT = timedelta(days=7)
"""Cases that were used since then are never archived."""

Reason = Literal["merged", "poor", "unused"]
REASONS: tuple[Reason, ...] = ("merged", "poor", "unused")


@dataclass(frozen=True, slots=True)
class ArchiveNote:
    """Why a run archived a case. A merged one has its use and votes, which are counted with the case `into`."""

    run: str
    reason: Reason
    into: str | None = None
    usage: int = 0
    upvotes: int = 0
    downvotes: int = 0


@dataclass(frozen=True, slots=True)
class Alias:
    """A case that a run merged into another one, whose quality it raised by so much."""

    case_id: str
    run: str
    raised: float = 0.0


def archive_note(case: Case) -> ArchiveNote | None:
    """The note of a run that archived the case; None without one, and for one that no run wrote."""
    note = case.metadata.get(NOTE)
    if case.status != "archived" or not isinstance(note, Mapping):
        return None
    run, into = note.get("run"), note.get("into")
    counts = [note.get(name, 0) for name in ("usage", "up", "down")]
    reason = next((each for each in REASONS if each == note.get("reason")), None)
    if not isinstance(run, str) or reason is None or not (into is None or isinstance(into, str)):
        return None
    if not all(type(count) is int and count >= 0 for count in counts):
        return None
    return ArchiveNote(run, reason, into, *counts)


def aliases_of(case: Case) -> list[Alias]:
    """The cases that were merged into this one; entries of another form are left out."""
    entries = case.metadata.get(ALIASES)
    aliases = []
    for entry in entries if isinstance(entries, list | tuple) else ():
        if not isinstance(entry, Mapping):
            continue
        case_id, run, raised = entry.get("case_id"), entry.get("run"), entry.get("raised", 0.0)
        if isinstance(case_id, str) and isinstance(run, str) and type(raised) in {int, float}:
            aliases.append(Alias(case_id, run, float(raised)))
    return aliases


CASE_ID = Written(lambda case: case.case_id, TEXT)


@dataclass(frozen=True, slots=True)
class Archiving:
    """A case to be archived; `into` is the case that it is merged into."""

    __pydantic_config__ = response()

    case: Annotated[Case, CASE_ID] = field(metadata={"alias": "case_id"})
    reason: Reason
    into: Annotated[Case, CASE_ID] | None = None


def last_use(case: Case, shown: Mapping[str, datetime]) -> datetime:
    """When the case was last voted on, changed or shown with an answer."""
    return max(case.updated_at, shown.get(case.case_id, case.updated_at))


def archivings(
    cases: Sequence[Case], votes: Mapping[str, Sequence[Vote]], shown: Mapping[str, datetime], now: datetime
) -> list[Archiving]:
    """What to do with these cases: duplicates first. No case is in two of them, also not as the one that stays."""
    active = [case for case in cases if case.status == "active"]
    merges = duplicates(active)
    merged = {archiving.case.case_id for archiving in merges}
    stays = {archiving.into.case_id for archiving in merges if archiving.into is not None}
    rest = [case for case in active if case.case_id not in merged | stays]
    planned = list(merges)
    for case in rest:
        reason = _reason(case, votes.get(case.case_id, ()), last_use(case, shown), now)
        if reason is not None:
            planned.append(Archiving(case, reason))
    return planned


def may_be_poor(case: Case) -> bool:
    """Whether success and use of the case are those of a poor one."""
    return case.success_rate < POOR_SUCCESS and POOR_USAGE < case.usage_count <= PROTECTED_USAGE


def _reason(case: Case, votes: Sequence[Vote], used: datetime, now: datetime) -> Reason | None:
    if now - used <= RECENT:
        return None
    if may_be_poor(case) and _is_poor(case, votes):
        return "poor"
    if now - used > UNUSED and case.usage_count <= UNUSED_USAGE:
        return "unused"
    return None


def _is_poor(case: Case, votes: Sequence[Vote]) -> bool:
    """As `may_be_poor`, with one vote of each voter: repeated ones are neither use nor failure."""
    counted = one_of_each_voter(votes)
    usage = case.usage_count - (len(votes) - len(counted))
    return bool(counted) and usage > POOR_USAGE and sum(vote.success for vote in counted) / len(counted) < POOR_SUCCESS


def duplicates(cases: Iterable[Case]) -> list[Archiving]:
    """Cases for the same question, in both directions, that cite the same texts in the same category for the same day,
    and that were asked and answered in the same scope.

    The most used one stays, then the one of higher quality, then the older one.
    """
    groups: dict[object, list[Case]] = defaultdict(list)
    for case in cases:
        if case.passages:
            place = case.node_id, case.category_path, case.as_of, case.asked_in, case.answered_in
            groups[place, frozenset(case.passages)].append(case)
    merges = []
    for group in groups.values():
        targets: list[Case] = []
        for case in sorted(group, key=_rank):
            target = next((other for other in targets if _are_same(other, case)), None)
            if target is None:
                targets.append(case)
            else:
                merges.append(Archiving(case, "merged", target))
    return merges


def _rank(case: Case) -> tuple[float, float, datetime, str]:
    return -case.usage_count, -case.quality_score, case.created_at, case.case_id


def _are_same(left: Case, right: Case) -> bool:
    if left.query_hash and left.query_hash == right.query_hash:
        return True
    return bool(left.query and right.query) and same_question(left.query, right.query).same


def replacements(
    target: Case | None, group: Sequence[Archiving], votes: Mapping[str, Sequence[Vote]], run: str, now: datetime
) -> list[Replacement]:
    """The changes that archive these cases; `target` gets the use and the votes of those that are merged into it.

    The quality of `target` stays, unless that of a case from a review is higher. Votes are copied, with log ids that
    `undone` finds.
    """
    changed = [Replacement(archiving.case, _archived(archiving, run, now)) for archiving in group]
    if target is None:
        return changed
    merged = [archiving.case for archiving in group]
    copied = [_copied(vote, target) for case in merged for vote in votes.get(case.case_id, ())]
    raised = _raised(target, merged)
    aliases = [*aliases_of(target), *(Alias(case.case_id, run, raised.get(case.case_id, 0.0)) for case in merged)]
    own = list(votes.get(target.case_id, ()))
    after = replace(
        target,
        quality_score=bounded(target.quality_score + sum(raised.values())),
        usage_count=target.usage_count + sum(case.usage_count for case in merged),
        upvotes=target.upvotes + sum(case.upvotes for case in merged),
        downvotes=target.downvotes + sum(case.downvotes for case in merged),
        success_rate=_success_rate(target, [*own, *(counted.vote for counted in copied)]),
        metadata={**target.metadata, ALIASES: [asdict(alias) for alias in aliases]},
        updated_at=now,
    )
    return [Replacement(target, after, tuple(copied)), *changed]


def _raised(target: Case, merged: Sequence[Case]) -> dict[str, float]:
    """The reviewed case of the highest quality, and by how much it raises that of the case that stays."""
    reviewed = [case for case in merged if case.origin == "review"]
    best = max(reviewed, key=lambda case: case.quality_score, default=target)
    difference = round(best.quality_score - target.quality_score, 6)
    return {best.case_id: difference} if difference > 0 else {}


def _archived(archiving: Archiving, run: str, now: datetime) -> Case:
    case = archiving.case
    note: dict[str, Any] = {"run": run, "reason": archiving.reason}
    if archiving.into is None:
        return replace(case, status="archived", metadata={**case.metadata, NOTE: note}, updated_at=now)
    # Its use and votes are counted with the other case: twice they would distort the figures of the memory.
    note |= {"into": archiving.into.case_id, "usage": case.usage_count, "up": case.upvotes, "down": case.downvotes}
    metadata = {**case.metadata, NOTE: note}
    return replace(case, status="archived", usage_count=0, upvotes=0, downvotes=0, metadata=metadata, updated_at=now)


def _copied(vote: Vote, target: Case) -> CountedVote:
    return CountedVote(replace(vote, case_id=target.case_id, log_id=merged_log_id(vote.case_id, vote.log_id)), 0.0)


def merged_log_id(case_id: str, log_id: str) -> str:
    """The log id of the copy of a vote on a merged case."""
    return f"{log_id}:merged:{case_id}"  # in this order: the beginning says whether it is the vote of a review


def undone(
    case: Case, note: ArchiveNote, target: Case | None, votes: Mapping[str, Sequence[Vote]], now: datetime
) -> list[Replacement]:
    """The changes that restore a case with this note. Votes on the case that stayed since then remain."""
    restored = replace(
        case,
        status="active",
        usage_count=case.usage_count + note.usage,
        upvotes=case.upvotes + note.upvotes,
        downvotes=case.downvotes + note.downvotes,
        metadata={name: value for name, value in case.metadata.items() if name != NOTE},
        updated_at=now,
    )
    if target is None:
        return [Replacement(case, restored)]
    copies = frozenset(merged_log_id(case.case_id, vote.log_id) for vote in votes.get(case.case_id, ()))
    remaining = [vote for vote in votes.get(target.case_id, ()) if vote.log_id not in copies]
    entries = aliases_of(target)
    own = [entry for entry in entries if (entry.case_id, entry.run) == (case.case_id, note.run)]
    if not own:  # it was not merged into this one: nothing of it is counted there
        return [Replacement(case, restored)]
    aliases = [asdict(entry) for entry in entries if entry not in own]
    others = {name: value for name, value in target.metadata.items() if name != ALIASES}
    reduced = replace(
        target,
        quality_score=bounded(target.quality_score - sum(entry.raised for entry in own)),
        usage_count=max(0, target.usage_count - note.usage),
        upvotes=max(0, target.upvotes - note.upvotes),
        downvotes=max(0, target.downvotes - note.downvotes),
        success_rate=_success_rate(target, remaining),
        metadata={**others, ALIASES: aliases} if aliases else others,
        updated_at=now,
    )
    return [Replacement(target, reduced, removed=copies), Replacement(case, restored)]


def _success_rate(case: Case, votes: Sequence[Vote]) -> float:
    return round(sum(vote.success for vote in votes) / len(votes), 6) if votes else case.success_rate
