"""What the services ask of the outside world: Protocols only, implemented in `dtrag.adapters`."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import Enum
from pathlib import Path
from typing import Any, Final, Literal, Protocol, runtime_checkable

from dtrag.core.access.api_key import Key
from dtrag.core.access.audit_chain import Entry, Head, Row
from dtrag.core.access.scope import NO_FILTERS, Grant, Scope, SearchFilters
from dtrag.core.access.taxonomy_impact import Preview, TreeVersion
from dtrag.core.agent import Agent, Edition, Spending
from dtrag.core.chat import Message, Reply
from dtrag.core.conversation import Conversation, Turn
from dtrag.core.documents import Draft, IndexedDocument, ParsedDocument, SearchResult, Vector
from dtrag.core.provisions import RegulationText
from dtrag.core.ranking.bm25 import LexicalQuery, LexicalStatistics
from dtrag.core.taxonomy.centroids import Sample
from dtrag.core.taxonomy.operations import Operation
from dtrag.core.taxonomy.review import Decision, Item, Placement
from dtrag.core.taxonomy.tree import CategoryPath, Taxonomy
from dtrag.core.tool_approval import Approval, OfferedTool
from dtrag.core.trace import Trace
from dtrag.errors import IndexMismatch


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into unit vectors. Blocking and CPU-bound: callers run it in a thread."""

    @property
    def id(self) -> str:
        """Name and weights hash, e.g. `minilm-int8@1b7d3c2a`; stored beside the vectors, which are never mixed."""

    @property
    def dim(self) -> int:
        """Length of a vector."""

    @property
    def max_tokens(self) -> int:
        """Longer texts are cut here."""

    @property
    def languages(self) -> frozenset[str]:
        """ISO 639-1 codes it speaks; `{"*"}` = any. A text in another language gets no vector."""

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        """Shape (len(texts), dim), L2-normalised."""

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        """Shape (len(texts), dim), L2-normalised."""


class NotConfigured(Enum):
    """Tells the facades (`embedding_service`, `llm_service`) that there is nothing to call: None is the open app's."""

    NOT_CONFIGURED = "not configured"


NOT_CONFIGURED: Final = NotConfigured.NOT_CONFIGURED


def speaks(embedder: Embedder | None, code: str) -> bool:
    """Whether the embedder may be used for a text in this language."""
    return embedder is not None and ("*" in embedder.languages or code in embedder.languages)


@runtime_checkable
class Loadable(Protocol):
    """A model or a dictionary that has to be loaded before it can work in time: an embedder, a reranker, morphemes."""

    def load(self) -> None:
        """Load it, if it is not; blocking. Raises what using it would raise."""


@runtime_checkable
class Warmable(Protocol):
    """A client of a model that has libraries to import before it can work in time."""

    async def warm(self) -> None:
        """Import them, if they are not. Sends nothing and raises nothing."""


class Reranker(Protocol):
    """Reads query and passage together. Blocking and CPU-bound: callers run it in a thread."""

    @property
    def id(self) -> str:
        """Name of the model, e.g. `cross-encoder/ms-marco-MiniLM-L-6-v2`."""

    @property
    def languages(self) -> frozenset[str]:
        """ISO 639-1 codes of the queries it may read; `{"*"}` = any."""

    def score(self, query: str, texts: Sequence[str], deadline: float) -> Sequence[float] | None:
        """Relevance in (0, 1) of each text; None when it could not be done by `deadline` (of `time.monotonic()`)."""


class Parser(Protocol):
    """Reads files of every known format, each in a limited process of its own."""

    def knows(self, name: str) -> bool:
        """Whether a file of this name is of a format that can be read."""

    def parse(self, path: Path, name: str) -> AsyncGenerator[ParsedDocument, None]:
        """The documents in the file at `path`, whose display name is `name`, one at a time.

        Raises `ParseFailed` with a reason for people: at once, or after the documents that could be read.
        """

    async def close(self) -> None:
        """End the process."""


@dataclass(frozen=True, slots=True)
class IndexSnapshot:
    """What the index is made of at one generation."""

    settings: Mapping[str, Any]
    statistics: LexicalStatistics
    taxonomy: Taxonomy

    @property
    def generation(self) -> int:
        """Grows with every write."""
        return int(self.settings["generation"])


def check_identity(settings: Mapping[str, Any], analyzer: str, embedder: Embedder | None) -> None:
    """Raise `IndexMismatch` when the index with these settings was built with another analyzer or embedder."""
    built_with = settings.get("analyzer", analyzer)
    if built_with != analyzer:
        raise IndexMismatch(what="the analyzer", stored=built_with, configured=analyzer)
    known = settings.get("embedder", {}).get("id")
    if embedder is not None and known is not None and known != embedder.id:
        raise IndexMismatch(what="the embedder", stored=known, configured=embedder.id)


class QueryReading(Protocol):
    """A query as a pack reads it: `added` are term ids with weights in (0, 1] that it is also searched for."""

    @property
    def added(self) -> Sequence[tuple[int, float]]:
        """Terms beyond those of the query itself."""


@dataclass(frozen=True, slots=True)
class CitedProvision:
    """The provision `name` (`학칙 제20조`) with its passages, cited by the provision `source`."""

    name: str
    source: str
    chunk_ids: tuple[str, ...]


class QueryPack(Protocol):
    """Knowledge of one kind of documents that a search uses: other words for a query, and an order of its own."""

    @property
    def id(self) -> str:
        """What tells its results from those of another state of the pack."""

    async def load(self, query: str | None) -> None:
        """Load what reading this query takes (None: any query), before the time of a question begins."""

    async def read(self, query: str, snapshot: IndexSnapshot, scope: Scope) -> QueryReading | None:
        """The query as the pack reads it; None where it does not apply to what the scope holds."""

    async def ranked(
        self, reading: QueryReading, passages: Sequence[SearchResult], caller: Scope
    ) -> list[SearchResult]:
        """The passages in the pack's order, joined where several are pieces of one; terms are counted for `caller`."""

    async def prepare(self, snapshot: IndexSnapshot, caller: Scope) -> None:
        """Read what `cited` needs; it goes on while the candidates are searched for."""

    async def cited(
        self, passages: Sequence[SearchResult], snapshot: IndexSnapshot, caller: Scope
    ) -> list[CitedProvision]:
        """What the first of the passages cite, in one or two hops, as far as `caller` may see it."""


class RegulationStore(Protocol):
    """The documents of the kind `regulation`. Every read takes the caller's scope."""

    async def versions(self, scope: Scope) -> dict[uuid.UUID, bytes]:
        """The regulations in scope, ordered by name, each with a fingerprint that changes with its text."""

    async def read(self, document_ids: Sequence[uuid.UUID], scope: Scope) -> list[RegulationText]:
        """Those of the regulations that are in scope, ordered by name."""


class Index(Protocol):
    """The reading side of the store. Every read takes the caller's scope."""

    async def snapshot(self) -> IndexSnapshot:
        """Settings, term statistics and the active taxonomy, at most one write behind."""

    async def lexical(self, query: LexicalQuery, scope: Scope, filters: SearchFilters, wanted: int) -> dict[str, float]:
        """Chunk id -> BM25 of the best passages that hold a term of the query, best first."""

    async def strict(self, query: str, scope: Scope, filters: SearchFilters, wanted: int) -> dict[str, float]:
        """Chunk id -> ts_rank_cd of the passages that hold every word of the query."""

    async def strict_note(self, scope: Scope) -> str:
        """Why results of `strict` may be incomplete now; "" when they are whole."""

    async def vectors(self, query: Vector, scope: Scope, filters: SearchFilters, wanted: int) -> dict[str, float]:
        """Chunk id -> cosine of the nearest passages."""

    async def chunk_ids(self, document_id: uuid.UUID, scope: Scope) -> list[str]:
        """The passages of a document in scope, in order; none for a foreign or unknown document."""

    async def lexical_scores(self, query: LexicalQuery, chunk_ids: Sequence[str], scope: Scope) -> dict[str, float]:
        """Chunk id -> BM25 of these very passages, as far as they are in scope; 0.0 without a term of the query."""

    async def statistics(self, terms: Collection[int], scope: Scope) -> LexicalStatistics:
        """What BM25 knows of the passages in scope, for these terms: nothing outside the scope has a part in it."""

    async def titled(self, numbers: Sequence[int], scope: Scope) -> dict[int, list[str]]:
        """Number of a title (core/text/title_mentions.py) -> passages of the only document in scope that has it."""

    async def holds_kind(self, kind: str, scope: Scope) -> bool:
        """Whether a document in scope has this `metadata["kind"]`."""

    async def vector_scores(self, query: Vector, chunk_ids: Sequence[str], scope: Scope) -> dict[str, float]:
        """Chunk id -> cosine of these very passages, as far as they are in scope and have a vector."""

    def filter_clause(self, filters: SearchFilters, scope: Scope) -> tuple[str, dict[str, object]]:
        """The condition that filters and scope become, and its parameters; no value is ever in the text."""

    async def fetch(
        self, chunk_ids: Sequence[str], scope: Scope, taxonomy: Taxonomy, filters: SearchFilters = NO_FILTERS
    ) -> dict[str, SearchResult]:
        """The passages themselves, those that the scope may see and the filters admit as they are by now."""


class AgentStore(Protocol):
    """Agents, every edition of their manifests, and what their models used."""

    async def add(self, agent: Agent) -> None:
        """Store a new agent with its first edition."""

    async def get(self, agent_id: uuid.UUID) -> Agent | None:
        """The agent, or None."""

    async def every(self) -> list[Agent]:
        """All agents, the newest first."""

    async def replace(self, agent: Agent, changed_by: str) -> bool:
        """Put `agent` in the place of the edition before it; False when that one is not in force any more."""

    async def delete(self, agent_id: uuid.UUID) -> bool:
        """Delete the agent with all that is kept of it; False when there is none."""

    async def editions(self, agent_id: uuid.UUID) -> list[Edition]:
        """Every manifest that the agent has had, the newest first."""

    async def charge(self, agent_id: uuid.UUID, day: date, calls: int, tokens: int, cost: int) -> Spending:
        """Add to what the agent used on the day (cost in millionths of a won); returns the day's sum."""

    async def spending(self, agent_id: uuid.UUID, day: date) -> Spending:
        """What the agent used on the day."""

    async def tree(self, version: str) -> Taxonomy | None:
        """That version of the tree, or None."""


class KeyStore(Protocol):
    """Keys of the HTTP service; of their secrets only prefixes and digests."""

    async def add(self, key: Key) -> bool:
        """Store a new key; False when there is one of that name that is not revoked."""

    async def of_prefix(self, prefix: str) -> Key | None:
        """The key that the secret's prefix leads to, or None; revoked and expired ones, too."""

    async def every(self) -> list[Key]:
        """All keys that there are and were, the newest first."""

    async def any(self) -> bool:
        """Whether there is a key, or ever was one."""

    async def revoke(self, name: str, now: datetime) -> Key | None:
        """End the key of that name; None when there is none that is not revoked."""

    async def used(self, key_id: uuid.UUID, now: datetime, before: datetime) -> None:
        """Remember when the key was used, unless that is known of a time after `before`."""


class Recorder(Protocol):
    """Writes a line of the audit log; `Audit.record` is one."""

    async def __call__(
        self,
        actor: str,
        action: str,
        *,
        scope: list[Any] | None,
        subjects: Sequence[str],
        decision: Any,
        details: Mapping[str, Any],
    ) -> object: ...


async def unrecorded(actor: str, action: str, **line: object) -> None:
    """Where there is no audit log."""


class AuditStore(Protocol):
    """The audit log: lines are added and read, never changed."""

    async def append(self, entries: Sequence[Entry]) -> Head:
        """Add the entries as the next lines of the chain, all or none; they are durable when this returns."""

    async def page(self, after: int, wanted: int) -> list[Row]:
        """Lines with numbers above `after`, at most so many, in order."""

    async def newest(self, wanted: int, before: int | None, since: datetime | None, actor: str | None) -> list[Row]:
        """Lines below number `before`, not older than `since`, of `actor`; the newest first."""


class AuditSpoolStore(Protocol):
    """Files for lines of the audit log that the database cannot take. All methods may raise `OSError`."""

    def add(self, entries: Sequence[Entry]) -> None:
        """Append the entries; they are on disk when this returns."""

    def left(self) -> list[Path]:
        """The files that no other living process writes."""

    def read(self, path: Path) -> list[Entry]:
        """The entries of a file."""

    def remove(self, path: Path) -> None:
        """Forget a file whose lines are in the log."""

    def close(self) -> None:
        """Leave what is there to the next process."""


class TaxonomyStore(Protocol):
    """Versions of the category tree."""

    async def active(self) -> Taxonomy:
        """The tree in force."""

    async def tree(self, version: str) -> Taxonomy | None:
        """The tree of a version, or None."""

    async def versions(self) -> list[TreeVersion]:
        """All versions, the newest first."""

    async def counts(self) -> dict[int, int]:
        """Documents on each node; only nodes that have some."""

    async def propose(
        self,
        wanted: Sequence[Operation],
        rationale: str,
        parent: str | None,
        version: str | None,
        *,
        by: str,
        now: datetime,
    ) -> TreeVersion:
        """Keep a version that is not in force. Raises `InvalidInput`, `NotFound`, `Conflict`."""

    async def preview(self, version: str, kind: Literal["activate", "rollback"], now: datetime) -> Preview:
        """What bringing the version into force would do. Raises `NotFound` and `Conflict`."""

    async def bring_in(
        self,
        version: str,
        kind: Literal["activate", "rollback"],
        allowed: Callable[[Preview], None],
        *,
        by: str,
        now: datetime,
    ) -> Preview:
        """Bring the version into force, in one transaction; nothing is changed when `allowed` raises."""


class ChatModel(Protocol):
    """A language model that answers messages."""

    @property
    def id(self) -> str:
        """How it is configured, such as `openai:gpt-4o-mini`; no key is ever in it."""

    def cost_of(self, input_tokens: int, output_tokens: int) -> float:
        """What so many tokens cost, in won; 0.0 where no price is known."""

    async def complete(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> Reply:
        """The whole answer. Retries what may pass (429, 5xx, broken connections) as long as `seconds` allow.

        Raises `LanguageModelFailed`, also when `seconds` are over; never anything else but cancellation.
        """

    def stream(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> AsyncIterator[str | Reply]:
        """Pieces of the answer as they come, then the whole of it as a `Reply`, which is always the last.

        Raises as `complete`; nothing is retried once a piece has been given out.
        """

    async def close(self) -> None:
        """Give back connections."""


class Sight(Protocol):
    """Tells what of the documents may be seen, for everything that was made of them and kept."""

    async def visible(self, document_ids: Collection[uuid.UUID], scope: Scope) -> frozenset[uuid.UUID]:
        """Those of the documents that are there and in scope."""


class ConversationStore(Protocol):
    """Conversations, each of an owner: the same id of another owner is another conversation."""

    async def add(self, conversation_id: str, owner: str, turn: Turn, kept: int) -> int:
        """Add the turn as the next one, whatever its number, and drop those before the last `kept`.

        Returns its number. Turns at the same time are all kept, in some order.
        """

    async def turns(self, conversation_id: str, owner: str, wanted: int, since: datetime) -> list[Turn]:
        """The last turns, oldest first; none of a conversation that has been at rest since before `since`."""

    async def get(self, conversation_id: str, owner: str, kept: int, since: datetime) -> Conversation | None:
        """The conversation, or None."""

    async def every(
        self, owner: str, kept: int, since: datetime, wanted: int, skipped: int
    ) -> tuple[list[Conversation], int]:
        """The owner's conversations, the newest first, and how many there are."""

    async def delete(self, conversation_id: str, owner: str) -> bool:
        """Delete the conversation with its turns; False when there is none."""

    async def forget(self, before: datetime) -> int:
        """Delete what has been at rest since before that time; returns how many."""


class TraceStore(Protocol):
    """What happened in runs of the pipeline."""

    async def add(self, traces: Sequence[Trace]) -> None:
        """Keep the traces, all or none; those that are there already stay as they are."""

    async def get(self, trace_id: uuid.UUID, since: datetime) -> Trace | None:
        """The trace, or None; also None when it is older than `since`."""

    async def newest(self, wanted: int, owner: str | None, since: datetime, after: Trace | None) -> list[Trace]:
        """Traces not older than `since`, the newest first: of `owner` (None: of all), those that follow `after`."""

    async def forget(self, before: datetime) -> int:
        """Delete what is older; returns how many."""


class ToolServer(Protocol):
    """Another program that offers tools. Connects when it is used; nothing here takes longer than its limits."""

    @property
    def name(self) -> str:
        """Unique among the servers."""

    @property
    def where(self) -> str:
        """The command or address, for people."""

    @property
    def answer_seconds(self) -> float:
        """Longest time of one call."""

    async def tools(self) -> list[OfferedTool]:
        """What it offers now, as it says itself. Raises `ToolServerFailed`."""

    async def call(self, tool: str, arguments: Mapping[str, Any], expected: bytes) -> Any:
        """What the tool returns, if the server still offers it with the expected fingerprint.

        Raises `ToolChanged`, `ToolFailed` when the tool itself says so, and `ToolServerFailed`.
        """

    async def close(self) -> None:
        """End the connection, and the process if there is one."""


class ApprovalStore(Protocol):
    """Which tools of other servers somebody has approved."""

    async def every(self) -> dict[str, Approval]:
        """Full name of a tool -> how it was approved."""

    async def put(self, approval: Approval) -> None:
        """Approve; an earlier approval of the tool goes."""

    async def remove(self, tool: str) -> bool:
        """Take the approval back; False when there is none."""


@dataclass(frozen=True, slots=True)
class WebRequest:
    """What is sent to a server of the web. `headers` may hold secrets: they go to the origin of `url` only."""

    url: str
    method: Literal["GET", "POST"] = "GET"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class WebReply:
    """What a server answered. `url` is the address that did, after redirects."""

    status: int
    url: str
    content_type: str
    body: bytes


class Fetcher(Protocol):
    """Asks servers of the web, none but those that may be asked (core/access/egress.py)."""

    async def fetch(self, request: WebRequest, *, seconds: float, most: int, types: Collection[str]) -> WebReply:
        """The answer, within so many seconds, of at most so many bytes, of one of the media types.

        Raises `EgressBlocked` before a connection to what may not be asked, also by a redirect, and `FetchFailed`.
        """


class CategoryModel(Protocol):
    """A language model that knows where a text belongs. Blocking: callers run it in a thread."""

    def classify(self, text: str, paths: Sequence[str]) -> tuple[str, float]:
        """One of the paths (`AI/ML`), and how sure the model says it is, in [0, 1]."""


class PlacementStore(Protocol):
    """What classification learns from, and where its results are kept."""

    async def samples(self, nodes: Sequence[int], per_node: int) -> list[Sample]:
        """Documents whose place can be trusted, at most so many of each node; those that people decided first."""

    async def decided(self, document_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, int]:
        """Where people have put those of the documents that they have decided."""

    async def record(self, placements: Sequence[Placement], settled: Sequence[uuid.UUID]) -> None:
        """Remember what was placed without a person, and queue what waits for one; forget it of `settled`."""


class ReviewStore(Protocol):
    """The review queue. Scoped callers are shown items about documents in their scope only."""

    async def answer_grants(self) -> list[Grant]:
        """The branches of the agents whose answers are in the queue."""

    async def waiting(
        self, scope: Scope, wanted: int, skipped: int, grants: Sequence[Grant] = ()
    ) -> tuple[list[Item], int]:
        """Items that wait, the least sure first (for the whole tree), and how many there are in all.

        `grants` are the branches of agents whose answers the caller may see; all of them with the whole tree.
        """

    async def get(self, item_id: uuid.UUID, scope: Scope, grants: Sequence[Grant] = ()) -> Item | None:
        """An item in scope, or None; `grants` as in `waiting`."""

    async def add(self, item: Item) -> None:
        """Queue an item."""

    async def decide(self, item: Item, decision: Decision) -> bool:
        """Settle a waiting item, move its document if it gets a node; False when it does not wait any more."""


EVERYTHING = Scope.everything()


class IndexWriter(Protocol):
    """The writing side of the store."""

    async def fingerprints(self, document_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, bytes]:
        """Fingerprints of those of the documents that are there."""

    async def write(self, documents: Sequence[IndexedDocument], scope: Scope = EVERYTHING) -> None:
        """Write each document whole, or replace it; when this returns they are durable and searchable.

        Raises `Forbidden` rather than replace a document outside of the scope.
        """

    async def source_fingerprint(self, source_id: uuid.UUID) -> bytes | None:
        """The fingerprint of a source that was read to its end, or None."""

    async def documents_of(self, source_id: uuid.UUID, most: int) -> list[uuid.UUID]:
        """The documents that came from a source, at most so many of them, in the order of their ids."""

    async def reaches_out(self, source_id: uuid.UUID, scope: Scope) -> bool:
        """Whether there is a document of this source outside of the scope."""

    async def finish_source(
        self,
        source_id: uuid.UUID,
        source_uri: str,
        fingerprint: bytes,
        kept: Sequence[int],
        scope: Scope = EVERYTHING,
    ) -> int:
        """Remember that a source was read to its end; its documents in scope that are not among `kept` go.

        Returns how many went.

        `kept` holds the upper 64 bits of the ids of the documents that it has.
        """

    async def delete(self, document_id: uuid.UUID, scope: Scope) -> bool:
        """Delete a document that the scope may see; False when there is none."""

    async def read_back(self, after: uuid.UUID | None, wanted: int) -> list[Draft]:
        """The documents as they were written, in the order of their ids, from the first after `after`."""

    async def recover(self) -> int:
        """Put right what a crashed writer left behind; returns the number of batches."""

    async def tidy(self) -> None:
        """What keeps the index quick after many writes."""

    async def ensure_paths(self, paths: Collection[CategoryPath]) -> Taxonomy:
        """The active taxonomy, with these paths in it."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file whose documents are in the index. `fingerprint` is "" when it was not read to its end."""

    source_id: uuid.UUID
    uri: str
    fingerprint: bytes
    documents: int


class FolderStore(Protocol):
    """Files whose documents are in the index, and what follows a file that was renamed."""

    async def files_below(self, prefix: str) -> list[StoredFile]:
        """Files whose addresses begin with `prefix` and that have documents, in the order of their addresses."""

    async def drafts_of(self, source_id: uuid.UUID, after: uuid.UUID | None, limit: int) -> list[Draft]:
        """Documents of a file as they were written, in the order of their ids, from the first after `after`."""

    async def vectors_of(self, document_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, dict[int, Vector]]:
        """Document -> number of a passage -> its vector."""

    async def move_review_state(self, moved: Mapping[uuid.UUID, uuid.UUID]) -> None:
        """Decisions, placements and review items of old ids belong to the new ids."""
