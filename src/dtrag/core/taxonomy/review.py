"""Items of the review queue, and decisions about them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal, TypedDict

from dtrag.core.response import INTERNAL, Moment, Written, plain, response
from dtrag.core.statements import Statements
from dtrag.core.taxonomy.classification import Classification
from dtrag.core.taxonomy.tree import UNCLASSIFIED

Kind = Literal["classification", "answer"]
Status = Literal["waiting", "approved", "corrected", "skipped"]
MAX_NOTE = 1_000
MAX_WAITING_ANSWERS = 1_000
"""Waiting answers, of all scopes together. When there are as many, a less confident one replaces the most
confident one; a more confident one is not queued."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Result of the classification of a document, accepted or not."""

    document_id: uuid.UUID
    classification: Classification
    at: datetime


class AlternativeRow(TypedDict):
    """Another category that was considered."""

    path: list[str]
    confidence: float


class ProposalRow(TypedDict):
    """A classification as the proposal of an item."""

    path: list[str]
    reasons: list[str]
    reason_statements: list[dict[str, object]]
    alternatives: list[AlternativeRow]
    disagreeing: bool


class PassageView(TypedDict):
    """A passage of an answer for display, with the text that it has now and the SHA-256 of that text."""

    chunk_id: str
    label: str
    text: str
    cited: bool
    content_hash: str


class ChosenRow(TypedDict):
    """A passage that a reviewer chose: its id, and the SHA-256 of its text at that time in hexadecimal digits."""

    chunk_id: str
    content_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedAnswer:
    """An answer that a person should look at. `cited` and `retrieved` are ids of passages, `reasons` sentences.

    `as_of` is the day of the question as text, "" for today's documents. `caused_by` is the owner id of the caller
    whose question or vote queued it, "" without one. `trace_id` is that of the answer, "" for an unknown one.
    """

    question: str
    reasons: Statements
    confidence: float
    decision: str
    text: str = ""
    cited: Sequence[str] = ()
    retrieved: Sequence[str] = ()
    as_of: str = ""
    caused_by: str = ""
    trace_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewItem:
    """A pending or decided item of the review queue."""

    __pydantic_config__ = response("ItemShape")

    # `proposal` of an answer has in the store: question, question_hash, text, decision, document_ids (of the cited
    # passages), passages (ids, the cited ones first), cited, reasons, reason_statements, as_of, trace_id, grant,
    # caused_by, and once a reviewer decided, `chosen` (`ChosenRow`), `chosen_by` (owner id of the reviewer), `own` (the
    # reviewer caused the item, and is no administrator of the whole tree) and `audience` (the node whose readers may
    # read the question; None: those who may see the item).

    item_id: uuid.UUID
    """Its id."""
    kind: Kind
    """What has to be decided."""
    node_id: int = field(metadata=INTERNAL)  # the proposed node; UNCLASSIFIED for none, and for answers
    document_id: uuid.UUID | None = None
    """The document of a classification."""
    agent_id: uuid.UUID | None = None
    """The agent of an answer."""
    title: str = ""
    """Title of the document; empty for an answer."""
    confidence: Annotated[float, Written(lambda confidence: round(confidence, 3), {"type": "float"})] | None
    """Confidence in [0, 1]; null for a classification if you may see only a part of the tree."""
    proposal: Mapping[str, Any]
    """Of a classification: path, reasons, reason_statements, alternatives, disagreeing. Of an answer: question, text,
    decision, reasons, reason_statements, document_ids, as_of, trace_id, for administrators feedback (why its reader
    found it wrong), and for a single item passages (chunk_id, label, text, cited, content_hash) and chosen (chunk_ids
    of a decision)."""
    status: Status = "waiting"
    """The state of the item."""
    note: str = ""
    """The reviewer's comment; that on an answer is shown to administrators and its author."""
    created_at: Moment
    """When it was queued, ISO 8601 in UTC."""
    decided_at: Moment | None = None
    """When it was decided; null while pending."""
    decided_by: str = ""
    """Who decided; empty while pending."""

    @classmethod
    def of(cls, placement: Placement) -> ReviewItem:
        """A new item that asks a reviewer about the classification of a document."""
        classification = placement.classification
        return cls(
            item_id=uuid.uuid4(),
            kind="classification",
            node_id=classification.node_id if classification.path else UNCLASSIFIED,
            document_id=placement.document_id,
            confidence=classification.confidence,
            proposal=_proposal(classification),
            created_at=placement.at,
        )


@dataclass(frozen=True, slots=True)
class Decision:
    """A reviewer's decision.

    `node_id` is the new node of the document, None when it stays; of an answer, the audience of its question, None when
    that stays. `chosen` are the passages that answer the question;
    `owner` is the owner id of the reviewer who chose them, and `own` tells that this reviewer caused the item.
    """

    status: Status
    by: str
    at: datetime
    node_id: int | None = None
    note: str = field(default="")
    chosen: Sequence[ChosenRow] = ()
    owner: str = ""
    own: bool = False

    def addition(self) -> dict[str, Any]:
        """What the decision adds to the proposal of its item."""
        if not self.chosen:
            return {}
        return {"chosen": list(self.chosen), "chosen_by": self.owner, "own": self.own, "audience": self.node_id}


def _proposal(classification: Classification) -> ProposalRow:
    """A classification as the proposal of an item."""
    return {
        "path": list(classification.path),
        "reasons": list(map(str, classification.reasons)),
        "reason_statements": plain(classification.reasons),
        "alternatives": [
            {"path": list(other.path), "confidence": round(other.confidence, 3)}
            for other in classification.alternatives
        ],
        "disagreeing": classification.disagreeing,
    }
