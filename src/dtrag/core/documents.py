"""Values shared by all layers: parsed documents, chunks, results, citations.

Character spans are half-open `[start, end)` offsets into the text of the document they belong to, in Unicode code
points; `document.text[start:end]` is exactly the quoted text.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, Literal, cast

from dtrag.core.editions import ChangedText, Edition
from dtrag.core.notebook import Quoted, notebook_html, numbered_text
from dtrag.core.page_starts import PageStart
from dtrag.core.query_expansion import QueryEntity, QueryExpansion, QueryFacts, TopKChoice
from dtrag.core.recognised_text import OcrWord
from dtrag.core.response import INTERNAL, response
from dtrag.core.statements import Statement, Statements, text_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]
    Terms = NDArray[np.int32]
    Frequencies = NDArray[np.uint8]
else:
    # Array types only for type checkers: the parser process imports this module and must start without numpy.
    Vector = Terms = Frequencies = Any

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
    file is one document. `text` has `\\n` line ends, no NUL, no lone surrogate. `page_starts` are those of a PDF,
    `ocr_words` the words of its pages that were read by OCR, in order.
    """

    title: str
    text: str
    content_type: str
    blocks: tuple[Block, ...] = ()
    part: str = ""
    category_path: tuple[str, ...] | None = None
    metadata: Mapping[str, Scalar] = field(default_factory=dict)
    page_starts: tuple[PageStart, ...] = ()
    ocr_words: tuple[OcrWord, ...] = ()


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
    file below the ingested folder. `personal_data` is the id of the policy that its text was stored with. `original`:
    the file to store with it, b"" for none; None: what is stored stays.
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
    personal_data: str = ""
    original: bytes | None = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A result passage; scores are in [0, 1]."""

    __pydantic_config__ = response("Passage")

    chunk_id: str
    """Id of the passage: document id, colon, position."""
    text: str = ""
    """The passage, verbatim."""
    title: str = ""
    """Title of its document."""
    source_url: str = ""
    """Source address of the document."""
    taxonomy_path: list[str] = field(default_factory=list)
    """Category of the document, outermost name first; [] for none."""
    bm25_score: float = 0.0
    """Lexical score, as a share of the highest possible for the query."""
    vector_score: float = 0.0
    """Cosine with the query; 0 without vectors."""
    hybrid_score: float = 0.0
    """The score by which the results are ordered."""
    rerank_score: float = 0.0
    """Reranker score; 0 without reranking."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Metadata of document and passage, such as document_id, content_type, language, article."""
    breadcrumb: tuple[str, ...] = ()
    """Headings above the passage, outermost first."""
    start: int = 0
    """Start of the passage, in code points of the document's text."""
    end: int = 0
    """End of the passage (exclusive), in code points of the document's text."""
    highlights: tuple[tuple[int, int], ...] = ()
    """Spans [start, end) of query terms in `text`, in code points; ordered and disjoint."""
    explanation: Explanation | None = None
    """Its scores and ranks; null unless requested."""

    def with_scores(
        self, bm25: float, vector: float, hybrid: float, rerank: Callable[[SearchResult], float] | None = None
    ) -> SearchResult:
        """The passage with these scores, made some hundred times by a search: `replace` takes twice as long.

        `rerank` computes `rerank_score` when that is first read.
        """
        return SearchResult(
            self.chunk_id,
            self.text,
            self.title,
            self.source_url,
            self.taxonomy_path,
            bm25,
            vector,
            hybrid,
            self.rerank_score if rerank is None else cast("float", rerank),
            self.metadata,
            self.breadcrumb,
            self.start,
            self.end,
            self.highlights,
            self.explanation,
        )

    def with_own(self, taxonomy_path: list[str], metadata: Mapping[str, Any]) -> SearchResult:
        """The passage with this path and this metadata, as `with_scores` without `replace`."""
        return SearchResult(
            self.chunk_id,
            self.text,
            self.title,
            self.source_url,
            taxonomy_path,
            self.bm25_score,
            self.vector_score,
            self.hybrid_score,
            _RERANK_SCORE.stored(self),
            metadata,
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

    def _repr_html_(self) -> str:
        """The passage for a notebook, with the terms of the query marked."""
        headings = " › ".join([self.title, *(heading for heading in self.breadcrumb if heading != self.title)])
        path = "/".join(self.taxonomy_path) or "no category"
        place = f"{headings} · {path} · {self.source_url} · {self.hybrid_score:.3f}"
        return notebook_html(self.text, self.highlights, (), place)

    def flat_metadata(self) -> dict[str, Any]:
        """The metadata with title, chunk_id, category, section, source_url, start and end; without null values."""
        shown = {
            **self.metadata,
            "title": self.title,
            "chunk_id": self.chunk_id,
            "category": "/".join(self.taxonomy_path),
            "section": " > ".join(self.breadcrumb),
            "source_url": self.source_url,
            "start": self.start,
            "end": self.end,
        }
        return {name: value for name, value in shown.items() if value is not None}

    @property
    def ordering_score(self) -> float:
        """`rerank_score` if there is one, else `hybrid_score`."""
        return self.rerank_score or self.hybrid_score


class _ScoreOnRead:
    """A score of a `SearchResult`; if it was stored as a function of the result, it is computed when it is first read.

    The heuristic's score orders nothing, few callers read it, and to compute it took a tenth of a search by words.
    """

    def __init__(self, slot: MemberDescriptorType) -> None:
        self.stored: Callable[[SearchResult], float] = slot.__get__
        self._store = slot.__set__

    def __get__(self, result: SearchResult | None, owner: type[SearchResult]) -> object:
        if result is None:
            return self
        score = self.stored(result)
        if callable(score):
            score = score(result)
            self._store(result, score)
        return score

    def __set__(self, result: SearchResult, score: float) -> None:
        self._store(result, score)


_RERANK_SCORE = _ScoreOnRead(vars(SearchResult)["rerank_score"])
type.__setattr__(SearchResult, "rerank_score", _RERANK_SCORE)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The scores and ranks of a passage; ranks count from 1 and are null outside of that list."""

    __pydantic_config__ = response("ExplanationShape")

    bm25: float
    """The BM25 sum; bm25_score is its share of the highest possible value."""
    bm25_score: float
    """Lexical score, as a share of the highest possible for the query."""
    cosine: float | None
    """Cosine with the query; null without a vector."""
    fused: float | None
    """Score after fusion; null if in neither list."""
    rerank: float | None
    """Reranker score; null if not reranked."""
    lexical_rank: int | None
    """Rank among the lexical candidates."""
    vector_rank: int | None
    """Rank among the vector candidates."""
    fused_rank: int | None
    """Rank after fusion."""
    terms: tuple[str, ...] = ()
    """Query terms in the passage."""
    expansions: tuple[str, ...] = ()
    """Words of the passage that the lexicon added to the query."""
    imagined: float | None = None
    """Similarity of the query and its nearest imagined question; null if not found by one."""
    imagined_questions: tuple[str, ...] = ()
    """Its imagined questions, if it was found by one: derived, never text of the document."""


@dataclass(frozen=True, slots=True)
class Absence:
    """Why a requested document is not among the results."""

    __pydantic_config__ = response("AbsenceShape")

    document_id: str
    """The requested document."""
    reason: str = field(init=False, default="")
    """The reason; the same for unknown and inaccessible documents."""
    reason_statements: Statements
    """The sentences of reason with codes."""
    chunk_id: str | None = None
    """Its best passage, if any."""
    explanation: Explanation | None = None
    """The scores and ranks of that passage."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", text_of(self.reason_statements))


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
    """Times (in seconds) and counts of a search."""

    __pydantic_config__ = response("Metrics")

    mode: str = "hybrid"
    """The search mode."""
    total_time: float = 0.0
    """Total time."""
    bm25_time: float = 0.0
    """Lexical retrieval."""
    vector_time: float = 0.0
    """Vector retrieval, including the embedding."""
    embedding_time: float = 0.0
    """Embedding of the query."""
    fusion_time: float = 0.0
    """Fusion of both lists."""
    rerank_time: float = 0.0
    """Reranking; 0 without it."""
    fetch_time: float = 0.0
    """Fetching of the passages."""
    bm25_candidates: int = 0
    """Lexical candidates."""
    vector_candidates: int = 0
    """Vector candidates."""
    final_results: int = 0
    """Number of results."""
    diversity_ratio: float = 0.0
    """Share of distinct documents among the first ten results."""
    cache_hit: bool = False
    """Whether the results came from the cache."""
    degraded: tuple[str, ...] = ()
    """Stages that failed and were left out."""
    notes: tuple[str, ...] = field(init=False, default=())
    """Notes for the reader."""
    note_statements: Statements = ()
    """The notes with codes."""
    correlation_id: str = ""
    """The X-Correlation-ID of the request."""
    absent: tuple[Absence, ...] = ()
    """The explain_documents that are not among the results, with reasons."""
    missing_editions: Statement | None = field(default=None, metadata=INTERNAL)
    """The names of the works without a text of the day of the search; it is one of the notes."""
    today: TodaysResults | None = field(default=None, metadata=INTERNAL)
    """Set by a search as of an earlier day."""
    pack: PackFindings | None = field(default=None, metadata=INTERNAL)
    """None unless a pack ranked the results."""
    query: QueryFacts | None = field(default=None, metadata=INTERNAL)
    """What a pack found in the query and added to it; an explained search shows it as `entities` and `expansions`."""
    entities: tuple[QueryEntity, ...] = ()
    """What a question about regulations names; [] unless explain is set."""
    expansions: tuple[QueryExpansion, ...] = ()
    """What the lexicon added to the query; [] unless explain is set and the search uses the lexicon."""
    vectors_pending: bool = False
    """Whether passages in your scope may wait for their vectors and were found by their words only."""
    top_k: TopKChoice | None = None
    """The chosen number of results; null for a requested one."""
    imagined_candidates: int = 0
    """Passages found by their imagined questions."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "notes", tuple(map(str, self.note_statements)))


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
    """Text that a quotation needs to be understood."""

    __pydantic_config__ = response("ContextShape")

    kind: ContextKind
    """header of a table, unit of its values, or lead_in of a list or table."""
    # The header may also be the left cell that spans several rows.
    text: str
    """The text, verbatim."""
    start: int
    """Its start, in code points of the document's text."""
    end: int
    """Its end (exclusive), in code points of the document's text."""


@dataclass(frozen=True, slots=True)
class UncertainFigure:
    """A figure that OCR (text recognition) read with low confidence."""

    __pydantic_config__ = response("UncertainFigureShape")

    text: str
    """The word with the figure, as it was read."""
    start: int
    """Its start, in code points of the document's text."""
    end: int
    """Its end (exclusive), in code points of the document's text."""
    confidence: int
    """Confidence of the recognition, in percent."""


@dataclass(frozen=True, slots=True)
class Citation:
    """The source of a sentence of the answer."""

    __pydantic_config__ = response("CitationShape")

    number: int
    """The n of [n] in the answer."""
    label: str
    """Citation label: regulation and article, or title and heading."""
    chunk_id: str
    """The passage."""
    document_id: str
    """Its document."""
    source_url: str
    """Source address of the document."""
    quote: str
    """The quoted text, verbatim."""
    start: int
    """Start of the quotation, in code points of the document's text."""
    end: int
    """End of the quotation (exclusive), in code points of the document's text."""
    display: str = ""
    """The quotation as the answer shows it: each sentence, item or row on one line, without marks of amendments, with
    hidden characters made visible ("<U+202E>")."""
    context: tuple[CitationContext, ...] = ()
    """Header and unit of a quoted table row, or the lead-in of a list item, in the order of the document."""
    highlights: tuple[tuple[int, int], ...] = ()
    """Spans [start, end) inside the quotation of the words that answer (number, date, name, limit, what is allowed), in
    code points of the document's text."""
    marked: tuple[tuple[int, int], ...] = ()
    """Spans [start, end) inside the quotation of the sentence that answers, where the quotation is a longer provision,
    in code points of the document's text."""
    page: int | None = None
    """Page of the PDF on which the quotation begins; null for other formats, or if it is unknown."""
    ocr_confidence: int | None = None
    """Mean confidence of the words of the passage in percent, if it was read by OCR (text recognition); null if not."""
    uncertain_figures: tuple[UncertainFigure, ...] = ()
    """Figures of the quotation that OCR read with low confidence, to be checked on the page."""
    title: str = field(default="", metadata=INTERNAL)
    """Title of the document."""
    date: str = field(default="", metadata=INTERNAL)
    """When the document was indexed."""
    version: str = field(default="", metadata=INTERNAL)
    """Version stated in the document; empty if none."""

    @property
    def quoted(self) -> Quoted:
        """As notebooks show it: with the words that answer marked, or else the sentence, or the whole quotation."""
        spans = self.highlights or self.marked or ((self.start, self.end),)
        marked = [(max(0, start - self.start), end - self.start) for start, end in spans]
        return Quoted(self.number, self.label, self.source_url, self.quote, marked)


@dataclass(frozen=True, slots=True)
class CaseVotes:
    """Votes on a case."""

    __pydantic_config__ = response("CaseVotesShape")

    up: int
    """Votes for it."""
    down: int
    """Votes against it."""


@dataclass(frozen=True, slots=True)
class EarlierQuestion:
    """An earlier question with a confirmed answer."""

    __pydantic_config__ = response("EarlierQuestionShape")

    case_id: str
    """The case."""
    question: str
    """The earlier question; empty where questions are stored without text."""
    date: str
    """The day of the earlier answer."""
    votes: CaseVotes
    """What people said of it."""


@dataclass(frozen=True, slots=True)
class NearestHeading:
    """The heading of a passage that is near to the question without answering it."""

    __pydantic_config__ = response("NearestHeadingShape")

    label: str
    """Regulation and article, or title and heading."""
    chunk_id: str
    """The passage."""
    document_id: str
    """Its document."""
    start: int
    """Start of the passage, in code points of the document's text."""
    end: int
    """End of the passage (exclusive), in code points of the document's text."""


@dataclass(frozen=True, slots=True)
class Declined:
    """What was searched for a question that the documents do not answer; all of it is what you may see."""

    __pydantic_config__ = response("DeclinedShape")

    searched: int
    """Passages that were searched."""
    unknown_words: tuple[str, ...]
    """Words of the question that occur in none of them; at most five."""
    nearest: tuple[NearestHeading, ...]
    """Headings of the best passages; at most three."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer with its citations, or that the documents do not answer."""

    __pydantic_config__ = response("AskResponse")

    question: str
    """The question."""
    text: str
    """The answer, with [n] where a citation belongs."""
    citations: tuple[Citation, ...]
    """One for each [n]."""
    confidence: float
    """The probability that the documents answer this, in [0, 1]."""
    decision: str
    """answer, review (on weak evidence), or abstain: the documents do not answer."""
    reason: str = field(init=False, default="")
    """How the confidence was reached."""
    stages: Mapping[str, float]
    """Duration of each stage in milliseconds."""
    degraded: tuple[str, ...] = ()
    """Stages that failed and were left out."""
    notes: tuple[str, ...] = field(init=False, default=())
    """Notes for the reader."""
    model: str | None = None
    """The language model that wrote the answer; null for quotations."""
    cost: float = 0.0
    """Cost of its language model calls, in won."""
    trace_id: str = ""
    """The id of its trace: GET /traces/{id}."""
    unfinished: bool = False
    """Whether the time limit was reached: it is unknown whether the documents answer the question."""
    answered_before: EarlierQuestion | None = None
    """A verified case with the same question, whose passages the answer cites, too; null if there is none, or the case
    memory is off."""
    offered: tuple[EarlierQuestion, ...] = ()
    """Up to three similar questions with a confirmed answer from passages that you may see and that are unchanged, most
    similar first; empty while the case memory is off. The answer does not depend on them."""
    declined: Declined | None = None
    """What was searched when the decision is abstain; null otherwise, for a greeting, and for a question that names a
    provision which does not exist."""
    reason_statements: Statements = ()
    """The sentences of reason with codes."""
    note_statements: Statements = ()
    """The notes with codes."""
    marked: tuple[tuple[int, int], ...] = ()
    """Spans [start, end) of the answer, in code points, with the sentences that answer, where provisions are quoted."""
    answer_confidence: float | None = None
    """The probability that the quotations are the answer, in [0, 1]: it decides between answer and review. Null for the
    answer of a language model, for a provision that the question names, and without an answer."""
    record_digest: str = field(default="", metadata=INTERNAL)
    """The digest of what its trace records; empty without a trace."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", text_of(self.reason_statements))
        object.__setattr__(self, "notes", tuple(map(str, self.note_statements)))

    @property
    def document_ids(self) -> list[str]:
        """The documents that it cites."""
        return list(dict.fromkeys(citation.document_id for citation in self.citations))

    @property
    def audited_ids(self) -> list[str]:
        """The ids in a line of the audit log about it: the cited documents, and its trace."""
        return [*self.document_ids, *([self.trace_id] if self.record_digest else ())]

    @property
    def audited_details(self) -> dict[str, str]:
        """What the line has beside them: the digest by which a replay recognises the record of the answer."""
        return {"record": self.record_digest} if self.record_digest else {}

    def __str__(self) -> str:
        """The answer with its numbered sources; without an answer the reason."""
        return numbered_text(self.text or self.reason, (citation.quoted for citation in self.citations))

    def _repr_html_(self) -> str:
        """The answer for a notebook, with its sources; what is cited and what answers is marked."""
        footer = f"{self.decision}, confidence {self.confidence:.2f}"
        quoted = (citation.quoted for citation in self.citations)
        return notebook_html(self.text or self.reason, self.marked, quoted, footer)


@dataclass(frozen=True, slots=True)
class DocumentSummary:
    """A document without its text."""

    __pydantic_config__ = response("DocumentShape")

    document_id: str
    """Its id; stable for the same source."""
    title: str
    """Its title."""
    source_url: str
    """Its source address; upload:<name> for uploads."""
    content_type: str
    """Media type of its file."""
    taxonomy_path: tuple[str, ...]
    """Its category, outermost name first; [] for none."""
    language: str
    """ISO 639-1 code of its language."""
    chunks: int
    """Number of its passages."""
    characters: int
    """Length of its text in code points."""
    metadata: Mapping[str, Any]
    """Metadata fields from its file."""
    processed_at: str
    """When it was indexed, ISO 8601 in UTC."""


@dataclass(frozen=True, slots=True)
class DocumentWithText(DocumentSummary):
    """A document and its text."""

    __pydantic_config__ = response()

    text: str | None
    """The full text; spans of passages and citations refer to it. Null with text=false."""

    @classmethod
    def of(cls, summary: DocumentSummary, text: str | None) -> DocumentWithText:
        """The document with its text."""
        return cls(**{declared.name: getattr(summary, declared.name) for declared in fields(summary)}, text=text)


@dataclass(frozen=True, slots=True)
class IndexedChunk:
    """An analysed chunk.

    `term_ids` (int32, ascending, distinct) and `frequencies` (uint8: field-weighted occurrences, in FREQUENCY_UNIT) are
    parallel; `length` is the sum of the occurrences.
    """

    chunk: Chunk
    language: str
    length: int
    term_ids: Terms
    frequencies: Frequencies


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
    personal_data: str = ""
    original: bytes | None = field(default=b"", repr=False)
