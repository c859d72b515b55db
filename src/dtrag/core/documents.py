"""Values shared by all layers: parsed documents, chunks, results, citations.

Character spans are half-open `[start, end)` offsets into the text of the document they belong to, in Unicode code
points; `document.text[start:end]` is exactly the quoted text.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from dtrag.core.editions import ChangedText, Edition
from dtrag.core.page_starts import PageStart
from dtrag.core.query_expansion import QueryEntity, QueryExpansion, QueryFacts, TopKChoice
from dtrag.core.statements import Statement, all_statements, statements_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]
    Terms = NDArray[np.int32]
else:
    # Array types only for type checkers: the parser process imports this module and must start without numpy.
    Vector = Terms = Any

Scalar = str | int | float | bool | None
ContextKind = Literal["header", "unit", "lead_in"]
BlockKind = Literal["heading", "paragraph", "list", "table", "code"]

DOCUMENT_NAMESPACE = uuid.UUID("5f0c0e4e-1f1d-5a3c-9b35-6f5c7f0a8d11")


def document_id(source_uri: str) -> uuid.UUID:
    """The stable id of a document: uuid5 of its address, so that a source is always the same document."""
    return uuid.uuid5(DOCUMENT_NAMESPACE, source_uri)


def uuid_or_none(text: object) -> uuid.UUID | None:
    """The UUID that the text spells; None when it is not one."""
    try:
        return uuid.UUID(str(text))
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Block:
    """A span of a document's text with its role in the format.

    `level` is 1..6 for a heading and 0 otherwise; `style` is the name of the style in the format, if any.
    Blocks are in reading order, do not overlap, and leave only white space between them.
    """

    start: int
    end: int
    kind: BlockKind = "paragraph"
    level: int = 0
    style: str = ""


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A document as parsed.

    `part` distinguishes documents of one file (the id of a JSONL line, the code of a regulation); it is "" when the
    file is one document. `text` has `\\n` line ends, no NUL, no lone surrogate. `page_starts` are those of a PDF.
    """

    title: str
    text: str
    content_type: str
    blocks: tuple[Block, ...] = ()
    part: str = ""
    category_path: tuple[str, ...] | None = None
    metadata: Mapping[str, Scalar] = field(default_factory=dict)
    page_starts: tuple[PageStart, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage: a span of its document's text, and what is searched with it without being quoted.

    `breadcrumb` is the chain of headings above the passage, outermost first. `metadata` is part of the search result
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
    """A document with its chunks, as a splitter (chunking or a pack) returns it.

    `edition` is set for documents that have a name and possibly a date of their own, such as regulations.
    """

    document: ParsedDocument
    chunks: tuple[Chunk, ...]
    edition: Edition | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """A document to be indexed: chunked, with its node and its fingerprint.

    `replaces`: another version of the document is in the index. `source_path` is the path of its
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
    edition: Edition | None = None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A retrieved passage. All scores are in [0, 1].

    `bm25_score` is the lexical score as a share of the highest possible score of the query, and
    `vector_score` the cosine: both are comparable across queries. `hybrid_score` orders this result list only.
    `start` and `end` are the passage's span in its document's text. `highlights` are spans in `text` with words of the
    query. `explanation` is set on request.
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

    def with_scores(self, bm25: float, vector: float, hybrid: float) -> SearchResult:
        """The passage with these scores, made some hundred times by a search: `replace` takes twice as long."""
        return SearchResult(
            self.chunk_id,
            self.text,
            self.title,
            self.source_url,
            self.taxonomy_path,
            bm25,
            vector,
            hybrid,
            self.rerank_score,
            self.metadata,
            self.breadcrumb,
            self.start,
            self.end,
            self.highlights,
            self.explanation,
        )

    @property
    def id(self) -> str:
        """Alias of `chunk_id`."""
        return self.chunk_id

    @property
    def score(self) -> float:
        """Alias of `hybrid_score`."""
        return self.hybrid_score


@dataclass(frozen=True, slots=True)
class Explanation:
    """Scores and ranks of a passage.

    `bm25` is the raw score, `bm25_score` its share of the highest possible one; `cosine` is None without a vector.
    Ranks start at 1 in each list of candidates; None: not a candidate. `terms` are the words of the query in the
    passage, and `expansions` the words that a lexicon added to the query and that are in it. `imagined` is the
    similarity of its imagined question nearest to the query, None for a passage that was not found by one;
    `imagined_questions` are its imagined questions then: derived, never text of the document.
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
    expansions: tuple[str, ...] = ()
    imagined: float | None = None
    imagined_questions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Absence:
    """Why a given document is not in the results.

    The same for an unknown document and for one outside the caller's scope.
    """

    document_id: str
    reason: str
    chunk_id: str | None = None
    explanation: Explanation | None = None

    @property
    def reason_statements(self) -> tuple[Statement, ...]:
        """The reason with codes."""
        return statements_of(self.reason)


@dataclass(frozen=True, slots=True)
class PackFindings:
    """What a pack learned about a question beside the order of the passages.

    `signals` in [0, 1] say how well the best passages explain the question (core/answers/evidence.py). `terms` are the
    ids of the question's official terms with weights in (0, 1]: sentences of an answer may contain them in place of
    the question's own words. `parts` are what a question asks that asks several things.
    `governed`: the first passages are of the regulation on the question's subject, and their titles say what is sought.
    """

    signals: Mapping[str, float]
    terms: tuple[tuple[int, float], ...] = ()
    parts: tuple[str, ...] = ()
    governed: bool = False


@dataclass(frozen=True, slots=True)
class TodaysResults:
    """The results of a search as of an earlier day, if it were one of today.

    `changed`: chunk id -> its texts that are not those of the day, which are not stored.
    """

    passages: tuple[SearchResult, ...]
    pack: PackFindings | None
    changed: Mapping[str, Sequence[ChangedText]]


@dataclass(frozen=True, slots=True)
class SearchMetrics:
    """Metrics of a search; times in seconds, 0.0 for a stage that did not run.

    `degraded` names the stages that failed and were left out; `notes` explains what a reader should know
    (such as: no vectors, because the embedder does not support the query's language). `absent` explains the documents
    that an explained search asked about and did not find. `diversity_ratio` is the share of distinct documents among
    the first ten results. `missing_editions` names the works without a text of the day `as_of`; it is one of the notes.
    `today` is set by a search as of an earlier day. `pack` is None unless a pack ranked the results. `query` is
    what a pack found in the query and added to it; an explained search shows it as `entities` and `expansions`.
    `vectors_pending`: passages in scope may wait for their vectors, found by words alone until then. `top_k` is the
    number of passages that was chosen; None where the caller requested a number. `imagined_candidates`: passages
    found by imagined questions.
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
    missing_editions: str = ""
    today: TodaysResults | None = None
    pack: PackFindings | None = None
    query: QueryFacts | None = None
    entities: tuple[QueryEntity, ...] = ()
    expansions: tuple[QueryExpansion, ...] = ()
    vectors_pending: bool = False
    top_k: TopKChoice | None = None
    imagined_candidates: int = 0

    @property
    def note_statements(self) -> tuple[Statement, ...]:
        """The notes with codes."""
        return all_statements(self.notes)


@dataclass(frozen=True, slots=True)
class FollowedCitation:
    """A citation of another provision: `[start, end)` of the text of the passage `chunk_id`.

    `source` is the name of the provision that cites, `cited` the ids of the passages of the cited one, in order.
    """

    source: str
    chunk_id: str
    start: int
    end: int
    cited: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CitationContext:
    """Text of the document that a quotation needs to be understood: `text` is exactly `document.text[start:end]`.

    `header` of a table (or the left cell that spans several rows), `unit` of its values, `lead_in` of a list or table.
    """

    kind: ContextKind
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Citation:
    """Source of a sentence of an answer: `number` of the passage in the answer, and the quoted span of the document.

    `label` is for display: `규정명 제N조(제목)`, or title and heading. `display` is the quotation as the answer shows
    it: each sentence, item or row on one line, without marks of amendments, with hidden characters made visible
    (`<U+202E>`). `context` are the
    header and unit of a quoted table row, or the lead-in of a list item, in the order of the document. `highlights` are
    spans, inside the quotation, of the words that answer: number, date, name, limit, or what is allowed. `marked` is
    the span of the sentence that answers, where the quotation is a longer provision. `page` is the page of a PDF on
    which the quotation begins.
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
    context: tuple[CitationContext, ...] = ()
    highlights: tuple[tuple[int, int], ...] = ()
    marked: tuple[tuple[int, int], ...] = ()
    page: int | None = None


@dataclass(frozen=True, slots=True)
class CaseVotes:
    """Votes on a case."""

    up: int
    down: int


@dataclass(frozen=True, slots=True)
class EarlierQuestion:
    """An earlier question: one that asked the same, whose passages the answer cites, too; or one that is similar.

    `question` is "" where questions are stored without text; `date` is the day of the earlier answer (2030-01-31).
    """

    case_id: str
    question: str
    date: str
    votes: CaseVotes

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class NearestHeading:
    """The heading of a passage that is near to a question without answering it, with the span of the passage."""

    label: str
    chunk_id: str
    document_id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Declined:
    """Why the documents do not answer: how many passages were searched, and which words occur in none of them.

    `nearest` are the headings of the best passages: where to look. All of it is what the caller may see.
    """

    searched: int
    unknown_words: tuple[str, ...]
    nearest: tuple[NearestHeading, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of `ask`. `stages` in milliseconds; `cost` in won.

    `confidence` in [0, 1] is the probability that the documents answer, `answer_confidence` that the quotations are
    the answer; None for answers of a model and for provisions that the question names.

    `model` is the language model that generated the text; None: it consists of quotations. `marked` are the spans of
    the text with the sentences that answer, where whole provisions are quoted.

    `decision` is `answer`, `review` (an answer on weak evidence: check the sources) or `abstain`. `unfinished`: the
    time limit was reached before an answer; the decision is `review`. `answered_before` is a case of the memory, and
    `offered` are up to three with a similar question and a confirmed answer; they have no part in this answer.
    `declined` says what was searched when the decision is `abstain`; None for a greeting, and for a question that names
    a provision which does not exist. `reason_statements` and `note_statements` are `reason` and `notes` with codes.
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
    answered_before: EarlierQuestion | None = None
    offered: tuple[EarlierQuestion, ...] = ()
    declined: Declined | None = None
    reason_statements: tuple[Statement, ...] = ()
    note_statements: tuple[Statement, ...] = ()
    marked: tuple[tuple[int, int], ...] = ()
    answer_confidence: float | None = None


@dataclass(frozen=True, slots=True)
class DocumentSummary:
    """A document without its text, for lists."""

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
    """An analysed chunk.

    `term_ids` (int32, ascending, distinct) and `frequencies` (float32, field-weighted occurrences) are parallel;
    `length` is the sum of the frequencies.
    """

    chunk: Chunk
    language: str
    length: int
    term_ids: Terms
    frequencies: Vector


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """An analysed document. Equal fingerprints mean unchanged documents."""

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
    edition: Edition | None = None
