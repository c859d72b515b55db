"""Category trees and change files in YAML.

A tree is nested names: `AI: {ML: {}, Data: {}}`. A change is `parent`, `version` (both optional), `rationale` and
`operations`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from dtrag.core.taxonomy.apply import MOST_NODES
from dtrag.core.taxonomy.operations import Add, Operation, operations
from dtrag.core.taxonomy.tree import MAX_DEPTH, MAX_NAME, ROOT, CategoryPath, Taxonomy
from dtrag.errors import InvalidInput

MAX_CHARACTERS = 2_000_000
"""10,000 names of 50 characters with indentation take about half of it."""
MAX_RATIONALE = 2_000
_MOST_NESTING = 24


@dataclass(frozen=True, slots=True)
class ChangeFile:
    """Content of a change file."""

    operations: tuple[Operation, ...]
    rationale: str
    parent: str | None
    version: str | None


def read_change(text: str) -> ChangeFile:
    """Parse a change file. Raises `InvalidInput`."""
    change = _loaded(text)
    if not isinstance(change, dict) or "operations" not in change:
        raise InvalidInput("A change file has the fields operations, rationale and, optionally, parent and version.")
    if unknown := sorted(str(name)[:40] for name in change.keys() - {"operations", "rationale", "parent", "version"}):
        raise InvalidInput(f"A change file has no field {unknown[0]!r}.")
    for name in ("rationale", "parent", "version"):
        if not isinstance(change.get(name, ""), (str, type(None))):
            raise InvalidInput(f"The field {name!r} must be a string: put it in quotes.")
    return ChangeFile(
        operations(change["operations"]),
        change.get("rationale") or "",
        change.get("parent"),
        change.get("version"),
    )


def write_tree(taxonomy: Taxonomy) -> str:
    """The tree as nested names, sorted."""

    def below(node: int) -> dict[str, object]:
        children = sorted(taxonomy.children.get(node, {}).values(), key=lambda child: taxonomy.nodes[child].key)
        return {taxonomy.nodes[child].name: below(child) for child in children}

    return str(yaml.safe_dump(below(ROOT), allow_unicode=True, sort_keys=False, default_flow_style=False))


def read_tree(text: str) -> tuple[CategoryPath, ...]:
    """The paths of a tree of nested names, parents first. Raises `InvalidInput`."""
    tree = _loaded(text)
    if not isinstance(tree, dict):
        raise InvalidInput("A tree file is nested names, such as: AI: {ML: {}, Data: {}}")
    paths: list[CategoryPath] = []
    queue: list[tuple[tuple[str, ...], Any]] = [((), tree)]
    while queue:
        above, branch = queue.pop()
        if branch is None:
            continue
        if not isinstance(branch, Mapping):
            raise InvalidInput(f"Below {'/'.join(above)!r} there must be names with a colon each, or nothing.")
        if len(above) >= MAX_DEPTH and branch:
            raise InvalidInput(f"The tree is more than {MAX_DEPTH} levels deep, at {'/'.join(above)!r}.")
        for name, below in branch.items():
            path = _path(above, name)
            paths.append(path)
            queue.append((path.names, below))
        if len(paths) > MOST_NODES:
            raise InvalidInput(f"The tree has more than {MOST_NODES:,} categories.")
    return tuple(sorted(paths, key=lambda path: (len(path.key), path.key)))


def _path(above: tuple[str, ...], name: Any) -> CategoryPath:
    try:
        return CategoryPath.parse([*above, name])
    except InvalidInput as error:
        place = f"Below {'/'.join(above)!r}" if above else "At the top"
        raise InvalidInput(f"{place}, at {str(name)[:MAX_NAME]!r}: {error}") from error


def missing(paths: tuple[CategoryPath, ...], taxonomy: Taxonomy) -> tuple[Operation, ...]:
    """Operations that add the paths that the tree lacks."""
    return tuple(Add(path) for path in paths if taxonomy.find(path) is None)


class _Plain(yaml.SafeLoader):
    """Loads plain data; rejects references and duplicate keys."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise InvalidInput("The file uses references (*name), which can grow without bounds. Write them out.")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        names = [child.value for child, _ in node.value]
        if len(set(map(str, names))) != len(names):
            raise InvalidInput(f"A name is repeated at one place, in line {node.start_mark.line + 1}.")
        return super().construct_mapping(node, deep)


def _loaded(text: str) -> Any:
    if len(text) > MAX_CHARACTERS:
        raise InvalidInput(f"The file has more than {MAX_CHARACTERS:,} characters.")
    try:
        depth = 0
        for event in yaml.parse(text, yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _MOST_NESTING:
                raise InvalidInput("The file is nested too deeply.")
        return yaml.load(text, _Plain)  # nosec B506  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        raise InvalidInput(
            f"The file is not valid YAML{where}: {getattr(error, 'problem', '') or 'unreadable'}."
        ) from error
    except ValueError as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput("The file contains a value that cannot be read: put it in quotes.") from error
