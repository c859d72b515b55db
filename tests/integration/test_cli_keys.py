"""`dtrag keys` on a real database: made, listed, revoked."""

from __future__ import annotations

import pytest

from dtrag.core.access.api_key import prefix_of
from tests.integration.cli_process import Cli, assert_shape, documented_shapes
from tests.integration.conftest import MakeCli

SHAPES = documented_shapes()


@pytest.fixture(scope="module")
def cli(make_cli: MakeCli) -> Cli:
    return make_cli()


def test_keys_are_created_listed_and_revoked(cli: Cli) -> None:
    none = cli.call("keys", "list")
    assert (none.code, none.out) == (0, "")
    assert "dtrag keys create" in none.err

    made = cli.call("keys", "create", "--name", "desk", "--scope", "HR/Leave", "--scope", "Law", "--expires", "90d")
    assert made.code == 0, made.err
    assert prefix_of(made.out.strip()) is not None
    assert "HR/Leave is not in the tree yet" in made.err
    assert made.out.strip() not in made.err

    full = cli.call("keys", "create", "--name", "boss", "--role", "admin", "--rate", "60", "--json")
    assert_shape(full.json, SHAPES["dtrag keys create"])
    assert full.json["key"]["scope"] is None
    assert full.json["key"]["rate_per_minute"] == 60
    assert prefix_of(full.json["secret"]) is not None

    listed = cli.call("keys", "list", "--json")
    assert_shape(listed.json, SHAPES["dtrag keys"])
    assert [(key["name"], key["role"], key["state"]) for key in listed.json["keys"]] == [
        ("boss", "admin", "valid"),
        ("desk", "reader", "valid"),
    ]
    assert full.json["secret"] not in listed.out

    ended = cli.call("keys", "revoke", "desk", "--json")
    assert_shape(ended.json, SHAPES["dtrag keys revoke"])
    assert ended.json["key"]["state"] == "revoked"
    text = cli.call("keys", "list")
    assert max(map(len, text.out.splitlines())) <= 80
    assert "revoked" in text.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create", "--name", "x", "--role", "root"), "Roles: public, reader, editor, admin"),
        (("create", "--name", "x", "--expires", "soon"), "90d"),
        (("create", "--name", "x", "--expires", "2001-01-01"), "in the future"),
        (("create", "--name", "x", "--scope", "../HR"), "category name"),
        (("create", "--name", "x", "--rate", "0"), "requests a minute"),
    ],
)
def test_mistakes(cli: Cli, arguments: tuple[str, ...], said: str) -> None:
    ran = cli.call("keys", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in " ".join(ran.err.split())


def test_an_unknown_key_is_reported(cli: Cli) -> None:
    ran = cli.call("keys", "revoke", "nobody")
    assert ran.code == 1
    assert "dtrag keys list" in ran.err
