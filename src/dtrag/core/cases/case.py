"""Cases: questions that were answered before, with the passages that answered them, and what people said of them."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from dtrag.core.access.scope import PUBLISHED
from dtrag.core.documents import uuid_or_none
from dtrag.core.response import INTERNAL, TEXTS, Moment, Written, response

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
    """How two questions are compared; core/cases/index.py has the formulas."""

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


def _ids_of(passages: Sequence[CitedPassage]) -> list[str]:
    return [passage.chunk_id for passage in passages]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A case."""

    __pydantic_config__ = response("StoredCase")

    case_id: str
    """Its id."""
    query: str
    """The question; empty where questions are stored without text."""
    category_path: tuple[str, ...]
    """The category, outermost name first."""  # as it was written
    content: str
    """What it says; of a case made from an answer the labels of its citations."""  # never in an answer or a prompt
    quality_score: float = DEFAULT_QUALITY
    """Quality in [0, 1]."""  # to six places, as success_rate
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Its metadata."""
    usage_count: int = 0
    """Number of votes on it; suggesting does not count."""
    success_rate: float = 0.0
    """Share of the votes that reported success."""
    upvotes: int = 0
    """Votes thumbs_up and selected."""
    downvotes: int = 0
    """Votes thumbs_down."""
    origin: Origin = "manual"
    """How it came to be."""
    status: Status = "active"
    """An archived case is never suggested."""
    passages: Annotated[tuple[CitedPassage, ...], Written(_ids_of, TEXTS)] = ()
    """Ids of the passages that it cites."""  # in the order of the answer; without any it is suggested, never reused
    as_of: date | None = None
    """The day of the question; null: today's texts."""
    created_at: Moment
    """ISO 8601 in UTC."""
    updated_at: Moment
    """ISO 8601 in UTC."""
    query_hash: bytes = field(default=b"", metadata=INTERNAL)
    # Identifies the normalised question, with or without its text.
    node_id: int | None = field(default=None, metadata=INTERNAL)
    # The node that had the path; None for a path outside the tree: visible only with the whole tree.
    author: str = field(default="", metadata=INTERNAL)
    # Owner id of the caller who caused it, "" without keys.
    answered_in: frozenset[int] | None = field(default=None, metadata=INTERNAL)
    # The nodes of the scope in which the question was answered; None for the whole tree, and for cases by hand.
    asked_in: frozenset[int] | None = field(default=None, metadata=INTERNAL)
    # The branches of the scope in which the question was asked: callers who see all of them may read the case. None:
    # the whole tree. PUBLISHED for a case by hand, whose category is its audience.
    vector: QuestionVector | None = field(default=None, metadata=INTERNAL)
    # For `SEMANTIC`; None until there is an embedder for its language.

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
    """An interaction: a request for suggestions, or an answered question."""

    __pydantic_config__ = response("LogShape")

    log_id: str
    """Its id; of an answer the id of its trace."""
    kind: LogKind = "suggestion"
    """What it was."""
    timestamp: Moment
    """ISO 8601 in UTC."""
    query: str
    """The question; empty where questions are stored without text."""
    category_path: tuple[str, ...] = ()
    """The category of the request."""
    suggested_case_ids: tuple[str, ...] = ()
    """The suggested cases."""
    picked_case_ids: tuple[str, ...] = ()
    """Those of them that were picked."""
    success: bool | None = field(default=None, metadata={"alias": "success_flag"})
    """The success that was reported; null without feedback."""
    feedback: FeedbackType | None = None
    """The last vote; null without one."""
    execution_time_ms: float = 0.0
    """Time of the suggestion in milliseconds."""
    similarity_method: str = ""
    """The similarity; empty for an answer."""
    user_id: str = ""
    """Id of the key; empty without keys."""
    query_hash: bytes = field(default=b"", metadata=INTERNAL)
    node_id: int | None = field(default=None, metadata=INTERNAL)
    passages: tuple[CitedPassage, ...] = field(default=(), metadata=INTERNAL)
    # Those that the answer cites.
    shown_case_id: str | None = field(default=None, metadata=INTERNAL)
    # The case that was shown as answered before.
    as_of: date | None = field(default=None, metadata=INTERNAL)
    asked_in: frozenset[int] | None = field(default=None, metadata=INTERNAL)
    # As of a case; never PUBLISHED, except for a vote without an interaction on such a case.
    details: Mapping[str, Any] = field(default_factory=dict, metadata=INTERNAL)
    # Chosen action with its propensity, confidence, decision: numbers and names, no texts. Of an answer also the nodes
    # of its scope, and the case that was shown or raised with its fingerprint then.

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
