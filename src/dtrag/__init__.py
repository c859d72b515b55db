"""dtrag: answers over an organisation's documents that can be proved.

    async with dtrag.open() as app:
        await app.ingest(["handbook/"], category=["HR"])
        results, metrics = await app.search("parental leave")
        answer = await app.ask("How many days of parental leave are there?")

In scripts and notebooks, without `await`:

    with dtrag.open_sync() as app:
        print(app.ask("How many days of parental leave are there?").text)

Names are loaded when they are first used, so that `import dtrag` and `dtrag --help` stay quick.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtrag.core.version import __version__ as __version__

if TYPE_CHECKING:
    from dtrag import embedding_service, llm_service
    from dtrag.app import App
    from dtrag.cbr_system import CBRSystem
    from dtrag.core.access.category_filter import CategoryFilter
    from dtrag.core.access.scope import Scope, SearchFilters
    from dtrag.core.cases.case import FeedbackType, SimilarityMethod
    from dtrag.core.cases.requests import (
        CaseSuggestion,
        CBRCaseResponse,
        CBRQualityUpdateRequest,
        CBRUpdateRequest,
        FeedbackRequest,
        SuggestionRequest,
    )
    from dtrag.core.debate import DebateResult
    from dtrag.core.documents import (
        Absence,
        Answer,
        Citation,
        CitationContext,
        DocumentSummary,
        Explanation,
        SearchMetrics,
        SearchResult,
    )
    from dtrag.core.manifest import AgentManifest, FromCategoryRequest, manifest_from_category
    from dtrag.core.quality.scores import QualityResult
    from dtrag.core.ranking.fusion import HybridScoreFusion, ScoreNormalizer
    from dtrag.core.taxonomy.tree import CategoryPath, Taxonomy
    from dtrag.core.text.questions import QueryCharacteristics
    from dtrag.delivery.api.schemas.chat import ChatRequest
    from dtrag.delivery.api.schemas.search import SearchRequest
    from dtrag.errors import DtragError, InvalidInput, NoActiveApp, NotOpened
    from dtrag.evaluation.quality import RAGQualityEvaluator
    from dtrag.functions import get_search_statistics, hybrid_search, keyword_search, vector_search
    from dtrag.ingestion.folders import FolderPlan
    from dtrag.ingestion.sources import IngestReport, Progress
    from dtrag.opening import SyncApp
    from dtrag.packs.regulation_ko.question_entities import EntityMatch, EntityType, RegulationEntityRecognizer
    from dtrag.packs.regulation_ko.top_k import AdaptiveTopKSelector
    from dtrag.pipeline.debate.agent import DebateAgent
    from dtrag.pipeline.debate.engine import DebateEngine
    from dtrag.pipeline.execution import Pipeline
    from dtrag.pipeline.graph import LangGraphPipeline
    from dtrag.pipeline.state import PipelineRequest, PipelineResponse, PipelineState
    from dtrag.pipeline.steps import (
        step1_intent,
        step2_retrieve,
        step3_plan,
        step4_tools_debate,
        step5_compose,
        step6_cite,
        step7_respond,
    )
    from dtrag.pipeline.timeouts import STEP_TIMEOUTS, execute_with_timeout
    from dtrag.retrieval.cache import ResultCache
    from dtrag.retrieval.engine import HybridSearchEngine
    from dtrag.retrieval.lexicon_reader import MultiStageQueryExpander
    from dtrag.retrieval.regulation_hops import MultiHopRetriever
    from dtrag.retrieval.regulations import EnhancedSearchService
    from dtrag.retrieval.rerank import CrossEncoderReranker
    from dtrag.settings import Settings, get_env_manager
    from dtrag.tools.default import get_tool_registry, list_tools
    from dtrag.tools.executor import execute_tool
    from dtrag.tools.registry import Tool, ToolRegistry
    from dtrag.tools.result import ToolExecutionResult
    from dtrag.tools.schema import tool

_HOMES = {
    "App": "dtrag.app",
    "CBRSystem": "dtrag.cbr_system",
    "FeedbackType": "dtrag.core.cases.case",
    "SimilarityMethod": "dtrag.core.cases.case",
    "CaseSuggestion": "dtrag.core.cases.requests",
    "CBRCaseResponse": "dtrag.core.cases.requests",
    "CBRQualityUpdateRequest": "dtrag.core.cases.requests",
    "CBRUpdateRequest": "dtrag.core.cases.requests",
    "FeedbackRequest": "dtrag.core.cases.requests",
    "SuggestionRequest": "dtrag.core.cases.requests",
    "Absence": "dtrag.core.documents",
    "Answer": "dtrag.core.documents",
    "Citation": "dtrag.core.documents",
    "CitationContext": "dtrag.core.documents",
    "DocumentSummary": "dtrag.core.documents",
    "Explanation": "dtrag.core.documents",
    "SearchMetrics": "dtrag.core.documents",
    "SearchResult": "dtrag.core.documents",
    "AgentManifest": "dtrag.core.manifest",
    "FromCategoryRequest": "dtrag.core.manifest",
    "manifest_from_category": "dtrag.core.manifest",
    "ChatRequest": "dtrag.delivery.api.schemas.chat",
    "SearchRequest": "dtrag.delivery.api.schemas.search",
    "CategoryFilter": "dtrag.core.access.category_filter",
    "Scope": "dtrag.core.access.scope",
    "SearchFilters": "dtrag.core.access.scope",
    "HybridScoreFusion": "dtrag.core.ranking.fusion",
    "ScoreNormalizer": "dtrag.core.ranking.fusion",
    "QueryCharacteristics": "dtrag.core.text.questions",
    "CategoryPath": "dtrag.core.taxonomy.tree",
    "Taxonomy": "dtrag.core.taxonomy.tree",
    "DebateAgent": "dtrag.pipeline.debate.agent",
    "DebateEngine": "dtrag.pipeline.debate.engine",
    "DebateResult": "dtrag.core.debate",
    "DtragError": "dtrag.errors",
    "InvalidInput": "dtrag.errors",
    "NoActiveApp": "dtrag.errors",
    "NotOpened": "dtrag.errors",
    "FolderPlan": "dtrag.ingestion.folders",
    "SyncApp": "dtrag.opening",
    "IngestReport": "dtrag.ingestion.sources",
    "Progress": "dtrag.ingestion.sources",
    "RegulationEntityRecognizer": "dtrag.packs.regulation_ko.question_entities",
    "EntityType": "dtrag.packs.regulation_ko.question_entities",
    "EntityMatch": "dtrag.packs.regulation_ko.question_entities",
    "MultiStageQueryExpander": "dtrag.retrieval.lexicon_reader",
    "AdaptiveTopKSelector": "dtrag.packs.regulation_ko.top_k",
    "MultiHopRetriever": "dtrag.retrieval.regulation_hops",
    "EnhancedSearchService": "dtrag.retrieval.regulations",
    "LangGraphPipeline": "dtrag.pipeline.graph",
    "Pipeline": "dtrag.pipeline.execution",
    "PipelineRequest": "dtrag.pipeline.state",
    "PipelineResponse": "dtrag.pipeline.state",
    "PipelineState": "dtrag.pipeline.state",
    "step1_intent": "dtrag.pipeline.steps",
    "step2_retrieve": "dtrag.pipeline.steps",
    "step3_plan": "dtrag.pipeline.steps",
    "step4_tools_debate": "dtrag.pipeline.steps",
    "step5_compose": "dtrag.pipeline.steps",
    "step6_cite": "dtrag.pipeline.steps",
    "step7_respond": "dtrag.pipeline.steps",
    "STEP_TIMEOUTS": "dtrag.pipeline.timeouts",
    "execute_with_timeout": "dtrag.pipeline.timeouts",
    "ResultCache": "dtrag.retrieval.cache",
    "HybridSearchEngine": "dtrag.retrieval.engine",
    "get_search_statistics": "dtrag.functions",
    "hybrid_search": "dtrag.functions",
    "keyword_search": "dtrag.functions",
    "vector_search": "dtrag.functions",
    "CrossEncoderReranker": "dtrag.retrieval.rerank",
    "QualityResult": "dtrag.core.quality.scores",
    "RAGQualityEvaluator": "dtrag.evaluation.quality",
    "Settings": "dtrag.settings",
    "get_env_manager": "dtrag.settings",
    "ToolExecutionResult": "dtrag.tools.result",
    "execute_tool": "dtrag.tools.executor",
    "Tool": "dtrag.tools.registry",
    "ToolRegistry": "dtrag.tools.registry",
    "get_tool_registry": "dtrag.tools.default",
    "list_tools": "dtrag.tools.default",
    "tool": "dtrag.tools.schema",
}

_MODULES = frozenset({"embedding_service", "llm_service"})
"""Modules that are used as they are: `dtrag.llm_service.generate_answer(...)`."""

# Without `open`: `from dtrag import *` must not replace the function of that name that every program has.
__all__ = [
    "STEP_TIMEOUTS",
    "Absence",
    "AdaptiveTopKSelector",
    "AgentManifest",
    "Answer",
    "App",
    "CBRCaseResponse",
    "CBRQualityUpdateRequest",
    "CBRSystem",
    "CBRUpdateRequest",
    "CaseSuggestion",
    "CategoryFilter",
    "CategoryPath",
    "ChatRequest",
    "Citation",
    "CitationContext",
    "CrossEncoderReranker",
    "DebateAgent",
    "DebateEngine",
    "DebateResult",
    "DocumentSummary",
    "DtragError",
    "EnhancedSearchService",
    "EntityMatch",
    "EntityType",
    "Explanation",
    "FeedbackRequest",
    "FeedbackType",
    "FolderPlan",
    "FromCategoryRequest",
    "HybridScoreFusion",
    "HybridSearchEngine",
    "IngestReport",
    "InvalidInput",
    "LangGraphPipeline",
    "MultiHopRetriever",
    "MultiStageQueryExpander",
    "NoActiveApp",
    "NotOpened",
    "Pipeline",
    "PipelineRequest",
    "PipelineResponse",
    "PipelineState",
    "Progress",
    "QualityResult",
    "QueryCharacteristics",
    "RAGQualityEvaluator",
    "RegulationEntityRecognizer",
    "ResultCache",
    "Scope",
    "ScoreNormalizer",
    "SearchFilters",
    "SearchMetrics",
    "SearchRequest",
    "SearchResult",
    "Settings",
    "SimilarityMethod",
    "SuggestionRequest",
    "SyncApp",
    "Taxonomy",
    "Tool",
    "ToolExecutionResult",
    "ToolRegistry",
    "__version__",
    "embedding_service",
    "execute_tool",
    "execute_with_timeout",
    "get_env_manager",
    "get_search_statistics",
    "get_tool_registry",
    "hybrid_search",
    "keyword_search",
    "list_tools",
    "llm_service",
    "manifest_from_category",
    "open_sync",
    "step1_intent",
    "step2_retrieve",
    "step3_plan",
    "step4_tools_debate",
    "step5_compose",
    "step6_cite",
    "step7_respond",
    "tool",
    "vector_search",
]


def open(  # noqa: A001 - `dtrag.open()` is what it does
    *, data_dir: str | Path | None = None, database_url: str | None = None, **settings: Any
) -> AbstractAsyncContextManager[App]:
    """The engine on an embedded database in `data_dir`, or on the one at `database_url`; an async context manager.

    Other keyword arguments are settings by name (`embedder="none"`); what is not given comes from the environment.
    Raises `InvalidInput` for a bad setting, and `DatabaseUnavailable` on entering.
    """
    from dtrag.opening import AppOpening
    from dtrag.settings import Settings

    return AppOpening(Settings.load(data_dir=data_dir, database_url=database_url, **settings))


def open_sync(*, data_dir: str | Path | None = None, database_url: str | None = None, **settings: Any) -> SyncApp:
    """As `open`, for scripts and notebooks: an open app whose methods return results instead of awaitables.

    Use it with `with`, or close it with `close()`. It runs its event loop in a thread of its own, so it also works
    where a loop is running already, as in Jupyter. Raises `InvalidInput` and `DatabaseUnavailable`.
    """
    from dtrag.opening import SyncApp
    from dtrag.settings import Settings

    return SyncApp(Settings.load(data_dir=data_dir, database_url=database_url, **settings))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})  # `open` is among the former


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _MODULES:
        return import_module(f"dtrag.{name}")
    raise AttributeError(f"module 'dtrag' has no attribute {name!r}")
