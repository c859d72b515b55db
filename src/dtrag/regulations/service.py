"""The regulations of an open app: search, outlines, the whole text of a provision, citations and their verification."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Hashable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import date

from cachetools import LRUCache

from dtrag.core.access import confinement
from dtrag.core.access.scope import Scope, Viewer
from dtrag.core.documents import SearchResult
from dtrag.core.editions import ChangedText, changed_later, parse_date
from dtrag.core.provisions import (
    EditionDays,
    OutlinedProvision,
    Provision,
    ProvisionCitation,
    RegulationOutline,
    RegulationSummary,
    RegulationText,
    ShownProvision,
    WholeRegulation,
)
from dtrag.core.regulation_changes import RegulationDiff, StaleCitation
from dtrag.core.text.analysis import clean
from dtrag.core.verification import Verification
from dtrag.current_app import active
from dtrag.errors import InvalidInput, NotFound
from dtrag.ports import DocumentIndex, IndexSnapshot, RegulationStore, valid_day
from dtrag.regulations.changes import compare_days, stale_citations
from dtrag.regulations.citation_hops import hops_from
from dtrag.regulations.collection_reader import READ_AT_ONCE, CollectionReader
from dtrag.regulations.dated_texts import changed_texts
from dtrag.regulations.korean.amendments import preface, text_of_day
from dtrag.regulations.korean.collection import BETWEEN, NO_PASSAGE, CitableProvision, Collection, Regulation, details
from dtrag.regulations.korean.question_concepts import AdaptiveTopKSelector
from dtrag.regulations.korean.references import find_provision
from dtrag.regulations.korean.verification.check import MAX_TEXT, read_text
from dtrag.regulations.lexicon import LexiconReader
from dtrag.regulations.pack import by_article
from dtrag.regulations.whole_text import in_force, read_whole
from dtrag.retrieval.engine import HybridSearchEngine
from dtrag.retrieval.multihop import MAX_HOPS, MIN_RELEVANCE, MultiHopResult
from dtrag.retrieval.request import CANDIDATES, MAX_TOP_K, is_earlier, passage_count, query_text
from dtrag.retrieval.search_runner import missing_editions
from dtrag.settings import timeout_multiplier

AsOf = date | str | None
PASSAGES_PER_ARTICLE = 4
"""Passages that are requested per article, for the case that the pack does not join the pieces of an article."""
PASSAGES_AT_ONCE = 1_000
"""Passages whose headings are read at once for an outline."""
CACHED_CITATION_LISTS = 8
"""Lists of citations that are cached for clients that read page by page: a book of 5,000 articles takes a second."""


class Regulations:
    """The regulations of an app. `scope` defaults to the owner's, and inside a run to that of the run.

    `as_of` (2024-03-01) is the day whose editions are read; None: today's.

    A citation of a provision outside the scope is `missing`, like one of a provision that does not exist.
    """

    def __init__(
        self,
        engine: HybridSearchEngine,
        index: DocumentIndex,
        store: RegulationStore,
        collections: CollectionReader,
        lexicon: LexiconReader,
    ) -> None:
        self.lexicon = lexicon
        self._engine = engine
        self._index = index
        self._store = store
        self._collections = collections
        self._selector = AdaptiveTopKSelector()
        self._citations: LRUCache[Hashable, Sequence[ProvisionCitation]] = LRUCache(CACHED_CITATION_LISTS)
        self._stale: LRUCache[Hashable, Sequence[StaleCitation]] = LRUCache(CACHED_CITATION_LISTS)

    async def search(
        self, query: str, top_k: int | None = None, *, scope: Viewer | None = None, as_of: AsOf = None
    ) -> list[SearchResult]:
        """The best articles for a question, each once. Their `metadata` has `regulation`, `article`, `code`, `kind`.

        Without `top_k` their number depends on the question: 5 to 20, half of that when the search took long. Raises
        the errors of the engine.
        """
        started = time.perf_counter()
        requested_k = self._selector.select_top_k(query_text(query)) if top_k is None else passage_count("top_k", top_k)
        results, _ = await self._engine.search(
            query,
            min(MAX_TOP_K, PASSAGES_PER_ARTICLE * requested_k),
            bm25_candidates=CANDIDATES,
            vector_candidates=CANDIDATES,
            scope=scope,
            as_of=as_of,
        )
        if top_k is None:
            requested_k = self._selector.select_top_k(
                query, elapsed=(time.perf_counter() - started) / timeout_multiplier()
            )
        return [pieces[0] for pieces in by_article(results).values()][:requested_k]

    async def regulations(
        self, name: str | None = None, *, scope: Viewer | None = None, as_of: AsOf = None
    ) -> list[RegulationSummary]:
        """The regulations, by name; with `name` only that one. Raises `NotFound` for an unknown name."""
        _, within, collection = await self._collection(scope, as_of)
        async with self._explaining_absence(within, collection):
            regulations = collection.regulations if name is None else [collection.named(name)]
        return [
            RegulationSummary(
                regulation.name,
                regulation.code,
                str(regulation.document_id),
                regulation.count("article"),
                regulation.count("appendix"),
                regulation.count("addendum"),
                regulation.headings,
            )
            for regulation in regulations
        ]

    async def exist(self, *, scope: Viewer | None = None) -> bool:
        """Whether any document in scope is a regulation, of whatever day."""
        snapshot = await self._index.snapshot()
        within = confinement.bounded(scope).resolved(snapshot.taxonomy)
        return await self._index.holds_kind("regulation", within)

    async def show(self, reference: str, *, scope: Viewer | None = None, as_of: AsOf = None) -> ShownProvision:
        """The whole text of a provision such as `학칙 제21조`, `학칙 별표 1` or `학칙 부칙`, with its citations.

        Of a deleted one, what remains: `삭제 <2020. 1. 1.>`.

        Raises `NotFound` with the existing provisions or names, and `InvalidInput` for a reference without an article.
        """
        snapshot, within, collection = await self._collection(scope, as_of)
        async with self._explaining_absence(within, collection, reference, snapshot):
            source = find_provision(reference, collection)
            _require_text_of_day(source, within)
        [text] = await self._texts([source.regulation], within)
        valid = source.provisions if not source.is_deleted else source.regulation.provisions
        first_passage = f"{source.regulation.document_id}:{valid[0].first if valid else 0}"
        passage = (await self._index.fetch([first_passage], within, snapshot.taxonomy)).get(first_passage)
        if passage is None:
            raise NotFound(f"{source.name} was replaced during the request. Try again.")
        texts = _texts(source, text, within.as_of)
        citations, known = await asyncio.to_thread(
            lambda: (tuple(collection.citations_of(source, texts)), details(collection, source, text))
        )
        first = source.provisions[0]
        is_dated = source.regulation.work_id is not None and text.effective_from is not None
        editions = await self._store.editions([text.document_id], within) if is_dated else []
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
            citations=citations,
            deleted=source.is_deleted,
            amendments=known.amendments,
            repealed=known.repealed,
            effective_dates=known.effective_dates,
            effective_date=known.effective_date,
            effective_from=passage.metadata.get("effective_from"),
            superseded_from=passage.metadata.get("superseded_from"),
            editions=tuple(edition.effective_from.isoformat() for edition in editions if edition.effective_from),
            names=known.names,
            named_by=known.named_by,
        )

    async def outline(self, name: str, *, scope: Viewer | None = None, as_of: AsOf = None) -> RegulationOutline:
        """The provisions of a regulation under their chapters and sections, and its editions. Raises `NotFound`."""
        _, within, collection = await self._collection(scope, as_of)
        async with self._explaining_absence(within, collection):
            regulation = collection.named(name)
        above = await _headings(regulation, self._index, within)
        provisions: list[OutlinedProvision] = []
        headings: tuple[str, ...] = ()  # a deleted provision stands under those of the one before it
        for provision in sorted((*regulation.provisions, *regulation.deleted), key=lambda provision: provision.start):
            headings = above.get(provision.first, headings)
            provisions.append(_outlined(regulation, provision, headings))
        return RegulationOutline(
            regulation.name,
            regulation.code,
            str(regulation.document_id),
            tuple(provisions),
            await self._edition_days(regulation, within),
        )

    async def text(self, name: str, *, scope: Viewer | None = None, as_of: AsOf = None) -> WholeRegulation:
        """The text of a regulation, provision by provision, with its citations and editions.

        At most `LONGEST_WHOLE_TEXT` characters: further provisions come without their texts. Raises `NotFound`.
        """
        _, within, collection = await self._collection(scope, as_of)
        async with self._explaining_absence(within, collection):
            regulation = collection.named(name)
        ordered = in_force(collection, regulation, await _headings(regulation, self._index, within))
        editions = {placed.edition.document_id: placed.edition for placed in ordered}
        editions[regulation.document_id] = regulation
        texts = {str(text.document_id): text for text in await self._texts(list(editions.values()), within)}
        read = await asyncio.to_thread(read_whole, collection, ordered, texts, within.as_of)
        shown = texts[str(regulation.document_id)]
        days = _edition(shown)
        return WholeRegulation(
            name=regulation.name,
            code=regulation.code,
            document_id=days.document_id,
            preface=preface(shown.text),
            effective_from=days.effective_from,
            superseded_from=days.superseded_from,
            provisions=tuple(read),
            editions=await self._edition_days(regulation, within),
        )

    async def _edition_days(self, regulation: Regulation, within: Scope) -> tuple[EditionDays, ...]:
        is_dated = regulation.work_id is not None
        editions = await self._store.editions([regulation.document_id], within) if is_dated else []
        return tuple(_edition(edition) for edition in editions)

    async def citations(
        self,
        regulation: str | None = None,
        *,
        to: str | None = None,
        kind: str | None = None,
        scope: Viewer | None = None,
        as_of: AsOf = None,
    ) -> list[ProvisionCitation]:
        """The citations in one regulation, or in all of them, in the order of the text.

        With `to` only those of that provision (`학칙 제21조`) in others: who cites it; with `kind` only those of that
        kind (`missing`). Raises `NotFound` for an unknown name.
        """
        _, within, collection = await self._collection(scope, as_of)
        only = collection.named(regulation) if regulation is not None else None
        cached = await self._citations_of(within, collection, only)
        target = find_provision(to, collection).name if to is not None else None
        return [
            citation
            for citation in cached
            if (target is None or (target in citation.targets and citation.source != target))
            and (kind is None or citation.kind == kind)
        ]

    async def _citations_of(
        self, within: Scope, collection: Collection, only: Regulation | None
    ) -> Sequence[ProvisionCitation]:
        key = (collection, only.document_id if only is not None else None)
        cached = self._citations.get(key)
        if cached is None:
            cached, is_complete = await self._read_citations(collection, only, within)
            if is_complete:
                self._citations[key] = cached
        return cached

    async def _read_citations(
        self, collection: Collection, only: Regulation | None, within: Scope
    ) -> tuple[Sequence[ProvisionCitation], bool]:
        """The citations, without those of regulations that were replaced meanwhile; and whether none was."""
        by_document: dict[uuid.UUID, list[CitableProvision]] = {}
        for source in collection.sources.values():
            if only is None or source.regulation.name == only.name:
                by_document.setdefault(source.regulation.document_id, []).append(source)
        keys, citations, current = list(by_document), list[ProvisionCitation](), 0
        for first in range(0, len(keys), READ_AT_ONCE):
            texts = await self._store.read(keys[first : first + READ_AT_ONCE], within)
            current += sum(text.provisions == collection.by_chunk[text.document_id].provisions for text in texts)
            citations += await asyncio.to_thread(_citations, collection, by_document, texts)
        return citations, current == len(keys)

    async def diff(
        self, regulation: str, before: date | str, after: date | str, *, scope: Viewer | None = None
    ) -> RegulationDiff:
        """What changed in a regulation between two days, provision by provision.

        Raises `NotFound` for a regulation that was valid on neither day, and `InvalidInput` for one without dates.
        """
        days = parse_date("before", before), parse_date("after", after)
        if days[0] is None or days[1] is None:
            raise InvalidInput("Give two days, such as 2023-03-01 and 2024-03-01.")
        snapshot = await self._index.snapshot()
        within = confinement.bounded(scope).resolved(snapshot.taxonomy)
        return await compare_days(regulation, (days[0], days[1]), self._collections, snapshot, within)

    async def stale(
        self, regulation: str | None = None, *, scope: Viewer | None = None, as_of: AsOf = None
    ) -> list[StaleCitation]:
        """The citations (of one regulation) of provisions that were amended after the citing one, or repealed.

        Raises `NotFound` for an unknown name.
        """
        snapshot, within, collection = await self._collection(scope, as_of)
        only = collection.named(regulation) if regulation is not None else None
        key = _list_key(snapshot, within, only)
        cached = self._stale.get(key)
        if cached is None:
            citations = await self._citations_of(within, collection, only)
            cached = self._stale[key] = await stale_citations(citations, collection, self._store, within)
        return list(cached)

    async def verify(
        self, text: str, regulation: str | None = None, *, scope: Viewer | None = None, as_of: AsOf = None
    ) -> Verification:
        """Whether what any text cites exists in the regulations; a provision outside the scope is `missing`.

        `regulation` is the one that references before any name mean. Raises `InvalidInput` for a text that is too
        long, and `NotFound` for an unknown `regulation`.
        """
        _, within, collection = await self._collection(scope, as_of)
        if len(text) > MAX_TEXT:
            raise InvalidInput(
                f"The text has {len(text):,} characters; at most {MAX_TEXT:,} are verified at once. Verify it in parts."
            )
        if clean(text) != text:
            raise InvalidInput("The text contains characters that no document may contain: NUL, or half of a pair.")
        default = collection.named(regulation) if regulation is not None else None
        written = await asyncio.to_thread(read_text, text, collection, default)
        keys = dict.fromkeys(key for keys in written.editions.values() for key in keys)
        texts = await self._texts([collection.by_chunk[key] for key in keys], within)
        return await asyncio.to_thread(written.judged, texts)

    async def hops(
        self,
        query: str,
        initial_results: Sequence[str],
        max_hops: int = MAX_HOPS,
        least_relevance: float = MIN_RELEVANCE,
        *,
        scope: Viewer | None = None,
        as_of: AsOf = None,
    ) -> MultiHopResult:
        """The passages that these passages of regulations cite, in at most `max_hops` hops; see `MultiHopRetriever`."""
        snapshot, within, collection = await self._collection(scope, as_of)
        return await hops_from(
            self._index,
            collection,
            query,
            initial_results,
            snapshot=snapshot,
            caller=within,
            max_hops=max_hops,
            least_relevance=least_relevance,
        )

    async def _collection(self, scope: Viewer | None, as_of: AsOf) -> tuple[IndexSnapshot, Scope, Collection]:
        snapshot = await self._index.snapshot()
        within = confinement.bounded(scope).at(parse_date("as_of", as_of)).resolved(snapshot.taxonomy)
        return snapshot, within, await self._collections.read(snapshot, within)

    @asynccontextmanager
    async def _explaining_absence(
        self, within: Scope, collection: Collection, reference: str = "", snapshot: IndexSnapshot | None = None
    ) -> AsyncIterator[None]:
        """A `NotFound` says first of what no text of the day is stored: regulations, and the provision `reference`."""
        try:
            yield
        except NotFound as error:
            if snapshot is not None and is_earlier(within):
                await self._explain_later_text(reference, snapshot, within, error)
            note = await missing_editions(self._index, within, korean=False)
            if note:
                raise NotFound(f"{note} {error}" if collection.regulations else note) from error
            raise

    async def _explain_later_text(
        self, reference: str, snapshot: IndexSnapshot, within: Scope, error: NotFound
    ) -> None:
        """Raises `NotFound` if the provision exists today, and was changed after the day."""
        now = replace(within, as_of=None)
        try:
            source = find_provision(reference, await self._collections.read(snapshot, now))
        except (NotFound, InvalidInput):
            return
        passages = await self._index.fetch(source.chunk_ids, now, snapshot.taxonomy)
        later = await changed_texts(self._index, self._store, list(passages.values()), within, snapshot.taxonomy)
        changed = [text for key in source.chunk_ids for text in later.get(key, ())]
        if changed and within.as_of is not None:
            raise NotFound(changed_later(changed, within.as_of, korean=False)) from error

    async def _texts(self, regulations: Sequence[Regulation], within: Scope) -> list[RegulationText]:
        """The texts of the regulations. Raises `NotFound` when one was replaced since the collection was read."""
        texts: dict[uuid.UUID, RegulationText] = {}
        keys = [regulation.document_id for regulation in regulations]
        for first in range(0, len(keys), READ_AT_ONCE):
            read = await self._store.read(keys[first : first + READ_AT_ONCE], within)
            texts |= {text.document_id: text for text in read}
        for regulation in regulations:
            text = texts.get(regulation.document_id)
            if text is None or text.provisions != regulation.provisions:
                raise NotFound(f"{regulation.name} was replaced during the request. Try again.")
        return list(texts.values())


class EnhancedSearchService:
    """Searches `regulations`; without them those of the open app."""

    def __init__(self, regulations: Regulations | None = None) -> None:
        self._regulations = regulations

    async def search(
        self, query: str, top_k: int | None = None, *, scope: Viewer | None = None, as_of: AsOf = None
    ) -> list[SearchResult]:
        """As `Regulations.search`. Raises `NoActiveApp` where no app is open."""
        regulations = self._regulations if self._regulations is not None else active().regulations
        return await regulations.search(query, top_k, scope=scope, as_of=as_of)


async def legacy_search(query: str, top_k: int = 10, *, scope: Viewer | None = None) -> list[SearchResult]:
    """The open app's results without the regulation pack, to compare with `EnhancedSearchService`."""
    app = active()
    engine = HybridSearchEngine(
        app.embedder, app.index, enable_caching=False, normalization="absolute", analyzer=app.analyzer
    )
    results, _ = await engine.search(
        query, top_k, bm25_candidates=CANDIDATES, vector_candidates=CANDIDATES, scope=scope
    )
    return results


def _list_key(snapshot: IndexSnapshot, within: Scope, only: Regulation | None) -> Hashable:
    """Key of a list of citations, in one regulation or in all of them."""
    name = only.document_id if only is not None else None
    return snapshot.generation, snapshot.taxonomy.version, within.nodes, valid_day(within), name


def _texts(source: CitableProvision, regulation: RegulationText, day: date | None = None) -> list[str]:
    """The texts of the provisions; with a day, without the words of paragraphs that were amended after it."""
    texts = [regulation.text[provision.start : provision.end] for provision in source.provisions]
    is_article = source.provisions[0].kind == "article"
    return [text_of_day(text, day.isoformat()) for text in texts] if day is not None and is_article else texts


def _require_text_of_day(source: CitableProvision, within: Scope) -> None:
    """Raise `NotFound` for a provision that was deleted after the day: its text then is not stored."""
    deleted_on = source.regulation.deleted_on.get(source.provisions[0].label) if source.is_deleted else None
    if deleted_on is not None and within.as_of is not None and deleted_on > within.as_of.isoformat():
        later = ChangedText(source.name, deleted_on, 0, 0, deleted=True)
        raise NotFound(changed_later([later], within.as_of, korean=False))


def _citations(
    collection: Collection,
    sources: Mapping[uuid.UUID, Iterable[CitableProvision]],
    regulations: Sequence[RegulationText],
) -> list[ProvisionCitation]:
    """The citations of the regulations' provisions; none of one that was replaced since the collection was read."""
    return [
        citation
        for regulation in regulations
        for source in sources[regulation.document_id]
        if source.regulation.provisions == regulation.provisions
        for citation in collection.citations_of(source, _texts(source, regulation))
    ]


def _edition(text: RegulationText) -> EditionDays:
    return EditionDays(
        str(text.document_id),
        text.effective_from.isoformat() if text.effective_from else None,
        text.superseded_from.isoformat() if text.superseded_from else None,
    )


async def _headings(regulation: Regulation, index: DocumentIndex, within: Scope) -> Mapping[int, tuple[str, ...]]:
    """Ordinal of a passage -> the headings above its provision, without the name of the regulation."""
    headings: dict[int, tuple[str, ...]] = {}
    while True:
        page = await index.passage_spans(regulation.document_id, PASSAGES_AT_ONCE, len(headings), within)
        if not page or not page[0]:
            return headings
        for span in page[0]:
            names = span.breadcrumb[1:] if span.breadcrumb[:1] == (regulation.name,) else span.breadcrumb
            headings[span.ordinal] = tuple(names[:-1])


def _outlined(regulation: Regulation, provision: Provision, headings: tuple[str, ...]) -> OutlinedProvision:
    deleted = provision.first == NO_PASSAGE
    chunk_id = "" if deleted else f"{regulation.document_id}:{provision.first}"
    return OutlinedProvision(
        provision.kind, provision.label, provision.title, headings, provision.start, provision.end, chunk_id, deleted
    )
