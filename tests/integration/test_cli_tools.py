"""`dtrag tools` on a real database with a real MCP server."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli_process import Cli, assert_shape, documented_shapes
from tests.integration.conftest import MakeCli
from tests.mcp_setup import Behaviour

SHAPES = documented_shapes()
LONG = "Adds two numbers. " + "It is very good at it. " * 30


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="dtrag-cli-tools-"))
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def cli(folder: Path, make_cli: MakeCli) -> Iterator[Cli]:
    servers = folder / "servers.toml"
    servers.write_text(Behaviour(folder, call="long").table(), "utf-8")
    yield make_cli(DTRAG_MCP_SERVERS=str(servers))


def test_built_in_tools_need_no_server(cli: Cli) -> None:
    listed = cli.call("tools", "list", "--json", DTRAG_MCP_SERVERS="")
    assert [(tool["name"], tool["state"]) for tool in listed.json["tools"]] == [
        ("calculator", "built-in"),
        ("doc_parser", "built-in"),
        ("web_search", "built-in"),
    ]
    assert listed.json["servers"] == []
    done = cli.call("tools", "run", "calculator", "--input", '{"expression": "6*7"}', "--json", DTRAG_MCP_SERVERS="")
    assert (done.code, done.json["success"], done.json["result"]["result"]) == (0, True, 42)


def test_a_tool_is_listed_approved_run_and_revoked(cli: Cli, folder: Path) -> None:
    adds = {"name": "add", "description": LONG, "inputSchema": {"type": "object", "properties": {"first": {}}}}
    sums = Behaviour(folder, tools=[adds])
    text = cli.call("tools", "list")
    assert text.code == 0, text.err
    assert max(map(len, text.out.splitlines())) <= 80
    assert "dtrag tools approve sums.add" in text.err
    listed = cli.call("tools", "list", "--json")
    assert_shape(listed.json, SHAPES["dtrag tools"])
    shown = cli.call("tools", "show", "sums.add", "--json")
    assert_shape(shown.json, SHAPES["dtrag tools show"])
    assert shown.json["state"] == "new"
    early = cli.call("tools", "run", "sums.add")
    assert (early.code, early.out) == (1, "")
    assert "must be approved first" in early.err

    wrong = cli.call("tools", "approve", "sums.add", "--fingerprint", "0" * 64)
    assert wrong.code == 1
    assert "has changed since you reviewed it" in wrong.err
    done = cli.call("tools", "approve", "sums.add", "--fingerprint", shown.json["fingerprint"], "--json")
    assert_shape(done.json, SHAPES["dtrag tools approve"])
    ran = cli.call("tools", "run", "sums.add", "--input", '{"first": 42}', "--json")
    assert_shape(ran.json, SHAPES["dtrag tools run"])
    assert (ran.code, ran.json["result"]) == (0, "42")

    sums.set(tools=[adds | {"description": "Adds \x1b[2J\u202e."}])
    changed = cli.call("tools", "show", "sums.add")
    assert "changed" in changed.out
    assert "Approved" in changed.out
    assert not {"\x1b", "\u202e"} & set(changed.out)
    assert cli.call("tools", "run", "sums.add").code == 1
    ended = cli.call("tools", "revoke", "sums.add", "--json")
    assert ended.json == SHAPES["dtrag tools revoke"] | {"revoked": "sums.add"}
    assert cli.call("tools", "revoke", "sums.add").code == 1


@pytest.mark.parametrize("given", ["{", "[1]", '"text"', "", "[" * 100_000])
def test_an_invalid_input(cli: Cli, given: str) -> None:
    done = cli.call("tools", "run", "calculator", "--input", given, DTRAG_MCP_SERVERS="")
    assert done.code == 2
    assert '{"query": "rain"}' in done.err


def test_an_unknown_tool(cli: Cli) -> None:
    shown = cli.call("tools", "show", "other.add", DTRAG_MCP_SERVERS="")
    assert (shown.code, "dtrag tools list" in shown.err) == (1, True)
    approved = cli.call("tools", "approve", "other.add", DTRAG_MCP_SERVERS="")
    assert (approved.code, "dtrag tools list" in approved.err) == (1, True)


def test_an_invalid_server_list(cli: Cli, folder: Path) -> None:
    path = folder / "wrong.json"
    path.write_text(json.dumps({"servers": {"x": {}}}), "utf-8")
    done = cli.call("tools", "list", DTRAG_MCP_SERVERS=str(path))
    assert done.code == 2
    assert "either command (a program) or url" in done.err
