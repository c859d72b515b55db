"""What waits for a person, and what the person decides."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from dtrag.core.taxonomy.classification import Classification

Kind = Literal["classification", "answer"]
Status = Literal["waiting", "approved", "corrected", "skipped"]
MAX_NOTE = 1_000


@dataclass(frozen=True, slots=True)
class Placement:
    """Where classification has put a document, accepted or not."""

    document_id: uuid.UUID
    found: Classification
    at: datetime


@dataclass(frozen=True, slots=True)
class Item:
    """One item of the queue.

    `proposal` of a classification: path, reasons, alternatives, disagreeing; of an answer: question, question_hash,
    text, document_ids. `confidence` is None for callers who may not see all that it comes from. `node_id` is the
    proposed node (UNCLASSIFIED for none, and for answers). `title` is that of the document, "" for an answer.
    """

    item_id: uuid.UUID
    kind: Kind
    node_id: int
    proposal: Mapping[str, Any]
    confidence: float | None
    created_at: datetime
    status: Status = "waiting"
    document_id: uuid.UUID | None = None
    agent_id: uuid.UUID | None = None
    title: str = ""
    note: str = ""
    decided_at: datetime | None = None
    decided_by: str = ""

    def as_dict(self) -> dict[str, Any]:
        """With plain values only."""
        return {
            "item_id": str(self.item_id),
            "kind": self.kind,
            "document_id": str(self.document_id) if self.document_id else None,
            "agent_id": str(self.agent_id) if self.agent_id else None,
            "title": self.title,
            "confidence": None if self.confidence is None else round(self.confidence, 3),
            "proposal": dict(self.proposal),
            "status": self.status,
            "note": self.note,
            "created_at": self.created_at.isoformat(),
            "decided_at": self.decided_at.isoformat() if self.decided_at else None,
            "decided_by": self.decided_by,
        }


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person decided; `node_id` is where the document goes, None where it stays."""

    status: Status
    by: str
    at: datetime
    node_id: int | None = None
    note: str = field(default="")


def proposal_of(found: Classification) -> dict[str, Any]:
    """A classification as the proposal of an item."""
    return {
        "path": list(found.path),
        "reasons": list(found.reasons),
        "alternatives": [
            {"path": list(other.path), "confidence": round(other.confidence, 3)} for other in found.alternatives
        ],
        "disagreeing": found.disagreeing,
    }
