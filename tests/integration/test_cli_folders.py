"""`dtrag ingest --prune` and `dtrag documents delete`: what people and scripts see."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from dtrag.delivery.cli import exit_codes
from tests.integration.cli_process import DOCS, Cli, assert_shape, documented_shapes
from tests.integration.conftest import MakeCli


@pytest.fixture(scope="module")
def cli(make_cli: MakeCli) -> Cli:
    return make_cli()


@pytest.fixture
def folder(tmp_path: Path, cli: Cli) -> Path:
    path = tmp_path / "docs"
    path.mkdir()
    for name in ("boiler", "garden", "stairs", "kettle"):
        (path / f"{name}.md").write_text(f"# About the {name}\n\nThe {name} of {tmp_path.name}.\n")
    (path / "logo.webp").write_bytes(b"")
    assert cli.call("ingest", path, "--category", "House").code == 0
    return path


def documented_plan() -> Any:
    section = re.split(r"^## ", DOCS.read_text("utf-8"), flags=re.M)
    [ingest] = [part for part in section if part.startswith("dtrag ingest\n")]
    block = re.search(r"```text\n(\{.*?)```", ingest, re.S)
    assert block is not None
    return json.loads(block[1])


def test_what_prune_would_do_and_does(cli: Cli, folder: Path) -> None:
    (folder / "boiler.md").unlink()
    (folder / "kettle.md").rename(folder / "pot.md")
    (folder / "new.md").write_text("# New\n\nNew here.\n")
    assert cli.call("ingest", folder, "--dry-run").code == exit_codes.USAGE
    planned = cli.call("ingest", folder, "--category", "House", "--prune", "--dry-run", "--json")
    assert planned.code == 0
    assert_shape(planned.json, documented_plan())
    assert planned.json["added"] == [str(folder / "new.md")]
    assert planned.json["removed"] == [str(folder / "boiler.md")]
    assert planned.json["renamed"] == [{"from": str(folder / "kettle.md"), "to": str(folder / "pot.md")}]
    text = cli.call("ingest", folder, "--category", "House", "--prune", "--dry-run")
    assert f"- {folder / 'boiler.md'}" in text.out
    assert "1 file of unknown kinds skipped: logo.webp" in text.err
    assert "Nothing was changed" in text.err

    done = cli.call("ingest", folder, "--category", "House", "--prune", "--json")
    assert_shape(done.json, documented_shapes()["dtrag ingest"])
    assert (done.json["documents"], done.json["removed"], done.json["pruned"]) == (1, 1, [str(folder / "boiler.md")])
    assert done.json["skipped"] == [
        {"path": str(folder / "logo.webp"), "reason": "Files of the kind .webp are not read."}
    ]

    for name in ("garden", "stairs"):
        (folder / f"{name}.md").unlink()
    refused = cli.call("ingest", folder, "--category", "House", "--prune")
    assert refused.code == exit_codes.USAGE
    assert "--prune-all" in refused.err
    assert cli.call("ingest", folder, "--prune", "--dry-run").code == exit_codes.USAGE
    assert cli.call("ingest", folder, "--category", "House", "--prune-all", "--json").json["removed"] == 2


def titles(cli: Cli) -> set[str]:
    return {row["title"] for row in cli.call("documents", "--json").json["documents"]}


def test_documents_are_deleted_by_path_pattern_and_category(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = cli.call("documents", "delete", folder / "boiler.md")
    assert refused.code == exit_codes.USAGE
    assert "About the boiler" in refused.err
    assert "--yes" in refused.err
    assert "About the boiler" in titles(cli)
    assert cli.call("documents", "delete", folder / "absent.md", "--yes").code == exit_codes.FAILURE

    gone = cli.call("documents", "delete", folder / "boiler.md", "--yes", "--json")
    assert_shape(gone.json, documented_shapes()["dtrag documents delete"])
    assert [row["title"] for row in gone.json["documents"]] == ["About the boiler"]

    shown = cli.call("documents", "delete", f"{folder}/*.md", "--category", "House", "--dry-run", "--json")
    assert (shown.json["deleted"], len(shown.json["documents"])) == (0, 3)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(typer, "confirm", lambda *_, **__: False)
    assert cli.call("documents", "delete", folder).code == 0
    assert "About the garden" in titles(cli)
    monkeypatch.setattr(typer, "confirm", lambda *_, **__: True)
    assert "Deleted 1 document" in cli.call("documents", "delete", f"{folder}/g*.md").out
    assert "About the garden" not in titles(cli)
    assert cli.call("documents", "delete", "--category", "House", "--yes").code == 0
    assert titles(cli) == set()
    assert (folder / "garden.md").exists(), "files stay"
    assert "documents.delete" in cli.call("audit", "list", "--json").out
    assert cli.call("documents", "delete").code == exit_codes.USAGE


def test_documents_are_moved_after_a_look(cli: Cli, folder: Path) -> None:
    (folder / "spade.txt").write_text("A spade.")
    assert cli.call("ingest", folder / "spade.txt", "--category", "House/Shed").code == 0
    key = ("keys", "create", "--name", f"shed {folder.parent.name}", "--role", "reader", "--scope", "House/Shed")
    assert cli.call(*key).code == 0
    move = ("documents", "move", f"{folder}/g*.md", "--to", "House/Shed")
    planned = cli.call(*move, "--dry-run", "--json").json
    assert_shape(planned, documented_shapes()["dtrag documents move"])
    assert (planned["documents"], planned["access"][0]["gained"]) == (1, 1)
    assert "1 document would move to House/Shed" in cli.call(*move, "--dry-run").err
    refused = cli.call(*move)
    assert refused.code == exit_codes.FAILURE
    assert "--accept-widening" in refused.err
    assert "1 document moved to House/Shed" in cli.call(*move, "--accept-widening").err
    listed = cli.call("documents", "list", "--category", "House/Shed", "--json").json["documents"]
    assert {row["title"] for row in listed} >= {"About the garden"}
    assert cli.call("documents", "move", folder / "absent.md", "--to", "House").code == exit_codes.FAILURE
    assert cli.call("documents", "move", folder, "--to", "Nowhere").code == exit_codes.USAGE
