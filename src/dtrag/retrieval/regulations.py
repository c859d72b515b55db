"""Search in Korean regulations: everyday words are read as official ones, and articles are ranked a second time.

The pack (`packs/regulation_ko`) is pure; here it meets the engine: which searches use it, and the passages it ranks.
`Regulations` is what an open app offers about them: search, one article whole, and what they cite.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace

from dtrag.core.access import confinement
from dtrag.core.access.scope import Scope, Viewer
from dtrag.core.documents import SearchResult
from dtrag.core.provisions import ProvisionCitation, RegulationSummary, RegulationText, ShownProvision
from dtrag.core.ranking.bm25 import LexicalStatistics, idf
from dtrag.core.text.analysis import Analyzer, language, term_id, terms
from dtrag.current_app import active
from dtrag.errors import InvalidInput, NotFound
from dtrag.packs.regulation_ko.catalog import article_number
from dtrag.packs.regulation_ko.collection import BETWEEN, Collection, Source
from dtrag.packs.regulation_ko.concepts import Reading, read
from dtrag.packs.regulation_ko.lexicon import Lexicon, built_in
from dtrag.packs.regulation_ko.ranking import Article, Scorer, kind_factor, regulation_scores, reranked
from dtrag.packs.regulation_ko.top_k import AdaptiveTopKSelector
from dtrag.ports import CitedProvision, Index, IndexSnapshot, QueryReading, RegulationStore
from dtrag.retrieval.engine import HybridSearchEngine
from dtrag.retrieval.regulation_collection import READ_AT_ONCE, CollectionReader
from dtrag.retrieval.regulation_hops import citations_from
from dtrag.retrieval.request import CANDIDATES, MAX_TOP_K, whole

KIND = "regulation"
"""`metadata["kind"]` of documents that the pack has split."""
RANKED = 50
"""Articles that are ranked a second time."""
FIRST = 10
"""Passages that tell what a search is about."""
MODES = ("auto", "on", "off")
MOST_SCOPES = 256
_ARTICLE_ONLY = re.compile(r"제\s*\d{1,4}\s*조(?:\s*의\s*\d{1,3})?")
LEAST_LISTED = 10
"""Articles of a list of results for which no number was given, where there are as many."""
PIECES_OF_AN_ARTICLE = 4
"""Passages that are asked for in the place of each article where the pack does not join the pieces of one."""


class RegulationRanking:
    """The regulation pack for one engine. `mode` is the setting: auto, on or off. Raises `InvalidInput` for others."""

    def __init__(
        self,
        index: Index,
        lexicon: Lexicon | None = None,
        mode: str = "auto",
        analyzer: Analyzer = Analyzer(),
        collections: CollectionReader | None = None,
    ):
        if mode not in MODES:
            raise InvalidInput(f"There is no mode {mode[:20]!r} for regulations. Modes: {', '.join(MODES)}.")
        self._index = index
        self._lexicon = lexicon
        self._mode = mode
        self._analyzer = analyzer
        self._collections = collections
        self._present: dict[Hashable, bool] = {}

    @property
    def id(self) -> str:
        """What tells these results from those of another lexicon or mode."""
        return f"{self._mode}:{'built-in' if self._lexicon is None else len(self._lexicon.entries)}"

    @property
    def lexicon(self) -> Lexicon:
        """The lexicon in use."""
        return built_in() if self._lexicon is None else self._lexicon

    async def load(self, query: str | None) -> None:
        """Read the lexicon (.2 s once a process) before the time of a question begins: for Korean ones, or for None."""
        if self._mode != "off" and (query is None or language(query) == "ko"):
            await asyncio.to_thread(lambda: self.lexicon)

    async def read(self, query: str, snapshot: IndexSnapshot, scope: Scope) -> Reading | None:
        """The query as the pack reads it; None where the pack does not apply."""
        if self._mode == "off" or language(query) == "und":
            return None
        if self._mode == "auto" and not await self._holds(snapshot, scope):
            return None
        return read(query, self.lexicon, self._analyzer)

    async def _holds(self, snapshot: IndexSnapshot, scope: Scope) -> bool:
        """Whether a regulation is in the scope, asked once for each state of the index."""
        key = (snapshot.generation, snapshot.taxonomy.version, scope.nodes)
        if key not in self._present:
            if len(self._present) >= MOST_SCOPES:
                self._present.clear()
            self._present[key] = await self._index.holds_kind(KIND, scope)
        return self._present[key]

    async def ranked(
        self, reading: QueryReading, passages: Sequence[SearchResult], caller: Scope
    ) -> list[SearchResult]:
        """The passages, each article once as its best piece, in the order of the second ranking.

        `hybrid_score` becomes the share of the reachable score of that ranking, in [0, 1].
        """
        if not isinstance(reading, Reading) or not _about_regulations(passages):
            return list(passages)
        pieces = by_article(passages)
        articles, scorer = await self.scored(reading, pieces, caller)
        order = _labelled_first(reranked(scorer, articles, RANKED), articles, reading.question)
        return [
            replace(max(pieces[key], key=lambda piece: (piece.hybrid_score, piece.chunk_id)), hybrid_score=score)
            for key, score in order
        ]

    async def scored(
        self, reading: Reading, pieces: Mapping[str, Sequence[SearchResult]], caller: Scope
    ) -> tuple[list[Article], Scorer]:
        """The articles with their first scores, and what makes the features of the second ranking."""
        first = {
            key: max(piece.hybrid_score for piece in found) * _factor(found[0], reading.question)
            for key, found in pieces.items()
        }
        documents = {key: found[0].chunk_id.rpartition(":")[0] for key, found in pieces.items()}
        of_regulation = regulation_scores(first, documents)
        articles = [_article(key, found, first[key], of_regulation[documents[key]]) for key, found in pieces.items()]
        needed = _needed(reading, articles)
        return articles, Scorer(reading, _idf(needed, await self._index.statistics(needed, caller)))

    async def prepare(self, snapshot: IndexSnapshot, caller: Scope) -> None:
        """Read the names and articles that the caller may see, which is done once for each state of the index."""
        if self._collections is not None:
            await self._collections.read(snapshot, caller)

    async def cited(
        self, passages: Sequence[SearchResult], snapshot: IndexSnapshot, caller: Scope
    ) -> list[CitedProvision]:
        """What the first of the passages cite, in one or two hops, as far as `caller` may see it."""
        if self._collections is None:
            return []
        collection = await self._collections.read(snapshot, caller)
        return await citations_from(self._index, collection, passages, snapshot, caller)


class Regulations:
    """The regulations of an app. Reads in `scope`; without one in the owner's, inside a run in that of the run.

    What is cited in a branch outside the scope is `missing`, as what does not exist.
    """

    def __init__(
        self, engine: HybridSearchEngine, index: Index, store: RegulationStore, collections: CollectionReader
    ) -> None:
        self._engine = engine
        self._index = index
        self._store = store
        self._collections = collections
        self._selector = AdaptiveTopKSelector()

    async def search(self, query: str, top_k: int | None = None, *, scope: Viewer | None = None) -> list[SearchResult]:
        """The best articles for a question, each once. Their `metadata` has `regulation`, `article`, `code`, `kind`.

        Without `top_k` their number depends on the question, at least `LEAST_LISTED`. Raises what the engine raises.
        """
        wanted = max(LEAST_LISTED, self._selector.select_top_k(query)) if top_k is None else whole("top_k", top_k)
        results, _ = await self._engine.search(
            query,
            min(MAX_TOP_K, PIECES_OF_AN_ARTICLE * wanted),
            bm25_candidates=CANDIDATES,
            vector_candidates=CANDIDATES,
            scope=scope,
        )
        return [pieces[0] for pieces in by_article(results).values()][:wanted]

    async def regulations(self, *, scope: Viewer | None = None) -> list[RegulationSummary]:
        """The regulations, by name."""
        _, _, collection = await self._collection(scope)
        return [
            RegulationSummary(
                regulation.name,
                regulation.code,
                str(regulation.document_id),
                regulation.count("article"),
                regulation.count("appendix"),
                regulation.count("addendum"),
            )
            for regulation in collection.regulations
        ]

    async def show(self, reference: str, *, scope: Viewer | None = None) -> ShownProvision:
        """The whole text of a provision such as `학칙 제21조`, `학칙 별표 1` or `학칙 부칙`, with its citations.

        Raises `NotFound` with what there is instead, and `InvalidInput` for a reference without an article.
        """
        snapshot, within, collection = await self._collection(scope)
        source = collection.find(reference)
        text = await self._text(source, within)
        first_passage = f"{source.regulation.document_id}:{source.provisions[0].first}"
        passage = (await self._index.fetch([first_passage], within, snapshot.taxonomy)).get(first_passage)
        if passage is None:
            raise NotFound(f"{source.name} was replaced meanwhile. Try again.")
        texts = _texts(source, text)
        found = await asyncio.to_thread(lambda: tuple(collection.citations_of(source, texts)))
        first = source.provisions[0]
        return ShownProvision(
            name=source.name,
            regulation=source.regulation.name,
            code=source.regulation.code,
            article=first.label,
            title=first.title if len(source.provisions) == 1 else "",
            kind=first.kind,
            text=BETWEEN.join(texts),
            document_id=str(source.regulation.document_id),
            source_url=passage.source_url,
            taxonomy_path=tuple(passage.taxonomy_path),
            spans=tuple((provision.start, provision.end) for provision in source.provisions),
            citations=found,
        )

    async def citations(self, regulation: str | None = None, *, scope: Viewer | None = None) -> list[ProvisionCitation]:
        """What the provisions of one regulation cite, or those of all; in the order of the text.

        Raises `NotFound` for an unknown name.
        """
        _, within, collection = await self._collection(scope)
        only = collection.named(regulation) if regulation is not None else None
        by_document: dict[uuid.UUID, list[Source]] = {}
        for source in collection.sources.values():
            if only is None or source.regulation.name == only.name:
                by_document.setdefault(source.regulation.document_id, []).append(source)
        keys, found = list(by_document), list[ProvisionCitation]()
        for first in range(0, len(keys), READ_AT_ONCE):
            for text in await self._store.read(keys[first : first + READ_AT_ONCE], within):
                found += await asyncio.to_thread(_cited, collection, by_document[text.document_id], text)
        return found

    async def _collection(self, scope: Viewer | None) -> tuple[IndexSnapshot, Scope, Collection]:
        snapshot = await self._index.snapshot()
        within = confinement.bounded(scope).resolved(snapshot.taxonomy)
        return snapshot, within, await self._collections.read(snapshot, within)

    async def _text(self, source: Source, within: Scope) -> RegulationText:
        """The regulation as the collection knows it. Raises `NotFound` when it was replaced since."""
        for text in await self._store.read([source.regulation.document_id], within):
            if text.provisions == source.regulation.provisions:
                return text
        raise NotFound(f"{source.regulation.name} was replaced meanwhile. Try again.")


class EnhancedSearchService:
    """Search in the regulations of `regulations`, or without it in those of the open app."""

    def __init__(self, regulations: Regulations | None = None) -> None:
        self._regulations = regulations

    async def search(self, query: str, top_k: int | None = None, *, scope: Viewer | None = None) -> list[SearchResult]:
        """As `Regulations.search`. Raises `NoActiveApp` where no app is open."""
        regulations = self._regulations if self._regulations is not None else active().regulations
        return await regulations.search(query, top_k, scope=scope)


async def legacy_search(query: str, top_k: int = 10, *, scope: Viewer | None = None) -> list[SearchResult]:
    """What the open app finds without the regulation pack: to compare with `EnhancedSearchService`."""
    app = active()
    engine = HybridSearchEngine(
        app.embedder, app.index, enable_caching=False, normalization="absolute", analyzer=app.analyzer
    )
    results, _ = await engine.search(
        query, top_k, bm25_candidates=CANDIDATES, vector_candidates=CANDIDATES, scope=scope
    )
    return results


def _texts(source: Source, regulation: RegulationText) -> list[str]:
    return [regulation.text[provision.start : provision.end] for provision in source.provisions]


def _cited(collection: Collection, sources: Iterable[Source], regulation: RegulationText) -> list[ProvisionCitation]:
    """The citations of one regulation's provisions; none when it was replaced since the collection was read."""
    return [
        citation
        for source in sources
        if source.regulation.provisions == regulation.provisions
        for citation in collection.citations_of(source, _texts(source, regulation))
    ]


def _about_regulations(passages: Sequence[SearchResult]) -> bool:
    """Whether at least half of the first passages are of regulations; other documents keep the order of the search."""
    first = passages[:FIRST]
    return 2 * sum(bool(passage.metadata.get("regulation")) for passage in first) >= max(1, len(first))


def _labelled_first(
    order: Sequence[tuple[str, float]], articles: Sequence[Article], question: str
) -> list[tuple[str, float]]:
    """The order, with the articles first that a question asks for which is nothing but 제15조."""
    number = article_number(question.strip()) if _ARTICLE_ONLY.fullmatch(question.strip()) else None
    if number is None:
        return list(order)
    meant = {article.key for article in articles if article_number(article.label) == number}
    first = [(key, 1.0) for key, _ in order if key in meant]
    return first + [(key, score) for key, score in order if key not in meant]


def by_article(passages: Sequence[SearchResult]) -> dict[str, list[SearchResult]]:
    """Article -> its pieces, in the order of the first of them; other passages stand for themselves."""
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


def _factor(passage: SearchResult, question: str) -> float:
    return kind_factor(str(passage.metadata.get("kind", "article")), str(passage.metadata.get("article", "")), question)


def _article(key: str, pieces: Sequence[SearchResult], score: float, regulation_score: float) -> Article:
    best = pieces[0]
    metadata = best.metadata
    breadcrumb = metadata.get("breadcrumb") or ()
    divisions = " ".join(str(part) for part in breadcrumb[1:-1]) if isinstance(breadcrumb, (list, tuple)) else ""
    regulation = str(metadata.get("regulation") or "")
    return Article(
        key=key,
        regulation=regulation or best.title,
        label=str(metadata.get("article") or ""),
        title=str(metadata.get("article_title") or ("" if regulation else best.title)),
        divisions=divisions,
        text="\n".join(piece.text for piece in sorted(pieces, key=lambda piece: _ordinal(piece.chunk_id))),
        kind=str(metadata.get("kind") or "article") if regulation else "article",
        score=score,
        regulation_score=regulation_score,
    )


def _ordinal(chunk_id: str) -> int:
    return int(chunk_id.rpartition(":")[2])


def _needed(reading: Reading, articles: Sequence[Article]) -> list[int]:
    """The terms whose frequency the features need: those of the question and of all headings."""
    headings = {term_id(term) for article in articles for term in terms(f"{article.regulation} {article.title}")}
    return sorted({*reading.term_ids(), *headings})


def _idf(needed: Sequence[int], statistics: LexicalStatistics) -> dict[int, float]:
    """Term id -> idf in the caller's scope; terms of no passage are not in."""
    frequencies = ((term, statistics.document_frequency(term)) for term in needed)
    return {term: idf(frequency, max(1, statistics.chunks)) for term, frequency in frequencies if frequency}
