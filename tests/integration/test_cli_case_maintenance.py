"""`dtrag cbr audit`, `consolidate` and `reflect` on a real database."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.books import shelf
from tests.integration.cli_process import Cli, assert_shape, documented_shapes
from tests.integration.conftest import MakeCli

QUESTION = "How is a broth with onions seasoned?"


@pytest.fixture(scope="module")
def cli(make_cli: MakeCli) -> Iterator[Cli]:
    folder = Path(tempfile.mkdtemp(prefix="dtrag-cli-cases-"))
    (folder / "shelf.jsonl").write_text("".join(json.dumps(row) + "\n" for row in shelf(3)))
    made = make_cli()
    made = Cli(made.data_dir, (*made.settings, ("CBR_ENABLED", "true"), ("DTRAG_REVIEW_BELOW", "1")))
    assert made.call("ingest", folder / "shelf.jsonl").code == 0
    yield made
    shutil.rmtree(folder)


def test_without_cases_there_is_nothing_to_do(cli: Cli) -> None:
    assert cli.call("cbr", "audit").code == 0
    assert "nothing to archive" in cli.call("cbr", "consolidate").err
    assert "No run can be undone" in cli.call("cbr", "consolidate", "--runs").err
    assert "too few for a judgement" in cli.call("cbr", "reflect").err
    assert cli.call("cbr", "consolidate", "--undo", "x").code == 1
    assert cli.call("cbr", "consolidate", "--dry-run", "--runs").code == 2
    for command in ("audit", "consolidate", "reflect"):
        assert cli.call("cbr", command, CBR_ENABLED="false").code == 2


def test_the_life_of_a_case(cli: Cli) -> None:
    shapes = documented_shapes()
    assert cli.call("ask", QUESTION).code == 0
    [item] = cli.call("review", "--json").json["items"]
    passages = cli.call("review", "show", item["item_id"], "--json").json["proposal"]["passages"]
    chosen = passages[0]["chunk_id"]
    # Decided while the memory is off: the case is made by the next consolidation.
    published = ("House/Kitchen", "--passage", chosen)
    corrected = cli.call("review", "correct", item["item_id"], *published, CBR_ENABLED="false")
    assert corrected.code == 0, corrected.err
    assert cli.call("cbr", "list", "--json").json["cases"] == []
    assert "No entry is supported" in cli.call("lexicon", "suggest").err
    suggested = cli.call("lexicon", "suggest", "--least", "1", "--json")
    assert_shape(suggested.json, shapes["dtrag lexicon suggest"])
    assert cli.call("lexicon", "suggest", "--least", "1").code == 0
    assert cli.call("cbr", "consolidate", "--json").json["made_from_review"] == 1
    for again in (QUESTION.lower(), QUESTION.upper()):
        category = "/".join(cli.call("cbr", "list", "--json").json["cases"][0]["category_path"])
        added = cli.call("cbr", "add", again, "--category", category, "--content", "Again", "--passage", chosen)
        assert added.code == 0, added.err
    ran = cli.call("cbr", "audit", "--json")
    assert ran.code == 1
    assert_shape(ran.json, shapes["dtrag cbr audit"])
    assert ran.json["counts"]["duplicate"] == 2
    text = cli.call("cbr", "audit")
    assert text.code == 1
    assert max(map(len, text.out.splitlines())) <= 80
    dry = cli.call("cbr", "consolidate", "--dry-run")
    assert "Nothing was changed" in dry.err
    assert max(map(len, dry.out.splitlines())) <= 80
    report = cli.call("cbr", "consolidate", "--json").json
    assert_shape(report, shapes["dtrag cbr consolidate"])
    assert [row["reason"] for row in report["archived"]] == ["merged", "merged"]
    assert cli.call("cbr", "audit").code == 0
    assert report["run"] in cli.call("cbr", "consolidate", "--runs").out
    assert cli.call("cbr", "consolidate", "--undo", report["run"], "--json").json["restored"] == 2
    assert cli.call("cbr", "audit", "--json").json["counts"]["duplicate"] == 2
    assert_shape(cli.call("cbr", "reflect", "--json").json, shapes["dtrag cbr reflect"])
    document = chosen.partition(":")[0]
    assert cli.call("documents", "delete", document, "--yes").code == 0
    findings = cli.call("cbr", "audit", "--json").json["findings"]
    assert {row["details"] for row in findings if row["finding"] == "stale"} == {"missing"}
