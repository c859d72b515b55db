"""Maintenance of the case memory: expiry of interactions, copies of a store, consolidation, reflection, audit."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Annotated, Literal

from dtrag.batch_writer import TidyTimer, kept_since
from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.access.scope import EVERYTHING, Grant, Scope
from dtrag.core.cases.case import (
    Case,
    CaseChange,
    CaseLog,
    CitedPassage,
    DecisionCounts,
    FeedbackType,
    ReuseDecision,
    Vote,
    content_hash,
)
from dtrag.core.cases.consolidation import (
    CASE_ID,
    UNUSED,
    Archiving,
    aliases_of,
    archive_note,
    archivings,
    duplicates,
    may_be_poor,
    merged_log_id,
    replacements,
    undone,
)
from dtrag.core.cases.reuse_verdict import counts_as_decision, standing_of
from dtrag.core.cases.votes import POSITIVE, Replacement, one_of_each_voter
from dtrag.core.documents import SearchResult
from dtrag.core.response import INTERNAL, response
from dtrag.core.statements import stated
from dtrag.core.taxonomy.review import OfferedAnswer
from dtrag.core.taxonomy.tree import CategoryPath, Taxonomy
from dtrag.errors import Conflict, FeatureOff, Forbidden, NotFound
from dtrag.ports import AgentStore, CaseStore, Index, KeyStore, Recorder, unrecorded
from dtrag.settings import flag

PAGE = 500


def require_maintainer(caller: Caller) -> None:
    """Raises `FeatureOff` while the memory is off, and `Forbidden` for a caller with a scope."""
    if not flag("cbr_enabled"):
        raise FeatureOff(feature="CBR system", variable="CBR_ENABLED")
    if caller.access.grants or not caller.may("admin"):
        raise Forbidden("Only an administrator of the whole tree may maintain the case memory.")


async def pages(store: CaseStore) -> AsyncIterator[list[Case]]:
    """All cases of the store by id, in pages."""
    after: str | None = None
    while page := await store.page(EVERYTHING, PAGE, after):
        yield list(page)
        after = page[-1].case_id


async def all_cases(store: CaseStore) -> list[Case]:
    """All cases of the store, by id."""
    return [case async for page in pages(store) for case in page]


class LogExpiry:
    """Expires the interactions of one store. `days` 0: none expires."""

    def __init__(
        self,
        store: CaseStore,
        days: int,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._days = days
        self._now = now
        self._timer = TidyTimer(now, monotonic)

    async def tidy(self) -> int:
        """Delete what is expired, about once an hour; returns its number."""
        if not self._days or not self._timer.due():
            return 0
        return await self._store.forget_logs(kept_since(self._now(), self._days))


@dataclass(frozen=True, slots=True)
class Migrated:
    """How many cases (with their votes and decisions) and interactions were copied, and how many were there already."""

    cases: int = 0
    known_cases: int = 0
    logs: int = 0
    known_logs: int = 0


async def migrate(from_store: CaseStore, to_store: CaseStore) -> Migrated:
    """Copy all cases with their votes and decisions, and all interactions; nothing is deleted or overwritten.

    An interrupted copy is completed by the next one. A case whose id is in use in the other store stays as it is there,
    with its own votes.
    """
    copied = known = 0
    after: str | None = None
    while records := await from_store.records(PAGE, after):
        for record in records:
            added = await to_store.put(record)
            copied, known = copied + added, known + (not added)
        after = records[-1].case.case_id
    logs, known_logs = await _migrate_logs(from_store, to_store)
    return Migrated(copied, known, logs, known_logs)


async def _migrate_logs(from_store: CaseStore, to_store: CaseStore) -> tuple[int, int]:
    copied = known = 0
    after: str | None = None
    while logs := await from_store.log_page(PAGE, after):
        for log in logs:
            if await to_store.log(log.log_id, log.user_id) is None:
                await to_store.add_log(log)
                copied += 1
            else:
                known += 1
        after = logs[-1].log_id
    return copied, known


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

    __pydantic_config__ = response()

    run_id: str = field(metadata={"alias": "run"})
    dry_run: bool
    examined: int
    made_from_review: int
    changed_meanwhile: int
    archived: tuple[Archiving, ...]

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
            return ConsolidationReport(run_id, True, len(cases), 0, 0, tuple(planned))
        done, conflicts = await self._apply(planned, run_id)
        report = ConsolidationReport(run_id, False, len(cases), len(made), conflicts, tuple(done))
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


BAD, GOOD = 0.5, 0.8
"""Success rates: cases below the first are to be corrected; no advice from the second on."""
LEAST_OF_CASE = 10
"""Votes that a case needs for a judgement."""
LEAST_OF_ALL = 100
"""Votes that all cases together need for a judgement of the collection."""

Offer = Callable[[OfferedAnswer, Grant | None], Awaitable[bool]]
"""Queues an answer for reviewers who see these branches (None: the whole tree); whether it waits there now."""


@dataclass(frozen=True, slots=True)
class ReflectedCase:
    """A case with its votes, one of each voter.

    `success_rate` is the share of votes that report a success, `advice` what to correct, "" from GOOD on. `lowered`:
    its quality is now its success rate; `in_review`: its question waits there.
    """

    __pydantic_config__ = response()

    case: Annotated[Case, CASE_ID] = field(metadata={"alias": "case_id"})
    votes: int
    successes: int = field(metadata=INTERNAL)
    success_rate: float = field(default=0.0, init=False)
    lowered: bool = False
    in_review: bool = False
    advice: str = field(default="", init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "success_rate", round(self.successes / self.votes, 6))
        object.__setattr__(self, "advice", _advice(self.case, self.success_rate))


def _advice(case: Case, success_rate: float) -> str:
    if success_rate >= GOOD:
        return ""
    if success_rate >= BAD:
        return "It helps often, not always: compare its passages with the question."
    if not case.passages:
        return "It cites no passage: add passages that answer its question, or delete it."
    if not case.query:
        return "Its question is stored without text: replace or delete the case."
    return "Choose other passages for its question: dtrag review."


@dataclass(frozen=True, slots=True)
class ReflectionReport:
    """`cases` have enough votes, the least successful first. `success_rate` of all votes; None with too few of them."""

    dry_run: bool
    examined: int
    votes: int
    success_rate: float | None
    cases: tuple[ReflectedCase, ...]

    @property
    def bad(self) -> list[ReflectedCase]:
        """Cases that failed more often than they helped."""
        return [each for each in self.cases if each.success_rate < BAD]


class Reflection:
    """Judges the cases of one store by their votes."""

    def __init__(
        self,
        store: CaseStore,
        index: Index,
        offer: Offer,
        record: Recorder = unrecorded,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ):
        self._store = store
        self._index = index
        self._offer = offer
        self._record = record
        self._now = now

    async def reflect(self, *, dry_run: bool = False, caller: Caller = LOCAL) -> ReflectionReport:
        """The report. Bad cases get their success rate as quality at most, so that others are preferred to them and
        they are not reused, and their questions wait for a review; with `dry_run` nothing is changed."""
        require_maintainer(caller)
        active = [case for case in await all_cases(self._store) if case.status == "active"]
        votes = await self._store.votes([case.case_id for case in active if case.usage_count], EVERYTHING)
        judged = [_judged(case, votes.get(case.case_id, ())) for case in active if votes.get(case.case_id)]
        total, successes = sum(each.votes for each in judged), sum(each.successes for each in judged)
        enough = sorted(
            (each for each in judged if each.votes >= LEAST_OF_CASE),
            key=lambda each: (each.success_rate, -each.votes, each.case.case_id),
        )
        reflected = [
            each if dry_run or each.success_rate >= BAD else await self._correct(each, caller) for each in enough
        ]
        rate = round(successes / total, 6) if total >= LEAST_OF_ALL else None
        return ReflectionReport(dry_run, len(active), total, rate, tuple(reflected))

    async def _correct(self, judged: ReflectedCase, caller: Caller) -> ReflectedCase:
        case, quality = judged.case, judged.success_rate
        lowered = case.quality_score > quality
        if lowered:
            change = CaseChange(quality_score=quality)
            await self._store.change(case.case_id, change, self._now(), EVERYTHING)
            details = {"quality": quality, "before": case.quality_score}
            await self._record(
                caller.name, "cbr.reflect", scope=None, subjects=[case.case_id], decision="done", details=details
            )
        in_review = await self._review(judged) if case.query and case.passages else False
        return replace(judged, lowered=lowered, in_review=in_review)

    async def _review(self, judged: ReflectedCase) -> bool:
        case = judged.case
        taxonomy = (await self._index.snapshot()).taxonomy
        nodes = {case.node_id, *case.asked_in} if case.asked_in is not None else set()
        paths = [taxonomy.path(node) for node in nodes if node is not None]
        grant = Grant.of(map(CategoryPath.parse, paths), taxonomy) if paths and all(paths) else None
        offered = OfferedAnswer(
            question=case.query,
            reasons=(
                stated(
                    "case_rarely_helped",
                    "Its case {case} helped in {successes} of {votes} votes.",
                    case=case.case_id,
                    successes=judged.successes,
                    votes=judged.votes,
                ),
            ),
            confidence=judged.success_rate,
            decision="review",
            cited=[passage.chunk_id for passage in case.passages],
            as_of=case.as_of.isoformat() if case.as_of is not None else "",
        )
        return await self._offer(offered, grant)


def _judged(case: Case, votes: Sequence[Vote]) -> ReflectedCase:
    counted = one_of_each_voter(votes)
    return ReflectedCase(case, len(counted), sum(vote.success for vote in counted))


MADE_FROM_ANSWERS = frozenset({"answer", "answers", "case", "cases"})
"""Values of `metadata["kind"]` of documents that were made from answers or cases."""

Finding = Literal["stale", "duplicate", "self_referring", "voted_down", "never_used", "without_vote", "out_of_reach"]
FINDINGS: dict[Finding, str] = {
    "stale": "cite a passage that changed, or that is gone or outside the author's scope",
    "duplicate": "ask the same as another case and cite the same passages",
    "self_referring": "cite a document that was made from answers, or themselves",
    "voted_down": "are not reused because of an open thumbs-down",
    "never_used": "were never used",
    "without_vote": "have no vote of a person",
    "out_of_reach": "are in no category of an agent",
}
NEED_A_PERSON: frozenset[Finding] = frozenset({"stale", "duplicate", "self_referring", "voted_down"})
Cause = Literal["missing", "changed", "not valid", "outside the author's scope"]


Authors = Mapping[str, frozenset[tuple[str, ...]]]
"""Owner id -> the categories that the key may see now."""


@dataclass(frozen=True, slots=True)
class CaseFinding:
    """A finding about a case; `passages` and `details` say which passages, and why."""

    case_id: str
    finding: Finding
    passages: tuple[str, ...] = ()
    details: str = ""


@dataclass(frozen=True, slots=True)
class CaseAudit:
    """`reusable` cases are active, cite passages, and all of these are live; `without_sources` are only suggested.

    `counts` are the cases by finding. `needs_a_person`: a finding is not just a figure.
    """

    examined: int
    archived: int
    reusable: int
    without_sources: int
    agents: int
    counts: Mapping[Finding, int] = field(default_factory=dict, init=False)
    needs_a_person: bool = field(default=False, init=False)
    findings: tuple[CaseFinding, ...] = ()

    def __post_init__(self) -> None:
        counts = Counter(row.finding for row in self.findings)
        object.__setattr__(self, "counts", {finding: counts[finding] for finding in FINDINGS})
        object.__setattr__(self, "needs_a_person", any(counts[finding] for finding in NEED_A_PERSON))


class CaseAuditor:
    """Audits the cases of one store against the index, the keys of their authors and the agents."""

    def __init__(self, store: CaseStore, index: Index, keys: KeyStore, agents: AgentStore):
        self._store = store
        self._index = index
        self._keys = keys
        self._agents = agents

    async def audit(self, *, caller: Caller = LOCAL) -> CaseAudit:
        """The audit of all cases. Raises `FeatureOff` and `Forbidden`."""
        require_maintainer(caller)
        taxonomy = (await self._index.snapshot()).taxonomy
        authors = await self._authors(taxonomy)
        agents = await self._agents.every()
        reach = frozenset[int]().union(*(agent.grant.nodes(taxonomy) for agent in agents))
        active: list[Case] = []
        rows: list[CaseFinding] = []
        archived, stale = 0, set[str]()
        async for page in pages(self._store):
            cases = [case for case in page if case.status == "active"]
            archived += len(page) - len(cases)
            active += cases
            for row in await self._source_findings(cases, authors, taxonomy):
                rows.append(row)
                if row.finding == "stale":
                    stale.add(row.case_id)
            rows += await self._voted_down(cases)
        rows += _figures(active, reach if agents else None)
        rows += await asyncio.to_thread(_duplicates, active)
        order = list(FINDINGS)
        rows.sort(key=lambda row: (order.index(row.finding), row.case_id))
        cited = sum(bool(case.passages) for case in active)
        return CaseAudit(len(active), archived, cited - len(stale), len(active) - cited, len(agents), tuple(rows))

    async def _voted_down(self, cases: Sequence[Case]) -> list[CaseFinding]:
        """Cases that are not reused, because the last vote of some caller is a thumbs-down."""
        suspected = [case for case in cases if case.passages and case.downvotes]
        if not suspected:
            return []
        votes = await self._store.votes([case.case_id for case in suspected], EVERYTHING)
        standings = [(case, standing_of(case, votes.get(case.case_id, ()), DecisionCounts())) for case in suspected]
        advice = "open: decide about its question in dtrag review, or archive it"
        return [
            CaseFinding(case.case_id, "voted_down", details=f"{standing.open_thumbs_down:,} {advice}")
            for case, standing in standings
            if standing.open_thumbs_down
        ]

    async def _authors(self, taxonomy: Taxonomy) -> Authors:
        """The keys that are restricted to a part of the tree."""
        return {
            str(key.key_id): frozenset(map(taxonomy.path, nodes))
            for key in await self._keys.every()
            if (nodes := key.caller().access.resolved(taxonomy).nodes) is not None
        }

    async def _source_findings(self, cases: Sequence[Case], authors: Authors, taxonomy: Taxonomy) -> list[CaseFinding]:
        by_day: dict[date | None, list[Case]] = defaultdict(list)
        for case in cases:
            if case.passages:
                by_day[case.as_of].append(case)
        rows: list[CaseFinding] = []
        for day, of_day in by_day.items():
            keys = list(dict.fromkeys(passage.chunk_id for case in of_day for passage in case.passages))
            current = await self._index.fetch(keys, EVERYTHING.at(day), taxonomy)
            absent = {
                passage.document_id for case in of_day for passage in case.passages if passage.chunk_id not in current
            }
            existing = {key for document in absent for key in await self._index.chunk_ids(document, EVERYTHING)}
            for case in of_day:
                causes = {
                    passage.chunk_id: cause
                    for passage in case.passages
                    if (cause := _cause(passage, current, existing, authors.get(case.author)))
                }
                if causes:
                    rows.append(
                        CaseFinding(case.case_id, "stale", tuple(causes), "; ".join(sorted(set(causes.values()))))
                    )
                if details := _self_reference(case, current):
                    rows.append(CaseFinding(case.case_id, "self_referring", details=details))
        return rows


def _cause(
    passage: CitedPassage,
    current: Mapping[str, SearchResult],
    existing: Iterable[str],
    author: frozenset[tuple[str, ...]] | None,
) -> Cause | None:
    """Why the passage does not support its case any more; None when it does."""
    live_passage = current.get(passage.chunk_id)
    if live_passage is None:
        return "not valid" if passage.chunk_id in existing else "missing"
    if author is not None and tuple(live_passage.taxonomy_path) not in author:
        return "outside the author's scope"
    return None if content_hash(live_passage.text) == passage.content_hash else "changed"


def _self_reference(case: Case, current: Mapping[str, SearchResult]) -> str:
    if case.case_id in {alias.case_id for alias in aliases_of(case)}:
        return "its aliases name the case itself"
    for passage in case.passages:
        live_passage = current.get(passage.chunk_id)
        if live_passage is None:
            continue
        if str(live_passage.metadata.get("kind", "")).casefold() in MADE_FROM_ANSWERS:
            return f"{passage.chunk_id} is of a document that was made from answers"
        if case.case_id in live_passage.text and _is_distinct(case.case_id):
            return f"{passage.chunk_id} quotes the id of the case"
    return ""


def _is_distinct(case_id: str) -> bool:
    """Whether the id is long enough not to be in a text by chance."""
    try:
        uuid.UUID(case_id.removeprefix("review-").removeprefix("answer-"))
    except ValueError:
        return False
    return True


def _figures(cases: Iterable[Case], reach: frozenset[int] | None) -> list[CaseFinding]:
    rows: list[CaseFinding] = []
    for case in cases:
        if not case.usage_count:
            rows.append(CaseFinding(case.case_id, "never_used"))
        if not case.upvotes and not case.downvotes and case.origin != "review":
            rows.append(CaseFinding(case.case_id, "without_vote"))
        if reach is not None and case.node_id not in reach:
            rows.append(CaseFinding(case.case_id, "out_of_reach", details="/".join(case.category_path)))
    return rows


def _duplicates(cases: Sequence[Case]) -> list[CaseFinding]:
    return [
        CaseFinding(pair.case.case_id, "duplicate", details=f"of {pair.into.case_id}: dtrag cbr consolidate")
        for pair in duplicates(cases)
        if pair.into is not None
    ]


async def cast(store: CaseStore, vote: Vote, log: CaseLog, scope: Scope, *, reused: Collection[object]) -> Case | None:
    """The case after the vote; None when it is unknown or out of scope.

    On a case that was `reused` for the answer of this interaction, the vote is a reuse decision, too.
    """
    voted = await store.vote(vote, scope)
    if voted is not None and vote.case_id in reused and counts_as_decision(voted, vote):
        decision = ReuseDecision(
            case_id=vote.case_id,
            log_id=log.log_id,
            kind="vote",
            correct=vote.success and vote.feedback is not FeedbackType.THUMBS_DOWN,
            at=vote.at,
            asker=vote.voter,
            asked_in=log.asked_in,
        )
        await store.add_decision(decision)
    return voted
