"""Ports of the packs: knowledge of one kind of documents (regulations) that a search uses."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from dtrag.core.access.scope import Scope, Viewer
from dtrag.core.documents import FollowedCitation, PackFindings, SearchResult
from dtrag.core.editions import ChangedText
from dtrag.core.provisions import RegulationText
from dtrag.core.query_expansion import QueryFacts, TopKChoice
from dtrag.core.statements import Statement
from dtrag.ports.index import IndexSnapshot

NO_QUESTIONS: Mapping[str, float] = {}
"""How near imagined questions are where there are none."""


class QueryReading(Protocol):
    """A query as a pack interprets it."""

    @property
    def added(self) -> Sequence[tuple[int, float]]:
        """Additional search terms: term ids with weights in (0, 1]."""

    @property
    def note(self) -> Statement | None:
        """What the caller should know about the interpretation."""

    def facts(self) -> QueryFacts:
        """The entities of the query, and the words behind the terms in `added`, entry by entry."""

    def top_k(self, elapsed: float) -> TopKChoice:
        """How many passages the query needs; fewer when its search has taken long (`elapsed`, in seconds)."""


@dataclass(frozen=True, slots=True)
class PackRanking:
    """Passages in the pack's order; `findings` is None when the passages are not of the pack's kind."""

    passages: list[SearchResult]
    findings: PackFindings | None = None


@dataclass(frozen=True, slots=True)
class CitedProvision:
    """The provision `name` (`학칙 제20조`) with its passages, cited by the provision `source`."""

    name: str
    source: str
    chunk_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NamedPassages:
    """The provisions that a question names (학칙 제21조), and all their passages in the order of the text.

    `question` has the full names in place of the written ones. `paragraph`: the 항 that it names of a single provision.
    `asks_only`: it asks for nothing but their text. Such a question may mean any of several `choices`
    (`학칙 제15조(제적)`). `absent` (`학칙 제99조`) does not exist in its regulation, which has the provisions
    `existing`; `deleted`: it was deleted, on the date `deleted_on` if that is known.
    """

    question: str
    names: tuple[str, ...] = ()
    chunk_ids: tuple[str, ...] = ()
    paragraph: int | None = None
    asks_only: bool = False
    choices: tuple[str, ...] = ()
    absent: str = ""
    existing: str = ""
    deleted: bool = False
    deleted_on: str | None = None


class QueryPack(Protocol):
    """Expands queries and orders results with the knowledge of one kind of documents."""

    @property
    def id(self) -> str:
        """Identifies the pack and its configuration; part of the key of cached results."""

    async def load(self, query: str | None, viewer: Viewer | None = None) -> None:
        """Load what interpreting this query needs (None: any query), before the time limit of the question starts.

        Whether the pack applies to the query may depend on the documents that `viewer` may see.
        """

    def suggestion_rules(self, query: str) -> str:
        """The system prompt for a language model that suggests official words; "" for a query that needs none.

        The field `{fence}` is the line around the query in the prompt.
        """

    def suggested_words(self, reply: str) -> Sequence[str]:
        """The official words in the model's reply."""

    def may_name(self, query: str, earlier: Sequence[str] = ()) -> bool:
        """Whether `named` may find something, by the words of the query and of the `earlier` questions alone."""

    async def named(
        self,
        query: str,
        snapshot: IndexSnapshot,
        scope: Scope,
        *,
        earlier: Sequence[str] = (),
        documents: Collection[str] = (),
    ) -> NamedPassages | None:
        """What the query names by number; None when it names nothing.

        Without a name it means what the `earlier` questions of a conversation (oldest first) or the `documents` behind
        their answers are about.
        """

    async def read(
        self, query: str, snapshot: IndexSnapshot, scope: Scope, suggested: Sequence[str] = ()
    ) -> QueryReading | None:
        """The query as the pack interprets it; None when the pack does not apply to the documents in scope.

        `suggested` are official words that may be wrong: they only add candidates, at a low weight.
        """

    async def ranked(
        self,
        reading: QueryReading,
        passages: Sequence[SearchResult],
        caller: Scope,
        imagined: Mapping[str, float] = NO_QUESTIONS,
    ) -> PackRanking:
        """The passages in the pack's order; fragments of one provision are joined. Statistics are those in `caller`.

        `imagined`: chunk id -> how near its imagined questions are to the question, from 0 to 1.
        """

    async def notes(
        self, query: str, passages: Sequence[SearchResult], caller: Scope
    ) -> Mapping[str, Sequence[Statement]]:
        """Chunk id -> what the reader of an answer from this passage should know, in the language of the query."""

    def of_day(self, passage: SearchResult, day: date) -> SearchResult:
        """The passage without the words that are known to be newer than the day."""

    async def changed(
        self, passages: Sequence[SearchResult], snapshot: IndexSnapshot, caller: Scope
    ) -> Mapping[str, Sequence[ChangedText]]:
        """Chunk id -> what of these passages of today is not the text of the caller's day, which is not stored."""

    async def prepare(self, snapshot: IndexSnapshot, caller: Scope) -> None:
        """Read what `cited` needs; runs concurrently with the retrieval."""

    async def cited(
        self, passages: Sequence[SearchResult], snapshot: IndexSnapshot, caller: Scope
    ) -> list[CitedProvision]:
        """Provisions that the first passages cite, in one or two hops, as far as they are in the scope `caller`."""

    async def followed(
        self, passages: Sequence[SearchResult], snapshot: IndexSnapshot, caller: Scope
    ) -> list[FollowedCitation]:
        """The citations in the texts of these passages of other provisions in the scope `caller`, in their order."""


class RegulationStore(Protocol):
    """Documents of the kind `regulation`. Every read takes the caller's scope."""

    async def versions(self, scope: Scope) -> dict[uuid.UUID, bytes]:
        """Document id -> fingerprint of its text, for the regulations in scope, ordered by name."""

    async def read(self, document_ids: Sequence[uuid.UUID], scope: Scope) -> list[RegulationText]:
        """The regulations with these ids that are in scope, ordered by name.

        Of a dated edition, the provisions that are valid on `valid_day(scope)`.
        """

    async def editions(self, document_ids: Sequence[uuid.UUID], scope: Scope) -> list[RegulationText]:
        """All editions in scope of the works of these documents, with all their provisions, the oldest first."""
