"""From one version of the category tree to the next: operations applied, and where documents go by them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dtrag.core.taxonomy.operations import Add, Delete, Merge, Move, Operation, Rename, Split, SplitPart
from dtrag.core.taxonomy.tree import MAX_DEPTH, ROOT, UNCLASSIFIED, CategoryPath, Node, Taxonomy
from dtrag.core.text.analysis import normalise
from dtrag.errors import InvalidInput

MOST_NODES = 10_000


@dataclass(frozen=True, slots=True)
class Emptied:
    """A node that is gone; what hung there hangs on `to`. `merged`: its children do, too."""

    node_id: int
    to: int
    merged: bool


@dataclass(frozen=True, slots=True)
class Divided:
    """A node some of whose documents go to new children."""

    node_id: int
    parts: tuple[SplitPart, ...]

    def part_of(self, document_id: uuid.UUID, keywords: Collection[str]) -> int | None:
        """The part that names the document, else that of which it holds most keywords and more than half; or None.

        `keywords` are those of the parts that the document holds.
        """
        for part in self.parts:
            if document_id in part.documents:
                return part.node_id
        counts = [(sum(word in keywords for word in part.keywords), part) for part in self.parts]
        most, chosen = max(counts, key=lambda pair: pair[0])
        return chosen.node_id if most and 2 * most > len(chosen.keywords) else None


@dataclass(frozen=True, slots=True)
class Rehoming:
    """Where documents go, step by step in the order of the operations."""

    steps: tuple[Emptied | Divided, ...] = ()

    @property
    def sources(self) -> frozenset[int]:
        """Nodes whose documents may go elsewhere."""
        return frozenset(step.node_id for step in self.steps)

    @property
    def emptied(self) -> dict[int, int]:
        """Node that is gone -> the node in its place that is left in the end."""
        return {node: self.route(node, lambda step: None) for node in self.gone}

    @property
    def gone(self) -> frozenset[int]:
        """Nodes that are no more."""
        return frozenset(step.node_id for step in self.steps if isinstance(step, Emptied))

    @property
    def merged(self) -> dict[int, int]:
        """Of those the ones that were merged."""
        gone = {step.node_id for step in self.steps if isinstance(step, Emptied) and step.merged}
        return {node: to for node, to in self.emptied.items() if node in gone}

    def divides(self, node_id: int) -> bool:
        """Whether documents of the node go different ways."""
        chosen = False

        def asked(step: Divided) -> None:
            nonlocal chosen
            chosen = True

        self.route(node_id, asked)
        return chosen

    def route(self, node_id: int, choose: Callable[[Divided], int | None]) -> int:
        """Where a document of the node ends; `choose` gives its part of a split, None to stay."""
        for step in self.steps:
            if step.node_id == node_id:
                part = step.to if isinstance(step, Emptied) else choose(step)
                node_id = node_id if part is None else part
        return node_id


@dataclass(frozen=True, slots=True)
class Grown:
    """The tree after operations, the operations with the ids that new nodes were given, and where documents go."""

    taxonomy: Taxonomy
    operations: tuple[Operation, ...]
    rehoming: Rehoming
    next_id: int


def applied(taxonomy: Taxonomy, operations: Iterable[Operation], version: str, next_id: int) -> Grown:
    """The tree that the operations make, one after the other; new nodes are numbered from `next_id`.

    A node id that an operation names is kept, so that applying again gives the same tree. Raises `InvalidInput` with
    the number of the operation that cannot be.
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
    return Grown(grown, tuple(done), Rehoming(tuple(tree.steps)), tree.next_id)


def check(taxonomy: Taxonomy) -> None:
    """Raise `InvalidInput` unless it is a tree of at most MOST_NODES nodes, at most MAX_DEPTH deep, without doubles."""
    if len(taxonomy.nodes) > MOST_NODES:
        raise InvalidInput(f"The tree would have more than {MOST_NODES:,} categories; that is the most that are held.")
    level, depth, reached = [ROOT], 0, 0
    while level := [child for node in level for child in taxonomy.children.get(node, {}).values()]:
        depth, reached = depth + 1, reached + len(level)
        if depth > MAX_DEPTH:
            name = "/".join(taxonomy.path(level[0]))
            raise InvalidInput(f"The tree would be more than {MAX_DEPTH} levels deep, at {name!r}.")
    if reached != len(taxonomy.nodes):
        raise InvalidInput("Some categories hang on none that is in the tree, or two of one parent share a name.")


class _Tree:
    """A tree while it is being changed."""

    def __init__(self, taxonomy: Taxonomy, next_id: int):
        self.nodes = dict(taxonomy.nodes)
        self.children = {parent: dict(found) for parent, found in taxonomy.children.items()}
        self.steps: list[Emptied | Divided] = []
        self.next_id = next_id

    def apply(self, operation: Operation) -> Operation:
        """Do it; returns it with the ids that were given."""
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
        self.steps.append(Divided(node, parts))
        return replace(operation, into=parts)

    def _move(self, operation: Move) -> None:
        node = self._at(operation.path)
        parent = self._at(operation.to) if operation.to else ROOT
        if parent in self._branch(node):
            raise InvalidInput(f"{str(operation.path)!r} cannot be moved under itself. Name a place outside of it.")
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
        """Everything of `source` to `into`, children of the same name likewise."""
        below = list(self.children.get(source, {}).values())
        self._forget(source)
        self.steps.append(Emptied(source, into, merged=True))
        for child in below:
            there = self.children.get(into, {}).get(self.nodes[child].key)
            if there is None:
                self._place(replace(self.nodes[child], parent_id=into))
            else:
                self._join(child, there)

    def _delete(self, operation: Delete) -> None:
        node = self._at(operation.path)
        branch = self._branch(node)
        parent = self.nodes[node].parent_id
        to = self._at(operation.to) if operation.to else (UNCLASSIFIED if parent == ROOT else parent)
        if to in branch:
            raise InvalidInput(f"The documents of {str(operation.path)!r} cannot go to a place that is deleted, too.")
        for gone in sorted(branch):
            self._forget(gone)
            self.steps.append(Emptied(gone, to, merged=False))

    def _at(self, path: CategoryPath) -> int:
        current = ROOT
        for key in path.key:
            found = self.children.get(current, {}).get(key)
            if found is None:
                raise InvalidInput(f"There is no category {str(path)!r}. `dtrag taxonomy tree` shows what there is.")
            current = found
        return current

    def _new(self, parent: int, name: str, node_id: int | None) -> int:
        if node_id is None:
            node_id, self.next_id = self.next_id, self.next_id + 1
        elif node_id in self.nodes:
            raise InvalidInput(f"The id {node_id} is taken. Leave 'node_id' out.")
        self._place(Node(node_id, parent, name, normalise(name)))
        self._check_depth(node_id)
        return node_id

    def _place(self, node: Node) -> None:
        """Hang the node where it says, under the name it says."""
        there = self.children.get(node.parent_id, {}).get(node.key)
        if there is not None and there != node.node_id:
            beside = self.nodes[there].name
            raise InvalidInput(f"There is a category {beside!r} at that place already; two of one name cannot be.")
        before = self.nodes.get(node.node_id)
        if before is not None:
            del self.children[before.parent_id][before.key]
        self.nodes[node.node_id] = node
        self.children.setdefault(node.parent_id, {})[node.key] = node.node_id

    def _forget(self, node_id: int) -> None:
        node = self.nodes.pop(node_id)
        self.children[node.parent_id].pop(node.key)

    def _branch(self, node_id: int) -> set[int]:
        found, waiting = {node_id}, [node_id]
        while waiting:
            below = self.children.get(waiting.pop(), {}).values()
            found.update(below)
            waiting.extend(below)
        return found

    def _check_depth(self, node_id: int) -> None:
        above, current = 0, node_id
        while current != ROOT:
            above, current = above + 1, self.nodes[current].parent_id
        level, below = [node_id], 0
        while level := [child for node in level for child in self.children.get(node, {}).values()]:
            below += 1
        if above + below > MAX_DEPTH:
            raise InvalidInput(f"The tree would be {above + below} levels deep; at most {MAX_DEPTH} are held.")


def nearest(node_id: int, now: Taxonomy, other: Taxonomy, emptied: Mapping[int, int] | None = None) -> int:
    """The node, or its nearest ancestor in `now`, that `other` has; UNCLASSIFIED when there is none."""
    current: int | None = (emptied or {}).get(node_id, node_id)
    while current is not None and current != ROOT:
        if current in other.nodes:
            return current
        current = now.nodes[current].parent_id if current in now.nodes else None
    return UNCLASSIFIED


def successor(node_id: int, living: Collection[int], vacated: Sequence[Mapping[int, int]]) -> int:
    """The node, or the one that took its documents when it left the tree; UNCLASSIFIED when none did.

    `vacated` says for each activation, the newest first, which nodes left the tree and where their documents went.
    It ends, since each step only looks at later activations.
    """
    newest = len(vacated)
    while node_id not in living:
        place = next((at for at, step in enumerate(vacated[:newest]) if node_id in step), None)
        if place is None:
            return UNCLASSIFIED
        node_id, newest = vacated[place][node_id], place
    return node_id
