"""Operations on a category tree: parsed from JSON, stored as JSON, applied by core/taxonomy/apply.py."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypedDict

from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.errors import Advice, InvalidInput

MOST_OPERATIONS = 1_000
MOST_PARTS = 100
"""Parts of one split, and paths of one merge."""
MOST_KEYWORDS = 100
MOST_GRADE_CHARACTERS = 20
MOST_DOCUMENTS = 10_000
"""Documents that one part of a split may name."""


class OperationRow(TypedDict, total=False):
    """An operation as JSON: `op`, and the fields of its kind."""

    op: str
    path: list[str]
    paths: list[list[str]]
    name: str
    to: list[str]
    into: list[str] | list[dict[str, Any]]
    node_id: int
    grade: str


@dataclass(frozen=True, slots=True)
class Add:
    """A new node at `path`, whose parent must exist. `node_id` is assigned when the operation is applied."""

    kind: ClassVar[str] = "add"
    path: CategoryPath
    node_id: int | None = None

    def as_json(self) -> OperationRow:
        """As JSON."""
        row: OperationRow = {"op": self.kind, "path": list(self.path.names)}
        if self.node_id is not None:
            row["node_id"] = self.node_id
        return row


@dataclass(frozen=True, slots=True)
class Rename:
    """Renames the node at `path`."""

    kind: ClassVar[str] = "rename"
    path: CategoryPath
    name: str

    def as_json(self) -> OperationRow:
        """As JSON."""
        return {"op": self.kind, "path": list(self.path.names), "name": self.name}


@dataclass(frozen=True, slots=True)
class Move:
    """Moves the branch at `path` below another parent; None: to the top level."""

    kind: ClassVar[str] = "move"
    path: CategoryPath
    to: CategoryPath | None

    def as_json(self) -> OperationRow:
        """As JSON."""
        return {"op": self.kind, "path": list(self.path.names), "to": list(self.to.names) if self.to else []}


@dataclass(frozen=True, slots=True)
class Merge:
    """Merges the nodes at `paths` into another, with documents and children; children of the same name are merged."""

    kind: ClassVar[str] = "merge"
    paths: tuple[CategoryPath, ...]
    into: CategoryPath

    def as_json(self) -> OperationRow:
        """As JSON."""
        return {"op": self.kind, "paths": [list(path.names) for path in self.paths], "into": list(self.into.names)}


@dataclass(frozen=True, slots=True)
class SplitPart:
    """A new child of a split node. It gets the listed documents, and those that contain its keywords."""

    name: str
    keywords: tuple[str, ...] = ()
    documents: tuple[uuid.UUID, ...] = ()
    node_id: int | None = None

    def as_json(self) -> dict[str, Any]:
        """As JSON."""
        row: dict[str, Any] = {"name": self.name}
        if self.keywords:
            row["keywords"] = list(self.keywords)
        if self.documents:
            row["documents"] = [str(document) for document in self.documents]
        if self.node_id is not None:
            row["node_id"] = self.node_id
        return row


@dataclass(frozen=True, slots=True)
class Split:
    """Adds children to the node at `path`; documents that match none of them stay on the node."""

    kind: ClassVar[str] = "split"
    path: CategoryPath
    into: tuple[SplitPart, ...]

    def as_json(self) -> OperationRow:
        """As JSON."""
        return {"op": self.kind, "path": list(self.path.names), "into": [part.as_json() for part in self.into]}


@dataclass(frozen=True, slots=True)
class Delete:
    """Deletes the branch at `path`; its documents move to `to`, else to the parent, from the top level to none."""

    kind: ClassVar[str] = "delete"
    path: CategoryPath
    to: CategoryPath | None = None

    def as_json(self) -> OperationRow:
        """As JSON."""
        row: OperationRow = {"op": self.kind, "path": list(self.path.names)}
        if self.to:
            row["to"] = list(self.to.names)
        return row


@dataclass(frozen=True, slots=True)
class SetGrade:
    """Gives the branch at `path` a grade by its name; "" takes its own away."""

    kind: ClassVar[str] = "grade"
    path: CategoryPath
    grade: str

    def as_json(self) -> OperationRow:
        """As JSON."""
        return {"op": self.kind, "path": list(self.path.names), "grade": self.grade}


Operation = Add | Rename | Move | Merge | Split | Delete | SetGrade
_FIELDS = {
    "add": ({"path"}, {"node_id"}),
    "rename": ({"path", "name"}, set()),
    "move": ({"path", "to"}, set()),
    "merge": ({"paths", "into"}, set()),
    "split": ({"path", "into"}, set()),
    "delete": ({"path"}, {"to"}),
    "grade": ({"path", "grade"}, set()),
}
"""Kind -> required fields, optional fields."""


def operations(rows: object) -> tuple[Operation, ...]:
    """From a list such as `[{"op": "add", "path": ["AI", "ML"]}]`. Raises `InvalidInput`."""
    if not isinstance(rows, Sequence) or isinstance(rows, (str, bytes)):
        raise InvalidInput("The operations are a list, such as [{'op': 'add', 'path': ['AI', 'ML']}].")
    if not 1 <= len(rows) <= MOST_OPERATIONS:
        raise InvalidInput(f"A change has 1 to {MOST_OPERATIONS:,} operations; this one has {len(rows):,}.")
    return tuple(_operation(row, number) for number, row in enumerate(rows, 1))


def _operation(row: object, number: int) -> Operation:
    kind = row.get("op") if isinstance(row, Mapping) else None
    if not isinstance(row, Mapping) or not isinstance(kind, str) or kind not in _FIELDS:
        raise InvalidInput(f"Operation {number}: 'op' is one of {', '.join(_FIELDS)}.")
    required, optional = _FIELDS[kind]
    if missing := sorted(required - row.keys()):
        raise InvalidInput(f"Operation {number} ({kind}) needs the field {missing[0]!r}.")
    if unknown := sorted(str(name)[:40] for name in row.keys() - required - optional - {"op"}):
        raise InvalidInput(f"Operation {number} ({kind}) has no field {unknown[0]!r}.")
    try:
        return _parsed(kind, row)
    except InvalidInput as error:
        raise InvalidInput(f"Operation {number} ({kind}): {error}") from error


def _parsed(kind: str, row: Mapping[str, Any]) -> Operation:
    if kind == "merge":
        paths = _listed(row["paths"], "paths", MOST_PARTS)
        return Merge(tuple(CategoryPath.parse(path) for path in paths), CategoryPath.parse(row["into"]))
    path = CategoryPath.parse(row["path"])
    if kind == "add":
        return Add(path, _node(row))
    if kind == "rename":
        return Rename(path, _single(row["name"]))
    if kind == "grade":
        return SetGrade(path, _grade(row["grade"]))
    if kind == "split":
        return Split(path, tuple(_part(part) for part in _listed(row["into"], "into", MOST_PARTS)))
    to = CategoryPath.parse(row["to"]) if row.get("to") else None
    return Move(path, to) if kind == "move" else Delete(path, to)


def _part(row: object) -> SplitPart:
    if not isinstance(row, Mapping) or "name" not in row or row.keys() - {"name", "keywords", "documents", "node_id"}:
        raise InvalidInput("A part is a name with keywords and documents, such as {'name': 'NLP', 'keywords': [...]}.")
    keywords = _listed(row.get("keywords") or [], "keywords", MOST_KEYWORDS, least=0)
    documents = _listed(row.get("documents") or [], "documents", MOST_DOCUMENTS, least=0)
    if not all(isinstance(word, str) and 1 <= len(word.strip()) <= 100 for word in keywords):
        raise InvalidInput("A keyword is a string of 1 to 100 characters.")
    try:
        document_ids = tuple(uuid.UUID(document) for document in documents)
    except (ValueError, AttributeError, TypeError) as error:
        raise InvalidInput("Documents are given by their ids.", Advice.DOCUMENT_IDS) from error
    return SplitPart(_single(row["name"]), tuple(word.strip() for word in keywords), document_ids, _node(row))


def _single(name: object) -> str:
    if not isinstance(name, str):
        raise InvalidInput("The name of a category is a string.")
    return CategoryPath.parse([name]).names[0]


def _grade(name: object) -> str:
    if not isinstance(name, str) or len(name) > MOST_GRADE_CHARACTERS:
        raise InvalidInput("'grade' is the name of a grade, or \"\" for none.")
    return name.strip()


def _node(row: Mapping[str, Any]) -> int | None:
    node_id = row.get("node_id")
    if node_id is not None and (not isinstance(node_id, int) or isinstance(node_id, bool) or node_id < 2):
        raise InvalidInput("'node_id' is assigned by the server: leave it out.")
    return node_id


def _listed(value: object, name: str, most: int, *, least: int = 1) -> Sequence[Any]:
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)) or not least <= len(value) <= most:
        raise InvalidInput(f"{name!r} is a list of {least} to {most:,} entries.")
    return value
