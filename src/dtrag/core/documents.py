"""Value types shared by all layers: parsed documents, chunks, results, citations. Frozen.

Character spans are half-open `[start, end)` offsets into the text of the document they belong to, in Unicode code
points; `document.text[start:end]` gives the quoted characters back exactly.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]
    Terms = NDArray[np.int32]
else:
    # Array types are for readers and checkers: the parser process imports this module and must start without numpy.
    Vector = Terms = Any

Scalar = str | int | float | bool | None
BlockKind = Literal["heading", "paragraph", "list", "table", "code"]

DOCUMENT_NAMESPACE = uuid.UUID("5f0c0e4e-1f1d-5a3c-9b35-6f5c7f0a8d11")


def document_id(source_uri: str) -> uuid.UUID:
    """The stable id of a document: uuid5 of where it came from (so the same source always is the same document)."""
    return uuid.uuid5(DOCUMENT_NAMESPACE, source_uri)


def uuid_or_none(text: object) -> uuid.UUID | None:
    """The UUID that the text spells; None when it is not one."""
    try:
        return uuid.UUID(str(text))
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Block:
    """A run of a document's text with the role that its format gave it.

    `level` is 1..6 for a heading and 0 otherwise; `style` is the format's own style name where it has one.
    Blocks are in reading order, do not overlap, and leave only white space between them.
    """

    start: int
    end: int
    kind: BlockKind = "paragraph"
    level: int = 0
    style: str = ""


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """One document as a parser hands it over.

    `part` tells documents of one file apart (the id of a JSONL line, the code of a regulation); it is "" when the file
    is one document. `text` has `\\n` line ends, no NUL, no lone surrogate.
    """

    title: str
    text: str
    content_type: str
    blocks: tuple[Block, ...] = ()
    part: str = ""
    category_path: tuple[str, ...] | None = None
    metadata: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage: a span of its document's text, and what is searchable with it but not part of the quotation.

    `breadcrumb` is the chain of headings above the passage, outermost first. `metadata` travels to the search result
    (for a regulation: `regulation`, `article` ("제15조"), `article_title`).
    """

    ordinal: int
    start: int
    end: int
    text: str
    breadcrumb: tuple[str, ...] = ()
    metadata: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChunkedDocument:
    """A document cut into its chunks: what a splitter (chunking or a pack) returns."""

    document: ParsedDocument
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """A document on its way into the index: cut, placed, and told apart from what is there by its fingerprint.

    `replaces` is known to be true when another form of the document is in the index. `source_path` is the path of its
    file below the ingested folder.
    """

    document_id: uuid.UUID
    passages: ChunkedDocument
    source_id: uuid.UUID
    source_uri: str
    node_id: int
    fingerprint: bytes
    replaces: bool = False
    source_path: str = ""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A passage that was found. All scores lie in [0, 1].

    `bm25_score` is the lexical score as a share of the highest that the query could reach in any passage, and
    `vector_score` the cosine: both are comparable across queries. `hybrid_score` orders this result list only.
    `start` and `end` are the passage's span in its document's text. `highlights` are spans in `text` that hold words
    of the query. `explanation` is there when it was asked for.
    """

    chunk_id: str
    text: str = ""
    title: str = ""
    source_url: str = ""
    taxonomy_path: list[str] = field(default_factory=list)
    bm25_score: float = 0.0
    vector_score: float = 0.0
    hybrid_score: float = 0.0
    rerank_score: float = 0.0
    metadata: Mapping[str, Any] = field(default_factory=dict)
    breadcrumb: tuple[str, ...] = ()
    start: int = 0
    end: int = 0
    highlights: tuple[tuple[int, int], ...] = ()
    explanation: Explanation | None = None

    @property
    def id(self) -> str:
        """Another name of `chunk_id`."""
        return self.chunk_id

    @property
    def score(self) -> float:
        """Another name of `hybrid_score`."""
        return self.hybrid_score


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a passage stands where it stands.

    `bm25` is the raw sum, of which `bm25_score` is the share of the query's ceiling; `cosine` is None without a vector.
    Ranks count from 1 in each list of candidates, None where the passage is not among them. `terms` are the words of
    the query that the passage holds.
    """

    bm25: float
    bm25_score: float
    cosine: float | None
    fused: float | None
    rerank: float | None
    lexical_rank: int | None
    vector_rank: int | None
    fused_rank: int | None
    terms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Absence:
    """Why a document that was asked about is not in the list of results.

    The same for a document that is not there and for one outside the caller's scope.
    """

    document_id: str
    reason: str
    chunk_id: str | None = None
    explanation: Explanation | None = None


@dataclass(frozen=True, slots=True)
class SearchMetrics:
    """How a search went; times in seconds, 0.0 for a stage that did not run.

    `degraded` names the stages that failed and were left out; `notes` explains what a reader should know
    (such as: no vectors, because the embedder does not support the query's language). `absent` explains the documents
    that an explained search asked about and did not find. `diversity_ratio` is the share of distinct documents among
    the first ten results.
    """

    mode: str = "hybrid"
    total_time: float = 0.0
    bm25_time: float = 0.0
    vector_time: float = 0.0
    embedding_time: float = 0.0
    fusion_time: float = 0.0
    rerank_time: float = 0.0
    fetch_time: float = 0.0
    bm25_candidates: int = 0
    vector_candidates: int = 0
    final_results: int = 0
    diversity_ratio: float = 0.0
    cache_hit: bool = False
    degraded: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    correlation_id: str = ""
    absent: tuple[Absence, ...] = ()


@dataclass(frozen=True, slots=True)
class Citation:
    """Where a sentence of an answer stands: passage `number` as in the answer, and the quoted span of the document.

    `label` is what people cite: `규정명 제N조(제목)`, or title and heading. `display` is the quotation with its hidden
    characters made visible (`<U+202E>`), "" when it has none.
    """

    number: int
    label: str
    chunk_id: str
    document_id: str
    source_url: str
    quote: str
    start: int
    end: int
    display: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What `ask` returns. `confidence` in [0, 1]; `stages` in milliseconds; `cost` in won.

    `model` is the language model that wrote the text, None where it is made of quotations.

    `decision` is `answer`, `review` (an answer on weak evidence: check the sources) or `abstain`. `unfinished`: the
    question was not answered in time, and nothing is known about what the documents say; the decision is `review`.
    """

    question: str
    text: str
    citations: tuple[Citation, ...]
    confidence: float
    decision: str
    reason: str
    stages: Mapping[str, float]
    degraded: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    model: str | None = None
    cost: float = 0.0
    trace_id: str = ""
    unfinished: bool = False


@dataclass(frozen=True, slots=True)
class DocumentSummary:
    """A document as lists show it: everything but its text."""

    document_id: str
    title: str
    source_url: str
    content_type: str
    taxonomy_path: tuple[str, ...]
    language: str
    chunks: int
    characters: int
    metadata: Mapping[str, Any]
    processed_at: str


@dataclass(frozen=True, slots=True)
class IndexedChunk:
    """A chunk ready to be written.

    `term_ids` (int32, ascending, distinct) and `frequencies` (float32, field-weighted occurrences) are parallel;
    `length` is the sum of the frequencies. `vector` is None where there is no embedder for the chunk's language.
    """

    chunk: Chunk
    language: str
    length: int
    term_ids: Terms
    frequencies: Vector
    vector: Vector | None = None


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """A document ready to be written. `fingerprint` tells whether it is already there in just this form."""

    document_id: uuid.UUID
    source_id: uuid.UUID
    source_uri: str
    document: ParsedDocument
    node_id: int
    language: str
    fingerprint: bytes
    chunks: tuple[IndexedChunk, ...]
    replaces: bool = False
    source_path: str = ""
