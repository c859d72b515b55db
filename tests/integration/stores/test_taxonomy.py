"""What every store of the category tree must do: versions, their activation, and where documents go."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from dtrag.core.access.scope import EVERYTHING, Grant
from dtrag.core.access.taxonomy_impact import Preview
from dtrag.core.documents import document_id
from dtrag.core.taxonomy.operations import operations
from dtrag.core.taxonomy.tree import UNCLASSIFIED, CategoryPath
from dtrag.errors import Conflict, Forbidden, InvalidInput, NotFound
from dtrag.ports import Stores
from tests.builders import MINUTE, NOON, api_key, indexed_document

LEAVE, PAY, PUMP = (document_id(f"test:{name}") for name in ("leave", "pay", "pump"))


def path(text: str) -> CategoryPath:
    """A category."""
    return CategoryPath.parse(text)


async def grown(stores: Stores) -> None:
    """The categories HR/Leave, HR/Pay and Machines, each with a document."""
    names = {"HR/Leave": "leave", "HR/Pay": "pay", "Machines": "pump"}
    taxonomy = await stores.writer.ensure_paths([path(name) for name in names])
    await stores.writer.write(
        [
            indexed_document(
                f"test:{title}", [f"All about {title}."], node_id=taxonomy.find(path(name)) or UNCLASSIFIED, title=title
            )
            for name, title in names.items()
        ]
    )


async def proposed(stores: Stores, *rows: dict[str, Any], minutes: int = 0, **options: Any) -> str:
    """The number of a version with these operations."""
    arguments = {"rationale": "", "parent": None, "version": None, "by": "kim", "now": NOON + minutes * MINUTE}
    return (await stores.taxonomy.propose(operations(rows), **{**arguments, **options})).version


async def activate(stores: Stores, version: str, kind: Any = "activate", minutes: int = 0) -> Preview:
    """Activate the version, whatever it does."""
    return await stores.taxonomy.bring_in(version, kind, _allowed, by="kim", now=NOON + minutes * MINUTE)


def _allowed(preview: Preview) -> None:
    """Every change is allowed."""


async def places(stores: Stores) -> dict[str, str]:
    """Title of a document -> its category, as searches show it."""
    snapshot = await stores.index.snapshot()
    rows = await stores.index.documents(EVERYTHING, snapshot.taxonomy, limit=100)
    return {row.title: "/".join(row.taxonomy_path) for row in rows}


async def test_the_first_version_is_active_and_empty(stores: Stores) -> None:
    active = await stores.taxonomy.active()
    assert (active.version, dict(active.nodes)) == ("1.0.0", {})
    (version,) = await stores.taxonomy.versions()
    assert (version.version, version.parent, version.active, version.operations) == ("1.0.0", None, True, ())
    assert version.activated_at is not None


async def test_a_proposal_is_stored_without_being_active(stores: Stores) -> None:
    await grown(stores)
    version = await stores.taxonomy.propose(
        operations([{"op": "add", "path": ["Law"]}]), "We have lawyers.", None, None, by="kim", now=NOON
    )
    assert (version.version, version.parent, version.active, version.rationale) == (
        "1.1.0",
        "1.0.0",
        False,
        "We have lawyers.",
    )
    tree = await stores.taxonomy.tree("1.1.0")
    assert tree is not None
    assert tree.find(path("Law")) is not None
    assert (await stores.taxonomy.active()).find(path("Law")) is None
    listed = await stores.taxonomy.versions()
    assert [row.version for row in listed] == ["1.1.0", "1.0.0"]
    assert listed[0].operations == version.operations
    assert (listed[0].created_by, listed[0].created_at, listed[0].activated_at) == ("kim", NOON, None)


@pytest.mark.parametrize(
    ("row", "number"),
    [
        ({"op": "rename", "path": ["HR"], "name": "Staff"}, "1.0.1"),
        ({"op": "move", "path": ["HR", "Pay"], "to": []}, "1.1.0"),
        ({"op": "delete", "path": ["HR", "Pay"]}, "2.0.0"),
    ],
)
async def test_the_number_tells_what_a_version_changes(stores: Stores, row: dict[str, Any], number: str) -> None:
    await grown(stores)
    assert await proposed(stores, row) == number


async def test_a_number_is_taken_once(stores: Stores) -> None:
    await grown(stores)
    add: dict[str, Any] = {"op": "add", "path": ["Law"]}
    assert await proposed(stores, add) == "1.1.0"
    assert await proposed(stores, add) == "1.1.1"
    assert await proposed(stores, add, version="3.0.0-beta.1") == "3.0.0-beta.1"
    with pytest.raises(Conflict):
        await proposed(stores, add, version="1.1.0")
    with pytest.raises(InvalidInput):
        await proposed(stores, add, version="three")


async def test_an_impossible_proposal_leaves_nothing(stores: Stores) -> None:
    await grown(stores)
    with pytest.raises(InvalidInput):
        await proposed(stores, {"op": "rename", "path": ["Law"], "name": "Legal"})
    with pytest.raises(NotFound):
        await proposed(stores, {"op": "add", "path": ["Law"]}, parent="9.9.9")
    assert [row.version for row in await stores.taxonomy.versions()] == ["1.0.0"]


async def test_unknown_versions_have_no_tree(stores: Stores) -> None:
    assert await stores.taxonomy.tree("9.9.9") is None
    with pytest.raises(NotFound):
        await stores.taxonomy.preview("9.9.9", "activate", NOON)
    with pytest.raises(NotFound):
        await activate(stores, "9.9.9")


async def test_documents_are_counted_by_node(stores: Stores) -> None:
    await grown(stores)
    await stores.writer.write([indexed_document("test:loose", ["No category."])])
    taxonomy = await stores.taxonomy.active()
    nodes = [taxonomy.find(path(name)) for name in ("HR/Leave", "HR/Pay", "Machines")]
    assert await stores.taxonomy.counts() == {**dict.fromkeys(nodes, 1), UNCLASSIFIED: 1}


async def test_renaming_and_moving_keep_nodes_and_documents(stores: Stores) -> None:
    await grown(stores)
    node = (await stores.taxonomy.active()).find(path("HR/Pay"))
    version = await proposed(
        stores,
        {"op": "rename", "path": ["HR", "Pay"], "name": "Salary"},
        {"op": "move", "path": ["HR", "Salary"], "to": []},
    )
    preview = await activate(stores, version)
    assert (preview.documents, preview.access) == (0, ())
    assert (await stores.taxonomy.active()).find(path("Salary")) == node
    assert await places(stores) == {"leave": "HR/Leave", "pay": "Salary", "pump": "Machines"}


async def test_deleting_moves_the_documents_up_or_out(stores: Stores) -> None:
    await grown(stores)
    version = await proposed(stores, {"op": "delete", "path": ["HR", "Pay"]}, {"op": "delete", "path": ["Machines"]})
    await activate(stores, version)
    assert await places(stores) == {"leave": "HR/Leave", "pay": "HR", "pump": ""}


async def test_a_split_takes_named_documents_and_those_with_keywords(stores: Stores) -> None:
    await grown(stores)
    node = (await stores.taxonomy.active()).find(path("Machines")) or UNCLASSIFIED
    for name, text in (("valve", "A valve of brass."), ("engine", "An engine with pistons."), ("rest", "A bolt.")):
        await stores.writer.write([indexed_document(f"test:{name}", [text], node_id=node, title=name)])
    parts = [{"name": "Valves", "keywords": ["valve", "brass"]}, {"name": "Pumps", "documents": [str(PUMP)]}]
    await activate(stores, await proposed(stores, {"op": "split", "path": ["Machines"], "into": parts}))
    placed = await places(stores)
    assert {name: placed[name] for name in ("pump", "valve", "engine", "rest")} == {
        "pump": "Machines/Pumps",
        "valve": "Machines/Valves",
        "engine": "Machines",
        "rest": "Machines",
    }


async def test_a_preview_tells_whose_access_changes_and_changes_nothing(stores: Stores) -> None:
    await grown(stores)
    taxonomy = await stores.taxonomy.active()
    await stores.keys.add(api_key("machinist", grant=Grant.of([path("Machines")], taxonomy)))
    await stores.keys.add(api_key("paymaster", grant=Grant.of([path("HR/Pay")], taxonomy)))
    await stores.keys.add(api_key("expired", grant=Grant.of([path("Machines")], taxonomy), days=-1))
    await stores.keys.add(api_key("administrator"))
    version = await proposed(stores, {"op": "merge", "paths": [["HR", "Pay"]], "into": ["Machines"]})
    preview = await stores.taxonomy.preview(version, "activate", NOON)
    access = [(row.kind, row.name, row.gained, row.lost) for row in preview.access]
    assert access == [("key", "machinist", 1, 0), ("key", "paymaster", 0, 1)]
    assert [example.title for example in preview.access[0].gains] == ["pay"]
    assert (await stores.taxonomy.active()).version == "1.0.0"
    assert (await places(stores))["pay"] == "HR/Pay"


async def test_nothing_changes_when_the_preview_is_refused(stores: Stores) -> None:
    await grown(stores)
    version = await proposed(stores, {"op": "merge", "paths": [["HR", "Pay"]], "into": ["Machines"]})
    generation = (await stores.index.snapshot()).generation

    def refuse(preview: Preview) -> None:
        assert preview.documents == 1
        raise Forbidden("No.")

    with pytest.raises(Forbidden):
        await stores.taxonomy.bring_in(version, "activate", refuse, by="kim", now=NOON)
    assert (await stores.taxonomy.active()).version == "1.0.0"
    assert (await places(stores))["pay"] == "HR/Pay"
    assert (await stores.index.snapshot()).generation == generation


async def test_a_rollback_moves_the_documents_back(stores: Stores) -> None:
    await grown(stores)
    before = await places(stores)
    merge = {"op": "merge", "paths": [["HR", "Pay"]], "into": ["Machines"]}
    second = await proposed(stores, merge)
    await activate(stores, second, minutes=1)
    third = await proposed(stores, {"op": "delete", "path": ["Machines"]}, minutes=2)
    await activate(stores, third, minutes=3)
    assert (await places(stores))["pay"] == ""
    await activate(stores, second, "rollback", minutes=4)
    assert await places(stores) == {**before, "pay": "Machines"}
    await activate(stores, "1.0.0", "rollback", minutes=5)
    assert await places(stores) == before
    versions = {row.version: row for row in await stores.taxonomy.versions()}
    assert [row.version for row in versions.values() if row.active] == ["1.0.0"]
    assert versions[second].activated_at == NOON + 4 * MINUTE


async def test_versions_activate_in_their_order(stores: Stores) -> None:
    await grown(stores)
    first = await proposed(stores, {"op": "add", "path": ["Law"]})
    second = await proposed(stores, {"op": "add", "path": ["Art"]}, minutes=1)
    with pytest.raises(Conflict):
        await activate(stores, "1.0.0")  # it is active
    with pytest.raises(Conflict):
        await activate(stores, first, "rollback")  # it was never active
    await activate(stores, first, minutes=2)
    with pytest.raises(Conflict):
        await activate(stores, second)  # its parent is not active any more
    await activate(stores, "1.0.0", "rollback", minutes=3)
    with pytest.raises(Conflict):
        await activate(stores, first)  # it was active: go back to it by a rollback


async def test_a_version_may_build_on_one_that_is_not_active(stores: Stores) -> None:
    await grown(stores)
    first = await proposed(stores, {"op": "add", "path": ["Law"]})
    second = await proposed(stores, {"op": "add", "path": ["Law", "Contracts"]}, parent=first, minutes=1)
    with pytest.raises(Conflict):
        await activate(stores, second)
    await activate(stores, first, minutes=2)
    await activate(stores, second, minutes=3)
    assert (await stores.taxonomy.active()).find(path("Law/Contracts")) is not None


async def test_new_nodes_have_numbers_that_were_never_used(stores: Stores) -> None:
    await grown(stores)
    await activate(stores, await proposed(stores, {"op": "delete", "path": ["Machines"]}))
    numbers: list[Sequence[int]] = []
    for name in ("1.0.0", "2.0.0"):
        tree = await stores.taxonomy.tree(name)
        assert tree is not None
        numbers.append(list(tree.nodes))
    taxonomy = await stores.writer.ensure_paths([path("New")])
    assert taxonomy.find(path("New")) not in {number for tree in numbers for number in tree}


async def test_a_proposal_that_does_not_fit_any_more_is_refused(stores: Stores) -> None:
    await grown(stores)
    version = await proposed(stores, {"op": "add", "path": ["Law"]})
    await stores.writer.ensure_paths([path("Law")])
    with pytest.raises(Conflict):
        await activate(stores, version)


async def test_titles_of_at_most_five_documents_are_named(stores: Stores) -> None:
    await grown(stores)
    node = (await stores.taxonomy.active()).find(path("Machines")) or UNCLASSIFIED
    documents = [indexed_document(f"test:{number}", ["Text."], node_id=node) for number in range(8)]
    await stores.writer.write([replace(document, source_id=uuid.uuid4()) for document in documents])
    version = await proposed(stores, {"op": "merge", "paths": [["Machines"]], "into": ["HR"]})
    (moved,) = (await stores.taxonomy.preview(version, "activate", NOON)).moved
    assert (moved.documents, len(moved.titles)) == (9, 5)
    assert list(moved.titles) == sorted(moved.titles)
