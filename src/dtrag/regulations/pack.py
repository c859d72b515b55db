"""The Korean regulation pack as the engine uses it: everyday words become official terms, and articles are reranked.

`korean` is pure; this module decides which searches use it and gives it passages and term statistics.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection as Ids
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import partial

from cachetools import LRUCache

from dtrag.core.access.scope import Scope, Viewer
from dtrag.core.documents import FollowedCitation, PackFindings, SearchResult
from dtrag.core.editions import ChangedText
from dtrag.core.ranking.bm25 import K1, LexicalQuery, LexicalStatistics, idf
from dtrag.core.statements import Statement, stated
from dtrag.core.text.analysis import Analyzer, language
from dtrag.errors import DtragError, InvalidInput
from dtrag.ports import (
    NO_QUESTIONS,
    CitedProvision,
    Index,
    IndexSnapshot,
    NamedPassages,
    PackRanking,
    QueryReading,
)
from dtrag.regulations.citation_hops import follow_citations, followed_citations
from dtrag.regulations.collection_reader import CollectionReader
from dtrag.regulations.dated_texts import changed_texts, notes_on, of_day
from dtrag.regulations.korean.catalog import ARTICLE_NUMBER, article_number
from dtrag.regulations.korean.collection import CitableProvision, Collection, provision_names
from dtrag.regulations.korean.expansion import suggestion_rules, words_in
from dtrag.regulations.korean.lexicon import Lexicon
from dtrag.regulations.korean.question_concepts import (
    QuestionReading,
    raised,
    read,
    with_best_of_parts,
    with_suggestions,
)
from dtrag.regulations.korean.ranking import (
    Article,
    Scorer,
    governing,
    kind_factor,
    regulation_scores,
    reranked,
    signals,
)
from dtrag.regulations.korean.references import may_refer, named_provisions
from dtrag.regulations.korean.term_coverage import term_ids
from dtrag.regulations.lexicon import LexiconReader
from dtrag.retrieval.config import PACK_ARTICLES
from dtrag.settings import timeout_multiplier

KIND = "regulation"
"""`metadata["kind"]` of documents that the pack has split."""
SAMPLED_PASSAGES = 10
"""First passages whose majority decides whether a search is about regulations."""
PACK_MODES = ("auto", "on", "off")
CACHED_SCOPES = 256
"""Scopes for which the engine remembers whether they contain a regulation."""
SCOPE_SECONDS = 0.5
"""Time limit for whether a viewer may see a regulation, before a question's own time starts."""
MAX_QUESTION = 1_000
"""Characters of a question that are interpreted; the retrievers use all of it."""
INLINE_QUESTION = 200
"""Characters of a question, and of all its articles together, that are interpreted and ranked at once (about 10 ms).
Longer ones use a thread, so that other requests need not wait."""
INLINE_TEXT = 100_000
_SHORTENED = stated(
    "question_shortened",
    "The regulation pack interpreted the first {characters} characters of the question only.",
    characters=f"{MAX_QUESTION:,}",
)


@dataclass(frozen=True, slots=True)
class ScoredArticles:
    """Articles with their first scores, the scorer of the second ranking, and the statistics of the caller's scope."""

    articles: list[Article]
    scorer: Scorer
    statistics: LexicalStatistics
    part_scorers: Sequence[Scorer] = ()


class RegulationRanking:
    """The regulation pack of one engine. `mode` is the setting: auto, on or off. Raises `InvalidInput` for others."""

    def __init__(
        self,
        index: Index,
        lexicon: Lexicon | LexiconReader | None = None,
        mode: str = "auto",
        analyzer: Analyzer = Analyzer(),
        collections: CollectionReader | None = None,
    ):
        if mode not in PACK_MODES:
            raise InvalidInput(f"There is no mode {mode[:20]!r} for regulations. Modes: {', '.join(PACK_MODES)}.")
        self._index = index
        self._lexicons = lexicon if isinstance(lexicon, LexiconReader) else LexiconReader(lexicon)
        self._mode = mode
        self._analyzer = analyzer
        self._collections = collections
        self._has_regulations: LRUCache[Hashable, bool] = LRUCache(CACHED_SCOPES)

    @property
    def id(self) -> str:
        """Identifies the mode and the lexicon in cache keys; own entries change the generation of the index."""
        return f"{self._mode}:{self._lexicons.id}"

    @property
    def lexicon(self) -> Lexicon:
        """The lexicon without own entries."""
        return self._lexicons.base

    async def load(self, query: str | None, viewer: Viewer | None = None) -> None:
        """Load the lexicon (.13 s, once per process) before a time limit starts.

        For None and for Korean queries at once, for other languages if the viewer may see a regulation.
        """
        if self._mode == "off" or self._lexicons.is_loaded:
            return
        if query is None or language(query) == "ko" or await self._may_apply(query, viewer):
            await asyncio.to_thread(lambda: self.lexicon)

    async def _may_apply(self, query: str, viewer: Viewer | None) -> bool:
        """Whether a search may use the lexicon; False if the database fails or is late, which the search reports."""
        if self._mode == "on" or language(query) == "und" or viewer is None:
            return self._mode == "on"
        with suppress(TimeoutError, DtragError):
            async with asyncio.timeout(SCOPE_SECONDS * timeout_multiplier()):
                snapshot = self._index.latest or await self._index.snapshot()
                return await self._contains_regulations(snapshot, viewer.resolved(snapshot.taxonomy))
        return False

    def suggestion_rules(self, query: str) -> str:
        """What a model gets that suggests official words for an everyday Korean question; "" for others."""
        return suggestion_rules(query)

    def suggested_words(self, reply: str) -> tuple[str, ...]:
        """The nouns in the model's reply."""
        return words_in(reply)

    def may_name(self, query: str, earlier: Sequence[str] = ()) -> bool:
        """Whether the query may name a provision, by its words alone."""
        can_name = self._mode != "off" and self._collections is not None
        return can_name and (may_refer(query) or may_refer("".join(earlier[-1:])))

    async def named(
        self,
        query: str,
        snapshot: IndexSnapshot,
        scope: Scope,
        *,
        earlier: Sequence[str] = (),
        documents: Ids[str] = (),
    ) -> NamedPassages | None:
        """The provisions in scope that the query names; reads the names of the regulations only if it may name one."""
        if self._collections is None or not self.may_name(query, earlier):
            return None
        if not await self._contains_regulations(snapshot, scope):
            return None
        collection = await self._collections.read(snapshot, scope)
        return await asyncio.to_thread(named_passages, collection, query, earlier, documents)

    async def read(
        self, query: str, snapshot: IndexSnapshot, scope: Scope, suggested: Sequence[str] = ()
    ) -> QuestionReading | None:
        """The query with its official terms; None where the pack does not apply."""
        if self._mode == "off" or language(query) == "und":
            return None
        if self._mode == "auto" and not await self._contains_regulations(snapshot, scope):
            return None
        lexicon = await self._lexicons.read(snapshot)
        if len(query) <= INLINE_QUESTION:
            return with_suggestions(read(query, lexicon, self._analyzer), suggested)
        reading = await asyncio.to_thread(read, query[:MAX_QUESTION], lexicon, self._analyzer)
        reading = with_suggestions(reading, suggested)
        return replace(reading, note=_SHORTENED) if len(query) > MAX_QUESTION else reading

    async def _contains_regulations(self, snapshot: IndexSnapshot, scope: Scope) -> bool:
        key = (snapshot.generation, snapshot.taxonomy.version, scope.nodes)
        cached = self._has_regulations.get(key)
        if cached is None:
            cached = self._has_regulations[key] = await self._index.holds_kind(KIND, scope)
        return cached

    async def ranked(
        self,
        reading: QueryReading,
        passages: Sequence[SearchResult],
        caller: Scope,
        imagined: Mapping[str, float] = NO_QUESTIONS,
    ) -> PackRanking:
        """The best piece of each article, in the order of the second ranking.

        `hybrid_score` becomes the share of the highest score that this ranking can give, in [0, 1].
        """
        if not isinstance(reading, QuestionReading) or not _about_regulations(passages):
            return PackRanking(list(passages))
        pieces = by_article(passages)
        scored = await self.scored(reading, pieces, caller, imagined)
        if (
            len(reading.question) <= INLINE_QUESTION
            and sum(len(piece) for article in scored.articles for piece in article.pieces) <= INLINE_TEXT
        ):
            return _ranking(reading, scored, pieces)
        return await asyncio.to_thread(_ranking, reading, scored, pieces)

    async def scored(
        self,
        reading: QuestionReading,
        pieces: Mapping[str, Sequence[SearchResult]],
        caller: Scope,
        imagined: Mapping[str, float] = NO_QUESTIONS,
    ) -> ScoredArticles:
        """The articles with their first scores, and the scorer of the second ranking."""
        first_scores = {
            key: max(piece.bm25_score for piece in passages) * _kind_factor(passages[0], reading.question)
            for key, passages in pieces.items()
        }
        documents = {key: passages[0].chunk_id.rpartition(":")[0] for key, passages in pieces.items()}
        document_scores = regulation_scores(first_scores, documents)
        articles = [
            _article(key, passages, first_scores[key], document_scores[documents[key]], imagined)
            for key, passages in pieces.items()
        ]
        terms = _ranking_terms(reading, articles)
        statistics = await self._index.statistics(terms, caller)
        weights = _idf(terms, statistics)
        part_scorers = [Scorer(part, weights) for part in reading.parts]
        return ScoredArticles(articles, Scorer(reading, weights), statistics, part_scorers)

    async def notes(
        self, query: str, passages: Sequence[SearchResult], caller: Scope
    ) -> Mapping[str, Sequence[Statement]]:
        """Chunk id -> amendments, missing dates and transitional provisions of the regulation, for the reader."""
        if self._collections is None:
            return {}
        snapshot = self._index.latest or await self._index.snapshot()
        return await notes_on(
            query, passages, partial(self._collections.editions, snapshot=snapshot, scope=caller), caller
        )

    def of_day(self, passage: SearchResult, day: date) -> SearchResult:
        """The passage without the paragraphs of an article that were amended after the day."""
        return of_day(passage, day)

    async def changed(
        self, passages: Sequence[SearchResult], snapshot: IndexSnapshot, caller: Scope
    ) -> Mapping[str, Sequence[ChangedText]]:
        """Chunk id -> what of these passages of today is not the text of the caller's day, which is not stored."""
        if self._collections is None:
            return {}
        return await changed_texts(self._index, self._collections.store, passages, caller, snapshot.taxonomy)

    async def prepare(self, snapshot: IndexSnapshot, caller: Scope) -> None:
        """Read the names and articles that the caller may see, once for each state of the index."""
        if self._collections is not None:
            await self._collections.read(snapshot, caller)

    async def cited(
        self, passages: Sequence[SearchResult], snapshot: IndexSnapshot, caller: Scope
    ) -> list[CitedProvision]:
        """The provisions that the first passages cite, in one or two hops, as far as `caller` may see them."""
        if self._collections is None:
            return []
        collection = await self._collections.read(snapshot, caller)
        return await follow_citations(self._index, collection, passages, snapshot, caller)

    async def followed(
        self, passages: Sequence[SearchResult], snapshot: IndexSnapshot, caller: Scope
    ) -> list[FollowedCitation]:
        """The citations in the texts of these passages, as far as `caller` may see what they cite."""
        if self._collections is None:
            return []
        collection = await self._collections.read(snapshot, caller)
        return await asyncio.to_thread(followed_citations, collection, passages)


def _about_regulations(passages: Sequence[SearchResult]) -> bool:
    """Whether at least half of the first passages are of regulations; other searches keep their order."""
    first = passages[:SAMPLED_PASSAGES]
    return 2 * sum(bool(passage.metadata.get("regulation")) for passage in first) >= max(1, len(first))


def _ranking(
    reading: QuestionReading, scored: ScoredArticles, pieces: Mapping[str, Sequence[SearchResult]]
) -> PackRanking:
    """The second ranking: about .1 ms for each article; long questions and texts take longer."""
    order = _numbered_first(reranked(scored.scorer, scored.articles, PACK_ARTICLES), scored.articles, reading)
    if reading.parts:
        # How near imagined questions are to the whole question says nothing about one part of it.
        articles = [replace(article, imagined=None) for article in scored.articles]
        of_parts = [reranked(scorer, articles, PACK_ARTICLES) for scorer in scored.part_scorers]
        order = with_best_of_parts(order, of_parts)
    by_key = {article.key: article for article in scored.articles}
    governs = governing(reading.question, [by_key[key] for key, _ in order])
    order = [(key, order[0][1] if key in governs else score) for key, score in raised(order, governs)]
    best_pieces = [
        best.with_scores(best.bm25_score, best.vector_score, score)
        for best, score in ((_best_piece(pieces[key]), score) for key, score in order)
    ]
    findings = _findings(reading, scored, [key for key, _ in order])
    return PackRanking(best_pieces, replace(findings, governed=bool(governs)))


def _findings(reading: QuestionReading, scored: ScoredArticles, order: Sequence[str]) -> PackFindings:
    """What the ranking says about the question: signals for the confidence, and its official terms."""
    ceiling = LexicalQuery.of(reading.own, scored.statistics).ceiling
    lexical = {article.key: article.score * ceiling for article in scored.articles}
    by_key = {article.key: article for article in scored.articles}
    rare_term = idf(1, max(1, scored.statistics.chunks)) * (K1 + 1.0)
    ranked = [by_key[key] for key in order]
    parts = tuple(part.question for part in reading.parts)
    return PackFindings(signals(reading, ranked, lexical, scored.scorer, rare_term), reading.lexicon_terms, parts)


def _numbered_first(
    order: Sequence[tuple[str, float]], articles: Sequence[Article], reading: QuestionReading
) -> list[tuple[str, float]]:
    """The order; for a question that is only an article number (제15조), the articles of that number come first."""
    question = reading.question
    number = article_number(question.strip()) if ARTICLE_NUMBER.fullmatch(question.strip()) else None
    if number is None:
        return list(order)
    numbered = {article.key for article in articles if article_number(article.label) == number}
    first = [(key, 1.0) for key, _ in order if key in numbered]
    return first + [(key, score) for key, score in order if key not in numbered]


def by_article(passages: Sequence[SearchResult]) -> dict[str, list[SearchResult]]:
    """Article -> its pieces, in the order of their first piece; passages of other documents are their own article."""
    pieces: dict[str, list[SearchResult]] = {}
    for passage in passages:
        metadata = passage.metadata
        document = passage.chunk_id.rpartition(":")[0]
        article = metadata.get("article")
        key = (
            f"{document}:{metadata.get('kind')}:{article}:{metadata.get('occurrence', 1)}"
            if article and metadata.get("regulation")
            else passage.chunk_id
        )
        pieces.setdefault(key, []).append(passage)
    return pieces


def _best_piece(pieces: Sequence[SearchResult]) -> SearchResult:
    if len(pieces) == 1:
        return pieces[0]
    return max(pieces, key=lambda piece: (piece.bm25_score + piece.vector_score, piece.chunk_id))


def _kind_factor(passage: SearchResult, question: str) -> float:
    return kind_factor(str(passage.metadata.get("kind", "article")), str(passage.metadata.get("article", "")), question)


def _article(
    key: str,
    pieces: Sequence[SearchResult],
    score: float,
    regulation_score: float,
    imagined: Mapping[str, float],
) -> Article:
    first = pieces[0]
    metadata = first.metadata
    breadcrumb = metadata.get("breadcrumb") or ()
    divisions = " ".join(str(part) for part in breadcrumb[1:-1]) if isinstance(breadcrumb, (list, tuple)) else ""
    regulation = str(metadata.get("regulation") or "")
    return Article(
        key=key,
        regulation=regulation or first.title,
        label=str(metadata.get("article") or ""),
        title=str(metadata.get("article_title") or ("" if regulation else first.title)),
        divisions=divisions,
        pieces=tuple(piece.text for piece in sorted(pieces, key=lambda piece: _ordinal(piece.chunk_id)))
        if len(pieces) > 1
        else (first.text,),
        kind=str(metadata.get("kind") or "article") if regulation else "article",
        score=score,
        regulation_score=regulation_score,
        similarity=max((piece.vector_score for piece in pieces if piece.vector_score > 0.0), default=None),
        imagined=max((imagined[piece.chunk_id] for piece in pieces if piece.chunk_id in imagined), default=None),
    )


def _ordinal(chunk_id: str) -> int:
    return int(chunk_id.rpartition(":")[2])


def _ranking_terms(reading: QuestionReading, articles: Sequence[Article]) -> list[int]:
    """The terms whose document frequencies the features need: those of the question and of all headings."""
    terms = set(reading.term_ids())
    headings = {heading for article in articles for heading in (article.regulation, article.title)}
    return sorted(terms.union(*map(term_ids, headings)))


def _idf(terms: Sequence[int], statistics: LexicalStatistics) -> dict[int, float]:
    """Term id -> idf in the caller's scope; without terms that no passage contains."""
    frequencies = statistics.document_frequencies(terms)
    of_frequency = {frequency: idf(frequency, max(1, statistics.chunks)) for frequency in set(frequencies)}
    return {term: of_frequency[frequency] for term, frequency in zip(terms, frequencies, strict=True) if frequency}


def named_passages(
    collection: Collection, question: str, earlier: Sequence[str] = (), documents: Ids[str] = ()
) -> NamedPassages | None:
    """The provisions of the collection that the question names; None when it names nothing."""
    named = named_provisions(question, collection, earlier, documents)
    if named is None:
        return None
    regulation = named.regulation
    label = named.absent.removeprefix(f"{regulation.name} ") if regulation is not None else ""
    is_deleted = regulation is not None and any(provision.label == label for provision in regulation.deleted)
    return NamedPassages(
        question=named.question,
        names=tuple(source.name for source in named.sources),
        chunk_ids=tuple(dict.fromkeys(key for source in named.sources for key in source.chunk_ids)),
        paragraph=named.paragraph,
        asks_only=named.asks_only,
        choices=tuple(_with_title(source) for source in named.choices),
        absent=named.absent,
        existing=provision_names(regulation) if regulation is not None else "",
        deleted=is_deleted,
        deleted_on=regulation.deleted_on.get(label) if regulation is not None else None,
    )


def _with_title(source: CitableProvision) -> str:
    title = source.provisions[0].title
    return f"{source.name}({title})" if title else source.name
