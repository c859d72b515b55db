"""Bodies and responses of `/agents`. `core/manifest.py` validates manifests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from dtrag.core.agent import AgentEdition, AgentView
from dtrag.core.documents import Answer
from dtrag.core.manifest import MAX_AGENT_NAME, MAX_LEVELS, MAX_PATHS, MAX_TOOLS, TOOLS
from dtrag.core.response import response
from dtrag.delivery.api.routing import StrictBody
from dtrag.delivery.api.schemas.search import AsOf, Filters
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


class AgentList(BaseModel):
    """A page of the agents that you may see, the newest first."""

    agents: list[AgentView] = Field(description="The agents of this page.")
    total: int = Field(description="Number of agents that you may see.")
    limit: int = Field(description="The requested page size.")
    offset: int = Field(description="Agents before this page.")


class AgentEditions(BaseModel):
    """All manifests of an agent."""

    model_config = ConfigDict(title="Editions")

    editions: list[AgentEdition] = Field(description="The newest first.")


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
