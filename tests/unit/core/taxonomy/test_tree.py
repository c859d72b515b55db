"""Category paths compare by their folded key, unsafe names are refused, the tree is found by path and by node."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrag.core.taxonomy.tree import MAX_DEPTH, MAX_NAME, ROOT, UNCLASSIFIED, CategoryPath, Node, Taxonomy
from dtrag.errors import InvalidInput

PLAIN = st.text(st.characters(categories=["L", "N"]) | st.sampled_from(" _-ßİıKſΣς"), min_size=1, max_size=12)

TREE = Taxonomy.of(
    "1",
    [
        Node(2, ROOT, "AI", "ai"),
        Node(3, 2, "ML", "ml"),
        Node(4, 3, "Trees", "trees"),
        Node(5, ROOT, "AIX", "aix"),
        Node(6, 5, "ML", "ml"),
        Node(7, ROOT, "학사", "학사"),
    ],
)


def _key(*names: str) -> tuple[str, ...]:
    return CategoryPath.parse(names).key


def test_a_path_keeps_its_spelling_and_folds_its_key() -> None:
    path = CategoryPath.parse([" AI ", "Machine  Learning"])
    assert path.names == ("AI", "Machine  Learning")
    assert path.key == ("ai", "machine learning")
    assert str(path) == "AI/Machine  Learning"
    assert CategoryPath.parse("AI/ML") == CategoryPath.parse(("AI", "ML"))


def test_scope_case_4_a_longer_name_is_another_name() -> None:
    assert TREE.find(CategoryPath.parse("ai/ml")) == 3
    assert TREE.find(CategoryPath.parse("aix/ml")) == 6
    assert TREE.subtree(2) == {2, 3, 4}
    assert TREE.find(CategoryPath.parse("a")) is None
    assert TREE.find(CategoryPath.parse("ai/m")) is None


def test_scope_case_5_full_width_is_the_same_category() -> None:
    assert _key("ＡＩ", "ＭＬ") == _key("AI", "ML")
    assert CategoryPath.parse("ＡＩ").names == ("AI",)


@pytest.mark.parametrize("name", ["АI", "AІ", "pаypal", "Αlpha", "Ηр"])
def test_scope_case_6_look_alike_scripts_are_not_mixed(name: str) -> None:
    with pytest.raises(InvalidInput, match="mixes look-alike scripts"):
        CategoryPath.parse([name])


def test_scope_case_6_a_name_in_another_script_alone_is_another_name() -> None:
    assert _key("АІ") != _key("AI")
    assert TREE.find(CategoryPath.parse(["АІ"])) is None
    assert _key("AI 학사") == ("ai 학사",)


@pytest.mark.parametrize(
    "name",
    [
        "A\u200bI",
        "A\u202eI",
        "A\u00adI",
        "A\u2060I",
        "A\ufeffI",
        "A\U000e0041I",
        "A\x00I",
        "A\nI",
        "A\ud800I",
        "AI\ufe0f",
        "A\u034fI",
        "AI\u3164",
        "\u115f",
        "..",
        ".",
        "．．",
        "a.b",
        "a/b",
        "a／b",
        "a\\b",
        "%",
        "a'b",
        "<b>",
        "🎓",
    ],
)
def test_scope_case_2_and_7_unsafe_characters_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="Unsafe characters detected"):
        CategoryPath.parse(["AI", name])


@pytest.mark.parametrize("name", ["학사", "각", "Café", "Å"])
def test_scope_case_8_decomposed_is_the_same_category(name: str) -> None:
    assert _key(unicodedata.normalize("NFD", name)) == _key(unicodedata.normalize("NFC", name))


@pytest.mark.parametrize(("one", "other"), [("Straße", "STRASSE"), ("K", "k"), ("ΣΑΣ", "σας"), ("ſ", "S"), ("İ", "i̇")])
def test_scope_case_9_case_is_folded_alike_on_both_sides(one: str, other: str) -> None:
    assert _key(one) == _key(other)


def test_scope_case_9_a_dotted_capital_i_is_not_a_plain_one() -> None:
    assert _key("İ") != _key("I") == _key("i")


@settings(max_examples=100)
@given(st.lists(PLAIN, min_size=1, max_size=MAX_DEPTH))
def test_scope_case_9_a_path_read_again_is_the_same_path(names: list[str]) -> None:
    try:
        path = CategoryPath.parse(names)
    except InvalidInput:
        return
    again = CategoryPath.parse(path.names)
    assert again == path
    assert _key(*(name.lower() for name in path.names)) == _key(*(name.lower() for name in names))
    try:
        assert CategoryPath.parse(path.key).key == path.key
    except InvalidInput as error:
        assert "at most" in str(error) or "1 to" in str(error)  # folding may make a name longer: ﬃ


def test_scope_case_10_a_name_of_10000_characters_and_10000_names_are_refused() -> None:
    for value in ([("a" * 10_000)], ["a"] * 10_000, "a/" * 5_000, "b" * 10_000):
        with pytest.raises(InvalidInput, match=r"at most 50|1 to 8"):
            CategoryPath.parse(value)


def test_lengths_at_their_limits() -> None:
    assert len(CategoryPath.parse(["a" * MAX_NAME] * MAX_DEPTH).key) == MAX_DEPTH
    for value in (["a" * (MAX_NAME + 1)], ["a"] * (MAX_DEPTH + 1), [], [""], ["  "], "", "AI//ML", "/AI", ["ﷺ" * 4]):
        with pytest.raises(InvalidInput):
            CategoryPath.parse(value)


@pytest.mark.parametrize("value", [None, 5, b"AI", bytearray(b"AI"), {"AI": 1}, {"AI"}, [1], [["AI"]], [None], [b"AI"]])
def test_anything_but_names_is_refused(value: Sequence[str]) -> None:
    with pytest.raises(InvalidInput, match="list of names"):
        CategoryPath.parse(value)


def test_display_paths_lead_from_the_root() -> None:
    assert TREE.path(4) == ("AI", "ML", "Trees")
    assert TREE.path(7) == ("학사",)
    assert TREE.path(UNCLASSIFIED) == TREE.path(ROOT) == TREE.path(99) == ()


def test_every_node_has_its_path_and_is_in_the_subtree_of_its_parents() -> None:
    for node_id in TREE.nodes:
        assert TREE.find(CategoryPath.parse(TREE.path(node_id))) == node_id
        parent = TREE.nodes[node_id].parent_id
        assert TREE.subtree(node_id) < TREE.subtree(parent)
    assert TREE.subtree(ROOT) == {ROOT, *TREE.nodes}
    assert TREE.subtree(99) == {99}


def test_a_damaged_tree_with_a_cycle_terminates() -> None:
    ring = Taxonomy.of("x", [Node(2, 3, "a", "a"), Node(3, 2, "b", "b")])
    assert ring.subtree(2) == {2, 3}
    assert set(ring.path(2)) == {"a", "b"}


def test_an_empty_taxonomy_finds_nothing() -> None:
    assert Taxonomy("0").find(CategoryPath.parse("AI")) is None
    assert Taxonomy("0").path(2) == ()
