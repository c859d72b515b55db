"""Operations on category trees: what holds after any of them, and what is refused."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrag.core.taxonomy.apply import applied, check, nearest
from dtrag.core.taxonomy.operations import operations
from dtrag.core.taxonomy.tree import MAX_DEPTH, ROOT, UNCLASSIFIED, Node, Taxonomy
from dtrag.core.taxonomy.versions import PathChange, diff, next_version, parse_version
from dtrag.errors import InvalidInput

NAMES = ("ai", "ml", "hr", "nlp", "ops", "law")


def grown(taxonomy: Taxonomy, *rows: dict[str, Any], version: str = "2.0.0") -> Taxonomy:
    next_id = max(taxonomy.nodes, default=1) + 1
    return applied(taxonomy, operations(list(rows)), version, next_id).taxonomy


def tree(*paths: str) -> Taxonomy:
    return grown(Taxonomy("1.0.0"), *[{"op": "add", "path": path} for path in paths], version="1.0.0")


def paths(taxonomy: Taxonomy) -> set[str]:
    return {"/".join(taxonomy.path(node)) for node in taxonomy.nodes}


def drawn(chance: random.Random, taxonomy: Taxonomy) -> dict[str, Any]:
    """Any operation; most can be, some cannot."""
    known = sorted(paths(taxonomy)) or ["ai"]
    one, other, name = chance.choice(known), chance.choice(known), chance.choice(NAMES)
    rows: tuple[dict[str, Any], ...] = (
        {"op": "add", "path": f"{one}/{name}"},
        {"op": "add", "path": name},
        {"op": "rename", "path": one, "name": name.upper()},
        {"op": "move", "path": one, "to": other},
        {"op": "move", "path": one, "to": []},
        {"op": "merge", "paths": [one], "into": other},
        {"op": "split", "path": one, "into": [{"name": name, "keywords": ["a"]}, {"name": "rest"}]},
        {"op": "delete", "path": one},
        {"op": "delete", "path": one, "to": other},
    )
    return chance.choice(rows)


@settings(max_examples=300)
@given(st.integers(0, 2**32), st.integers(1, 25))
def test_after_any_operations_a_tree_remains_that_holds_every_document(seed: int, steps: int) -> None:
    chance = random.Random(seed)
    now = tree("ai", "hr", "ai/ml")
    for _ in range(steps):
        row = drawn(chance, now)
        try:
            done = applied(now, operations([row]), "2.0.0", max(now.nodes, default=1) + 1)
        except InvalidInput as error:
            assert str(error).startswith("Operation 1 (") or "levels deep" in str(error)
            continue
        after = done.taxonomy
        check(after)
        assert all(len(after.path(node)) <= MAX_DEPTH for node in after.nodes)
        assert len(paths(after)) == len(after.nodes)
        for node in now.nodes:
            place = done.rehoming.route(node, lambda step: None)
            assert place in after.nodes or place == UNCLASSIFIED
            assert (place == node) == (node in after.nodes), "a node that is still there keeps its documents"
        assert {node for node in now.nodes if node not in after.nodes} == done.rehoming.gone
        again = applied(now, operations([operation.as_json() for operation in done.operations]), "2.0.0", 0)
        assert again.taxonomy == after, "the ids are kept with the operations"
        now = after


@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_a_diff_contains_exactly_the_operations(seed: int) -> None:
    chance = random.Random(seed)
    base = tree("ai", "ai/ml", "hr", "hr/pay", "law")
    try:
        done = applied(base, operations([drawn(chance, base) for _ in range(3)]), "2.0.0", 100)
    except InvalidInput:
        return
    found = diff(base, done.taxonomy, done.rehoming.merged)
    kept = base.nodes.keys() & done.taxonomy.nodes.keys()
    assert len(found.added) == len(done.taxonomy.nodes.keys() - kept)
    assert len(found.removed) + len(found.merged) <= len(base.nodes.keys() - kept)
    assert len(found.moved) == sum(base.nodes[n].parent_id != done.taxonomy.nodes[n].parent_id for n in kept)
    back = diff(done.taxonomy, base)
    assert sorted(PathChange(pair.to, pair.before) for pair in found.renamed) == list(back.renamed)
    assert back.added == tuple(sorted(base.path(node) for node in base.nodes.keys() - kept))


def test_a_merge_unites_children_with_the_same_name() -> None:
    base = tree("A", "A/x", "A/x/deep", "A/y", "B", "B/X", "B/X/other")
    done = applied(base, operations([{"op": "merge", "paths": ["A"], "into": "B"}]), "2.0.0", 50)
    assert paths(done.taxonomy) == {"B", "B/X", "B/X/deep", "B/X/other", "B/y"}
    ids = {"/".join(base.path(node)): node for node in base.nodes}
    assert done.rehoming.merged == {ids["A"]: ids["B"], ids["A/x"]: ids["B/X"]}


def test_a_child_can_be_merged_into_its_parent_and_a_branch_deleted_elsewhere() -> None:
    base = tree("A", "A/A", "A/A/A", "B")
    assert paths(grown(base, {"op": "merge", "paths": ["A/A"], "into": "A"})) == {"A", "A/A", "B"}
    done = applied(base, operations([{"op": "delete", "path": "A/A"}, {"op": "delete", "path": "A"}]), "2.0.0", 9)
    assert set(done.rehoming.emptied.values()) == {UNCLASSIFIED}
    assert nearest(base.nodes[3].node_id, base, done.taxonomy) == UNCLASSIFIED


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"op": "move", "path": "A", "to": "A/x"}, "below itself"),
        ({"op": "merge", "paths": ["A"], "into": "A/x"}, "own branch"),
        ({"op": "merge", "paths": ["A", "A/x"], "into": "B"}, "own branch"),
        ({"op": "rename", "path": "A", "name": "b"}, "already"),
        ({"op": "add", "path": "ａ"}, "already"),
        ({"op": "add", "path": "C/x"}, "no category 'C/x'|no category 'C'"),
        ({"op": "delete", "path": "A", "to": "A/x"}, "deleted, too"),
        ({"op": "split", "path": "A", "into": [{"name": "X"}]}, "already"),
        ({"op": "add", "path": ["A", ".."]}, "Unsafe"),
        ({"op": "burn", "path": "A"}, "'op' is one of"),
        ({"op": "add", "path": "Z", "extra": 1}, "no field 'extra'"),
        ({"op": "add", "path": "Z", "node_id": 1}, "leave it out"),
    ],
)
def test_impossible_operations_are_explained(row: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        grown(tree("A", "A/x", "B"), row)


def test_limits_hold() -> None:
    deep = "/".join("abcdefgh")
    steps = [deep[: 2 * length + 1] for length in range(8)]
    with pytest.raises(InvalidInput, match="9 levels"):
        grown(tree(*steps, "Z"), {"op": "move", "path": "a", "to": "Z"})
    with pytest.raises(InvalidInput, match="operations"):
        operations([{"op": "add", "path": "A"}] * 1_001)
    wide = Taxonomy.of("1.0.0", (Node(n, ROOT, f"n{n}", f"n{n}") for n in range(2, 10_003)))
    with pytest.raises(InvalidInput, match="10,000"):
        check(wide)


def test_versions_are_semantic_and_increase_with_the_operations() -> None:
    for good in ("1.0.0", "0.0.1", "1.2.3-rc.1+build.5", "10.20.30"):
        parse_version(good)
    for bad in ("1.0", "01.0.0", "1.0.0\n", "１.0.0", "v1.0.0", "1.0.0-", "", None, 1, "1.0.0-01", "1." + "9" * 200):
        with pytest.raises(InvalidInput, match="Invalid version format"):
            parse_version(bad)
    assert next_version("1.2.3", {"rename"}) == "1.2.4"
    assert next_version("1.2.3", {"add", "rename"}, {"1.3.0"}) == "1.3.1"
    assert next_version("1.2.3", {"merge", "add"}) == "2.0.0"
