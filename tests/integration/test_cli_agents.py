"""`dtrag agents` on a real index: made, listed, shown, handed on, searched with, deleted."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.cli_process import Cli, Ran, assert_shape, documented_shapes
from tests.integration.conftest import MakeCli

SHAPES = documented_shapes()


@pytest.fixture(scope="module")
def cli(make_cli: MakeCli) -> Iterator[Cli]:
    folder = Path(tempfile.mkdtemp(prefix="dtrag-cli-agents-"))
    made = make_cli()
    for category, text in (("Tea/Green", "Green tea is steeped for two minutes."), ("Coffee", "Coffee with tea.")):
        note = folder / f"{category.split('/')[0]}.md"
        note.write_text(f"# Note\n\n{text}\n")
        assert made.call("ingest", note, "--category", category).code == 0
    yield made
    shutil.rmtree(folder)


def narrow(ran: Ran) -> Ran:
    assert ran.code == 0, ran.err
    assert max(map(len, ran.out.splitlines()), default=0) <= 80
    return ran


@pytest.fixture
def agent(cli: Cli) -> Iterator[dict[str, Any]]:
    ran = cli.call(
        "agents", "create", "--path", "Tea", "--path", "Milk/Oat", "--name", "Tea desk", "--tool", "searcher", "--json"
    )
    assert ran.code == 0, ran.err
    assert_shape(ran.json, SHAPES["dtrag agents create"])
    yield ran.json
    cli.call("agents", "delete", ran.json["agent_id"])


def test_agents_are_created_listed_and_shown(cli: Cli, agent: dict[str, Any]) -> None:
    assert agent["allowed_category_paths"] == [["tea"], ["milk", "oat"]]
    assert agent["unresolved_paths"] == ["Milk/Oat"]
    assert (agent["created_by"], agent["taxonomy_version"]) == ("local", "1.0.0")
    listed = cli.call("agents", "list", "--json").json
    assert_shape(listed, SHAPES["dtrag agents"])
    assert listed["agents"] == [agent]
    shown = cli.call("agents", "show", agent["agent_id"], "--json").json
    assert_shape(shown, SHAPES["dtrag agents show"])
    text = narrow(cli.call("agents", "list"))
    assert "Tea desk" in text.out and "1 of 1 agent" in text.err
    text = narrow(cli.call("agents", "show", agent["agent_id"]))
    for word in ("Tea desk", "tea, milk/oat", "Milk/Oat", "searcher", "0 of 2,000,000 tokens", "hitl_below_conf 0.7"):
        assert word in " ".join(text.out.split())
    made = narrow(cli.call("agents", "create", "--path", "Nowhere"))
    assert "Nowhere is not in the tree yet" in made.err
    assert cli.call("agents", "delete", made.out.split()[1], "--json").json == {"deleted": made.out.split()[1]}


def test_agents_are_exported_and_imported(cli: Cli, agent: dict[str, Any], tmp_path: Path) -> None:
    as_yaml = cli.call("agents", "export", agent["agent_id"])
    as_json = cli.call("agents", "export", agent["agent_id"], "--json").json
    assert_shape(as_json, SHAPES["dtrag agents export"])
    assert yaml.safe_load(as_yaml.out) == as_json
    ran = cli.call("agents", "export", agent["agent_id"], "--output", tmp_path / "tea.yaml")
    assert (ran.code, ran.out) == (0, "")
    assert (tmp_path / "tea.yaml").read_text("utf-8") == as_yaml.out


def test_agents_can_be_searched(cli: Cli, agent: dict[str, Any]) -> None:
    ran = cli.call("agents", "search", agent["agent_id"], "tea", "--json")
    assert_shape(ran.json, SHAPES["dtrag agents search"])
    assert [result["taxonomy_path"] for result in ran.json["results"]] == [["Tea", "Green"]]
    text = narrow(cli.call("agents", "search", agent["agent_id"], "tea"))
    assert "Green tea" in text.out
    nothing = cli.call("agents", "search", agent["agent_id"], "coffee")
    assert (nothing.code, nothing.out) == (0, "")
    assert "No passage matches" in nothing.err


@pytest.mark.parametrize("command", ["show", "export", "delete"])
def test_an_unknown_agent_is_reported(cli: Cli, command: str) -> None:
    ran = cli.call("agents", command, "00000000-0000-4000-8000-000000000000", "--json")
    assert ran.code == 1
    assert ran.json["error"]["type"] == "NotFound"
    assert "dtrag agents list" in ran.err


def test_mistakes_are_explained(cli: Cli) -> None:
    for arguments, words in (
        (("--path", "Tea", "--version", "1.0"), "Invalid version format"),
        (("--path", "Tea/../Coffee"), "Unsafe characters detected"),
        (("--path", "a/b/c/d/e/f"), "Max 5 levels allowed"),
        (("--path", "Tea", "--tool", "shell"), "Unknown tool. Known: calculator"),
        ((), "--path"),
    ):
        ran = cli.call("agents", "create", *arguments)
        assert ran.code == 2, ran.err
        assert words in ran.err
