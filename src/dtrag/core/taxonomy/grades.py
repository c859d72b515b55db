"""Grades of branches of the category tree: their names in order, and which grade each category has.

A branch has the highest grade on its path. What no branch is known of counts as the highest grade of the tree: a
document without a category, a path that is not in it, a name that the setting does not have.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from dtrag.core.taxonomy.tree import UNCLASSIFIED, CategoryPath, Taxonomy
from dtrag.errors import InvalidInput

MOST_GRADES = 9
MOST_CHARACTERS = 20
"""Of the name of a grade."""


@dataclass(frozen=True, slots=True)
class Grades:
    """The names of the grades, the lowest first; a grade is the index of its name. 0 is that of an ungraded branch."""

    names: tuple[str, ...] = ("O", "S", "C")

    @classmethod
    def parse(cls, setting: str) -> Grades:
        """From `O,S,C`. Raises `InvalidInput`."""
        names = tuple(name.strip() for name in setting.split(","))
        folded = {name.casefold() for name in names}
        if (
            not 2 <= len(names) <= MOST_GRADES
            or len(folded) < len(names)
            or not all(name.isalnum() and len(name) <= MOST_CHARACTERS for name in names)
        ):
            raise InvalidInput(
                f"DTRAG_GRADES is {setting[:80]!r}, but must be 2 to {MOST_GRADES} different names of letters and "
                "digits with commas between them, the lowest grade first, such as O,S,C."
            )
        return cls(names)

    @property
    def top(self) -> int:
        """The highest grade."""
        return len(self.names) - 1

    def named(self, name: str) -> int:
        """The grade of that name, in any case of its letters. Raises `InvalidInput`."""
        folded = [each.casefold() for each in self.names]
        if name.strip().casefold() not in folded:
            raise InvalidInput(f"There is no grade {name[:40]!r}. The setting grades has: {', '.join(self.names)}.")
        return folded.index(name.strip().casefold())

    def of(self, taxonomy: Taxonomy) -> TreeGrades:
        """The grades of the categories of a tree."""
        grades: TreeGrades | None = taxonomy.graded_by.get(self)
        if grades is None:
            own = {node.node_id: self._own(node.grade) for node in taxonomy.nodes.values() if node.grade}
            above = {node: taxonomy.with_above([node]) for node in taxonomy.nodes} if own else {}
            ranks = {node: max(own.get(each, 0) for each in path) for node, path in above.items()}
            grades = taxonomy.graded_by[self] = TreeGrades(self, taxonomy, ranks, max(ranks.values(), default=0))
        return grades

    def _own(self, name: str) -> int:
        try:
            return self.named(name)
        except InvalidInput:
            return self.top


@dataclass(frozen=True, slots=True)
class TreeGrades:
    """The grades of one version of the tree. `highest` is that of its highest branch."""

    grades: Grades
    taxonomy: Taxonomy
    _ranks: Mapping[int, int]
    highest: int

    def node(self, node_id: int) -> int:
        """The grade of a category."""
        return self._ranks.get(node_id, self.highest)

    def path(self, path: Sequence[str]) -> int:
        """The grade of the category at a path of the tree; [] for none."""
        if not self.highest:
            return 0
        try:
            node_id = self.taxonomy.find(CategoryPath.parse(path)) if path else None
        except InvalidInput:
            node_id = None
        return self.highest if node_id is None else self.node(node_id)

    def paths(self, paths: Iterable[Sequence[str]]) -> int:
        """The highest grade of categories; 0 for none."""
        return max(map(self.path, paths), default=0)

    def up_to(self, grade: int) -> frozenset[int]:
        """The categories of at most this grade."""
        nodes: Collection[int] = (*self.taxonomy.nodes, UNCLASSIFIED)
        return frozenset(node for node in nodes if self.node(node) <= grade)

    def name(self, node_id: int) -> str:
        """The name of the grade of a category; "" where none on its path has one."""
        return self.grades.names[self.node(node_id)] if self.taxonomy.graded(node_id) else ""
