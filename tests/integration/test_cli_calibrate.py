"""`dtrag calibrate` on a real index: it counts from the next question on, in any process, and can be undone."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dtrag.app import open_app
from dtrag.core.access.scope import Scope
from dtrag.core.answers.passage_confidence import shipped
from dtrag.core.text.analysis import term_id
from dtrag.evaluation.confidence_cases import HidingIndex, Judged, cases, hiding_engine
from dtrag.settings import Settings
from tests.integration.cli_process import Cli, assert_shape, documented_shapes
from tests.integration.conftest import MakeCli

THINGS = "kettle boiler lantern harbour granite violin meadow copper saffron timber orchard ledger".split()
PLACES = "attic cellar pantry library garage".split()
QUESTION = "Where is the violin of the attic kept?"


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="dtrag-cli-calibrate-"))
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def cli(folder: Path, make_cli: MakeCli) -> Iterator[Cli]:
    rows: list[dict[str, str]] = []
    asked: list[dict[str, str | bool]] = []
    for thing in THINGS:
        for place in PLACES:
            name = f"{thing}-{place}"
            text = f"The {thing} of the {place} is kept on shelf {len(rows)}. It was bought by {thing}son."
            rows.append({"id": name, "title": f"{thing} {place}", "text": text})
            asked.append({"question": f"Where is the {thing} of the {place} kept?", "document": name})
    asked += [{"question": f"Who repaired the {thing} last winter in Vienna?", "answerable": False} for thing in THINGS]
    (folder / "things.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "asked.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    made = make_cli()
    assert made.call("ingest", folder / "things.jsonl", "--category", "House").code == 0
    yield made


def test_a_calibration_changes_the_next_answer_and_can_be_reset(cli: Cli, folder: Path) -> None:
    def confidence() -> float:
        return float(cli.call("ask", QUESTION, "--json").json["confidence"])

    before = confidence()
    dry = cli.call("calibrate", folder / "asked.jsonl", "--dry-run", "--json")
    assert dry.code == 0, dry.err
    assert_shape(dry.json, documented_shapes()["dtrag calibrate"])
    assert dry.json["kept"] is False
    assert dry.json["cases"] == {"answerable": 60, "hidden": 60, "absent": 12}
    assert dry.json["after"]["log_loss"] < dry.json["before"]["log_loss"]
    assert dry.json["models"][0]["method"] != "shipped"
    assert "Nothing was changed" in dry.err
    assert confidence() == before
    ran = cli.run("calibrate", folder / "asked.jsonl")  # another process
    assert ran.code == 0, ran.err
    assert "Active from the next question on" in ran.err
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "calibration error" in ran.out
    assert confidence() != before
    reset = cli.call("calibrate", "--reset", "--json")
    assert reset.json == {"reset": True}
    assert confidence() == before
    assert "nothing to reset" in cli.call("calibrate", "--reset").out


def test_mistakes_are_explained(cli: Cli, folder: Path) -> None:
    for arguments in ((), ("--reset", "--dry-run"), (str(folder / "asked.jsonl"), "--reset")):
        ran = cli.call("calibrate", *arguments)
        assert ran.code == 2
        assert "either a file of questions" in " ".join(ran.err.split())
    bad = folder / "bad.jsonl"
    bad.write_text('{"question": "x", "answerable": true}\n{"question": 7}\n')
    ran = cli.call("calibrate", bad, "--json")
    assert ran.code == 2
    assert "line 2: no question. Expected" in ran.json["error"]["message"]
    one = folder / "one-kind.jsonl"
    rows = [{"question": f"Who repaired the {t} in Vienna {n}?", "answerable": False} for t in THINGS for n in range(2)]
    one.write_text("".join(json.dumps(row) + "\n" for row in rows))
    ran = cli.call("calibrate", one)
    assert ran.code == 2
    assert "All of these questions are unanswered" in " ".join(ran.err.split())


async def test_hidden_passages_leave_no_trace(cli: Cli) -> None:
    settings = Settings.load(environ=dict(cli.settings), data_dir=cli.data_dir)
    everything, word = Scope.everything(), term_id("violin")
    async with open_app(settings) as app:
        index = HidingIndex(app.index, app.analyzer)
        engine = hiding_engine(index, None, app.analyzer)
        first, _ = await engine.search(QUESTION, 10, scope=everything)
        whole = await index.statistics([word], everything)
        with index.without(first[:1]):
            then, _ = await engine.search(QUESTION, 10, scope=everything)
            less = await index.statistics([word], everything)
        again, _ = await engine.search(QUESTION, 10, scope=everything)
    assert first[0].chunk_id not in {passage.chunk_id for passage in then}
    assert len(then) == 10
    assert (less.document_frequency(word), less.chunks) == (whole.document_frequency(word) - 1, whole.chunks)
    assert [passage.chunk_id for passage in again] == [passage.chunk_id for passage in first]
    assert [passage.bm25_score for passage in again] == [passage.bm25_score for passage in first]


async def test_cases_of_a_question(cli: Cli) -> None:
    settings = Settings.load(environ=dict(cli.settings), data_dir=cli.data_dir)
    judged = [
        Judged(QUESTION, True, frozenset({"violin-attic"})),
        Judged(QUESTION, True, frozenset({"nowhere"})),
        Judged(QUESTION, True),
        Judged("Who sails to Saturn?", False),
    ]
    async with open_app(settings) as app:
        found = [made async for made in cases(judged, app.index, app.embedder, app.analyzer)]
    kinds = [[(case.kind, case.label) for case in made] for made in found]
    assert kinds == [
        [("answerable", 1.0), ("hidden", 0.0)],
        [("answerable", 0.0)],
        [("answerable", 1.0)],
        [("absent", 0.0)],
    ]
    answered, hidden = found[0]
    words = shipped().models["words"]
    assert words.probability(answered.signals) > words.probability(hidden.signals)
    assert words.probability(hidden.signals) > words.probability(found[3][0].signals)
