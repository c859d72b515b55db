"""Votes on archived cases: on which case they count, and when a case is active again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dtrag.core.access.scope import Scope
from dtrag.core.cases.case import Case, CaseChange, FeedbackType
from dtrag.core.cases.consolidation import archive_note, merged_log_id
from dtrag.core.cases.votes import POSITIVE
from dtrag.ports import CaseStore

MOST_MERGES = 10
"""Merges one after the other that a vote follows."""
ARCHIVED = (
    "The case of this answer is archived and is not shown again. An editor can activate it by changing its status to "
    "active."
)


@dataclass(frozen=True, slots=True)
class VoteTarget:
    """The case on which a vote counts, and the log id of the vote there; `note` tells the voter what to know."""

    case: Case
    log_id: str
    note: str = ""


async def vote_target(
    store: CaseStore, case: Case, log_id: str, feedback: FeedbackType, *, scope: Scope, at: datetime
) -> VoteTarget:
    """Where a vote on the case counts.

    For a merged case that is the one that stayed, where the vote replaces the copy of an earlier one. A positive vote
    activates a case that was archived as unused.
    """
    for _ in range(MOST_MERGES):
        note = archive_note(case)
        if note is None or note.into is None:
            break
        stayed = await store.get(note.into, scope)
        if stayed is None:
            break
        copied = merged_log_id(case.case_id, log_id)
        votes = (await store.votes([stayed.case_id], scope)).get(stayed.case_id, ())
        case, log_id = stayed, copied if any(vote.log_id == copied for vote in votes) else log_id
    if case.status == "active":
        return VoteTarget(case, log_id)
    note = archive_note(case)
    if note is not None and note.reason == "unused" and feedback in POSITIVE:
        changed = await store.change(case.case_id, CaseChange(status="active"), at, scope)
        return VoteTarget(case if changed is None else changed[1], log_id)
    return VoteTarget(case, log_id, ARCHIVED)
