"""The review queue: uncertain classifications and answers, and the decisions of reviewers.

A decision about a document moves it and becomes training data; one about an answer says which passages answer its
question. Callers see items about documents in their scope; documents without a category are visible only with the whole
tree.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.access.scope import EVERYTHING, Grant, Scope, Viewer, lies_within, scope_rows
from dtrag.core.answer_feedback import AnswerFeedback
from dtrag.core.cases.case import CaseLog, FeedbackType
from dtrag.core.documents import SearchResult, uuid_or_none
from dtrag.core.editions import parse_date
from dtrag.core.statements import Statements, stated
from dtrag.core.taxonomy.classification import Classification
from dtrag.core.taxonomy.review import MAX_NOTE, Decision, OfferedAnswer, ReviewItem
from dtrag.core.taxonomy.tree import CategoryPath, Taxonomy
from dtrag.core.text.analysis import clean
from dtrag.errors import Advice, Conflict, DatabaseUnavailable, InvalidInput, NotFound, StorageFull
from dtrag.governance.review_answers import (
    answer_item,
    chosen_keys,
    chosen_passages,
    cited_passages,
    current_by_day,
    is_user_of_a_source,
    readers_of,
    shown_passages,
)
from dtrag.ingestion.classify import Classifier
from dtrag.pipeline.answer_feedback import TextOf, no_text
from dtrag.pipeline.state import PipelineResponse
from dtrag.ports import Index, Recorder, ReviewStore, unrecorded
from dtrag.ports.cases import AnswersReviewed

MAX_LIMIT = 1_000
MAX_TEXT = 200_000
"""Longest text to classify, in characters; only its first 3,000 words are used."""
IN_REVIEW = stated("in_review", "The confidence is low: the answer is in the review queue.")
EXPECTED = stated("reader_expected_answer", "A reader expected an answer.")
DISPUTED = stated("reader_found_wrong", "A reader found the answer wrong.")
MOST_DECIDED = 10_000
"""Decided answers that are examined at once."""
_LOG = logging.getLogger(__name__)


FeedbackBy = Callable[[str, Collection[uuid.UUID]], Awaitable[Mapping[uuid.UUID, AnswerFeedback]]]


async def _no_feedback(voter: str, trace_ids: Collection[uuid.UUID]) -> Mapping[uuid.UUID, AnswerFeedback]:
    return {}


class Review:
    """The queue of one app. Decided answers become `cases`, while the case memory is on.

    `feedback_by` has what a reader said about answers; `answer_of` finds the text of one that its reader rates.
    """

    def __init__(
        self,
        store: ReviewStore,
        index: Index,
        classifier: Classifier,
        record: Recorder = unrecorded,
        *,
        review_below: Callable[[], float],
        cases: AnswersReviewed | None = None,
        feedback_by: FeedbackBy = _no_feedback,
        answer_of: TextOf = no_text,
    ):
        self._review_below = review_below
        self._cases = cases
        self._feedback_by = feedback_by
        self._answer_of = answer_of
        self._store = store
        self._index = index
        self._classifier = classifier
        self._record = record

    async def waiting(
        self, limit: int = 100, offset: int = 0, *, caller: Caller = LOCAL
    ) -> tuple[list[ReviewItem], int]:
        """A page of the open items, least confident first, and their total number."""
        if not (1 <= limit <= MAX_LIMIT and offset >= 0):
            raise InvalidInput(f"limit must be from 1 to {MAX_LIMIT:,} and offset at least 0.")
        taxonomy, scope = await self._seen(caller)
        items, total = await self._store.waiting(scope, limit, offset, await self._grants(caller, taxonomy))
        return [_listed(item, caller, scope, taxonomy) for item in items], total

    async def get(self, item_id: str, *, passages: Sequence[str] = (), caller: Caller = LOCAL) -> ReviewItem:
        """An item, open or decided; an answer also with further `passages`, such as those that a search found.

        Raises `NotFound`, also when the caller may not see it.
        """
        taxonomy, scope = await self._seen(caller)
        item = await self._item(item_id, scope, caller, taxonomy)
        return await self._shown(item, caller, scope, taxonomy, passages)

    async def approve(
        self,
        item_id: str,
        note: str = "",
        *,
        content_hashes: Mapping[str, str] | None = None,
        caller: Caller = LOCAL,
    ) -> ReviewItem:
        """Accept the proposal. Raises `NotFound`, `Conflict` for a decided item, `InvalidInput` without a proposal.

        `content_hashes` (id of a passage -> hash, or its first 12 digits) are those of the passages as the reviewer
        read them: `Conflict` if the answer cites one with another text by now.
        """
        taxonomy, scope = await self._seen(caller)
        item = await self._item(item_id, scope, caller, taxonomy)
        if item.kind == "answer":
            cited = await cited_passages(item, self._index, scope, taxonomy, content_hashes)
            own = _caused(item, caller)
            decision = Decision("approved", caller.name, _now(), None, _note(note), cited, caller.owner, own)
            return await self._decide(item, decision, caller)
        if content_hashes:
            raise InvalidInput("Content hashes are for the passages of an answer, but this item is about a document.")
        if item.node_id not in taxonomy.nodes or not _within(item.node_id, scope):
            raise InvalidInput("The item proposes no category of the tree.", Advice.CORRECT_ITEM)
        return await self._decide(item, Decision("approved", caller.name, _now(), item.node_id, _note(note)), caller)

    async def correct(
        self,
        item_id: str,
        path: Sequence[str] | str | None = None,
        note: str = "",
        *,
        passages: Sequence[str] = (),
        content_hashes: Mapping[str, str] | None = None,
        caller: Caller = LOCAL,
    ) -> ReviewItem:
        """Choose another category for a document, or the passages that answer the question of an answer.

        A `path` publishes the question of an answer: all who see this category and the passages may read it. Without
        one it stays with those who see the scope in which it was asked.

        Raises as `approve`, and `InvalidInput` for an unknown path or passage, or one that the caller may not see;
        `content_hashes` as for `approve`, of the chosen passages.
        """
        taxonomy, scope = await self._seen(caller)
        item = await self._item(item_id, scope, caller, taxonomy)
        if item.kind == "answer":
            audience = _category(path, taxonomy, scope) if path else None
            chosen = await chosen_passages(passages, item, self._index, scope, taxonomy, content_hashes=content_hashes)
            own = _caused(item, caller)
            decision = Decision("corrected", caller.name, _now(), audience, _note(note), chosen, caller.owner, own)
            return await self._decide(item, decision, caller)
        if passages or content_hashes or not path:
            raise InvalidInput("A document is corrected by a category: give the path of one instead of passages.")
        node_id = _category(path, taxonomy, scope)
        return await self._decide(item, Decision("corrected", caller.name, _now(), node_id, _note(note)), caller)

    async def skip(self, item_id: str, note: str = "", *, caller: Caller = LOCAL) -> ReviewItem:
        """Close the item without a change to the document. Raises `NotFound` and `Conflict`."""
        taxonomy, scope = await self._seen(caller)
        item = await self._item(item_id, scope, caller, taxonomy)
        return await self._decide(item, Decision("skipped", caller.name, _now(), None, _note(note)), caller)

    async def offer_answer(
        self,
        offered: OfferedAnswer,
        viewer: Viewer | None,
        *,
        agent_id: uuid.UUID | None = None,
        grant: Grant | None = None,
    ) -> bool:
        """Queue an answer that was given to this viewer; whether it is in the queue now.

        Visible to reviewers who may see all documents that it cites and all that the viewer may see: `grant`, for an
        agent that of its manifest. A question that waits already is not queued again; see `ReviewStore.add`.
        """
        taxonomy = (await self._index.snapshot()).taxonomy
        if is_user_of_a_source(viewer, taxonomy):
            grant = None
        elif grant is None:
            grant = readers_of(viewer, taxonomy)
        return await self._store.add(answer_item(offered, grant, agent_id))

    async def offer_unsure(
        self, response: PipelineResponse, viewer: Viewer | None, *, as_of: object = None, asker: str = ""
    ) -> bool:
        """Queue an answer whose confidence is below `review_below`; whether it is in the queue now.

        A full disk is logged, and the answer is returned without a review.
        """
        limit = self._review_below()
        if response.unfinished or response.confidence >= limit:
            return False
        reason = stated(
            "review_below",
            "The confidence {confidence} is below the limit {limit}.",
            confidence=f"{response.confidence:.2f}",
            limit=f"{limit:.2f}",
        )
        try:
            return await self.offer_answer(offered_answer(response, (reason,), as_of, asker), viewer)
        except StorageFull as error:
            _LOG.warning("an answer is not in the review queue", exc_info=error)
            return False

    async def corrections(self, *, caller: Caller = LOCAL) -> list[tuple[str, list[SearchResult]]]:
        """The newest corrected questions that the caller sees, each with those of the chosen passages that it sees."""
        taxonomy, scope = await self._seen(caller)
        items = await self._store.answered(scope, MOST_DECIDED, await self._grants(caller, taxonomy))
        corrected = [item for item in items if item.status == "corrected"]
        current = await current_by_day(corrected, self._index, scope, taxonomy)
        return [
            (str(item.proposal["question"]), passages)
            for item in corrected
            if (passages := [current[key] for key in chosen_keys(item) if key in current])
        ]

    async def offer_rated(self, log: CaseLog, caller: Caller) -> None:
        """Queue an answer that its reader found wrong, or a declined question. Without its text it is not queued."""
        if not log.query:
            return
        declined = log.details.get("decision") == "abstain"
        offered = OfferedAnswer(
            question=log.query,
            reasons=(EXPECTED if declined else DISPUTED,),
            confidence=float(log.details.get("confidence", 0.0)),
            decision=str(log.details.get("decision", "review")),
            cited=[passage.chunk_id for passage in log.passages],
            as_of=log.as_of.isoformat() if log.as_of is not None else "",
            caused_by=caller.owner,
            text=await self._answer_of(log.log_id, caller=caller),
            trace_id=log.log_id,
        )
        try:
            await self.offer_answer(offered, caller.access)
        except StorageFull as error:
            _LOG.warning("a rated answer is not in the review queue", exc_info=error)

    async def classify(self, text: str, title: str = "", *, caller: Caller = LOCAL) -> Classification:
        """Classify a text, by documents in the caller's scope only; nothing is stored. Raises `InvalidInput`."""
        if not text.strip() and not title.strip():
            raise InvalidInput("The text is empty: there is nothing to classify.")
        if len(text) > MAX_TEXT or len(title) > MAX_TEXT:
            raise InvalidInput(f"The text has more than {MAX_TEXT:,} characters: send its beginning.")
        return await self._classifier.classify(clean(text), clean(title), scope=caller.access)

    async def _decide(self, item: ReviewItem, decision: Decision, caller: Caller) -> ReviewItem:
        if not await self._store.decide(item, decision):
            raise Conflict("This item is decided already.", Advice.LIST_REVIEW)
        subjects = [str(item.item_id), *([str(item.document_id)] if item.document_id else [])]
        details: dict[str, object] = {"kind": item.kind, "proposed": item.node_id}
        if decision.node_id is not None:
            details["node_id"] = decision.node_id
        if decision.chosen:
            details["passages"] = [row["chunk_id"] for row in decision.chosen]
        action = {"approved": "review.approve", "corrected": "review.correct", "skipped": "review.skip"}
        await self._record(
            caller.name,
            action[decision.status],
            scope=scope_rows(caller.access),
            subjects=subjects,
            decision="done",
            details=details,
        )
        taxonomy, scope = await self._seen(caller)
        settled = replace(
            item,
            node_id=decision.node_id if decision.node_id is not None else item.node_id,
            proposal={**item.proposal, **decision.addition()},
            status=decision.status,
            note=decision.note,
            decided_at=decision.at,
            decided_by=decision.by,
        )
        if decision.chosen and self._cases is not None:
            await self._add_case(self._cases, settled, scope)
        return await self._shown(settled, caller, scope, taxonomy)

    async def _add_case(self, cases: AnswersReviewed, item: ReviewItem, scope: Scope) -> None:
        """The case of a decision. One that cannot be stored now is made by `make_missing_cases`."""
        try:
            await cases.add(item, scope)
        except (DatabaseUnavailable, StorageFull) as error:
            _LOG.warning(
                "the case of review item %s is not stored; `dtrag cbr consolidate` makes it",
                item.item_id,
                exc_info=error,
            )

    async def make_missing_cases(self) -> list[str]:
        """Cases for decided answers that have none, as those decided while the memory was off; their ids."""
        if self._cases is None or not self._cases.enabled:
            return []
        return await self._cases.add_missing(await self._store.answered(EVERYTHING, MOST_DECIDED))

    async def _shown(
        self, item: ReviewItem, caller: Caller, scope: Scope, taxonomy: Taxonomy, further: Sequence[str] = ()
    ) -> ReviewItem:
        """As `_listed`, and an answer with its passages."""
        shown = _listed(item, caller, scope, taxonomy)
        if item.kind == "classification":
            return shown
        passages = await shown_passages(item, self._index, scope, taxonomy, further)
        feedback = await self._feedback(item, caller)
        return replace(shown, proposal={**shown.proposal, **passages, **feedback})

    async def _feedback(self, item: ReviewItem, caller: Caller) -> dict[str, list[str]]:
        """Why the reader voted against the answer, in own words: for administrators of the whole tree only."""
        trace_id = uuid_or_none(item.proposal.get("trace_id"))
        if trace_id is None or caller.access.grants or not caller.may("admin"):
            return {}
        vote = (await self._feedback_by(str(item.proposal.get("caused_by", "")), [trace_id])).get(trace_id)
        if vote is None or vote.feedback is not FeedbackType.THUMBS_DOWN or not vote.reason:
            return {}
        return {"feedback": [vote.reason]}

    async def _grants(self, caller: Caller, taxonomy: Taxonomy) -> list[Grant]:
        """Scopes of agents whose answers the caller may see; [] with the whole tree, where all are visible."""
        if not caller.access.grants:
            return []
        return [grant for grant in await self._store.answer_grants() if lies_within(grant, caller.access, taxonomy)]

    async def _item(self, item_id: str, scope: Scope, caller: Caller, taxonomy: Taxonomy) -> ReviewItem:
        grants = await self._grants(caller, taxonomy)
        key = uuid_or_none(item_id)
        item = await self._store.get(key, scope, grants) if key is not None else None
        if item is None:
            raise NotFound(f"There is no item {str(item_id)[:60]!r} that you may see.", Advice.LIST_REVIEW)
        return item

    async def _seen(self, caller: Caller) -> tuple[Taxonomy, Scope]:
        taxonomy = (await self._index.snapshot()).taxonomy
        return taxonomy, caller.access.resolved(taxonomy)


_CLASSIFIED = ("path", "reasons", "alternatives", "disagreeing", "reason_statements")
_ANSWERED = (
    *("question", "text", "decision", "document_ids", "question_hash"),
    *("reasons", "as_of", "trace_id", "reason_statements"),
)


def offered_answer(
    response: PipelineResponse, reasons: Statements, as_of: object = None, asker: str = ""
) -> OfferedAnswer:
    """The answer of the pipeline for the queue; `as_of` is the day of the question, `asker` the owner id."""
    day = parse_date("as_of", as_of)
    return OfferedAnswer(
        question=response.question,
        reasons=(*reasons, *response.reason_statements),
        confidence=response.confidence,
        decision=response.decision,
        text=response.text,
        cited=[citation.chunk_id for citation in response.citations],
        retrieved=[passage.chunk_id for passage in response.retrieved_chunks],
        as_of=day.isoformat() if day is not None else "",
        caused_by=asker,
        trace_id=response.trace_id,
    )


def _caused(item: ReviewItem, caller: Caller) -> bool:
    """Whether the caller queued the item by a question or a vote; administrators of the whole tree may decide it."""
    if caller.may("admin") and not caller.access.grants:
        return False
    return bool(item.proposal.get("caused_by") == caller.owner)


def _listed(item: ReviewItem, caller: Caller, scope: Scope, taxonomy: Taxonomy) -> ReviewItem:
    """The item with current names of categories, restricted to the scope.

    Confidence, reasons and alternatives depend on documents of the whole tree: they are shown only with the whole tree.
    The note on an answer is for administrators and its author.
    """
    if item.kind == "answer":
        proposal = {name: item.proposal[name] for name in _ANSWERED}
        note = item.note if caller.may("admin") or caller.name == item.decided_by else ""
        return replace(item, proposal=proposal, note=note)
    proposal = {name: item.proposal[name] for name in _CLASSIFIED}
    proposal["path"] = list(taxonomy.path(item.node_id)) if _within(item.node_id, scope) else []
    if scope.nodes is None:
        return replace(item, proposal=proposal)
    proposal |= {"reasons": [], "reason_statements": [], "alternatives": [], "disagreeing": False}
    return replace(item, proposal=proposal, confidence=None)


def _category(path: Sequence[str] | str, taxonomy: Taxonomy, scope: Scope) -> int:
    node_id = taxonomy.find(CategoryPath.parse(path))
    if node_id is None or not _within(node_id, scope):
        raise InvalidInput("There is no such category that you may see. Give one of the tree.")
    return node_id


def _within(node_id: int, scope: Scope) -> bool:
    return scope.nodes is None or node_id in scope.nodes


def _note(note: str) -> str:
    if len(note) > MAX_NOTE:
        raise InvalidInput(f"A note has at most {MAX_NOTE:,} characters.")
    return clean(note)


def _now() -> datetime:
    return datetime.now(UTC)
