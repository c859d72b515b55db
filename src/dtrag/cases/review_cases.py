"""Cases from decisions of reviewers: which passages answer a question. No word of a reviewer is part of a case."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime

from dtrag.cases.case_input import shared_category
from dtrag.core.access.scope import EVERYTHING, PUBLISHED, Grant, Scope
from dtrag.core.answers.citation_labels import label
from dtrag.core.cases.case import DEFAULT_QUALITY, Case, CaseQuery, CitedPassage, FeedbackType, QuestionVector, Vote
from dtrag.core.cases.index import question_hash
from dtrag.core.cases.requests import MAX_QUERY
from dtrag.core.cases.reuse_verdict import REVIEW_LOG
from dtrag.core.cases.votes import CaseRecord, Tally, count_vote
from dtrag.core.editions import parse_date
from dtrag.core.taxonomy.review import ReviewItem
from dtrag.ports import CaseStore, Index
from dtrag.settings import flag

CORRECTED = 1.0
"""Quality of a case from a correction."""
_SIMILAR = 20
"""Cases that are examined for the same question."""


async def no_vector(question: str) -> QuestionVector | None:
    """Without an embedder."""
    return None


class ReviewCases:
    """Makes the cases of one app. `vector_of` embeds a question; without `keeps_text` questions are not stored."""

    def __init__(
        self,
        store: CaseStore,
        index: Index,
        *,
        vector_of: Callable[[str], Awaitable[QuestionVector | None]] = no_vector,
        keeps_text: bool = True,
    ):
        self._store = store
        self._index = index
        self._vector_of = vector_of
        self._keeps_text = keeps_text

    @property
    def enabled(self) -> bool:
        """Whether the case memory is on now."""
        return flag("cbr_enabled")

    async def add(self, item: ReviewItem, scope: Scope) -> str | None:
        """The id of the case for a decided answer; None while the memory is off, and when no chosen passage exists.

        Corrected: quality 1.0, and earlier cases for the question that cite none of the chosen passages get a
        thumbs_down of the reviewer. Approved: the usual quality and a thumbs_up of the reviewer. Earlier cases that
        cite exactly these passages get a thumbs_up, which closes thumbs-downs of others.

        A reviewer who caused the item (`own`) makes a case as one added by hand: with the usual quality, to be
        confirmed by others, and without votes on any case.

        Votes are given before the case is stored: stopped in between, the next attempt completes them.
        """
        if not self.enabled or item.decided_at is None:
            return None
        case = await self._case(item, item.decided_at, scope)
        if case is None:
            return None
        if item.proposal.get("own"):
            return case.case_id if await self._store.add(case) else None
        for other in await self._others(case, item.proposal["question"], scope):
            cited, chosen = ({passage.chunk_id for passage in each.passages} for each in (other, case))
            if cited == chosen:
                await self._store.vote(_vote(other, item, FeedbackType.THUMBS_UP), scope)
            elif item.status == "corrected" and cited.isdisjoint(chosen):
                await self._store.vote(_vote(other, item, FeedbackType.THUMBS_DOWN), scope)
        record = CaseRecord(case)
        if item.status == "approved":
            counted = count_vote(case, _vote(case, item, FeedbackType.THUMBS_UP), (), Tally())
            record = CaseRecord(case) if counted is None else CaseRecord(counted[0], (counted[1],))
        return case.case_id if await self._store.put(record) else None

    async def add_missing(self, items: Iterable[ReviewItem]) -> list[str]:
        """As `add`, for answers that were decided while the memory was off; the ids of the new cases."""
        added = []
        for item in items:
            if await self._store.get(case_id_of(item), EVERYTHING) is None:
                case_id = await self.add(item, EVERYTHING)
                if case_id is not None:
                    added.append(case_id)
        return added

    async def _case(self, item: ReviewItem, now: datetime, scope: Scope) -> Case | None:
        """The case of a decided item. It counts in the reviewer's scope; later, in that of the item's readers."""
        question = str(item.proposal["question"])
        passages = [
            CitedPassage(row["chunk_id"], bytes.fromhex(row["content_hash"])) for row in item.proposal.get("chosen", ())
        ]
        if not question.strip() or len(question) > MAX_QUERY or not passages:
            return None
        day = parse_date("as_of", item.proposal.get("as_of") or None)
        taxonomy = (await self._index.snapshot()).taxonomy
        keys = [passage.chunk_id for passage in passages]
        current = await self._index.fetch(keys, EVERYTHING.at(day), taxonomy)
        cited = [current[key] for key in keys if key in current]
        if not cited:
            return None
        path, node_id = shared_category(cited, taxonomy)
        audience: int | None = item.proposal.get("audience")
        is_published = audience is not None and audience in taxonomy.nodes
        if audience is not None and is_published:
            path, node_id = taxonomy.path(audience), audience
        own = bool(item.proposal.get("own"))
        readers = item.proposal.get("grant")
        readers_scope = Scope(Grant.from_json(readers).nodes(taxonomy)) if readers else EVERYTHING
        nodes = readers_scope.nodes if scope.nodes is None else scope.nodes
        return Case(
            case_id=case_id_of(item),
            query=question if self._keeps_text else "",
            query_hash=question_hash(question),
            vector=await self._vector_of(question) if self._keeps_text else None,
            category_path=path,
            node_id=node_id,
            content="\n".join(dict.fromkeys(label(passage) for passage in cited)),
            quality_score=CORRECTED if item.status == "corrected" and not own else DEFAULT_QUALITY,
            passages=tuple(passages),
            origin="manual" if own else "review",
            author=str(item.proposal.get("chosen_by", "")),
            as_of=day,
            answered_in=nodes,
            asked_in=PUBLISHED if is_published else readers_scope.branches(taxonomy),
            created_at=now,
            updated_at=now,
        )

    async def _others(self, case: Case, question: str, scope: Scope) -> list[Case]:
        """Other cases in scope that cite passages for literally the same question and day."""
        similar = await self._store.nearest(CaseQuery(text=question, limit=_SIMILAR), scope)
        return [
            other
            for other, _ in similar
            if (other.query_hash, other.as_of) == (case.query_hash, case.as_of)
            and other.case_id != case.case_id
            and other.passages
        ]


def _vote(case: Case, item: ReviewItem, feedback: FeedbackType) -> Vote:
    return Vote(
        log_id=f"{REVIEW_LOG}{item.item_id}",
        case_id=case.case_id,
        feedback=feedback,
        success=feedback is FeedbackType.THUMBS_UP,
        voter=str(item.proposal.get("chosen_by", "")),
        at=datetime.now(UTC),
    )


def case_id_of(item: ReviewItem) -> str:
    """The id of the case that the decision about this item becomes."""
    return f"review-{item.item_id}"
