"""What a key or an agent may see follows nodes through every version of the tree, and never widens by itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.access.scope import Access, Grant, Scope
from dtrag.core.taxonomy.tree import ROOT, CategoryPath, Node, Taxonomy

BEFORE = Taxonomy.of(
    "1.0.0", [Node(2, ROOT, "AI", "ai"), Node(3, 2, "ML", "ml"), Node(4, ROOT, "HR", "hr"), Node(5, 4, "Pay", "pay")]
)
AFTER = Taxonomy.of("1.1.0", [Node(2, ROOT, "Machines", "machines"), Node(3, 4, "ML", "ml"), Node(4, ROOT, "HR", "hr")])


def grant(*paths: str) -> Grant:
    return Grant.of([CategoryPath.parse(path) for path in paths], BEFORE)


def test_a_grant_contains_whole_branches() -> None:
    assert grant("AI").nodes(BEFORE) == {2, 3}
    assert grant("AI/ML", "HR").nodes(BEFORE) == {3, 4, 5}


def test_a_grant_follows_its_nodes_when_they_are_renamed_or_moved() -> None:
    assert grant("AI").nodes(AFTER) == {2}
    assert grant("AI/ML").nodes(AFTER) == {3}
    assert grant("HR").nodes(AFTER) == {4, 3}


def test_a_deleted_node_grants_nothing_even_if_its_path_is_reused() -> None:
    again = Taxonomy.of("1.2.0", [*AFTER.nodes.values(), Node(9, 4, "Pay", "pay")])
    assert grant("HR/Pay").nodes(again) == frozenset()
    assert [str(path) for path in grant("HR/Pay").unresolved(again)] == ["HR/Pay"]


def test_an_unknown_path_grants_nothing_until_it_exists() -> None:
    waiting = grant("Law")
    assert waiting.nodes(BEFORE) == frozenset()
    assert waiting.nodes(Taxonomy.of("2.0.0", [Node(7, ROOT, "Law", "law")])) == {7}


def test_no_grant_means_everything_and_an_empty_grant_nothing() -> None:
    assert Access().resolved(BEFORE) == Scope.everything()
    assert Access((Grant(()),)).resolved(BEFORE) == Scope(frozenset())


def test_several_grants_are_intersected() -> None:
    assert Access().within(grant("AI")).within(grant("AI/ML", "HR")).resolved(BEFORE) == Scope(frozenset({3}))


@given(st.lists(st.sampled_from(["AI", "AI/ML", "HR", "HR/Pay", "Law"]), max_size=4), st.sampled_from([BEFORE, AFTER]))
def test_narrowing_never_widens(paths: list[str], tree: Taxonomy) -> None:
    base = Access().within(grant("AI", "HR/Pay"))
    narrowed = base.within(grant(*paths)).resolved(tree).nodes
    assert narrowed is not None
    assert narrowed <= (base.resolved(tree).nodes or set())


@given(st.lists(st.sampled_from(["AI", "AI/ML", "법학/민법", "Law"]), max_size=4))
def test_a_grant_can_be_stored_and_loaded(paths: list[str]) -> None:
    assert Grant.from_json(grant(*paths).as_json()) == grant(*paths)


def test_roles() -> None:
    reader = Caller("a", "reader", Access())
    assert [reader.may(need) for need in ("read", "write", "admin")] == [True, False, False]
    editor = Caller("a", "editor", Access())
    assert [editor.may(need) for need in ("read", "write", "admin")] == [True, True, False]
    assert LOCAL.may("admin")
