"""Builders of the parts of an `App`: each takes settings, and chooses and connects adapters."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from dtrag.adapters import morphemes, pair_model
from dtrag.adapters.audit_spool import AuditSpool
from dtrag.adapters.connectors import factory as connectors
from dtrag.adapters.embedders import factory as embedders
from dtrag.adapters.llms import langchain as llms
from dtrag.adapters.mcp.client import servers
from dtrag.adapters.mcp.config import read_config
from dtrag.adapters.parsers.process import ParserProcess
from dtrag.adapters.postgres.database import Database
from dtrag.adapters.postgres.index_reader import PostgresIndex
from dtrag.adapters.postgres.index_settings import PostgresIndexSettings
from dtrag.adapters.postgres.index_writer import PostgresWriter
from dtrag.adapters.postgres.stores.cases import PostgresCases, PostgresLearning
from dtrag.adapters.postgres.stores.folders import PostgresFolders
from dtrag.adapters.postgres.stores.governance import (
    PostgresAgents,
    PostgresAudit,
    PostgresKeys,
    PostgresPeople,
    PostgresPublicSpending,
    PostgresRateLimits,
    PostgresSessions,
)
from dtrag.adapters.postgres.stores.jobs import PostgresJobs
from dtrag.adapters.postgres.stores.records import (
    PostgresApprovals,
    PostgresConversations,
    PostgresDocumentVisibility,
    PostgresEvaluations,
    PostgresTraces,
)
from dtrag.adapters.postgres.stores.regulations import PostgresRegulations
from dtrag.adapters.postgres.stores.review import PostgresReview
from dtrag.adapters.postgres.stores.sources import PostgresSources
from dtrag.adapters.postgres.stores.taxonomy import PostgresTaxonomy
from dtrag.adapters.postgres.stores.vectors import PostgresImagined, PostgresVectors
from dtrag.adapters.rerankers import models as rerankers
from dtrag.adapters.sqlite.cases import SqliteCases
from dtrag.core.access.egress import allowed_hosts
from dtrag.core.access.scope import Grant, filter_keys
from dtrag.core.access.sign_in import SignInFile
from dtrag.core.documents import SearchMetrics
from dtrag.core.job import Lease
from dtrag.core.taxonomy.grades import Grades
from dtrag.core.text.analysis import Analyzer, term_id
from dtrag.errors import InvalidInput
from dtrag.evaluation.judges import CheckerJudge, LexicalJudge, ModelJudge
from dtrag.governance.api_keys import Keys
from dtrag.governance.sign_in import SignIn
from dtrag.ingestion.vectors import VECTORS
from dtrag.jobs.queue import Jobs
from dtrag.personal_data import personal_data_of
from dtrag.pipeline.execution import LangGraphPipeline, Pipeline
from dtrag.ports import (
    ApprovalStore,
    CaseStore,
    ChatModel,
    Connector,
    DocumentVisibility,
    Embedder,
    Index,
    Judge,
    Models,
    Parser,
    Recorder,
    Reranker,
    Stores,
    VectorStore,
)
from dtrag.regulations.collection_reader import CollectionReader
from dtrag.regulations.lexicon import LexiconReader
from dtrag.regulations.pack import RegulationRanking
from dtrag.retrieval.engine import HybridSearchEngine
from dtrag.retrieval.rerank import CrossEncoderReranker
from dtrag.setting_files import trusted_table
from dtrag.settings import Settings
from dtrag.tools.mcp import McpTools
from dtrag.tools.registry import ToolRegistry


def open_stores(
    settings: Settings, database: Database, analyzer: Analyzer, public: Callable[[], Grant | None] = lambda: None
) -> Stores:
    """All stores. None of them connects before it is used. `public`: the branches of callers without a key."""
    review, sight = PostgresReview(database), PostgresDocumentVisibility(database)
    return Stores(
        index_settings=PostgresIndexSettings(database),
        index=PostgresIndex(database, max(1, settings.index_cache_mb) * 2**20),
        writer=PostgresWriter(database),
        vectors=PostgresVectors(database),
        imagined=PostgresImagined(database),
        folders=PostgresFolders(database),
        sources=PostgresSources(database),
        regulations=PostgresRegulations(database),
        placements=review,
        review=review,
        taxonomy=PostgresTaxonomy(
            database,
            lambda text: [term_id(term) for term in analyzer.terms(text)],
            public,
            Grades.parse(settings.grades),
        ),
        agents=PostgresAgents(database),
        public_spending=PostgresPublicSpending(database),
        keys=PostgresKeys(database),
        sessions=PostgresSessions(database),
        people=PostgresPeople(database),
        rate_limits=PostgresRateLimits(database),
        audit=PostgresAudit(database),
        approvals=PostgresApprovals(database),
        sight=sight,
        conversations=PostgresConversations(database),
        traces=PostgresTraces(database),
        evaluations=PostgresEvaluations(database),
        cases=case_store(settings, database, sight),
        jobs=PostgresJobs(database),
        learning=PostgresLearning(database),
        audit_spool=AuditSpool.of(settings),
    )


def fenced_stores(stores: Stores, database: Database, lease: Lease) -> Stores:
    """The stores for a job: those that it writes to refuse it once its lease is lost."""
    fenced = database.fenced(lease)
    return replace(
        stores,
        index_settings=PostgresIndexSettings(fenced),
        writer=PostgresWriter(fenced),
        vectors=PostgresVectors(fenced),
        imagined=PostgresImagined(fenced),
        folders=PostgresFolders(fenced),
        sources=PostgresSources(fenced),
        placements=PostgresReview(fenced),
        evaluations=PostgresEvaluations(fenced),
    )


def sign_in_file(path: Path) -> SignInFile:
    """The identity providers in a file. Raises `InvalidInput`."""
    try:
        table, _, _ = trusted_table(path)
    except OSError as error:
        raise InvalidInput(f"DTRAG_SIGN_IN is a file that can be read: {error}.") from error
    return SignInFile.of(table, str(path))


def open_sign_in(path: Path, stores: Stores, keys: Keys, *, rate: int, record: Recorder) -> SignIn:
    """The sign-in with the identity providers in a file. Raises `InvalidInput` and `MissingExtra`."""
    from dtrag.adapters.openid import OpenIdProvider

    file = sign_in_file(path)
    providers = {
        name: OpenIdProvider(provider, f"{file.origin}/sign-in/{name}/callback")
        for name, provider in file.providers.items()
    }
    return SignIn(file, providers, stores, keys, rate=rate, record=record)


def connect_source(settings: Settings, address: str) -> Connector:
    """The source at the address. Raises `InvalidInput`, `EgressBlocked` and `MissingExtra`."""
    cache, allowed = settings.data_dir / "sources", allowed_hosts(settings.egress_allow or "")
    return connectors.connector(address, cache=cache, allowed=allowed)


def named_sources(setting: str) -> list[tuple[str, str]]:
    """Address and category of each source in the setting. Raises `InvalidInput`."""
    pairs = [pair.rpartition("=") for pair in setting.split(";") if pair.strip()]
    if not all(address.strip() and category.strip() for address, _, category in pairs):
        raise InvalidInput("DTRAG_SOURCES has the form ADDRESS=CATEGORY; …, such as posix:/srv/shared=Shared drive")
    return [(address.strip(), category.strip()) for address, _, category in pairs]


class JobTurns:
    """`VectorTurns` by the job that makes the vectors."""

    def __init__(self, jobs: Jobs, stores: Callable[[Lease], Stores]) -> None:
        self._jobs = jobs
        self._stores = stores

    async def served(self) -> bool:
        """See `VectorTurns`."""
        return await self._jobs.store.served(VECTORS)

    @asynccontextmanager
    async def take(self) -> AsyncIterator[VectorStore | None]:
        """See `VectorTurns`."""
        async with self._jobs.held(VECTORS) as running:
            yield None if running is None else self._stores(running.job.lease).vectors


def case_store(settings: Settings, database: Database, sight: DocumentVisibility) -> CaseStore:
    """The case memory: in the SQLite file of the folder that the settings name, or else in the database."""
    if settings.cbr_data_dir is not None:
        return SqliteCases(
            settings.cbr_data_dir,
            sight.visible,
            cache_seconds=settings.cbr_cache_ttl,
            personal_data=personal_data_of(settings),
        )
    return PostgresCases(database, cache_seconds=settings.cbr_cache_ttl)


def both_case_stores(settings: Settings, database: Database, folder: Path) -> tuple[CaseStore, CaseStore]:
    """The case memory in the database, and the one in the SQLite file of the folder; for copies between them."""
    sight = PostgresDocumentVisibility(database)
    in_database, in_file = (
        case_store(replace(settings, cbr_data_dir=chosen), database, sight) for chosen in (None, folder)
    )
    return in_database, in_file


def choose_models(settings: Settings, embedder: Embedder | None = None) -> Models:
    """The models that the settings name; `embedder` overrides the one in the settings."""
    chat, critic = llms.choose(settings)
    return Models(
        embedder or embedders.choose(settings), morphemes.choose(settings), rerankers.choose(settings), chat, critic
    )


def choose_judge(settings: Settings, model: ChatModel | None) -> Judge:
    """The judge that the settings name. A claim checker loads at its first use.

    Raises `InvalidInput` for `model` without a language model and for an unknown name, `ModelNotFound` for a folder
    without a claim checker.
    """
    name = settings.judge
    if name in {"lexical", ""}:
        return LexicalJudge()
    if name == "model":
        if model is None:
            raise InvalidInput("DTRAG_JUDGE is model, but there is no language model: set DTRAG_LLM too.")
        return ModelJudge(model)
    folder = Path(name).expanduser()
    if not folder.is_dir():
        raise InvalidInput(
            f"DTRAG_JUDGE is {name[:80]!r}, but must be lexical, model, or the folder of a claim checker."
        )
    return CheckerJudge(pair_model.in_folder(folder, settings.embed_threads))


def parser_process(settings: Settings, max_file_mb: int) -> Parser:
    """A parser of files of at most `max_file_mb` MiB. Its process starts on first use."""
    return ParserProcess(
        memory_mb=settings.parse_memory_mb,
        seconds=settings.parse_seconds,
        max_file_mb=max_file_mb,
        ocr=settings.ocr,
    )


def search_engine(
    settings: Settings,
    index: Index,
    embedder: Embedder | None,
    analyzer: Analyzer,
    reranker: Reranker | None,
    *,
    lexicon: LexiconReader,
    collections: CollectionReader,
    on_search: Callable[[SearchMetrics], None],
) -> HybridSearchEngine:
    """The engine of the app, with the regulation pack; it reranks when there is a `reranker`. Raises `InvalidInput`."""
    if settings.vector_weight > 1.0:
        raise InvalidInput(f"DTRAG_VECTOR_WEIGHT is {settings.vector_weight}, but must be from 0 to 1.")
    return HybridSearchEngine(
        embedder,
        index,
        bm25_weight=1.0 - settings.vector_weight,
        vector_weight=settings.vector_weight,
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
        pack=RegulationRanking(index, lexicon, mode=settings.regulations, analyzer=analyzer, collections=collections),
    )


def mcp_tools(settings: Settings, approvals: ApprovalStore, registry: ToolRegistry, record: Recorder) -> McpTools:
    """The tools of the configured MCP servers; approved ones are entered into `registry`."""
    configured = servers(read_config(settings.mcp_servers), allowed_hosts(settings.egress_allow or ""))
    return McpTools(configured, approvals, registry, record)


def pipeline_type(name: str) -> type[Pipeline]:
    """The runner of the pipeline steps for `plain` or `langgraph`. Raises `InvalidInput` for another name."""
    types: dict[str, type[Pipeline]] = {"plain": Pipeline, "langgraph": LangGraphPipeline}
    if name not in types:
        raise InvalidInput(f"DTRAG_PIPELINE is {name[:40]!r}, but must be plain or langgraph.")
    return types[name]
