"""Where ports meet adapters: `open()` assembles an `App`, the one thing that command line and service call."""

from __future__ import annotations

import asyncio
import time
import unicodedata
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Unpack

from dtrag import current_app
from dtrag.adapters.analyzers import factory as morphemes
from dtrag.adapters.audit_spool import AuditSpool
from dtrag.adapters.embedders import factory as embedders
from dtrag.adapters.embedders.cached import CachedEmbedder
from dtrag.adapters.llms import factory as llms
from dtrag.adapters.mcp.client import servers
from dtrag.adapters.mcp.config import read_config
from dtrag.adapters.parsers.process import ParserProcess
from dtrag.adapters.postgres import index_settings
from dtrag.adapters.postgres.connect import connect, connect_throwaway
from dtrag.adapters.postgres.database import Database
from dtrag.adapters.postgres.index_reader import PostgresIndex
from dtrag.adapters.postgres.index_writer import PostgresWriter
from dtrag.adapters.postgres.stores.agents import PostgresAgents
from dtrag.adapters.postgres.stores.api_keys import PostgresKeys
from dtrag.adapters.postgres.stores.audit import PostgresAudit
from dtrag.adapters.postgres.stores.conversations import PostgresConversations, PostgresSight
from dtrag.adapters.postgres.stores.folders import PostgresFolders
from dtrag.adapters.postgres.stores.regulations import PostgresRegulations
from dtrag.adapters.postgres.stores.review import PostgresReview
from dtrag.adapters.postgres.stores.taxonomy import PostgresTaxonomy
from dtrag.adapters.postgres.stores.tool_approvals import PostgresApprovals
from dtrag.adapters.postgres.stores.traces import PostgresTraces
from dtrag.adapters.rerankers import factory as rerankers
from dtrag.adapters.web.fetch import WebFetcher
from dtrag.adapters.web.taxonomy_service import TaxonomyService
from dtrag.core.access import confinement
from dtrag.core.access.api_key import LOCAL
from dtrag.core.access.egress import allowed_hosts
from dtrag.core.access.scope import Viewer, filter_keys
from dtrag.core.document_selection import Target, file_path, select
from dtrag.core.documents import Answer, DocumentSummary, SearchMetrics, SearchResult
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.core.text.analysis import Analyzer, term_id
from dtrag.errors import InvalidInput, NotFound
from dtrag.evaluation.answerability import Case, Judged, cases
from dtrag.evaluation.calibration import Calibrated, calibrate
from dtrag.governance.agents import Agents, budget
from dtrag.governance.api_keys import Keys
from dtrag.governance.audit import Audit
from dtrag.governance.review import Review
from dtrag.governance.taxonomy import Governance
from dtrag.ingestion.classify import Classifier, wanted
from dtrag.ingestion.folders import FolderPlan, FolderSync, find_files
from dtrag.ingestion.ingest import Ingestion, IngestReport, Progress, Source
from dtrag.ingestion.reindex import reindex
from dtrag.packs.regulation_ko import structure
from dtrag.pipeline.concurrency import Admission
from dtrag.pipeline.conversations import Conversations
from dtrag.pipeline.debate import step
from dtrag.pipeline.execution import Pipeline
from dtrag.pipeline.graph import LangGraphPipeline
from dtrag.pipeline.run import DebateEvent, Run
from dtrag.pipeline.traces import Traces
from dtrag.ports import Embedder, Reranker, check_identity
from dtrag.retrieval.engine import HybridSearchEngine
from dtrag.retrieval.regulation_collection import CollectionReader
from dtrag.retrieval.regulations import RegulationRanking, Regulations
from dtrag.retrieval.request import CANDIDATES, SearchOptions
from dtrag.retrieval.rerank import CrossEncoderReranker
from dtrag.settings import Settings
from dtrag.tools.builtin import registry_of
from dtrag.tools.mcp import McpTools

MOST_LISTED = 10_000
"""Documents of one page of the list."""
Prune = Literal["all"] | bool
"""Whether what is gone from a folder is removed; "all": also when it is more than a third of it."""


@asynccontextmanager
async def open_app(settings: Settings) -> AsyncIterator[App]:
    """An `App` on the database that the settings name. Raises `DatabaseUnavailable`."""
    async with connect(settings) as database, _app(settings, database) as app:
        await app.recover()
        await app.audit.recover()
        yield app


@asynccontextmanager
async def open_throwaway(settings: Settings, embedder: Embedder | None = None) -> AsyncIterator[App]:
    """An `App` on a new database of the embedded server, dropped at the end: for evaluations.

    `embedder` takes the place of the one that the settings name.
    """
    async with connect_throwaway(settings) as database, _app(settings, database, embedder) as app:
        yield app


def _app(settings: Settings, database: Database, embedder: Embedder | None = None) -> App:
    embedder = embedder or embedders.choose(settings)
    return App(settings, database, embedder, morphemes.choose(settings), rerankers.choose(settings))


class App:
    """dtrag on one database: ingest, search, ask, and what there is. Get one from `dtrag.open()`.

    With a `reranker` its order decides; without one no results are reranked. `on_search` is told of every search.
    Every read takes a scope; without one it is the owner's, the whole tree, and inside a run, request or tool call what
    that may see (core/access/confinement.py).
    """

    def __init__(
        self,
        settings: Settings,
        database: Database,
        embedder: Embedder | None,
        analyzer: Analyzer,
        reranker: Reranker | None = None,
    ):
        self.settings = settings
        self.database = database
        self.embedder = embedder
        self.analyzer = analyzer
        self.index = PostgresIndex(database, max(1, settings.index_cache_mb) * 2**20)
        self._writer = PostgresWriter(database)
        self._parser = _parser(settings, settings.max_file_mb)
        self.audit = Audit(PostgresAudit(database), settings.audit, spool=AuditSpool.of(settings))
        placements = PostgresReview(database)
        self.classifier = Classifier(placements, self.index, analyzer, embedder)
        self._ingestion = Ingestion(
            self._writer,
            self._parser,
            embedder,
            (structure.split,),
            analyzer,
            classifier=self.classifier if wanted(settings.classify) else None,
        )
        self._folders = FolderSync(
            PostgresFolders(database),
            self._writer,
            self._parser,
            embedder=embedder,
            analyzer=analyzer,
            record=self.audit.record,
        )
        self.review = Review(placements, self.index, self.classifier, self.audit.record)
        tree = PostgresTaxonomy(database, lambda text: [term_id(term) for term in analyzer.terms(text)])
        self.taxonomy = Governance(tree, self.audit.record)
        self.taxonomy_service = TaxonomyService.of(settings)
        self.keys = Keys(PostgresKeys(database), self.index, rate=settings.rate_per_minute, record=self.audit.record)
        sight = PostgresSight(database)
        self.conversations = Conversations(
            PostgresConversations(database),
            sight,
            self.index,
            days=settings.conversation_days,
            record=self.audit.record,
        )
        self.traces = Traces.of(settings, PostgresTraces(database), sight, self.index)
        self.on_search: Callable[[SearchMetrics], None] = lambda metrics: None
        self.on_debate: Callable[[DebateEvent], None] = lambda event: None
        at_question_time = CachedEmbedder(embedder) if embedder is not None else None
        stored_regulations = PostgresRegulations(database)
        collections = CollectionReader(stored_regulations)
        self.engine = _engine(
            settings,
            self.index,
            at_question_time,
            analyzer,
            reranker,
            collections=collections,
            on_search=self._searched,
        )
        self.regulations = Regulations(self.engine, self.index, stored_regulations, collections)
        self.model, self.critic = llms.choose(settings)
        self._tool_parser = _parser(settings, settings.max_upload_mb)
        self.tools = registry_of(settings, self._tool_parser, WebFetcher)
        self.mcp = McpTools(
            servers(read_config(settings.mcp_servers), allowed_hosts(settings.egress_allow or "")),
            PostgresApprovals(database),
            self.tools,
            self.audit.record,
        )
        self.run = Run(
            engine=self.engine,
            index=self.index,
            tree_of=tree.tree,
            embedder=at_question_time,
            model=self.model,
            critic=self.critic,
            tools=self.tools,
            prepare=self.mcp.refresh,
            debates=step.when(settings.debate),
            admission=Admission.of(settings),
            recording=self.traces.recording(),
            on_debate=self._debated,
        )
        self.pipeline = pipeline_type(settings.pipeline)(lambda: self.run, self.traces.keep)
        self.agents = Agents(
            PostgresAgents(database),
            self.index,
            self.engine,
            self.pipeline,
            default=budget(settings),
            review=self.review,
            record=self.audit.record,
        )

    async def __aenter__(self) -> App:
        current_app.opened(self)
        return self

    async def __aexit__(self, *exception: object) -> None:
        current_app.closed(self)
        await self.mcp.close()
        await self.index.close()
        await self.keys.close()
        await self.traces.close()
        await self.audit.close()
        await self._parser.close()
        await self._tool_parser.close()
        for model in (self.model, self.critic):
            if model is not None:
                await model.close()

    async def load(self) -> None:
        """Load every model, so that no question waits for it. What cannot be loaded shows when it is used."""
        await self.pipeline.load(self.run)

    async def recover(self) -> int:
        """Count what a crashed writer left behind, so that it is found; returns the number of batches."""
        return await self._writer.recover()

    async def ingest(
        self,
        paths: Sequence[str | Path] | str | Path,
        category: Sequence[str] | str | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        *,
        prune: Prune = False,
    ) -> IngestReport:
        """Read files and folders into the index; what is there already in the same form is left alone.

        `category` is for documents that name none themselves. A file that fails is in `report.failed`; the rest is
        in. Raises `InvalidInput` for a bad category and `IndexMismatch` when the index was built with another embedder.

        With `prune` what is gone from the folders is removed, and renamed files keep their category and review state.
        Nothing is removed when a file fails. Raises `InvalidInput`, before anything is changed, when a folder is
        missing, unreadable or empty, and when more than a third of its files would go, unless it is "all".
        """
        found = await asyncio.to_thread(find_files, _paths(paths), self._parser)
        plan = await self._folders.plan(found) if prune else None
        if plan is not None and plan.refusal and prune != "all":
            raise InvalidInput(plan.refusal)
        followed = IngestReport()
        if plan is not None:
            await self.check_identity()
            await self._folders.follow(plan, followed)
        report = await self.ingest_sources(found.sources, category, on_progress)
        report.failed[:0] = found.failed
        report.skipped, report.renamed = found.skipped, followed.renamed
        if plan is not None and report.failed:
            report.notes.append("Nothing was removed, because some files could not be read.")
        elif plan is not None:
            await self._folders.remove(plan, report)
        return report

    async def plan_prune(self, paths: Sequence[str | Path] | str | Path) -> FolderPlan:
        """What `ingest` with `prune` would add, rename and remove; nothing is changed. Raises `InvalidInput`."""
        return await self._folders.plan(await asyncio.to_thread(find_files, _paths(paths), self._parser))

    async def ingest_sources(
        self,
        sources: Sequence[Source],
        category: Sequence[str] | str | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        *,
        scope: Viewer | None = None,
    ) -> IngestReport:
        """As `ingest`, for files whose address is not where they lie (uploads).

        Nothing outside of the scope is written or overwritten. Raises `InvalidInput` for a scope without a category,
        and `Forbidden` for a category outside.
        """
        started = time.perf_counter()
        self.database.require_space()
        path = CategoryPath.parse(category) if category else None
        within = confinement.bounded(scope).resolved((await self.index.snapshot()).taxonomy)
        await index_settings.register(self.database, self.analyzer.id, self.embedder)
        report = await self._ingestion.run(sources, path, on_progress, within)
        report.seconds = time.perf_counter() - started
        if report.waiting:
            report.notes.append(f"{report.waiting:,} without a category wait for a person: dtrag review")
        if self.embedder is None:
            report.notes.append("No embedder is available: nothing got a vector, search is lexical only.")
        return report

    async def reindex(self, on_progress: Callable[[int], None] | None = None) -> int:
        """Index every document anew from its stored text, with the analyzer and embedder of now; returns how many."""
        self.database.require_space()
        await index_settings.forget(self.database)
        await index_settings.register(self.database, self.analyzer.id, self.embedder)
        documents = await reindex(self._writer, self.embedder, on_progress, self.analyzer)
        await index_settings.rebuilt(self.database)
        return documents

    async def calibrate(
        self, judged: Sequence[Judged], on_progress: Callable[[int], None] | None = None, *, keep: bool = True
    ) -> Calibrated:
        """Fit the confidence to judged questions about these documents; from the next question on it counts.

        A fit that would make something worse is refused (`Calibrated.refusals`); when none is left (`helps` is False)
        nothing changes. `on_progress` is told how many questions have been asked. Without `keep` nothing changes.
        Raises `InvalidInput`.
        """
        made: list[Case] = []
        done = 0
        async for found in cases(judged, self.index, self.embedder, self.analyzer):
            made += found
            done += 1
            if on_progress is not None:
                on_progress(done)
        calibrated = await asyncio.to_thread(calibrate, made, len(judged))
        if keep and calibrated.helps:
            await index_settings.store_calibration(self.database, calibrated.stored(datetime.now(UTC)))
        return calibrated

    async def uncalibrate(self) -> bool:
        """Back to the shipped confidence; whether there was another."""
        return await index_settings.forget_calibration(self.database)

    async def search(
        self,
        query: str,
        top_k: int = 10,
        filters: Mapping[str, Any] | None = None,
        *,
        mode: str = "hybrid",
        scope: Viewer | None = None,
        highlights: bool = True,
        **options: Unpack[SearchOptions],
    ) -> tuple[list[SearchResult], SearchMetrics]:
        """The best passages. Modes: hybrid, lexical, strict, vector.

        Without `highlights` the words of the query are not looked for in the passages, which saves time.
        `options` are the others of `HybridSearchEngine.search`: numbers of candidates, correlation_id, explain.
        """
        options = {
            "bm25_candidates": CANDIDATES,
            "vector_candidates": CANDIDATES,
            "highlight": highlights,
            **options,
        }
        return await self.engine.search(query, top_k, filters, scope=scope, mode=mode, **options)

    def _searched(self, metrics: SearchMetrics) -> None:
        self.on_search(metrics)

    def _debated(self, event: DebateEvent) -> None:
        self.on_debate(event)

    async def ask(
        self, question: str, filters: Mapping[str, Any] | None = None, *, scope: Viewer | None = None, owner: str = ""
    ) -> Answer:
        """The answer with its citations, or that the documents do not answer; `pipeline.execute` tells more."""
        return (await self.pipeline.execute(question, scope=scope, filters=filters, owner=owner)).as_answer()

    async def documents(
        self, limit: int = 100, offset: int = 0, *, scope: Viewer | None = None
    ) -> list[DocumentSummary]:
        """Documents, the newest first."""
        if not (1 <= limit <= MOST_LISTED and offset >= 0):
            raise InvalidInput(f"limit must be from 1 to {MOST_LISTED:,} and offset at least 0.")
        snapshot = await self.index.snapshot()
        within = confinement.bounded(scope).resolved(snapshot.taxonomy)
        return await self.index.documents(within, snapshot.taxonomy, wanted=limit, skipped=offset)

    async def counts(self, *, scope: Viewer | None = None) -> tuple[int, int]:
        """Numbers of documents and chunks."""
        snapshot = await self.index.snapshot()
        return await self.index.counts(confinement.bounded(scope).resolved(snapshot.taxonomy))

    async def document(self, document_id: str, *, scope: Viewer | None = None) -> tuple[DocumentSummary, str]:
        """A document and its text. Raises `NotFound`."""
        snapshot = await self.index.snapshot()
        within = confinement.bounded(scope).resolved(snapshot.taxonomy)
        found = await self.index.document(_uuid(document_id), within, snapshot.taxonomy)
        if found is None:
            raise NotFound(kind="document", name=document_id[:60])
        return found

    async def delete_document(self, document_id: str, *, scope: Viewer | None = None) -> None:
        """Delete a document and everything made from it. Raises `NotFound`."""
        snapshot = await self.index.snapshot()
        within = confinement.bounded(scope).resolved(snapshot.taxonomy)
        if not await self._writer.delete(_uuid(document_id), within):
            raise NotFound(kind="document", name=document_id[:60])

    async def select_documents(
        self, targets: Sequence[str], category: Sequence[str] | str | None = None, *, scope: Viewer | None = None
    ) -> tuple[list[DocumentSummary], list[str]]:
        """The documents that ids, paths of files or folders and patterns (`*.md`) name; the targets that name none.

        `category` narrows to a branch; with it there may be no targets. Raises `InvalidInput` without either.
        """
        if not targets and not category:
            raise InvalidInput("Name documents by ids, paths or patterns, or a category.")
        branch = CategoryPath.parse(category) if category else None
        parsed = [Target.parse(target, _address(target)) for target in targets]
        listed: list[tuple[DocumentSummary, str]] = []
        while page := await self.documents(MOST_LISTED, len(listed), scope=scope):
            listed += [(document, file_path(document.source_url)) for document in page]
        return await asyncio.to_thread(select, listed, parsed, branch)

    async def delete_documents(self, document_ids: Sequence[str], *, scope: Viewer | None = None) -> int:
        """Delete those of the documents that are still there, with a line in the audit log; returns how many."""
        within = confinement.bounded(scope).resolved((await self.index.snapshot()).taxonomy)
        deleted = [key for key in document_ids if await self._writer.delete(_uuid(key), within)]
        if deleted:
            details = {"documents": len(deleted)}
            await self.audit.record(
                LOCAL.name, "documents.delete", scope=None, subjects=deleted, decision="done", details=details
            )
        return len(deleted)

    async def check_identity(self) -> None:
        """Raise `IndexMismatch` when the index was built with another analyzer or embedder."""
        snapshot = await self.index.snapshot()
        check_identity(snapshot.settings, self.analyzer.id, self.embedder)


def pipeline_type(name: str) -> type[Pipeline]:
    """What runs the steps: plain or langgraph. Raises `InvalidInput` for another name."""
    types: dict[str, type[Pipeline]] = {"plain": Pipeline, "langgraph": LangGraphPipeline}
    if name not in types:
        raise InvalidInput(f"DTRAG_PIPELINE is {name[:40]!r}, but must be plain or langgraph.")
    return types[name]


def _parser(settings: Settings, max_file_mb: int) -> ParserProcess:
    return ParserProcess(memory_mb=settings.parse_memory_mb, seconds=settings.parse_seconds, max_file_mb=max_file_mb)


def _engine(
    settings: Settings,
    index: PostgresIndex,
    embedder: Embedder | None,
    analyzer: Analyzer,
    reranker: Reranker | None,
    *,
    collections: CollectionReader,
    on_search: Callable[[SearchMetrics], None],
) -> HybridSearchEngine:
    return HybridSearchEngine(
        embedder,
        index,
        enable_caching=settings.cache_size > 0,
        enable_reranking=reranker is not None,
        normalization="absolute",
        analyzer=analyzer,
        reranker=CrossEncoderReranker(model=reranker),
        filter_keys=filter_keys(settings.filter_keys),
        cache_size=max(1, settings.cache_size),
        cache_ttl=max(1, settings.cache_seconds),
        embedding_timeout=max(1, settings.embed_query_ms) / 1000,
        on_search=on_search,
        pack=RegulationRanking(index, mode=settings.regulations, analyzer=analyzer, collections=collections),
    )


def _address(target: str) -> str:
    """What the path of a file would be that is named so here."""
    return target if target.startswith("upload:") else unicodedata.normalize("NFC", str(Path(target).resolve()))


def _paths(paths: Sequence[str | Path] | str | Path) -> list[Path]:
    return [Path(path) for path in ([paths] if isinstance(paths, (str, Path)) else paths)]


def _uuid(document_id: str) -> uuid.UUID:
    try:
        return uuid.UUID(document_id)
    except (ValueError, AttributeError, TypeError) as error:
        raise NotFound(kind="document", name=str(document_id)[:60]) from error
