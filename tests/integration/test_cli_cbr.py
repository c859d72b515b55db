"""`dtrag cbr` on a real index: cases, votes, figures, copies between stores, and the memory that is off."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli_process import Cli, assert_shape, documented_shapes
from tests.integration.conftest import MakeCli

QUESTION = "How long is parental leave?"


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="dtrag-cli-cbr-"))
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def cli(make_cli: MakeCli, folder: Path) -> Cli:
    made = make_cli(CBR_ENABLED="true")
    (folder / "leave.md").write_text("# Leave\n\nParental leave is 14 weeks.", "utf-8")
    assert made.call("ingest", folder / "leave.md", "--category", "HR/Leave").code == 0
    return made


def test_a_case_from_its_beginning_to_its_end(cli: Cli, folder: Path) -> None:
    shapes = documented_shapes()
    chunk_id = cli.call("search", "parental leave", "--json").json["results"][0]["chunk_id"]
    words = ("--category", "HR/Leave", "--content", "Handbook, chapter 4", "--passage", chunk_id)
    added = cli.call("cbr", "add", QUESTION, *words, "--id", "case-1", "--metadata", '{"source": "desk"}', "--json")
    assert added.code == 0, added.err
    assert_shape(added.json, shapes["dtrag cbr add"])
    assert (added.json["case_id"], added.json["passages"]) == ("case-1", [chunk_id])

    suggested = cli.call("cbr", "suggest", QUESTION, "--category", "hr", "--subcategories", "--json")
    assert_shape(suggested.json, shapes["dtrag cbr suggest"])
    [row] = suggested.json["suggestions"]
    assert (row["case_id"], row["similarity_score"]) == ("case-1", 1.0)
    log_id = suggested.json["log_id"]

    voted = cli.call("cbr", "feedback", log_id, "case-1", "thumbs_up", "--json")
    assert_shape(voted.json, shapes["dtrag cbr feedback"])
    assert (voted.json["quality_score"], voted.json["usage_count"]) == (0.6, 1)
    assert cli.call("cbr", "feedback", "unknown", "case-1", "thumbs_up").code == 1

    changed = cli.call("cbr", "set", "case-1", "--quality", "0.9", "--content", "Handbook, chapter 5", "--json")
    assert_shape(changed.json, shapes["dtrag cbr set"])
    assert_shape(cli.call("cbr", "show", "case-1", "--json").json, shapes["dtrag cbr show"])
    assert_shape(cli.call("cbr", "list", "--fresh", "--json").json, shapes["dtrag cbr"])
    assert_shape(cli.call("cbr", "stats", "--json").json, shapes["dtrag cbr stats"])
    assert_shape(cli.call("cbr", "logs", "--success-only", "--json").json, shapes["dtrag cbr logs"])
    assert_shape(cli.call("cbr", "export", "--json").json, shapes["dtrag cbr export"])

    copied = cli.call("cbr", "migrate", "--to-sqlite", folder / "cases", "--json")
    assert_shape(copied.json, shapes["dtrag cbr migrate"])
    assert (copied.json["cases"], copied.json["known_cases"]) == (1, 0)
    assert cli.call("cbr", "delete", "case-1", "--json").json == {"deleted": "case-1"}
    assert cli.call("cbr", "show", "case-1").code == 1
    back = cli.call("cbr", "migrate", "--from-sqlite", folder / "cases")
    assert back.out.startswith("Copied 1 case and "), back.err
    restored = cli.call("cbr", "show", "case-1", "--json").json
    assert (restored["quality_score"], restored["usage_count"]) == (0.9, 1)


def test_tables_fit_a_terminal(cli: Cli) -> None:
    assert cli.call("cbr", "add", f"{QUESTION} {'And then? ' * 30}", "--category", "HR", "--content", "x").code == 0
    for words in (("suggest", QUESTION), ("list",), ("logs",), ("stats",), ("export", "--output", "/dev/null")):
        ran = cli.call("cbr", *words)
        assert ran.code == 0, ran.err
        assert max(map(len, ran.out.splitlines()), default=0) <= 80, words


def test_mistakes_are_named(cli: Cli, folder: Path) -> None:
    for words, message in (
        (("set", "case-1"), "There is nothing to change"),
        (("add", QUESTION, "--category", "HR", "--content", " "), "content is blank"),
        (("add", QUESTION, "--category", "HR", "--content", "x", "--metadata", "[1]"), "not a JSON object"),
        (("migrate",), "give either --to-sqlite or --from-sqlite"),
        (("migrate", "--from-sqlite", str(folder / "nowhere")), "There is no cbr_system.db"),
    ):
        ran = cli.call("cbr", *words)
        assert ran.code == 2, words
        assert message in ran.err + ran.out, words


def test_everything_says_that_the_memory_is_off(make_cli: MakeCli) -> None:
    ran = make_cli().call("cbr", "suggest", QUESTION, "--json")
    assert ran.code == 2
    assert ran.json["error"]["message"].startswith("CBR system is not enabled. Set CBR_ENABLED=true")
    assert json.loads(ran.out)["error"]["type"] == "FeatureOff"


def test_an_answer_that_was_found_right_is_shown_with_the_next_one(make_cli: MakeCli, folder: Path) -> None:
    cli = make_cli(CBR_ENABLED="true")
    (folder / "휴직.md").write_text("# 휴직\n\n육아 휴직은 최대 90일까지 할 수 있다.", "utf-8")
    assert cli.call("ingest", folder / "휴직.md", "--category", "인사").code == 0
    asked = cli.call("ask", "육아 휴직은 최대 며칠까지 할 수 있나요?", "--json")
    assert asked.json["answered_before"] is None
    made = cli.call("feedback", asked.json["trace_id"], "up", "--json")
    assert made.json["effect"] == "case_made", made.json
    again = cli.call("ask", "안녕하세요, 육아 휴직은 최대 며칠까지 할 수 있나요", "--json")
    assert_shape(again.json, documented_shapes()["dtrag ask"])
    assert again.json["answered_before"]["case_id"] == made.json["case_id"]
    assert "이미 답한 질문" in cli.call("ask", "육아 휴직은 최대 며칠까지 할 수 있나요?").out
