"""Application of operations to a version of the category tree, and the resulting moves of documents."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dtrag.core.taxonomy.operations import Add, Delete, Merge, Move, Operation, Rename, SetGrade, Split, SplitPart
from dtrag.core.taxonomy.tree import MAX_DEPTH, ROOT, UNCLASSIFIED, CategoryPath, Node, Taxonomy
from dtrag.core.text.analysis import normalise
from dtrag.errors import Advice, InvalidInput

MOST_NODES = 10_000


@dataclass(frozen=True, slots=True)
class NodeRemoved:
    """A removed node; its documents move to `to`. `merged`: its children, too."""

    node_id: int
    to: int
    merged: bool


@dataclass(frozen=True, slots=True)
class NodeSplit:
    """A split node; some of its documents move to new children."""

    node_id: int
    parts: tuple[SplitPart, ...]

    def part_of(self, document_id: uuid.UUID, keywords: Collection[str]) -> int | None:
        """Node of the part that lists the document, else of that with most keywords in it, if more than half; or None.

        `keywords` are those keywords of the parts that the document contains.
        """
        for part in self.parts:
            if document_id in part.documents:
                return part.node_id
        counts = [(sum(word in keywords for word in part.keywords), part) for part in self.parts]
        most, chosen = max(counts, key=lambda pair: pair[0])
        return chosen.node_id if most and 2 * most > len(chosen.keywords) else None


@dataclass(frozen=True, slots=True)
class DocumentMoves:
    """Moves of documents, in the order of the operations."""

    steps: tuple[NodeRemoved | NodeSplit, ...] = ()

    @property
    def sources(self) -> frozenset[int]:
        """Nodes whose documents may move."""
        return frozenset(step.node_id for step in self.steps)

    @property
    def emptied(self) -> dict[int, int]:
        """Removed node -> the remaining node that gets its documents."""
        return {node: self.route(node, lambda step: None) for node in self.gone}

    @property
    def gone(self) -> frozenset[int]:
        """Removed nodes."""
        return frozenset(step.node_id for step in self.steps if isinstance(step, NodeRemoved))

    @property
    def merged(self) -> dict[int, int]:
        """As `emptied`, for merged nodes only."""
        gone = {step.node_id for step in self.steps if isinstance(step, NodeRemoved) and step.merged}
        return {node: to for node, to in self.emptied.items() if node in gone}

    def divides(self, node_id: int) -> bool:
        """Whether documents of the node move to different nodes."""
        splits: list[NodeSplit] = []
        self.route(node_id, splits.append)
        return bool(splits)

    def route(self, node_id: int, choose: Callable[[NodeSplit], int | None]) -> int:
        """Final node of a document on `node_id`; `choose` returns its part of a split, or None to stay."""
        for step in self.steps:
            if step.node_id == node_id:
                part = step.to if isinstance(step, NodeRemoved) else choose(step)
                node_id = node_id if part is None else part
        return node_id


@dataclass(frozen=True, slots=True)
class Applied:
    """The resulting tree, the operations with assigned node ids, and the moves of documents."""

    taxonomy: Taxonomy
    operations: tuple[Operation, ...]
    rehoming: DocumentMoves
    next_id: int


def applied(taxonomy: Taxonomy, operations: Iterable[Operation], version: str, next_id: int) -> Applied:
    """Apply the operations in order; new nodes are numbered from `next_id`.

    Node ids in the operations are used, so that applying them again gives the same tree. Raises `InvalidInput` with
    the number of the operation that fails.
    """
    tree = _Tree(taxonomy, next_id)
    done: list[Operation] = []
    for number, operation in enumerate(operations, 1):
        try:
            done.append(tree.apply(operation))
        except InvalidInput as error:
            raise InvalidInput(f"Operation {number} ({operation.kind}): {error}") from error
    grown = Taxonomy.of(version, tree.nodes.values())
    check(grown)
    return Applied(grown, tuple(done), DocumentMoves(tuple(tree.steps)), tree.next_id)


def check(taxonomy: Taxonomy) -> None:
    """Raise `InvalidInput` unless it is a tree within MOST_NODES and MAX_DEPTH, without duplicates."""
    if len(taxonomy.nodes) > MOST_NODES:
        raise InvalidInput(f"The tree would have more than {MOST_NODES:,} categories, which is the maximum.")
    level, depth, reached = [ROOT], 0, 0
    while level := [child for node in level for child in taxonomy.children.get(node, {}).values()]:
        depth, reached = depth + 1, reached + len(level)
        if depth > MAX_DEPTH:
            name = "/".join(taxonomy.path(level[0]))
            raise InvalidInput(f"The tree would be more than {MAX_DEPTH} levels deep, at {name!r}.")
    if reached != len(taxonomy.nodes):
        raise InvalidInput(
            "Some categories have a parent that is not in the tree, or two with the same parent share a name."
        )


class _Tree:
    """A tree while it is being changed."""

    def __init__(self, taxonomy: Taxonomy, next_id: int):
        self.nodes = dict(taxonomy.nodes)
        self.children = {parent: dict(nodes) for parent, nodes in taxonomy.children.items()}
        self.steps: list[NodeRemoved | NodeSplit] = []
        self.next_id = next_id

    def apply(self, operation: Operation) -> Operation:
        """Apply it; returns it with assigned node ids."""
        if isinstance(operation, Add):
            return self._add(operation)
        if isinstance(operation, Split):
            return self._split(operation)
        if isinstance(operation, Rename):
            node = self._at(operation.path)
            self._place(replace(self.nodes[node], name=operation.name, key=normalise(operation.name)))
        elif isinstance(operation, Move):
            self._move(operation)
        elif isinstance(operation, Merge):
            self._merge(operation)
        elif isinstance(operation, SetGrade):
            node = self._at(operation.path)
            self.nodes[node] = replace(self.nodes[node], grade=operation.grade)
        else:
            self._delete(operation)
        return operation

    def _add(self, operation: Add) -> Add:
        *above, name = operation.path.names
        parent = self._at(CategoryPath.parse(above)) if above else ROOT
        return replace(operation, node_id=self._new(parent, name, operation.node_id))

    def _split(self, operation: Split) -> Split:
        node = self._at(operation.path)
        parts = tuple(replace(part, node_id=self._new(node, part.name, part.node_id)) for part in operation.into)
        self.steps.append(NodeSplit(node, parts))
        return replace(operation, into=parts)

    def _move(self, operation: Move) -> None:
        node = self._at(operation.path)
        parent = self._at(operation.to) if operation.to else ROOT
        if parent in self._branch(node):
            raise InvalidInput(f"{str(operation.path)!r} cannot be moved below itself. Give a parent outside of it.")
        self._place(replace(self.nodes[node], parent_id=parent))
        self._check_depth(node)

    def _merge(self, operation: Merge) -> None:
        into = self._at(operation.into)
        sources = [self._at(path) for path in operation.paths]
        for source, path in zip(sources, operation.paths, strict=True):
            branch = self._branch(source)
            if into in branch:
                raise InvalidInput(f"{str(path)!r} cannot be merged into its own branch.")
            if sum(other in branch for other in sources) > 1:
                raise InvalidInput(f"{str(path)!r} is named twice, or with a category of its own branch.")
        for source in sources:
            self._join(source, into)
        self._check_depth(into)

    def _join(self, source: int, into: int) -> None:
        """Move everything from `source` to `into`; children of the same name are merged."""
        below = list(self.children.get(source, {}).values())
        self._forget(source)
        self.steps.append(NodeRemoved(source, into, merged=True))
        for child in below:
            same_name = self.children.get(into, {}).get(self.nodes[child].key)
            if same_name is None:
                self._place(replace(self.nodes[child], parent_id=into))
            else:
                self._join(child, same_name)

    def _delete(self, operation: Delete) -> None:
        node = self._at(operation.path)
        branch = self._branch(node)
        parent = self.nodes[node].parent_id
        to = self._at(operation.to) if operation.to else (UNCLASSIFIED if parent == ROOT else parent)
        if to in branch:
            raise InvalidInput(
                f"The documents of {str(operation.path)!r} cannot move to a category that is deleted, too."
            )
        for gone in sorted(branch):
            self._forget(gone)
            self.steps.append(NodeRemoved(gone, to, merged=False))

    def _at(self, path: CategoryPath) -> int:
        current = ROOT
        for key in path.key:
            child = self.children.get(current, {}).get(key)
            if child is None:
                raise InvalidInput(f"There is no category {str(path)!r}.", Advice.LIST_CATEGORIES)
            current = child
        return current

    def _new(self, parent: int, name: str, node_id: int | None) -> int:
        if node_id is None:
            node_id, self.next_id = self.next_id, self.next_id + 1
        elif node_id in self.nodes:
            raise InvalidInput(f"The id {node_id} is in use. Leave 'node_id' out.")
        self._place(Node(node_id, parent, name, normalise(name)))
        self._check_depth(node_id)
        return node_id

    def _place(self, node: Node) -> None:
        """Insert or move the node to its parent, under its name."""
        occupant = self.children.get(node.parent_id, {}).get(node.key)
        if occupant is not None and occupant != node.node_id:
            beside = self.nodes[occupant].name
            raise InvalidInput(f"There is a category {beside!r} at that place already. Choose another name.")
        before = self.nodes.get(node.node_id)
        if before is not None:
            del self.children[before.parent_id][before.key]
        self.nodes[node.node_id] = node
        self.children.setdefault(node.parent_id, {})[node.key] = node.node_id

    def _forget(self, node_id: int) -> None:
        node = self.nodes.pop(node_id)
        self.children[node.parent_id].pop(node.key)

    def _branch(self, node_id: int) -> set[int]:
        branch, queue = {node_id}, [node_id]
        while queue:
            below = self.children.get(queue.pop(), {}).values()
            branch.update(below)
            queue.extend(below)
        return branch

    def _check_depth(self, node_id: int) -> None:
        above, current = 0, node_id
        while current != ROOT:
            above, current = above + 1, self.nodes[current].parent_id
        level, below = [node_id], 0
        while level := [child for node in level for child in self.children.get(node, {}).values()]:
            below += 1
        if above + below > MAX_DEPTH:
            raise InvalidInput(f"The tree would be {above + below} levels deep; the maximum is {MAX_DEPTH}.")


def nearest(node_id: int, now: Taxonomy, other: Taxonomy, emptied: Mapping[int, int] | None = None) -> int:
    """The node, or its nearest ancestor in `now` that exists in `other`; UNCLASSIFIED when there is none."""
    current: int | None = (emptied or {}).get(node_id, node_id)
    while current is not None and current != ROOT:
        if current in other.nodes:
            return current
        current = now.nodes[current].parent_id if current in now.nodes else None
    return UNCLASSIFIED


def successor(node_id: int, living: Collection[int], vacated: Sequence[Mapping[int, int]]) -> int:
    """The node, or the one that got its documents when it was removed; UNCLASSIFIED when there is none.

    `vacated` maps, for each activation, newest first, the removed nodes to the nodes that got their documents. Each
    step looks only at later activations, so that it terminates.
    """
    newest = len(vacated)
    while node_id not in living:
        place = next((at for at, step in enumerate(vacated[:newest]) if node_id in step), None)
        if place is None:
            return UNCLASSIFIED
        node_id, newest = vacated[place][node_id], place
    return node_id
