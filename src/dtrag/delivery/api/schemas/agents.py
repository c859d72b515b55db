"""Bodies and responses of `/agents`. `core/manifest.py` validates manifests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, Field, WithJsonSchema

from dtrag.core.agent import Edition, Spending
from dtrag.core.documents import Answer
from dtrag.core.manifest import MAX_AGENT_NAME, MAX_LEVELS, MAX_PATHS, MAX_TOOLS, TOOLS
from dtrag.core.response import response
from dtrag.delivery.api.schemas.base import StrictBody
from dtrag.delivery.api.schemas.search import AsOf, Filters
from dtrag.governance.agents import Budget
from dtrag.retrieval.request import MAX_QUERY, MAX_TOP_K

_TOPK = {"type": "integer", "minimum": 1, "maximum": 50}
_OPTIONS = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "mcp_tools": {"type": "array", "maxItems": MAX_TOOLS, "items": {"type": "string", "enum": list(TOOLS)}},
        "custom_features": {"type": "object", "additionalProperties": {"type": "boolean"}},
        "override_settings": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "retrieval": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"bm25_topk": _TOPK, "vector_topk": _TOPK},
                },
                "features": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"hitl_below_conf": {"type": "number", "minimum": 0.1, "maximum": 0.9}},
                },
            },
        },
        "budgets": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "tokens_per_day": {"type": "integer", "minimum": 0},
                "krw_per_day": {"type": "number", "minimum": 0},
            },
        },
    },
}
_NODE_PATHS = {
    "type": "array",
    "minItems": 1,
    "maxItems": MAX_PATHS,
    "items": {"type": "array", "minItems": 1, "maxItems": MAX_LEVELS, "items": {"type": "string"}},
}


class AgentBody(StrictBody):
    """The definition of an agent."""

    version: Annotated[object, WithJsonSchema({"type": "string"})] = Field(
        description="Version of the tree to which the paths refer, MAJOR.MINOR.PATCH.", examples=["1.0.0"]
    )
    node_paths: Annotated[object, WithJsonSchema(_NODE_PATHS)] = Field(
        description="1 to 10 category paths of 1 to 5 names; each includes its whole branch.",
        examples=[[["HR", "Leave"]]],
    )
    options: Annotated[object, WithJsonSchema({"anyOf": [_OPTIONS, {"type": "null"}]})] = Field(
        None, description="Tools, switches, numbers of candidates, threshold and budgets that differ from the defaults."
    )
    name: Annotated[
        object, WithJsonSchema({"anyOf": [{"type": "string", "maxLength": MAX_AGENT_NAME}, {"type": "null"}]})
    ] = Field(None, description="Its name; by default that of its first path.")


class AgentChange(AgentBody):
    """A new edition of an agent: everything is replaced except an omitted name."""

    edition: int | None = Field(
        None, ge=1, description="The edition you have seen: 409 when it is not the current one."
    )


class RerankShape(BaseModel):
    """Reranking."""

    candidates: int = Field(description="Maximum number of passages that are reranked.")
    final_topk: int = Field(description="Maximum number of passages after reranking.")


class FilterShape(BaseModel):
    """The agent's branches as a filter."""

    canonical_in: bool = Field(description="Always true: only documents of its branches.")


class RetrievalShape(BaseModel):
    """How the agent retrieves."""

    bm25_topk: int = Field(description="Maximum number of lexical candidates.")
    vector_topk: int = Field(description="Maximum number of vector candidates.")
    rerank: RerankShape = Field(description="Reranking of the candidates.")
    filter: FilterShape = Field(description="The restriction to its branches.")


class BudgetsShape(BaseModel):
    """Daily budgets of an agent's models; null: those of the settings."""

    tokens_per_day: int | None = Field(description="Input and output tokens.")
    krw_per_day: float | None = Field(description="Cost in won.")


class ManifestShape(BaseModel):
    """The rights and options of an agent."""

    name: str = Field(description="Its name.")
    taxonomy_version: str = Field(description="The version of the tree to which its paths refer.")
    allowed_category_paths: list[list[str]] = Field(description="Its branches, case-folded, without duplicates.")
    retrieval: RetrievalShape = Field(description="Retrieval options.")
    features: dict[str, bool | float] = Field(
        description="debate, hitl_below_conf (answers below it wait for review), cost_guard, and your own switches."
    )
    mcp_tools_allowlist: list[str] = Field(description="The only tools that it may use.")
    budgets: BudgetsShape = Field(description="Daily budgets of its models (UTC).")


class AgentShape(ManifestShape):
    """An agent with its manifest."""

    agent_id: str = Field(description="Its id.")
    edition: int = Field(description="Counts from 1; grows with every change.")
    unresolved_paths: list[str] = Field(
        description="Paths that do not exist in the active tree; no document belongs to them."
    )
    created_by: str = Field(description="Who created it: the name of a key, or local.")
    created_at: str = Field(description="When, ISO 8601 in UTC.")
    updated_at: str = Field(description="When its current edition was created, ISO 8601 in UTC.")


class AgentList(BaseModel):
    """A page of the agents that you may see, the newest first."""

    agents: list[AgentShape] = Field(description="The agents of this page.")
    total: int = Field(description="Number of agents that you may see.")
    limit: int = Field(description="The requested page size.")
    offset: int = Field(description="Agents before this page.")


class EditionShape(BaseModel):
    """A current or earlier manifest of an agent."""

    edition: int = Field(description="Counts from 1.")
    manifest: ManifestShape = Field(description="The manifest.")
    created_by: str = Field(description="Who changed it.")
    created_at: str = Field(description="When, ISO 8601 in UTC.")

    @classmethod
    def of(cls, edition: Edition) -> EditionShape:
        """From the stored edition."""
        return cls(
            edition=edition.edition,
            manifest=ManifestShape.model_validate(edition.manifest.as_dict()),
            created_by=edition.created_by,
            created_at=edition.created_at.isoformat(),
        )


class Editions(BaseModel):
    """All manifests of an agent."""

    editions: list[EditionShape] = Field(description="The newest first.")


class SpendingShape(BaseModel):
    """Usage of an agent's models on one day, and its budget."""

    day: str = Field(description="The day, in UTC.")
    calls: int = Field(description="Model calls.")
    tokens: int = Field(description="Input and output tokens.")
    krw: float = Field(description="Cost in won.")
    tokens_per_day: int = Field(description="Daily token budget.")
    krw_per_day: float = Field(description="Daily cost budget in won.")

    @classmethod
    def of(cls, spending: Spending, budget: Budget) -> SpendingShape:
        """From the usage of a day and the budget."""
        return cls(
            day=spending.day.isoformat(),
            calls=spending.calls,
            tokens=spending.tokens,
            krw=spending.krw,
            tokens_per_day=budget.tokens,
            krw_per_day=budget.krw,
        )


class AgentSearch(StrictBody):
    """A search in an agent's branches."""

    query: str = Field(max_length=MAX_QUERY, description="Words or a question; a blank query has no results.")
    top_k: int | None = Field(
        None, ge=1, le=MAX_TOP_K, description="Maximum number of passages; limited by the manifest's final_topk."
    )
    filters: Filters = None
    as_of: AsOf = None


class AgentQuestion(StrictBody):
    """A question to an agent."""

    question: str = Field(max_length=MAX_QUERY, description="The question.")
    filters: Filters = None
    as_of: AsOf = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAskResponse(Answer):
    """An agent's answer with its citations."""

    __pydantic_config__ = response()

    agent_id: str
    """The agent."""
    hitl_required: bool
    """Whether the confidence is below the agent's threshold: the answer then also waits for review."""


class AgentReachBody(StrictBody):
    """The branches of an agent that does not exist yet."""

    node_paths: list[list[str]] = Field(
        min_length=1,
        max_length=MAX_PATHS,
        description="Category paths; each includes its whole branch.",
        examples=[[["HR", "Leave"]]],
    )


class AgentReachShape(BaseModel):
    """What an agent reaches for the caller."""

    documents: int = Field(description="Documents that are valid today.")
    passages: int = Field(description="Their passages.")
