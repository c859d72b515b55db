"""Consolidation of the case memory: duplicates are merged, poor and unused cases archived, in batches, with undo.

A later vote on an archived case counts on the case that stayed, or activates it again (`vote_target`).
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from dtrag.cases.maintenance import all_cases, require_maintainer
from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.access.scope import EVERYTHING, Scope
from dtrag.core.cases.case import Case, CaseChange, FeedbackType, Vote
from dtrag.core.cases.consolidation import (
    UNUSED,
    Archiving,
    archive_note,
    archivings,
    may_be_poor,
    merged_log_id,
    replacements,
    undone,
)
from dtrag.core.cases.votes import POSITIVE, Replacement
from dtrag.errors import Conflict, NotFound
from dtrag.ports import CaseStore, Recorder, unrecorded

BATCH = 100
"""Cases that are changed in one transaction."""
MOST_MERGES = 10
"""Merges one after the other that a vote follows."""
ARCHIVED = (
    "The case of this answer is archived and is not shown again. An editor can activate it by changing its status to "
    "active."
)


@dataclass(frozen=True, slots=True)
class ConsolidationReport:
    """What a run did, or would do. `changed_meanwhile` are cases that others changed: the next run examines them."""

    run_id: str
    dry_run: bool
    examined: int
    archived: tuple[Archiving, ...]
    changed_meanwhile: int = 0
    made_from_review: int = 0

    def count(self, reason: str) -> int:
        """Archived cases with this reason."""
        return sum(archiving.reason == reason for archiving in self.archived)


class Consolidation:
    """Consolidates the cases of one store. Stopped at any point, the next run continues with what is left."""

    def __init__(
        self,
        store: CaseStore,
        record: Recorder = unrecorded,
        *,
        make_missing: Callable[[], Awaitable[Sequence[str]]] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ):
        self._store = store
        self._record = record
        self._make_missing = make_missing
        self._now = now

    async def run(self, *, dry_run: bool = False, caller: Caller = LOCAL) -> ConsolidationReport:
        """Merge duplicates and archive poor and unused cases; with `dry_run` nothing is changed."""
        require_maintainer(caller)
        now, run_id = self._now(), self._now().strftime("%Y%m%d-%H%M%S-") + uuid.uuid4().hex[:6]
        made = await self._make_missing() if self._make_missing is not None and not dry_run else ()
        cases = await all_cases(self._store)
        shown = await self._shown()
        votes = await self._votes([case for case in cases if may_be_poor(case)])
        planned = await asyncio.to_thread(archivings, cases, votes, shown, now)
        if dry_run:
            return ConsolidationReport(run_id, True, len(cases), tuple(planned))
        done, conflicts = await self._apply(planned, run_id)
        report = ConsolidationReport(run_id, False, len(cases), tuple(done), conflicts, len(made))
        counts = Counter[str](archiving.reason for archiving in done)
        if done:
            await self._audit(caller, "cbr.consolidate", run_id, counts)
        return report

    async def undo(self, run_id: str, *, caller: Caller = LOCAL) -> int:
        """Restore what the run archived; the number of cases. Raises `NotFound` for a run without any."""
        require_maintainer(caller)
        archived = [case for case in await all_cases(self._store) if _run_of(case) == run_id]
        if not archived:
            raise NotFound(
                f"No case was archived by a run {run_id[:60]!r}. `dtrag cbr consolidate --runs` lists the runs."
            )
        await self._refuse_later(archived, run_id)
        restored = 0
        for case in archived:
            restored += await self._restore(case, run_id)
        await self._audit(caller, "cbr.consolidate.undo", run_id, {"restored": restored})
        return restored

    async def runs(self, *, caller: Caller = LOCAL) -> dict[str, Counter[str]]:
        """Run -> archived cases by reason, newest first; runs that were undone are absent."""
        require_maintainer(caller)
        runs: dict[str, Counter[str]] = defaultdict(Counter)
        for case in await all_cases(self._store):
            if (note := archive_note(case)) is not None:
                runs[note.run][note.reason] += 1
        return dict(sorted(runs.items(), reverse=True))

    async def _apply(self, planned: Sequence[Archiving], run_id: str) -> tuple[list[Archiving], int]:
        done: list[Archiving] = []
        conflicts = 0
        for batch in _batches(_groups(planned)):
            if await self._store.replace(await self._changes(batch, run_id)):
                done += [archiving for group in batch for archiving in group]
                continue
            for group in batch:  # one of them was changed meanwhile: the others are still to be done
                if await self._store.replace(await self._changes([group], run_id)):
                    done += group
                else:
                    conflicts += len(group)
        return done, conflicts

    async def _changes(self, groups: Sequence[Sequence[Archiving]], run_id: str) -> list[Replacement]:
        now = self._now()
        changes: list[Replacement] = []
        for group in groups:
            target = group[0].into
            merged = [archiving.case for archiving in group] if target is not None else []
            votes = await self._votes([*merged, *([target] if target is not None else [])])
            changes += replacements(target, group, votes, run_id, now)
        return changes

    async def _restore(self, case: Case, run_id: str) -> bool:
        for _ in range(10):  # votes may come in between
            note = archive_note(case)
            if note is None or note.run != run_id:
                return False
            target = await self._store.get(note.into, EVERYTHING) if note.into is not None else None
            votes = await self._votes([case, *([target] if target is not None else [])])
            if await self._store.replace(undone(case, note, target, votes, self._now())):
                return True
            current = await self._store.get(case.case_id, EVERYTHING)
            if current is None:
                return False
            case = current
        return False

    async def _refuse_later(self, archived: Sequence[Case], run_id: str) -> None:
        """Raise `Conflict` when a later run archived a case that others were merged into."""
        notes = [note for case in archived if (note := archive_note(case)) is not None]
        into = {note.into for note in notes if note.into is not None}
        stays = await self._store.of(into, EVERYTHING)
        later = {run for case in stays.values() if (run := _run_of(case)) not in {None, run_id}}
        if later:
            raise Conflict(
                f"A later run archived cases of this one. Undo it first: dtrag cbr consolidate --undo {max(later)}"
            )

    async def _votes(self, cases: Sequence[Case]) -> dict[str, Sequence[Vote]]:
        return await self._store.votes([case.case_id for case in cases], EVERYTHING) if cases else {}

    async def _shown(self) -> Mapping[str, datetime]:
        """Case id -> when it was last shown with an answer, as far as that keeps a case from being unused."""
        return await self._store.shown_since(self._now() - UNUSED)

    async def _audit(self, caller: Caller, action: str, run_id: str, counts: Mapping[str, int]) -> None:
        await self._record(caller.name, action, scope=None, subjects=[run_id], decision="done", details=dict(counts))


def _run_of(case: Case) -> str | None:
    note = archive_note(case)
    return None if note is None else note.run


def _groups(planned: Sequence[Archiving]) -> list[list[Archiving]]:
    """Those that are merged into one case together; others alone."""
    groups: dict[str, list[Archiving]] = defaultdict(list)
    for archiving in planned:
        groups[archiving.case.case_id if archiving.into is None else f"into {archiving.into.case_id}"].append(archiving)
    return [group[start : start + BATCH - 1] for group in groups.values() for start in range(0, len(group), BATCH - 1)]


def _batches(groups: Sequence[list[Archiving]]) -> list[list[list[Archiving]]]:
    """Groups together while at most `BATCH` cases change, and each case once."""
    batches: list[list[list[Archiving]]] = [[]]
    size = 0
    for group in groups:
        changed = len(group) + (group[0].into is not None)
        if size + changed > BATCH:
            batches.append([])
            size = 0
        batches[-1].append(group)
        size += changed
    return [batch for batch in batches if batch]


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
