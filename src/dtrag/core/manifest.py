"""An agent's manifest: its version of the tree, its branches, and what it may do with them. Checked here, once.

A manifest is made of what a request names (AC-ORCH-006): a version of the tree, one to ten paths, and options. It shows
folded paths, so that two spellings of a branch are one line of it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from dtrag.core.agent_options import AgentOptions, Budgets, Features, Retrieval, is_list
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.errors import InvalidInput

MAX_PATHS = 10
MAX_LEVELS = 5
MAX_VERSION = 100
MAX_AGENT_NAME = 120

_NUMBER = r"(?:0|[1-9][0-9]*)"
_MARK = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_MARK}(?:\.{_MARK})*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
"""Semantic Versioning 2.0.0, its grammar as written, matched in full and in ASCII (decision D4)."""


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
    """A semantic version. Raises `InvalidInput`."""
    if not isinstance(version, str) or len(version) > MAX_VERSION or not _VERSION.fullmatch(version):
        raise InvalidInput("Invalid version format: give MAJOR.MINOR.PATCH, such as 1.0.0 or 2.5.3-beta.1.")
    return version


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
        if any(_steers(name) for name in path):
            raise InvalidInput("Unsafe characters detected: a category name holds a control character.")
        parsed = CategoryPath.parse(path)
        found.setdefault(parsed.key, parsed)
    return tuple(found.values())


def _folded(path: Sequence[str]) -> CategoryPath:
    """A path as it was stored, which was checked then: folded names may be longer than names are written."""
    return CategoryPath(tuple(path), tuple(path))


def _steers(name: object) -> bool:
    return isinstance(name, str) and not name.isprintable() and any(ord(c) < 32 or 127 <= ord(c) < 160 for c in name)
