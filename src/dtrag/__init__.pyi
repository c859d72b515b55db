"""The public names of dtrag. Type checkers read them here, and the package finds the modules of its names here."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from dtrag.app import App as App
from dtrag.cbr_system import CBRSystem as CBRSystem
from dtrag.core.access.category_filter import CategoryFilter as CategoryFilter
from dtrag.core.access.scope import Scope as Scope
from dtrag.core.access.scope import SearchFilters as SearchFilters
from dtrag.core.cases.case import FeedbackType as FeedbackType
from dtrag.core.cases.case import SimilarityMethod as SimilarityMethod
from dtrag.core.cases.requests import (
    CaseSuggestion as CaseSuggestion,
)
from dtrag.core.cases.requests import (
    CBRCaseResponse as CBRCaseResponse,
)
from dtrag.core.cases.requests import (
    CBRQualityUpdateRequest as CBRQualityUpdateRequest,
)
from dtrag.core.cases.requests import (
    CBRUpdateRequest as CBRUpdateRequest,
)
from dtrag.core.cases.requests import (
    FeedbackRequest as FeedbackRequest,
)
from dtrag.core.cases.requests import (
    SuggestionRequest as SuggestionRequest,
)
from dtrag.core.debate import DebateResult as DebateResult
from dtrag.core.documents import (
    Absence as Absence,
)
from dtrag.core.documents import (
    Answer as Answer,
)
from dtrag.core.documents import (
    Citation as Citation,
)
from dtrag.core.documents import (
    CitationContext as CitationContext,
)
from dtrag.core.documents import (
    DocumentSummary as DocumentSummary,
)
from dtrag.core.documents import (
    Explanation as Explanation,
)
from dtrag.core.documents import (
    SearchMetrics as SearchMetrics,
)
from dtrag.core.documents import (
    SearchResult as SearchResult,
)
from dtrag.core.manifest import (
    AgentManifest as AgentManifest,
)
from dtrag.core.manifest import (
    FromCategoryRequest as FromCategoryRequest,
)
from dtrag.core.manifest import (
    manifest_from_category as manifest_from_category,
)
from dtrag.core.quality.scores import QualityResult as QualityResult
from dtrag.core.ranking.fusion import HybridScoreFusion as HybridScoreFusion
from dtrag.core.ranking.fusion import ScoreNormalizer as ScoreNormalizer
from dtrag.core.taxonomy.tree import CategoryPath as CategoryPath
from dtrag.core.taxonomy.tree import Taxonomy as Taxonomy
from dtrag.core.text.questions import QueryCharacteristics as QueryCharacteristics
from dtrag.core.version import __version__ as __version__
from dtrag.delivery.api.routes.chat import ChatRequest as ChatRequest
from dtrag.delivery.api.routing import SearchRequest as SearchRequest
from dtrag.errors import (
    DtragError as DtragError,
)
from dtrag.errors import (
    InvalidInput as InvalidInput,
)
from dtrag.errors import (
    NoActiveApp as NoActiveApp,
)
from dtrag.errors import (
    NotOpened as NotOpened,
)
from dtrag.evaluation.quality import RAGQualityEvaluator as RAGQualityEvaluator
from dtrag.functions import (
    get_search_statistics as get_search_statistics,
)
from dtrag.functions import (
    hybrid_search as hybrid_search,
)
from dtrag.functions import (
    keyword_search as keyword_search,
)
from dtrag.functions import (
    vector_search as vector_search,
)
from dtrag.ingestion.folders import FolderPlan as FolderPlan
from dtrag.ingestion.sources import IngestReport as IngestReport
from dtrag.ingestion.sources import Progress as Progress
from dtrag.opening import SyncApp as SyncApp
from dtrag.pipeline.debate.agent import DebateAgent as DebateAgent
from dtrag.pipeline.debate.engine import DebateEngine as DebateEngine
from dtrag.pipeline.execution import LangGraphPipeline as LangGraphPipeline
from dtrag.pipeline.execution import Pipeline as Pipeline
from dtrag.pipeline.retrieve import step2_retrieve as step2_retrieve
from dtrag.pipeline.state import (
    PipelineRequest as PipelineRequest,
)
from dtrag.pipeline.state import (
    PipelineResponse as PipelineResponse,
)
from dtrag.pipeline.state import (
    PipelineState as PipelineState,
)
from dtrag.pipeline.steps import (
    step1_intent as step1_intent,
)
from dtrag.pipeline.steps import (
    step3_plan as step3_plan,
)
from dtrag.pipeline.steps import (
    step4_tools_debate as step4_tools_debate,
)
from dtrag.pipeline.steps import (
    step5_compose as step5_compose,
)
from dtrag.pipeline.steps import (
    step6_cite as step6_cite,
)
from dtrag.pipeline.steps import (
    step7_respond as step7_respond,
)
from dtrag.pipeline.timeouts import STEP_TIMEOUTS as STEP_TIMEOUTS
from dtrag.pipeline.timeouts import execute_with_timeout as execute_with_timeout
from dtrag.regulations.citation_hops import MultiHopRetriever as MultiHopRetriever
from dtrag.regulations.korean.question_concepts import AdaptiveTopKSelector as AdaptiveTopKSelector
from dtrag.regulations.korean.question_entities import (
    EntityMatch as EntityMatch,
)
from dtrag.regulations.korean.question_entities import (
    EntityType as EntityType,
)
from dtrag.regulations.korean.question_entities import (
    RegulationEntityRecognizer as RegulationEntityRecognizer,
)
from dtrag.regulations.lexicon import MultiStageQueryExpander as MultiStageQueryExpander
from dtrag.regulations.service import EnhancedSearchService as EnhancedSearchService
from dtrag.retrieval.cache import ResultCache as ResultCache
from dtrag.retrieval.engine import HybridSearchEngine as HybridSearchEngine
from dtrag.retrieval.rerank import CrossEncoderReranker as CrossEncoderReranker
from dtrag.settings import Settings as Settings
from dtrag.settings import get_env_manager as get_env_manager
from dtrag.tools.default_registry import get_tool_registry as get_tool_registry
from dtrag.tools.default_registry import list_tools as list_tools
from dtrag.tools.executor import execute_tool as execute_tool
from dtrag.tools.registry import Tool as Tool
from dtrag.tools.registry import ToolExecutionResult as ToolExecutionResult
from dtrag.tools.registry import ToolRegistry as ToolRegistry
from dtrag.tools.schema import tool as tool

from . import embedding_service as embedding_service
from . import llm_service as llm_service

__all__: list[str]

def open(  # noqa: A001
    *, data_dir: str | Path | None = None, database_url: str | None = None, **settings: Any
) -> AbstractAsyncContextManager[App]: ...
def open_sync(*, data_dir: str | Path | None = None, database_url: str | None = None, **settings: Any) -> SyncApp: ...
