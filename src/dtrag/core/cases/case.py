"""Cases: questions that were answered before, with the passages that answered them, and what people said of them."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Literal

from dtrag.core.access.scope import PUBLISHED
from dtrag.core.documents import uuid_or_none

Origin = Literal["manual", "answer", "review"]
"""How a case came to be: added by hand, from an answer, or from a reviewer's correction."""
Status = Literal["active", "archived"]
LogKind = Literal["suggestion", "answer"]
DecisionKind = Literal["vote", "replay"]
DEFAULT_QUALITY = 0.5
NOTE = "consolidation"
"""Key of an archived case's metadata: the run, the reason, and what an undo restores."""
ALIASES = "aliases"
"""Key of the metadata of a case that others were merged into."""
RESERVED_METADATA = frozenset({NOTE, ALIASES})
"""Keys of metadata that only the memory itself writes."""


class SimilarityMethod(StrEnum):
    """How two questions are compared; see core/cases/similarity.py for the formulas."""

    COSINE = "cosine"
    EUCLIDEAN = "euclidean"
    JACCARD = "jaccard"
    SEMANTIC = "semantic"


class FeedbackType(StrEnum):
    """What a person did with a suggested case."""

    THUMBS_UP = "thumbs_up"
    THUMBS_DOWN = "thumbs_down"
    SELECTED = "selected"
    IGNORED = "ignored"


def content_hash(text: str) -> bytes:
    """SHA-256 of a passage's text: a passage with another hash is another text."""
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


@dataclass(frozen=True, slots=True)
class CitedPassage:
    """A passage that a case cites: its id (`DOCUMENT_ID:ORDINAL`) and the hash of its text when it was cited."""

    chunk_id: str
    content_hash: bytes

    @property
    def document_id(self) -> uuid.UUID:
        """The document of the passage; one that does not exist for an id of another form."""
        return uuid_or_none(self.chunk_id.partition(":")[0]) or uuid.UUID(int=0)


@dataclass(frozen=True, slots=True)
class QuestionVector:
    """The embedding of a question, float32. `space` is the id of its model: only vectors of one space are compared."""

    space: str
    values: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A question with the passages that answered it.

    `query` is "" where questions are stored without text; `query_hash` identifies the normalised question either way.
    `category_path` as it was written; `node_id` is the node that had this path, None for a path outside the tree
    (visible only with the whole tree). `content` is shown to people and never enters an answer or a prompt.
    `quality_score` and `success_rate` in [0, 1], rounded to six places; `usage_count` counts feedback, not suggestions.
    `passages` in the order of the answer's citations; none: suggested, never reused. `author` is the owner id of the
    caller who caused it, "" without keys. `as_of` is the day of the question, None for today's texts.
    """

    case_id: str
    query: str
    category_path: tuple[str, ...]
    content: str
    created_at: datetime
    updated_at: datetime
    quality_score: float = DEFAULT_QUALITY
    usage_count: int = 0
    success_rate: float = 0.0
    metadata: Mapping[str, Any] = field(default_factory=dict)
    query_hash: bytes = b""
    node_id: int | None = None
    passages: tuple[CitedPassage, ...] = ()
    origin: Origin = "manual"
    author: str = ""
    as_of: date | None = None
    answered_in: frozenset[int] | None = None
    """The nodes of the scope in which the question was answered; None for the whole tree, and for cases by hand."""
    asked_in: frozenset[int] | None = None
    """The branches of the scope in which the question was asked: callers who see all of them may read the case. None:
    the whole tree. PUBLISHED for a case by hand, whose category is its audience."""
    upvotes: int = 0
    downvotes: int = 0
    status: Status = "active"
    vector: QuestionVector | None = None
    """For `SEMANTIC`; None until there is an embedder for its language."""

    @property
    def document_ids(self) -> frozenset[uuid.UUID]:
        """The documents that it cites."""
        return frozenset(passage.document_id for passage in self.passages)

    @property
    def fingerprint(self) -> str:
        """Digest of the question and the cited passages: what a voter who saw the case has seen of it."""
        parts = [self.query_hash.hex()]
        parts += (f"{passage.chunk_id} {passage.content_hash.hex()}" for passage in self.passages)
        return hashlib.sha256("\n".join(parts).encode("utf-8", "replace")).hexdigest()

    def is_elsewhere(self, other: Case) -> bool:
        """Whether this state of a case may be in other scopes than the other state of it."""
        return (self.node_id, self.passages, self.asked_in) != (other.node_id, other.passages, other.asked_in)

    def answers_for(self, nodes: frozenset[int] | None) -> bool:
        """Whether it was answered in a scope that holds all these nodes (None: the whole tree).

        In a wider scope, other passages might have answered the question.
        """
        return self.answered_in is None or (nodes is not None and nodes <= self.answered_in)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseChange:
    """Fields of a case to replace; None leaves a field unchanged."""

    query: str | None = None
    query_hash: bytes | None = None
    vector: QuestionVector | None = None
    """The embedding of the new `query`; used only together with it."""
    category_path: tuple[str, ...] | None = None
    node_id: int | None = None
    """The node of `category_path`; used only together with it."""
    content: str | None = None
    quality_score: float | None = None
    metadata: Mapping[str, Any] | None = None
    passages: tuple[CitedPassage, ...] | None = None
    status: Status | None = None
    author: str | None = None
    """The caller who makes the change; used only when the case becomes another one (`replaces_answer`)."""

    def replaces_answer(self, case: Case) -> bool:
        """Whether the case gets another question or other passages: what confirmed it does not concern these."""
        return self.query not in {None, case.query} or self.passages not in {None, case.passages}

    def applied_to(self, case: Case, at: datetime) -> Case:
        """The case with the new values. With another question or other passages it counts as chosen by hand.

        A category is chosen as the audience of the case, whatever scope its question was asked in.
        """
        values = {declared.name: getattr(self, declared.name) for declared in fields(self)}
        changes = {name: value for name, value in values.items() if value is not None}
        changes.pop("node_id", None)
        changes.pop("author", None)
        if self.metadata is not None:
            reserved = {key: value for key, value in case.metadata.items() if key in RESERVED_METADATA}
            changes["metadata"] = {**self.metadata, **reserved}
        if self.replaces_answer(case):
            changes |= {"origin": "manual", "author": self.author or "", "upvotes": 0, "success_rate": 0.0}
            changes["answered_in"] = None
        if self.category_path is not None:
            changes |= {"node_id": self.node_id, "asked_in": PUBLISHED}
        if self.query is not None:
            changes["vector"] = self.vector
        return replace(case, **changes, updated_at=at)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseQuery:
    """A search for similar cases. `category_path` restricts to this path, or to the branch below it (`prefix`).

    `nodes`: the nodes of that category now. A case with a node is compared by it, so that cases follow a renamed or
    moved category, and only one without a node by its written path. None: all are compared by their written paths.

    Archived cases and those below `min_quality` are left out. `vector` is needed for `SEMANTIC` only. Ties are ordered
    by quality, then use, then id.
    """

    text: str
    limit: int
    method: SimilarityMethod = SimilarityMethod.COSINE
    category_path: tuple[str, ...] | None = None
    nodes: frozenset[int] | None = None
    prefix: bool = False
    min_quality: float = 0.0
    vector: QuestionVector | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseLog:
    """One interaction with the memory: a request for suggestions, or an answered question (`log_id` is its trace id).

    `user_id` is the owner id of the caller. `query` is "" where questions are stored without text. Of an answer,
    `passages` are those that it cites, and `shown_case_id` is the case that was shown as answered before. `success`
    and `feedback` are those of the last vote.
    """

    log_id: str
    timestamp: datetime
    query: str
    query_hash: bytes = b""
    category_path: tuple[str, ...] = ()
    node_id: int | None = None
    suggested_case_ids: tuple[str, ...] = ()
    picked_case_ids: tuple[str, ...] = ()
    success: bool | None = None
    feedback: FeedbackType | None = None
    execution_time_ms: float = 0.0
    similarity_method: str = ""
    user_id: str = ""
    kind: LogKind = "suggestion"
    passages: tuple[CitedPassage, ...] = ()
    shown_case_id: str | None = None
    as_of: date | None = None
    asked_in: frozenset[int] | None = None
    """As of a case; never PUBLISHED, except for a vote without an interaction on such a case."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Chosen action with its propensity, confidence, decision: numbers and names, no texts. Of an answer also the
    nodes of its scope, and the case that was shown or raised with its fingerprint then."""

    @property
    def case_ids(self) -> frozenset[str]:
        """The cases that it names."""
        shown = () if self.shown_case_id is None else (self.shown_case_id,)
        return frozenset({*self.suggested_case_ids, *self.picked_case_ids, *shown})


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """Feedback of one voter on one case in one interaction; a second one replaces the first."""

    log_id: str
    case_id: str
    feedback: FeedbackType
    success: bool
    voter: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ReuseDecision:
    """Whether reusing a case was right: by a vote on a shown case, or by a replay.

    `asker` is the owner id of the caller, "" without keys. Of one asker the last decision about a case counts, and a
    vote is not replaced by a replay.
    """

    case_id: str
    log_id: str
    kind: DecisionKind
    correct: bool
    at: datetime
    asker: str = ""
    asked_in: frozenset[int] | None = None
    """As of a case, of the question that was decided about: others do not learn that it was asked."""


@dataclass(frozen=True, slots=True)
class DecisionCounts:
    """Reuse decisions of a collection or of one case."""

    correct: int = 0
    wrong: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.correct + self.wrong


ScoredCases = Sequence[tuple[Case, float]]
"""Cases with similarities in [0, 1], most similar first."""
