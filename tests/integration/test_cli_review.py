"""`dtrag review` on a real index."""

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

NAMES = ("Ledger", "Voucher", "Invoice")


@pytest.fixture(scope="module")
def cli(make_cli: MakeCli) -> Iterator[Cli]:
    folder = Path(tempfile.mkdtemp(prefix="dtrag-cli-review-"))
    rows = shelf(10)
    (folder / "shelf.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    strange = [{"id": name, "title": name, "text": f"The {name} lists debits and onions."} for name in NAMES]
    (folder / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in strange))
    made = make_cli()
    assert "The review queue is empty" in made.call("review").err
    assert made.call("ingest", folder / "shelf.jsonl").code == 0
    ran = made.call("ingest", folder / "new.jsonl")
    assert ran.code == 0, ran.err
    assert "3 without a category wait for a person" in ran.err + ran.out
    yield made
    shutil.rmtree(folder)


def waiting(cli: Cli) -> dict[str, str]:
    return {item["title"]: item["item_id"] for item in cli.call("review", "--json").json["items"]}


def test_the_list(cli: Cli) -> None:
    ran = cli.call("review", "list", "--json")
    assert_shape(ran.json, documented_shapes()["dtrag review"])
    assert cli.call("review", "--json").json == ran.json
    confidences = [item["confidence"] for item in ran.json["items"]]
    assert confidences == sorted(confidences)
    text = cli.call("review", "--limit", "1")
    assert max(map(len, text.out.splitlines())) <= 80
    assert f"1 of {len(confidences)} items" in text.err


def test_approve_correct_and_skip(cli: Cli) -> None:
    ids = waiting(cli)
    shown = cli.call("review", "show", ids["Ledger"])
    assert "Ledger" in shown.out
    assert_shape(cli.call("review", "show", ids["Ledger"], "--json").json, documented_shapes()["dtrag review show"])
    corrected = cli.call("review", "correct", ids["Ledger"], "house/garden", "--note", "of the shed", "--json")
    assert corrected.json["proposal"]["path"] == ["House", "Garden"]
    assert cli.call("review", "skip", ids["Voucher"]).out == f"Skipped {ids['Voucher']}\n"
    again = cli.call("review", "approve", ids["Voucher"])
    assert (again.code, "already" in again.err) == (1, True)
    assert set(waiting(cli)) == {"Invoice"}
    documents = cli.call("documents", "--json").json["documents"]
    assert [d["taxonomy_path"] for d in documents if d["title"] == "Ledger"] == [["House", "Garden"]]


def test_an_answer_is_corrected_by_a_passage(cli: Cli) -> None:
    question = "How is a broth with onions seasoned?"
    queued = Cli(cli.data_dir, (*cli.settings, ("DTRAG_REVIEW_BELOW", "1")))
    assert "in the review queue" in queued.call("ask", question, "--json").json["notes"][-1]
    [item] = [row for row in cli.call("review", "--json").json["items"] if row["kind"] == "answer"]
    shown = cli.call("review", "show", item["item_id"])
    assert max(map(len, shown.out.splitlines())) <= 80
    passage = cli.call("review", "show", item["item_id"], "--json").json["proposal"]["passages"][0]
    assert question in shown.out
    assert "is below the limit 1.00" in shown.out
    assert passage["label"] in " ".join(shown.out.split())
    assert "How is a broth" in cli.call("review").out
    assert cli.call("review", "correct", item["item_id"], "House/Garden").code == 2
    assert cli.call("review", "correct", item["item_id"], "--passage", "x:1").code == 2
    corrected = cli.call("review", "correct", item["item_id"], "--passage", passage["chunk_id"], "--json").json
    assert (corrected["status"], corrected["proposal"]["chosen"]) == ("corrected", [passage["chunk_id"]])


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("show", "nothing"), 1),
        (("approve", "00000000-0000-4000-8000-000000000000"), 1),
        (("correct", "x"), 2),
        (("correct", "x", "House/Garden", "--passage", "x"), 1),
        (("--json", "list"), 2),
        (("list", "--limit", "0"), 2),
    ],
)
def test_mistakes(cli: Cli, arguments: tuple[str, ...], code: int) -> None:
    ran = cli.call("review", *arguments)
    assert ran.code == code
    assert ran.err
    assert "--json" in arguments or ran.out == ""
