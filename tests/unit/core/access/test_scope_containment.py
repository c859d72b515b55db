"""What lies within a caller's branches: by name, wherever the branches hang now, and whether or not a path exists."""

from __future__ import annotations

import pytest

from dtrag.core.access.scope import Access, Anchor, Grant, lies_within, reaches_out
from dtrag.core.taxonomy.tree import CategoryPath, Node, Taxonomy

TREE = Taxonomy.of(
    "1.0.0",
    [
        Node(2, 0, "AI", "ai"),
        Node(3, 2, "ML", "ml"),
        Node(4, 2, "NLP", "nlp"),
        Node(5, 0, "HR", "hr"),
        Node(6, 3, "Deep", "deep"),
    ],
)
MOVED = Taxonomy.of(
    "2.0.0",
    [Node(2, 0, "AI", "ai"), Node(3, 5, "Learning", "learning"), Node(4, 2, "NLP", "nlp"), Node(5, 0, "HR", "hr")],
)


def paths(*written: str) -> list[CategoryPath]:
    return [CategoryPath.parse(path) for path in written]


def grant(*written: str) -> Grant:
    return Grant.of(paths(*written), TREE)


ML = Access((grant("AI/ML"),))


@pytest.mark.parametrize("asked", ["AI/ML", "ai", "AI/ML/Deep", "AI/ML/nowhere"])
def test_paths_within_and_above_the_scope_do_not_reach_out_of_it(asked: str) -> None:
    assert not reaches_out(paths(asked), ML, TREE)


@pytest.mark.parametrize("asked", ["HR", "HR/nowhere", "nowhere", "AI/NLP", "AI/nowhere", "AI/MLOps"])
def test_other_paths_reach_out_of_it_whether_or_not_they_exist(asked: str) -> None:
    assert reaches_out(paths(asked), ML, TREE)
    assert reaches_out(paths("AI/ML", asked), ML, TREE)


def test_no_path_reaches_out_of_the_whole_tree() -> None:
    assert not reaches_out(paths("HR", "nowhere"), Access(), TREE)


def test_every_grant_counts() -> None:
    both = Access((grant("AI", "HR"),)).within(grant("AI/ML"))
    assert not reaches_out(paths("AI/ML/Deep", "AI"), both, TREE)
    assert reaches_out(paths("HR"), both, TREE)
    assert reaches_out(paths("AI"), Access((Grant(()),)), TREE)


def test_a_branch_is_where_its_node_is_now() -> None:
    assert not reaches_out(paths("HR/Learning"), ML, MOVED)
    assert reaches_out(paths("AI/ML"), ML, MOVED)


def test_a_deleted_branch_keeps_its_name() -> None:
    gone = Access((Grant((Anchor(CategoryPath.parse("Old/Place"), 99),)),))
    assert not reaches_out(paths("old/place/x"), gone, TREE)
    assert reaches_out(paths("HR"), gone, TREE)


def test_an_agent_is_within_a_scope_only_as_a_whole() -> None:
    outer = Access((grant("AI", "HR"),))
    assert lies_within(grant("AI/ML", "HR"), outer, TREE)
    assert lies_within(grant("AI/not yet"), outer, TREE)
    assert not lies_within(grant("AI/ML", "Law"), outer, TREE)
    assert not lies_within(grant("AI"), ML, TREE)
    assert lies_within(grant("AI"), Access(), TREE)


def test_a_loop_in_a_damaged_tree_ends() -> None:
    loop = Taxonomy.of("3.0.0", [Node(2, 3, "A", "a"), Node(3, 2, "B", "b")])
    assert reaches_out(paths("x"), Access((Grant((Anchor(CategoryPath.parse("A"), 2),)),)), loop)
