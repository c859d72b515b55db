"""An agent's manifest: its version of the tree, its branches, and what it may do with them. Checked here, once.

A manifest is made of what a request names (AC-ORCH-006): a version of the tree, one to ten paths, and options. It shows
folded paths, so that two spellings of a branch are one line of it.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeGuard

from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.core.taxonomy.versions import parse_version
from dtrag.core.text.hidden_characters import has_controls
from dtrag.errors import InvalidInput

MAX_PATHS = 10
MAX_LEVELS = 5
MAX_AGENT_NAME = 120
MAX_CUSTOM = 20
TOOLS = ("calculator", "doc_parser", "web_search", "searcher", "translator", "summarizer", "analyzer")
"""Tools that come with dtrag, and names that the acceptance text reserves for those of others."""
_OF_A_SERVER = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}\.[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}")
"""`server.tool`, a tool of an MCP server; whether there is one that is approved is seen when it is to run."""
MAX_TOOLS = 20
TOPK_RANGE = (1, 50)
"""A leg proposes so many passages: beyond 50 the reranker would not read them."""
HITL_RANGE = (0.1, 0.9)
"""At 0 nothing and at 1 everything would wait for a person."""
MAX_BUDGET = 10**12

_FEATURE = re.compile(r"[a-z][a-z0-9_]{0,49}")
_OPTIONS = ("mcp_tools", "custom_features", "override_settings", "budgets")
_FIXED = {
    "cost_guard": "it is always on.",
    "hitl_below_conf": "give it in override_settings.features.",
}
"""Features that custom_features may not set, and why."""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """How an agent retrieves: passages each leg proposes, passages reranked, passages it is left with."""

    bm25_topk: int = 12
    vector_topk: int = 12
    candidates: int = 50
    final_topk: int = 5

    def as_dict(self) -> dict[str, Any]:
        """As the manifest shows it; `canonical_in` is no option: an agent without its filter is not an agent."""
        return {
            "bm25_topk": self.bm25_topk,
            "vector_topk": self.vector_topk,
            "rerank": {"candidates": self.candidates, "final_topk": self.final_topk},
            "filter": {"canonical_in": True},
        }


@dataclass(frozen=True, slots=True)
class Features:
    """What an agent does besides retrieving; `custom` are switches by names of the organisation's own."""

    debate: bool = False
    hitl_below_conf: float = 0.70
    cost_guard: bool = True
    custom: tuple[tuple[str, bool], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """As the manifest shows it."""
        own = {"debate": self.debate, "hitl_below_conf": self.hitl_below_conf, "cost_guard": self.cost_guard}
        return own | dict(self.custom)


@dataclass(frozen=True, slots=True)
class Budgets:
    """What an agent's models may use on one day (UTC); None: as the settings say. Money in won."""

    tokens_per_day: int | None = None
    krw_per_day: float | None = None


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """Everything about an agent but its name, its branches and its version of the tree."""

    retrieval: Retrieval = Retrieval()
    features: Features = Features()
    mcp_tools_allowlist: tuple[str, ...] = ()
    budgets: Budgets = Budgets()

    @classmethod
    def parse(cls, options: object) -> AgentOptions:
        """From the options of a request; None for none. Raises `InvalidInput` for unknown keys and bad values."""
        given = _object("options", options, _OPTIONS)
        settings = _object("override_settings", given.get("override_settings"), ("retrieval", "features"))
        legs = _object("override_settings.retrieval", settings.get("retrieval"), ("bm25_topk", "vector_topk"))
        features = _object("override_settings.features", settings.get("features"), ("hitl_below_conf",))
        custom = _custom(given.get("custom_features"))
        return cls(
            retrieval=replace(Retrieval(), **{key: _whole(key, value, TOPK_RANGE) for key, value in legs.items()}),
            features=Features(
                debate=custom.pop("debate", False),
                hitl_below_conf=_confidence(features.get("hitl_below_conf", Features().hitl_below_conf)),
                custom=tuple(custom.items()),
            ),
            mcp_tools_allowlist=_tools(given.get("mcp_tools")),
            budgets=_budgets(_object("budgets", given.get("budgets"), ("tokens_per_day", "krw_per_day"))),
        )


def is_list(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether it is a list of things, and not a text."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _object(name: str, value: object, keys: Iterable[str]) -> dict[str, Any]:
    """A mapping with no other keys; {} for None. Raises `InvalidInput`."""
    known = sorted(keys)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{name} is an object with: {', '.join(known)}.")
    for key in value:
        if key not in known:
            raise InvalidInput(f"There is no {str(key)[:40]!r} in {name}. Known: {', '.join(known)}.")
    return dict(value)


def _tools(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not is_list(value) or len(value) > MAX_TOOLS:
        raise InvalidInput(f"mcp_tools is a list of at most {MAX_TOOLS} tools: {', '.join(TOOLS)}.")
    for tool in value:
        if not isinstance(tool, str) or (tool not in TOOLS and not _OF_A_SERVER.fullmatch(tool)):
            known = ", ".join(TOOLS)
            raise InvalidInput(
                f"There is no tool of one of these names. Known: {known}, and server.tool of MCP servers."
            )
    return tuple(dict.fromkeys(value))


def _custom(value: object) -> dict[str, bool]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or len(value) > MAX_CUSTOM:
        raise InvalidInput(
            f"custom_features is an object of at most {MAX_CUSTOM} switches, such as {{'debate': true}}."
        )
    for name, switch in value.items():
        if name in _FIXED:
            raise InvalidInput(f"custom_features cannot set {name}: {_FIXED[name]}")
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


def _budgets(given: Mapping[str, Any]) -> Budgets:
    tokens, won = given.get("tokens_per_day"), given.get("krw_per_day")
    if tokens is not None:
        tokens = _whole("tokens_per_day", tokens, (0, MAX_BUDGET))
    if won is not None:
        number = isinstance(won, (int, float)) and not isinstance(won, bool) and math.isfinite(won)
        if not number or not 0 <= won <= MAX_BUDGET:
            raise InvalidInput(f"krw_per_day must be a number from 0 to {MAX_BUDGET:,}.")
    return Budgets(tokens, won)


@dataclass(frozen=True, slots=True)
class AgentManifest:
    """A checked manifest. `allowed_category_paths` are without duplicates, in the order of the request.

    Each has the first spelling that it was written in; what `as_dict` shows and `from_dict` reads back is folded.
    """

    name: str
    taxonomy_version: str
    allowed_category_paths: tuple[CategoryPath, ...]
    retrieval: Retrieval = field(default_factory=Retrieval)
    features: Features = field(default_factory=Features)
    mcp_tools_allowlist: tuple[str, ...] = ()
    budgets: Budgets = field(default_factory=Budgets)

    def as_dict(self) -> dict[str, Any]:
        """The manifest as JSON and YAML show it and as it is stored."""
        return {
            "name": self.name,
            "taxonomy_version": self.taxonomy_version,
            "allowed_category_paths": [list(path.key) for path in self.allowed_category_paths],
            "retrieval": self.retrieval.as_dict(),
            "features": self.features.as_dict(),
            "mcp_tools_allowlist": list(self.mcp_tools_allowlist),
            "budgets": asdict(self.budgets),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> AgentManifest:
        """From what `as_dict` gave."""
        retrieval, features = stored["retrieval"], dict(stored["features"])
        own = {key: features.pop(key) for key in ("debate", "hitl_below_conf", "cost_guard")}
        return cls(
            name=stored["name"],
            taxonomy_version=stored["taxonomy_version"],
            allowed_category_paths=tuple(_folded(path) for path in stored["allowed_category_paths"]),
            retrieval=Retrieval(retrieval["bm25_topk"], retrieval["vector_topk"], **retrieval["rerank"]),
            features=Features(**own, custom=tuple(features.items())),
            mcp_tools_allowlist=tuple(stored["mcp_tools_allowlist"]),
            budgets=Budgets(**stored["budgets"]),
        )


@dataclass(frozen=True, slots=True)
class FromCategoryRequest:
    """What `POST /agents/from-category` takes, not checked yet: `client.post(..., json=request.dict())`."""

    version: str
    node_paths: Sequence[Sequence[str]]
    options: Mapping[str, Any] = field(default_factory=dict)

    def dict(self) -> dict[str, Any]:
        """The body of the request."""
        return {
            "version": self.version,
            "node_paths": [list(path) for path in self.node_paths],
            "options": {**self.options},
        }


def manifest_from_category(
    version: object, node_paths: object, options: object = None, *, name: object = None
) -> AgentManifest:
    """The manifest for these branches; without a name it is called after the first. Raises `InvalidInput`."""
    checked = checked_version(version)
    paths = _paths(node_paths)
    shown = checked_name(name) if name is not None else f"Agent-{paths[0]}"[:MAX_AGENT_NAME]
    chosen = AgentOptions.parse(options)
    return AgentManifest(
        shown, checked, paths, chosen.retrieval, chosen.features, chosen.mcp_tools_allowlist, chosen.budgets
    )


def checked_version(version: object) -> str:
    """A semantic version as it was given. Raises `InvalidInput`."""
    parse_version(version)
    return str(version)


def checked_name(name: object) -> str:
    """The name of an agent: one line of 1 to 120 characters that can be seen. Raises `InvalidInput`."""
    shown = unicodedata.normalize("NFC", name).strip() if isinstance(name, str) else ""
    hidden = any(unicodedata.category(character)[0] in "CZ" and character != " " for character in shown)
    if not 1 <= len(shown) <= MAX_AGENT_NAME or hidden:
        raise InvalidInput(f"The name of an agent is one line of 1 to {MAX_AGENT_NAME} characters.")
    return shown


def _paths(node_paths: object) -> tuple[CategoryPath, ...]:
    """The paths as written, the first spelling of each. The counts come first: they are the cheapest to refuse by."""
    if not is_list(node_paths) or not node_paths:
        raise InvalidInput("node_paths is a list of 1 to 10 category paths, such as [['AI', 'ML']].")
    if len(node_paths) > MAX_PATHS:
        raise InvalidInput(f"Max {MAX_PATHS} paths allowed; there are {len(node_paths):,}.")
    found: dict[tuple[str, ...], CategoryPath] = {}
    for path in node_paths:
        if not is_list(path) or not path:
            raise InvalidInput("Each of node_paths is a list of names, outermost first, such as ['AI', 'ML'].")
        if len(path) > MAX_LEVELS:
            raise InvalidInput(f"Max {MAX_LEVELS} levels allowed; a path has {len(path):,}.")
        if any(isinstance(name, str) and has_controls(name) for name in path):
            raise InvalidInput("Unsafe characters detected: a category name holds a control character.")
        parsed = CategoryPath.parse(path)
        found.setdefault(parsed.key, parsed)
    return tuple(found.values())


def _folded(path: Sequence[str]) -> CategoryPath:
    """A path as it was stored, which was checked then: folded names may be longer than names are written."""
    return CategoryPath(tuple(path), tuple(path))
