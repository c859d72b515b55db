"""Grades of branches: their order, what is inherited, and what an activation lowers."""

from __future__ import annotations

import pytest

from dtrag.core.access.taxonomy_impact import lowered_grades
from dtrag.core.taxonomy.apply import applied
from dtrag.core.taxonomy.grades import Grades
from dtrag.core.taxonomy.operations import operations
from dtrag.core.taxonomy.tree import ROOT, UNCLASSIFIED, Node, Taxonomy
from dtrag.core.taxonomy.versions import GradeChange, diff, next_version
from dtrag.errors import InvalidInput

GRADES = Grades()
TREE = Taxonomy.of(
    "1.0.0",
    [
        Node(2, ROOT, "Army", "army", "S"),
        Node(3, 2, "Plans", "plans", "C"),
        Node(4, 2, "Meals", "meals", "O"),
        Node(5, ROOT, "News", "news"),
        Node(6, 5, "Old", "old"),
    ],
)


def test_a_branch_has_the_highest_grade_on_its_path() -> None:
    of = GRADES.of(TREE)
    assert [of.node(node) for node in (2, 3, 4, 5, 6)] == [1, 2, 1, 0, 0]
    assert [of.name(node) for node in (2, 3, 4, 5, 6)] == ["S", "C", "S", "", ""]
    assert of.highest == 2 and of.up_to(0) == {5, 6} and of.up_to(1) == {2, 4, 5, 6}
    assert of.path(["army", "PLANS"]) == 2 and of.paths([["News"], ["Army", "Meals"]]) == 1 and of.paths([]) == 0


@pytest.mark.parametrize("path", [[], ["Navy"], ["Army", "Plans", "Old"], ["bad/name\x00"]])
def test_what_is_in_no_branch_counts_as_the_highest_grade_of_the_tree(path: list[str]) -> None:
    assert GRADES.of(TREE).path(path) == 2
    assert GRADES.of(TREE).node(UNCLASSIFIED) == GRADES.of(TREE).node(99) == 2
    assert GRADES.of(Taxonomy.of("1", [Node(2, ROOT, "News", "news")])).path(path) == 0


def test_a_grade_that_the_setting_does_not_have_any_more_is_the_highest_one() -> None:
    of = Grades.parse("low, high").of(TREE)
    assert [of.node(node) for node in (2, 3, 5)] == [1, 1, 0] and of.name(4) == "high"


@pytest.mark.parametrize("setting", ["", "O", "O,O", "O,o", "O,,C", "O;S", "a b,c", ",".join("abcdefghij")])
def test_an_invalid_order_of_grades_is_refused_with_the_form(setting: str) -> None:
    with pytest.raises(InvalidInput, match="such as O,S,C"):
        Grades.parse(setting)


def change(*rows: dict[str, object]) -> tuple[Taxonomy, tuple[GradeChange, ...]]:
    done = applied(TREE, operations(list(rows)), "2.0.0", 10)
    moved = {node: to for node, to in done.rehoming.emptied.items() if node in TREE.nodes}
    return done.taxonomy, lowered_grades(GRADES, TREE, done.taxonomy, moved, [])


def test_a_grade_is_set_by_an_operation_and_shown_as_a_difference() -> None:
    after, lowered = change({"op": "grade", "path": ["News"], "grade": "C"})
    assert not lowered and GRADES.of(after).node(6) == 2
    assert diff(TREE, after).graded == (GradeChange(("News",), "", "C"),)
    assert next_version("1.4.2", {"grade"}) == "1.5.0"
    kept, _ = change(
        {"op": "rename", "path": ["Army"], "name": "Forces"}, {"op": "move", "path": "News", "to": "Forces"}
    )
    assert [GRADES.of(kept).node(node) for node in (2, 3, 5, 6)] == [1, 2, 1, 1]


@pytest.mark.parametrize(
    ("row", "fallen"),
    [
        ({"op": "grade", "path": "Army", "grade": ""}, ["Army: S O", "Army/Meals: S O"]),
        ({"op": "grade", "path": "Army/Plans", "grade": "S"}, ["Army/Plans: C S"]),
        ({"op": "grade", "path": "Army/Plans", "grade": "C"}, []),
        ({"op": "move", "path": "Army/Meals", "to": "News"}, ["Army/Meals: S O"]),
        ({"op": "move", "path": "Army/Plans", "to": "News"}, []),
        ({"op": "merge", "paths": ["Army/Plans"], "into": "Army/Meals"}, ["Army/Plans: C S"]),
        ({"op": "delete", "path": "Army/Meals", "to": "News/Old"}, ["Army/Meals: S O"]),
        ({"op": "delete", "path": "Army/Plans"}, ["Army/Plans: C S"]),
        ({"op": "delete", "path": "News"}, []),
    ],
)
def test_every_operation_that_lowers_a_grade_is_noticed(row: dict[str, object], fallen: list[str]) -> None:
    _, lowered = change(row)
    assert [f"{'/'.join(each.path)}: {each.before} {each.to}" for each in lowered] == fallen


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"op": "grade", "path": "News"}, "needs the field 'grade'"),
        ({"op": "grade", "path": "News", "grade": None}, "is the name of a grade"),
        ({"op": "grade", "path": "News", "grade": "S" * 21}, "is the name of a grade"),
        ({"op": "grade", "path": "Navy", "grade": "S"}, "no category 'Navy'"),
    ],
)
def test_an_invalid_operation_is_refused(row: dict[str, object], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        change(row)
