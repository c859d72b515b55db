"""Search in Korean regulations: everyday words are read as official ones, and articles are ranked a second time.

The pack (`packs/regulation_ko`) is pure; here it meets the engine: which searches use it, and the passages it ranks.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from dtrag.core.access.scope import Scope
from dtrag.core.documents import SearchResult
from dtrag.core.ranking.bm25 import LexicalStatistics, idf
from dtrag.core.text.analysis import Analyzer, language, term_id, terms
from dtrag.errors import InvalidInput
from dtrag.packs.regulation_ko.concepts import Reading, read
from dtrag.packs.regulation_ko.lexicon import Lexicon, built_in
from dtrag.packs.regulation_ko.ranking import Article, Scorer, kind_factor, regulation_scores, reranked
from dtrag.ports import Index, IndexSnapshot, QueryReading

KIND = "regulation"
"""`metadata["kind"]` of documents that the pack has split."""
RANKED = 50
"""Articles that are ranked a second time."""
FIRST = 10
"""Passages that tell what a search is about."""
MODES = ("auto", "on", "off")
MOST_SCOPES = 256


class RegulationRanking:
    """The regulation pack for one engine. `mode` is the setting: auto, on or off. Raises `InvalidInput` for others."""

    def __init__(
        self, index: Index, lexicon: Lexicon | None = None, mode: str = "auto", analyzer: Analyzer = Analyzer()
    ):
        if mode not in MODES:
            raise InvalidInput(f"There is no mode {mode[:20]!r} for regulations. Modes: {', '.join(MODES)}.")
        self._index = index
        self._lexicon = lexicon
        self._mode = mode
        self._analyzer = analyzer
        self._present: dict[Hashable, bool] = {}

    @property
    def id(self) -> str:
        """What tells these results from those of another lexicon or mode."""
        return f"{self._mode}:{len(self.lexicon.entries)}"

    @property
    def lexicon(self) -> Lexicon:
        """The lexicon in use."""
        if self._lexicon is None:
            self._lexicon = built_in()
        return self._lexicon

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
        pieces = _by_article(passages)
        first = {
            key: max(piece.hybrid_score for piece in found) * _factor(found[0], reading.question)
            for key, found in pieces.items()
        }
        documents = {key: found[0].chunk_id.rpartition(":")[0] for key, found in pieces.items()}
        of_regulation = regulation_scores(first, documents)
        articles = [_article(key, found, first[key], of_regulation[documents[key]]) for key, found in pieces.items()]
        needed = _needed(reading, articles)
        scorer = Scorer(reading, _idf(needed, await self._index.statistics(needed, caller)))
        order = reranked(scorer, articles, RANKED)
        return [
            replace(max(pieces[key], key=lambda piece: (piece.hybrid_score, piece.chunk_id)), hybrid_score=score)
            for key, score in order
        ]


def _about_regulations(passages: Sequence[SearchResult]) -> bool:
    """Whether at least half of the first passages are of regulations; other documents keep the order of the search."""
    first = passages[:FIRST]
    return 2 * sum(bool(passage.metadata.get("regulation")) for passage in first) >= max(1, len(first))


def _by_article(passages: Sequence[SearchResult]) -> dict[str, list[SearchResult]]:
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
