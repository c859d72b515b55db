"""The shapes of `/agents`, as OpenAPI shows them. What makes a manifest valid is `core/manifest.py`'s to say."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from dtrag.core.agent import Edition, Spending
from dtrag.core.manifest import MAX_AGENT_NAME, MAX_LEVELS, MAX_PATHS, MAX_TOOLS, TOOLS
from dtrag.delivery.api.schemas.common import AskResponse
from dtrag.delivery.api.schemas.search import Filters
from dtrag.governance.agents import Budget
from dtrag.retrieval.request import MAX_QUERY, MAX_TOP_K

_REQUEST = ConfigDict(extra="forbid", strict=True)
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


class AgentBody(BaseModel):
    """What an agent is made of."""

    model_config = _REQUEST

    version: Annotated[Any, WithJsonSchema({"type": "string"})] = Field(
        description="Version of the tree that the paths are meant in, MAJOR.MINOR.PATCH.", examples=["1.0.0"]
    )
    node_paths: Annotated[Any, WithJsonSchema(_NODE_PATHS)] = Field(
        description="1 to 10 category paths of 1 to 5 names; each stands for its whole branch.",
        examples=[[["HR", "Leave"]]],
    )
    options: Annotated[Any, WithJsonSchema({"anyOf": [_OPTIONS, {"type": "null"}]})] = Field(
        None, description="Tools, switches, numbers of candidates, threshold and budgets that differ from the usual."
    )
    name: Annotated[
        Any, WithJsonSchema({"anyOf": [{"type": "string", "maxLength": MAX_AGENT_NAME}, {"type": "null"}]})
    ] = Field(None, description="Its name; without one it is called after its first path.")


class AgentChange(AgentBody):
    """A new edition of an agent: everything anew but its name, which stays unless one is given."""

    edition: int | None = Field(None, ge=1, description="The edition that you have seen: 409 when it is not in force.")


class RerankShape(BaseModel):
    """How the best are chosen from the candidates."""

    candidates: int = Field(description="Passages a reranker reads at most.")
    final_topk: int = Field(description="Passages the agent is left with at most.")


class FilterShape(BaseModel):
    """The agent's branches as a filter."""

    canonical_in: bool = Field(description="Always true: documents of its branches and no others.")


class RetrievalShape(BaseModel):
    """How the agent retrieves."""

    bm25_topk: int = Field(description="Passages the lexical leg proposes at most.")
    vector_topk: int = Field(description="Passages the vector leg proposes at most.")
    rerank: RerankShape = Field(description="How the best are chosen.")
    filter: FilterShape = Field(description="What confines the agent.")


class BudgetsShape(BaseModel):
    """What an agent's models may use on a day; null: as the settings say."""

    tokens_per_day: int | None = Field(description="Tokens, of questions and answers.")
    krw_per_day: float | None = Field(description="Cost in won.")


class ManifestShape(BaseModel):
    """What an agent may use, and how it works."""

    name: str = Field(description="Its name.")
    taxonomy_version: str = Field(description="The version of the tree that its paths were meant in.")
    allowed_category_paths: list[list[str]] = Field(description="Its branches, folded, each once.")
    retrieval: RetrievalShape = Field(description="How it retrieves.")
    features: dict[str, bool | float] = Field(
        description="debate, hitl_below_conf (answers below wait for a person), cost_guard, and switches of your own."
    )
    mcp_tools_allowlist: list[str] = Field(description="Tools that it may use, and no others.")
    budgets: BudgetsShape = Field(description="What its models may use on a day (UTC).")


class AgentShape(ManifestShape):
    """An agent with its manifest."""

    agent_id: str = Field(description="Its id.")
    edition: int = Field(description="Counts from 1; grows with every change.")
    unresolved_paths: list[str] = Field(description="Paths that lead nowhere now; they hold nothing until they do.")
    created_by: str = Field(description="Who made it: the name of a key, or local.")
    created_at: str = Field(description="When, ISO 8601 in UTC.")
    updated_at: str = Field(description="When its edition came into force, ISO 8601 in UTC.")


class AgentList(BaseModel):
    """A page of the agents that you may see, the newest first."""

    agents: list[AgentShape] = Field(description="The agents of this page.")
    total: int = Field(description="How many you may see.")
    limit: int = Field(description="The page's size as asked for.")
    offset: int = Field(description="Agents before this page.")


class EditionShape(BaseModel):
    """A manifest that an agent has, or had."""

    edition: int = Field(description="Counts from 1.")
    manifest: ManifestShape = Field(description="The manifest.")
    created_by: str = Field(description="Who changed it.")
    created_at: str = Field(description="When, ISO 8601 in UTC.")

    @classmethod
    def of(cls, kept: Edition) -> EditionShape:
        """The edition as it is shown."""
        return cls(
            edition=kept.edition,
            manifest=ManifestShape.model_validate(kept.manifest.as_dict()),
            created_by=kept.created_by,
            created_at=kept.created_at.isoformat(),
        )


class Editions(BaseModel):
    """Every manifest that an agent has had."""

    editions: list[EditionShape] = Field(description="The newest first.")


class SpendingShape(BaseModel):
    """What an agent's models have used on a day, and what they may."""

    day: str = Field(description="The day, in UTC.")
    calls: int = Field(description="Calls of models.")
    tokens: int = Field(description="Tokens, of questions and answers.")
    krw: float = Field(description="Cost in won.")
    tokens_per_day: int = Field(description="Tokens they may use on a day.")
    krw_per_day: float = Field(description="Won they may cost on a day.")

    @classmethod
    def of(cls, used: Spending, budget: Budget) -> SpendingShape:
        """What was used beside what may be."""
        return cls(
            day=used.day.isoformat(),
            calls=used.calls,
            tokens=used.tokens,
            krw=used.krw,
            tokens_per_day=budget.tokens,
            krw_per_day=budget.krw,
        )


class AgentSearch(BaseModel):
    """What to search an agent's branches for."""

    model_config = _REQUEST

    query: str = Field(max_length=MAX_QUERY, description="Words or a question; blank finds nothing.")
    top_k: int | None = Field(
        None, ge=1, le=MAX_TOP_K, description="How many passages at most; never more than the manifest's final_topk."
    )
    filters: Filters = None


class AgentQuestion(BaseModel):
    """A question to an agent."""

    model_config = _REQUEST

    question: str = Field(max_length=MAX_QUERY, description="The question.")
    filters: Filters = None


class AgentAskResponse(AskResponse):
    """An agent's answer with what proves it."""

    agent_id: str = Field(description="The agent.")
    hitl_required: bool = Field(
        description="Whether the confidence is below the agent's threshold: then the answer waits for a person, too."
    )
