"""What an agent does with its branches: how it retrieves, what it may use and spend; made of a request's options."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from dtrag.errors import InvalidInput

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
