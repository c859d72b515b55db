"""The review queue: uncertain classifications and answers, and the decisions of reviewers.

A decision moves the document and becomes training data. Callers see items about documents in their scope; documents
without a category are visible only with the whole tree.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.access.scope import Grant, Scope, lies_within, scope_rows
from dtrag.core.documents import Answer, uuid_or_none
from dtrag.core.taxonomy.classification import Classification
from dtrag.core.taxonomy.review import MAX_NOTE, Decision, Item
from dtrag.core.taxonomy.tree import UNCLASSIFIED, CategoryPath, Taxonomy
from dtrag.core.text.analysis import clean, normalise
from dtrag.errors import Conflict, InvalidInput, NotFound
from dtrag.ingestion.classify import Classifier
from dtrag.ports import Index, Recorder, ReviewStore, unrecorded

MAX_LIMIT = 1_000
MAX_TEXT = 200_000
"""Longest text to classify, in characters; only its first 3,000 words are used."""


class Review:
    """The queue of one app."""

    def __init__(self, store: ReviewStore, index: Index, classifier: Classifier, record: Recorder = unrecorded):
        self._store = store
        self._index = index
        self._classifier = classifier
        self._record = record

    async def waiting(self, limit: int = 100, offset: int = 0, *, caller: Caller = LOCAL) -> tuple[list[Item], int]:
        """A page of the open items, least confident first, and their total number."""
        if not (1 <= limit <= MAX_LIMIT and offset >= 0):
            raise InvalidInput(f"limit must be from 1 to {MAX_LIMIT:,} and offset at least 0.")
        taxonomy, scope = await self._seen(caller)
        items, total = await self._store.waiting(scope, limit, offset, await self._grants(caller, taxonomy))
        return [_shown(item, scope, taxonomy) for item in items], total

    async def get(self, item_id: str, *, caller: Caller = LOCAL) -> Item:
        """An item, open or decided. Raises `NotFound`, also when the caller may not see it."""
        taxonomy, scope = await self._seen(caller)
        return _shown(await self._item(item_id, scope, caller, taxonomy), scope, taxonomy)

    async def approve(self, item_id: str, note: str = "", *, caller: Caller = LOCAL) -> Item:
        """Accept the proposal. Raises `NotFound`, `Conflict` for a decided item, `InvalidInput` without a proposal."""
        taxonomy, scope = await self._seen(caller)
        item = await self._item(item_id, scope, caller, taxonomy)
        if item.kind == "answer":
            return await self._decide(item, Decision("approved", caller.name, _now(), None, _note(note)), caller)
        if item.node_id not in taxonomy.nodes or not _within(item.node_id, scope):
            raise InvalidInput("The item proposes no category of the tree. Give it one with: dtrag review correct")
        return await self._decide(item, Decision("approved", caller.name, _now(), item.node_id, _note(note)), caller)

    async def correct(self, item_id: str, path: Sequence[str] | str, note: str = "", *, caller: Caller = LOCAL) -> Item:
        """Choose another category. Raises as `approve`, and `InvalidInput` for an unknown path."""
        taxonomy, scope = await self._seen(caller)
        item = await self._item(item_id, scope, caller, taxonomy)
        if item.kind == "answer":
            raise InvalidInput("An answer has no category. Approve it, or skip it with a note.")
        node_id = taxonomy.find(CategoryPath.parse(path))
        if node_id is None or not _within(node_id, scope):
            raise InvalidInput("There is no such category that you may see. Give one of the tree.")
        return await self._decide(item, Decision("corrected", caller.name, _now(), node_id, _note(note)), caller)

    async def skip(self, item_id: str, note: str = "", *, caller: Caller = LOCAL) -> Item:
        """Close the item without a change to the document. Raises `NotFound` and `Conflict`."""
        taxonomy, scope = await self._seen(caller)
        item = await self._item(item_id, scope, caller, taxonomy)
        return await self._decide(item, Decision("skipped", caller.name, _now(), None, _note(note)), caller)

    async def add_answer(self, agent_id: uuid.UUID, answer: Answer, *, grant: Grant | None = None) -> uuid.UUID:
        """Add an answer below its agent's threshold; visible to callers who may see all of its documents."""
        question = clean(answer.question)
        proposal = {
            "question": question,
            "question_hash": hashlib.blake2b(normalise(question).encode("utf-8"), digest_size=16).hexdigest(),
            "text": clean(answer.text),
            "decision": answer.decision,
            "document_ids": list(dict.fromkeys(citation.document_id for citation in answer.citations)),
            "grant": grant.as_json() if grant is not None else None,
        }
        confidence = min(1.0, max(0.0, answer.confidence))
        item = Item(uuid.uuid4(), "answer", UNCLASSIFIED, proposal, confidence, _now(), agent_id=agent_id)
        await self._store.add(item)
        return item.item_id

    async def classify(self, text: str, title: str = "", *, caller: Caller = LOCAL) -> Classification:
        """Classify a text, by documents in the caller's scope only; nothing is stored. Raises `InvalidInput`."""
        if not text.strip() and not title.strip():
            raise InvalidInput("The text is empty: there is nothing to classify.")
        if len(text) > MAX_TEXT or len(title) > MAX_TEXT:
            raise InvalidInput(f"The text has more than {MAX_TEXT:,} characters: send its beginning.")
        return await self._classifier.classify(clean(text), clean(title), scope=caller.access)

    async def _decide(self, item: Item, decision: Decision, caller: Caller) -> Item:
        if not await self._store.decide(item, decision):
            raise Conflict("This item is decided already. List the open ones with: dtrag review list")
        subjects = [str(item.item_id), *([str(item.document_id)] if item.document_id else [])]
        details: dict[str, object] = {"kind": item.kind, "proposed": item.node_id}
        if decision.node_id is not None:
            details["node_id"] = decision.node_id
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
        node_id = decision.node_id if decision.node_id is not None else item.node_id
        settled = replace(
            item, status=decision.status, note=decision.note, decided_at=decision.at, decided_by=decision.by
        )
        return _shown(replace(settled, node_id=node_id), scope, taxonomy)

    async def _grants(self, caller: Caller, taxonomy: Taxonomy) -> list[Grant]:
        """Scopes of agents whose answers the caller may see; [] with the whole tree, where all are visible."""
        if not caller.access.grants:
            return []
        return [grant for grant in await self._store.answer_grants() if lies_within(grant, caller.access, taxonomy)]

    async def _item(self, item_id: str, scope: Scope, caller: Caller, taxonomy: Taxonomy) -> Item:
        grants = await self._grants(caller, taxonomy)
        key = uuid_or_none(item_id)
        item = await self._store.get(key, scope, grants) if key is not None else None
        if item is None:
            raise NotFound(
                f"There is no item {str(item_id)[:60]!r} that you may see. `dtrag review list` shows the open ones."
            )
        return item

    async def _seen(self, caller: Caller) -> tuple[Taxonomy, Scope]:
        taxonomy = (await self._index.snapshot()).taxonomy
        return taxonomy, caller.access.resolved(taxonomy)


_CLASSIFIED = ("path", "reasons", "alternatives", "disagreeing")
_ANSWERED = ("question", "text", "decision", "document_ids", "question_hash")


def _shown(item: Item, scope: Scope, taxonomy: Taxonomy) -> Item:
    """The item with current names of categories, restricted to the scope.

    Confidence, reasons and alternatives depend on documents of the whole tree: they are shown only with the whole tree.
    """
    if item.kind == "answer":
        return replace(item, proposal={name: item.proposal[name] for name in _ANSWERED})
    proposal = {name: item.proposal[name] for name in _CLASSIFIED}
    proposal["path"] = list(taxonomy.path(item.node_id)) if _within(item.node_id, scope) else []
    if scope.nodes is None:
        return replace(item, proposal=proposal)
    proposal |= {"reasons": [], "alternatives": [], "disagreeing": False}
    return replace(item, proposal=proposal, confidence=None)


def _within(node_id: int, scope: Scope) -> bool:
    return scope.nodes is None or node_id in scope.nodes


def _note(note: str) -> str:
    if len(note) > MAX_NOTE:
        raise InvalidInput(f"A note has at most {MAX_NOTE:,} characters.")
    return clean(note)


def _now() -> datetime:
    return datetime.now(UTC)
