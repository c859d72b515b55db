"""Rights of a source as they are kept: never wider than at the source, whatever of its groups could not be read."""

from __future__ import annotations

import random

import pytest

from dtrag.core.access import confinement
from dtrag.core.access.scope import Access, Grant
from dtrag.core.source_rights import (
    NO_READERS,
    Membership,
    Rights,
    RightsEntry,
    SourceAccess,
    everyone,
    group,
    memberships,
    parse_user,
    shown,
    user,
)
from dtrag.core.taxonomy.tree import UNCLASSIFIED, CategoryPath, Node, Taxonomy
from dtrag.errors import InvalidInput
from tests.rounds import seeds
from tests.shelf import GROUPS, SITE, STRANGER, USERS, Shelf, change

ANN, BO = user("site", "ann"), user("site", "bo")
STAFF = group("site", "staff")
ALL = everyone("site")


def access(shelf: Shelf) -> SourceAccess:
    """What is kept of the rights of a shelf, with a category for each file."""
    groups = memberships(
        {ALL, *(name for rights in shelf.rights.values() for name in rights.groups)},
        lambda name: None if name in shelf.broken else shelf.direct.get(name, set()),
    )
    groups_of = {
        who: frozenset(name for name, members in groups.items() if who in members.users) for who in (*USERS, STRANGER)
    }
    incomplete = frozenset(name for name, members in groups.items() if not members.complete)
    return SourceAccess(dict(enumerate(shelf.rights.values())), groups_of, incomplete)


def test_ten_thousand_graphs_of_groups_widen_nothing() -> None:
    """And where everything could be read, nothing is narrower either."""
    widened, narrowed, admitted = [], [], 0
    for seed in seeds(10_000):
        chance, shelf = random.Random(seed), Shelf()
        change(shelf, chance, ("one", "two", "three"))
        kept = access(shelf)
        for who in (*USERS, STRANGER):
            visible = kept.admitted((who,))
            for number, name in enumerate(shelf.rights):
                allowed = shelf.may_read(who, name)
                admitted += number in visible
                if number in visible and not allowed:
                    widened.append((seed, who, name))
                if allowed and number not in visible and not shelf.broken:
                    narrowed.append((seed, who, name))
    assert widened == []
    assert narrowed == []
    assert admitted > len(seeds(10_000))


def test_the_first_entry_that_names_somebody_decides() -> None:
    rights = Rights.of([[RightsEntry(ANN, False), RightsEntry(STAFF, True)]])
    assert not rights.admit({ANN, STAFF}, ())
    assert rights.admit({BO, STAFF}, ())
    assert not rights.admit({BO}, ())


def test_every_gate_has_to_be_passed_and_without_one_nobody_is_let_in() -> None:
    both = Rights.of([[RightsEntry(ANN, True)], [RightsEntry(STAFF, True)]])
    assert both.admit({ANN, STAFF}, ())
    assert not both.admit({ANN}, ())
    assert not NO_READERS.admit({ANN, STAFF, ALL}, ())


def test_a_refused_group_that_could_not_be_read_lets_nobody_pass() -> None:
    rights = Rights.of([[RightsEntry(ANN, True), RightsEntry(STAFF, False), RightsEntry(ALL, True)]])
    assert rights.admit({BO, ALL}, ())
    assert not rights.admit({BO, ALL}, {STAFF})
    assert rights.admit({ANN, ALL}, {STAFF})  # she is named before it


def test_rights_that_mean_the_same_have_one_digest() -> None:
    one = Rights.of(
        [[RightsEntry(ANN, True), RightsEntry(BO, True), RightsEntry(STAFF, False)], [RightsEntry(ALL, True)]]
    )
    other = Rights.of([[RightsEntry(ALL, True)], [RightsEntry(BO, True), RightsEntry(ANN, True)]])
    assert one == other
    assert one.digest == other.digest
    assert Rights.from_json(one.as_json()) == one
    kept = Rights.of([[RightsEntry(ANN, False), RightsEntry(ALL, True)]])
    assert kept != Rights.of([[RightsEntry(ALL, True), RightsEntry(ANN, False)]])


def test_circles_of_groups_end_and_an_unread_part_is_told() -> None:
    law, board = group("site", "law"), group("site", "board")
    direct: dict[str, set[str] | None] = {STAFF: {law, ANN}, law: {STAFF, BO, board}, board: None}
    found = memberships([STAFF, board], direct.get)
    assert found == {STAFF: Membership(frozenset({ANN, BO}), False), board: Membership(frozenset(), False)}


def test_nobody_whom_the_site_does_not_know_is_let_in() -> None:
    rights = {7: Rights.of([[RightsEntry(ANN, True), RightsEntry(ALL, True)]])}
    assert SourceAccess(rights, {}).admitted([ANN]) == frozenset()
    assert SourceAccess(rights, {ANN: frozenset({ALL})}).admitted([ANN]) == {7}
    same_name = user("other", "ann")
    assert SourceAccess(rights, {same_name: frozenset({everyone("other")})}).admitted([same_name]) == frozenset()


@pytest.mark.parametrize("text", ["", "ann", "/ann", "site/", " site/ann", "site/a\nb", "s/" + "x" * 300])
def test_a_user_of_a_source_has_a_site_and_a_name(text: str) -> None:
    with pytest.raises(InvalidInput, match="site and name"):
        parse_user(text)
    assert shown(parse_user("site/ann lee")) == "site/ann lee"


def test_groups_of_rights_are_those_to_be_read() -> None:
    assert Rights.of([[RightsEntry(ANN, True), RightsEntry(STAFF, True)], [RightsEntry(ALL, True)]]).groups == {
        STAFF,
        ALL,
    }
    assert {SITE} == {name.split("/")[0] for name in GROUPS}


def access_of(*users: str, grants: tuple[Grant, ...] = ()) -> Access:
    return Access(grants, principals=users)


def restricted_tree() -> Taxonomy:
    """An open category, and a source with a file for ann and bo, and one for bo."""
    paths = ((2, 0, "open"), (3, 0, "drive"), (4, 3, "readers 1"), (5, 3, "readers 2"))
    known = {ANN: frozenset({ALL}), BO: frozenset({ALL})}
    rights = {3: NO_READERS, 4: Rights.of([[RightsEntry(ALL, True)]]), 5: Rights.of([[RightsEntry(BO, True)]])}
    nodes = [Node(node, parent, name, name) for node, parent, name in paths]
    return Taxonomy.of("1.0.0", nodes, [SourceAccess(rights, known)])


def test_a_scope_has_the_restricted_categories_that_the_source_lets_its_users_read() -> None:
    tree = restricted_tree()
    drive = Grant.of([CategoryPath.parse("drive")], tree)
    assert access_of().resolved(tree).nodes == frozenset({UNCLASSIFIED, 2})
    assert access_of(ANN).resolved(tree).nodes == frozenset({UNCLASSIFIED, 2, 4})
    assert access_of(ANN, BO).resolved(tree).nodes == frozenset({UNCLASSIFIED, 2, 4, 5})
    assert access_of(BO, grants=(drive,)).resolved(tree).nodes == frozenset({4, 5})
    assert Access(principals=None).resolved(tree).nodes is None
    assert access_of(STRANGER, grants=(drive,)).resolved(tree).nodes == frozenset()


def test_words_of_a_question_are_shown_only_to_those_who_read_all_that_was_asked_in() -> None:
    tree = restricted_tree()
    ann, bo = access_of(ANN).resolved(tree), access_of(BO).resolved(tree)
    assert bo.reads(ann.branches(tree))
    assert not ann.reads(bo.branches(tree))


def test_what_runs_for_a_user_of_a_source_is_confined_to_what_that_user_reads() -> None:
    tree = restricted_tree()
    with confinement.confined(access_of(ANN)):
        for wider in (None, Access(principals=None), access_of(BO), access_of(ANN, BO)):
            assert confinement.bounded(wider).resolved(tree).nodes == frozenset({UNCLASSIFIED, 2, 4})
