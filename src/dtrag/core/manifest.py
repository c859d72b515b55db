"""An agent's manifest: its version of the tree, its branches and its options; created and validated here.

A manifest is created from a request (AC-ORCH-006): a version of the tree, one to ten paths, and options. Its paths are
folded, so that two spellings of a branch are the same.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict, TypeGuard

from dtrag.core.response import TEXT, TEXTS, Written, plain, response
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.core.taxonomy.versions import parse_version
from dtrag.core.text.hidden_characters import has_controls
from dtrag.errors import InvalidInput

MAX_PATHS = 10
MAX_LEVELS = 5
MAX_AGENT_NAME = 120
MAX_CUSTOM = 20
TOOLS = ("calculator", "doc_parser", "web_search", "searcher", "translator", "summarizer", "analyzer")
"""Built-in tools, and names that the acceptance text reserves for others."""
_OF_A_SERVER = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}\.[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}")
"""`server.tool`, a tool of an MCP server; its existence and approval are checked when it is called."""
MAX_TOOLS = 20
TOPK_RANGE = (1, 50)
"""Candidates of one retriever: the reranker reads at most 50."""
HITL_RANGE = (0.1, 0.9)
"""With 0 no answer, with 1 every answer would go to the review queue."""
MAX_BUDGET = 10**12

_FEATURE = re.compile(r"[a-z][a-z0-9_]{0,49}")
_OPTIONS = ("mcp_tools", "custom_features", "override_settings", "budgets")
_FIXED_FEATURES = {
    "cost_guard": "it is always on.",
    "hitl_below_conf": "give it in override_settings.features.",
}
"""Features that custom_features may not set, and why."""


class FromCategoryBody(TypedDict):
    """The body of `POST /agents/from-category`."""

    version: str
    node_paths: list[list[str]]
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reranking:
    """Reranking."""

    __pydantic_config__ = response("RerankShape")

    candidates: int = 50
    """Maximum number of passages that are reranked."""
    final_topk: int = 5
    """Maximum number of passages after reranking."""


@dataclass(frozen=True, slots=True)
class BranchFilter:
    """The agent's branches as a filter."""

    __pydantic_config__ = response("FilterShape")

    canonical_in: bool = True
    """Always true: only documents of its branches."""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """How the agent retrieves."""

    __pydantic_config__ = response("RetrievalShape")

    bm25_topk: int = 12
    """Maximum number of lexical candidates."""
    vector_topk: int = 12
    """Maximum number of vector candidates."""
    rerank: Reranking = Reranking()
    """Reranking of the candidates."""
    filter: BranchFilter = BranchFilter()
    """The restriction to its branches."""


@dataclass(frozen=True, slots=True)
class Features:
    """Features of an agent; `custom` are switches that the organisation defines."""

    debate: bool = False
    hitl_below_conf: float = 0.70
    cost_guard: bool = True
    custom: tuple[tuple[str, bool], ...] = ()

    def as_json(self) -> dict[str, bool | float]:
        """As JSON."""
        return {
            "debate": self.debate,
            "hitl_below_conf": self.hitl_below_conf,
            "cost_guard": self.cost_guard,
            **dict(self.custom),
        }


@dataclass(frozen=True, slots=True)
class Budgets:
    """Daily budgets of an agent's models (UTC); null: those of the settings."""

    __pydantic_config__ = response("BudgetsShape")

    tokens_per_day: int | None = None
    """Input and output tokens."""
    krw_per_day: float | None = None
    """Cost in won."""


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """Options of an agent: everything but its name, branches and version of the tree."""

    retrieval: Retrieval = Retrieval()
    features: Features = Features()
    mcp_tools_allowlist: tuple[str, ...] = ()
    budgets: Budgets = Budgets()

    @classmethod
    def parse(cls, options: object) -> AgentOptions:
        """From the options of a request, or None. Raises `InvalidInput` for unknown keys and invalid values."""
        parsed = _object("options", options, _OPTIONS)
        settings = _object("override_settings", parsed.get("override_settings"), ("retrieval", "features"))
        numbers = _object("override_settings.retrieval", settings.get("retrieval"), ("bm25_topk", "vector_topk"))
        features = _object("override_settings.features", settings.get("features"), ("hitl_below_conf",))
        custom = _custom(parsed.get("custom_features"))
        candidates: dict[str, Any] = {key: _whole(key, value, TOPK_RANGE) for key, value in numbers.items()}
        return cls(
            retrieval=Retrieval(**candidates),
            features=Features(
                debate=custom.pop("debate", False),
                hitl_below_conf=_confidence(features.get("hitl_below_conf", Features().hitl_below_conf)),
                custom=tuple(custom.items()),
            ),
            mcp_tools_allowlist=_tools(parsed.get("mcp_tools")),
            budgets=_budgets(_object("budgets", parsed.get("budgets"), ("tokens_per_day", "krw_per_day"))),
        )


def is_list(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether it is a sequence other than a string."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _object(name: str, value: object, keys: Iterable[str]) -> dict[str, object]:
    """A mapping with only these keys; {} for None. Raises `InvalidInput`."""
    known = sorted(keys)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{name} is an object with: {', '.join(known)}.")
    for key in value:
        if key not in known:
            raise InvalidInput(f"Unknown key {str(key)[:40]!r} in {name}. Known: {', '.join(known)}.")
    return dict(value)


def _tools(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not is_list(value) or len(value) > MAX_TOOLS:
        raise InvalidInput(f"mcp_tools is a list of at most {MAX_TOOLS} tools: {', '.join(TOOLS)}.")
    for tool in value:
        if not isinstance(tool, str) or (tool not in TOOLS and not _OF_A_SERVER.fullmatch(tool)):
            known = ", ".join(TOOLS)
            raise InvalidInput(f"Unknown tool. Known: {known}, and server.tool of MCP servers.")
    return tuple(dict.fromkeys(value))


def _custom(value: object) -> dict[str, bool]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or len(value) > MAX_CUSTOM:
        raise InvalidInput(
            f"custom_features is an object of at most {MAX_CUSTOM} switches, such as {{'debate': true}}."
        )
    for name, switch in value.items():
        if name in _FIXED_FEATURES:
            raise InvalidInput(f"custom_features cannot set {name}: {_FIXED_FEATURES[name]}")
        if not isinstance(name, str) or not _FEATURE.fullmatch(name) or not isinstance(switch, bool):
            raise InvalidInput("Each of custom_features is a name (a-z, 0-9, _, at most 50) with true or false.")
    return dict(value)


def _whole(name: str, value: object, limits: tuple[int, int]) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not limits[0] <= value <= limits[1]:
        raise InvalidInput(f"{name} must be a whole number from {limits[0]} to {limits[1]}.")
    return value


def _confidence(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not HITL_RANGE[0] <= value <= HITL_RANGE[1]:
        raise InvalidInput(f"hitl_below_conf must be a number from {HITL_RANGE[0]} to {HITL_RANGE[1]}.")
    return float(value)


def _budgets(limits: Mapping[str, object]) -> Budgets:
    tokens, won = limits.get("tokens_per_day"), limits.get("krw_per_day")
    return Budgets(
        None if tokens is None else _whole("tokens_per_day", tokens, (0, MAX_BUDGET)),
        None if won is None else _won(won),
    )


def _won(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= MAX_BUDGET:  # nor NaN
        raise InvalidInput(f"krw_per_day must be a number from 0 to {MAX_BUDGET:,}.")
    return value


Branches = Annotated[
    tuple[CategoryPath, ...],
    Written(lambda paths: [list(path.key) for path in paths], {"type": "list", "items_schema": TEXTS}),
]
AsSwitches = Annotated[
    Features,
    Written(
        Features.as_json,
        {
            "type": "dict",
            "keys_schema": TEXT,
            "values_schema": {"type": "union", "choices": [{"type": "bool"}, {"type": "float"}]},
        },
    ),
]


@dataclass(frozen=True, slots=True)
class AgentManifest:
    """The rights and options of an agent."""

    # The paths are distinct, in the order of the request, each in its first spelling; JSON has them folded.
    __pydantic_config__ = response("ManifestShape")

    name: str
    """Its name."""
    taxonomy_version: str
    """The version of the tree to which its paths refer."""
    allowed_category_paths: Branches
    """Its branches, case-folded, without duplicates."""
    retrieval: Retrieval = field(default_factory=Retrieval)
    """Retrieval options."""
    features: AsSwitches = field(default_factory=Features)
    """debate, hitl_below_conf (answers below it wait for review), cost_guard, and your own switches."""
    mcp_tools_allowlist: tuple[str, ...] = ()
    """The only tools that it may use."""
    budgets: Budgets = field(default_factory=Budgets)
    """Daily budgets of its models (UTC)."""

    def as_dict(self) -> dict[str, Any]:
        """As JSON: for display and for the database."""
        values: dict[str, Any] = plain(self)
        return values

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> AgentManifest:
        """The inverse of `as_dict`."""
        retrieval, features = stored["retrieval"], dict(stored["features"])
        own = {key: features.pop(key) for key in ("debate", "hitl_below_conf", "cost_guard")}
        return cls(
            name=stored["name"],
            taxonomy_version=stored["taxonomy_version"],
            allowed_category_paths=tuple(_folded(path) for path in stored["allowed_category_paths"]),
            retrieval=Retrieval(retrieval["bm25_topk"], retrieval["vector_topk"], Reranking(**retrieval["rerank"])),
            features=Features(**own, custom=tuple(features.items())),
            mcp_tools_allowlist=tuple(stored["mcp_tools_allowlist"]),
            budgets=Budgets(**stored["budgets"]),
        )


@dataclass(frozen=True, slots=True)
class FromCategoryRequest:
    """A request to `POST /agents/from-category`, not validated: `client.post(..., json=request.dict())`."""

    version: str
    node_paths: Sequence[Sequence[str]]
    options: Mapping[str, Any] = field(default_factory=dict)

    def dict(self) -> FromCategoryBody:
        """The body of the request."""
        return {
            "version": self.version,
            "node_paths": [list(path) for path in self.node_paths],
            "options": {**self.options},
        }


def manifest_from_category(
    version: object, node_paths: object, options: object = None, *, name: object = None
) -> AgentManifest:
    """The manifest for these branches; by default named after the first one. Raises `InvalidInput`."""
    checked = checked_version(version)
    paths = _paths(node_paths)
    agent_name = checked_name(name) if name is not None else f"Agent-{paths[0]}"[:MAX_AGENT_NAME]
    parsed = AgentOptions.parse(options)
    return AgentManifest(
        agent_name, checked, paths, parsed.retrieval, parsed.features, parsed.mcp_tools_allowlist, parsed.budgets
    )


def checked_version(version: object) -> str:
    """The version, if it is a semantic version. Raises `InvalidInput`."""
    parse_version(version)
    return str(version)


def checked_name(name: object) -> str:
    """The name of an agent: one line of 1 to 120 visible characters. Raises `InvalidInput`."""
    shown = unicodedata.normalize("NFC", name).strip() if isinstance(name, str) else ""
    hidden = any(unicodedata.category(character)[0] in "CZ" and character != " " for character in shown)
    if not 1 <= len(shown) <= MAX_AGENT_NAME or hidden:
        raise InvalidInput(f"The name of an agent is one line of 1 to {MAX_AGENT_NAME} characters.")
    return shown


def _paths(node_paths: object) -> tuple[CategoryPath, ...]:
    """The distinct paths, each in its first spelling. Counts are checked first, because that is cheapest."""
    if not is_list(node_paths) or not node_paths:
        raise InvalidInput("node_paths is a list of 1 to 10 category paths, such as [['AI', 'ML']].")
    if len(node_paths) > MAX_PATHS:
        raise InvalidInput(f"Max {MAX_PATHS} paths allowed; there are {len(node_paths):,}.")
    distinct: dict[tuple[str, ...], CategoryPath] = {}
    for path in node_paths:
        if not is_list(path) or not path:
            raise InvalidInput("Each of node_paths is a list of names, outermost first, such as ['AI', 'ML'].")
        if len(path) > MAX_LEVELS:
            raise InvalidInput(f"Max {MAX_LEVELS} levels allowed; a path has {len(path):,}.")
        if any(isinstance(name, str) and has_controls(name) for name in path):
            raise InvalidInput("Unsafe characters detected: a category name contains a control character.")
        parsed = CategoryPath.parse(path)
        distinct.setdefault(parsed.key, parsed)
    return tuple(distinct.values())


def _folded(path: Sequence[str]) -> CategoryPath:
    """A stored path, not validated again: folded names may exceed the limit of names."""
    return CategoryPath(tuple(path), tuple(path))
