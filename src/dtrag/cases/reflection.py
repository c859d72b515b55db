"""Reflection: how often each case helped, which ones to correct, and their review."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from dtrag.cases.maintenance import all_cases, require_maintainer
from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.access.scope import EVERYTHING, Grant
from dtrag.core.cases.case import Case, CaseChange, Vote
from dtrag.core.cases.votes import one_of_each_voter
from dtrag.core.statements import stated
from dtrag.core.taxonomy.review import OfferedAnswer
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.ports import CaseStore, Index, Recorder, unrecorded

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

    `lowered`: its quality is now its success rate; `in_review`: its question waits there.
    """

    case: Case
    votes: int
    successes: int
    lowered: bool = False
    in_review: bool = False

    @property
    def success_rate(self) -> float:
        """Share of votes that report a success."""
        return self.successes / self.votes

    @property
    def advice(self) -> str:
        """What to correct, as a sentence; "" from a success rate of GOOD on."""
        if self.success_rate >= GOOD:
            return ""
        if self.success_rate >= BAD:
            return "It helps often, not always: compare its passages with the question."
        if not self.case.passages:
            return "It cites no passage: add passages that answer its question, or delete it."
        if not self.case.query:
            return "Its question is stored without text: replace or delete the case."
        return "Choose other passages for its question: dtrag review."


@dataclass(frozen=True, slots=True)
class ReflectionReport:
    """`cases` have enough votes, the least successful first. `success_rate` of all votes; None with too few of them."""

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
        rate = successes / total if total >= LEAST_OF_ALL else None
        return ReflectionReport(len(active), total, rate, tuple(reflected))

    async def _correct(self, judged: ReflectedCase, caller: Caller) -> ReflectedCase:
        case, quality = judged.case, round(judged.success_rate, 6)
        lowered = case.quality_score > quality
        if lowered:
            change = CaseChange(quality_score=quality)
            await self._store.change(case.case_id, change, self._now(), EVERYTHING)
            details = {"quality": quality, "before": case.quality_score}
            await self._record(
                caller.name, "cbr.reflect", scope=None, subjects=[case.case_id], decision="done", details=details
            )
        in_review = await self._review(judged) if case.query and case.passages else False
        return ReflectedCase(case, judged.votes, judged.successes, lowered, in_review)

    async def _review(self, judged: ReflectedCase) -> bool:
        case = judged.case
        taxonomy = (await self._index.snapshot()).taxonomy
        nodes = {case.node_id, *case.asked_in} if case.asked_in is not None else set()
        paths = [taxonomy.path(node) for node in nodes if node is not None]
        grant = Grant.of(map(CategoryPath.parse, paths), taxonomy) if paths and all(paths) else None
        offered = OfferedAnswer(
            question=case.query,
            reasons=[
                stated(
                    "case_rarely_helped",
                    "Its case {case} helped in {successes} of {votes} votes.",
                    case=case.case_id,
                    successes=judged.successes,
                    votes=judged.votes,
                )
            ],
            confidence=judged.success_rate,
            decision="review",
            cited=[passage.chunk_id for passage in case.passages],
            as_of=case.as_of.isoformat() if case.as_of is not None else "",
        )
        return await self._offer(offered, grant)


def _judged(case: Case, votes: Sequence[Vote]) -> ReflectedCase:
    counted = one_of_each_voter(votes)
    return ReflectedCase(case, len(counted), sum(vote.success for vote in counted))
