"""`dtrag trace` on a real index."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli_process import Cli, assert_shape, documented_shapes
from tests.integration.conftest import MakeCli

QUESTION = "What does the kettle have?"


@pytest.fixture(scope="module")
def cli(make_cli: MakeCli) -> Iterator[Cli]:
    folder = Path(tempfile.mkdtemp(prefix="dtrag-cli-trace-"))
    rows = [{"id": str(n), "title": f"Part {n}", "text": f"The kettle has {n} valves and a lid."} for n in range(5)]
    (folder / "parts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = make_cli()
    assert made.call("ingest", folder / "parts.jsonl", "--category", "Kitchen").code == 0
    assert "There is no trace yet" in made.call("trace").err
    assert made.call("ask", QUESTION).code == 0
    yield made
    shutil.rmtree(folder)


def test_the_newest_trace(cli: Cli) -> None:
    ran = cli.call("trace", "--json")
    assert_shape(ran.json, documented_shapes()["dtrag trace"])
    steps = {step["name"]: step for step in ran.json["steps"]}
    assert list(steps) == ["intent", "retrieve", "compose", "cite", "respond"]
    budget = 2.0 * 20  # the tests multiply the limits
    assert (steps["retrieve"]["budget"], steps["retrieve"]["facts"]["passages"]) == (budget, 5)
    assert ran.json["question"] == ""
    text = cli.call("trace")
    assert max(map(len, text.out.splitlines())) <= 80
    assert all(word in text.out for word in ("Step", "Budget", "2,000", "retrieve", "passages 5", ran.json["trace_id"]))
    assert cli.call("trace", ran.json["trace_id"], "--json").json == ran.json


def test_the_list(cli: Cli) -> None:
    before = cli.call("trace", "--list", "100", "--json").json["traces"]
    assert cli.call("ask", "How many valves?").code == 0
    traces = cli.call("trace", "--list", "100", "--json").json["traces"]
    assert [trace["trace_id"] for trace in traces[1:]] == [trace["trace_id"] for trace in before]
    text = cli.call("trace", "--list", "1")
    assert max(map(len, text.out.splitlines())) <= 80
    assert traces[0]["trace_id"] in text.out
    assert "1 trace" in text.err


def test_texts_are_shown_when_they_were_stored(cli: Cli) -> None:
    kept = Cli(cli.data_dir, (*cli.settings, ("DTRAG_TRACE_TEXT", "on")))
    assert kept.call("ask", QUESTION).code == 0
    text = cli.call("trace")
    assert QUESTION in text.out
    assert "valves and a lid" in text.out


def test_an_unknown_trace_is_reported(cli: Cli) -> None:
    ran = cli.call("trace", "00000000-0000-0000-0000-000000000000")
    assert (ran.code, "no trace" in ran.err) == (1, True)
    assert cli.call("trace", "x", "--list", "3").code == 2
    assert cli.call("trace", "--list", "0").code == 2
    wrong = Cli(cli.data_dir, (*cli.settings, ("DTRAG_TRACES", "some")))
    assert "Levels: all, errors, off" in wrong.call("trace").err


def test_feedback_on_an_answer(cli: Cli) -> None:
    trace_id = cli.call("trace", "--json").json["trace_id"]
    ran = cli.call("feedback", trace_id, "4", "--json")
    assert_shape(ran.json, documented_shapes()["dtrag feedback"])
    assert (ran.json["feedback"], ran.json["changed"], ran.json["effect"]) == ("thumbs_up", True, "recorded")
    assert "Recorded: thumbs_down" in cli.call("feedback", trace_id, "down", "--reason", "It has five.").out
    assert "up or down" in cli.call("feedback", trace_id, "sideways").err
    assert cli.call("feedback", trace_id, "sideways").code == 2
    assert cli.call("feedback", "00000000-0000-0000-0000-000000000007", "up").code == 1


def test_exploring_answers_are_recorded_with_their_propensities(cli: Cli) -> None:
    remembering = Cli(cli.data_dir, (*cli.settings, ("CBR_ENABLED", "true")))
    started = cli.call("cbr", "bandit", "--explore", "100", "--json")
    assert_shape(started.json, documented_shapes()["dtrag cbr bandit"])
    assert (started.json["explore"], started.json["experiences"]) == (1.0, 0)
    assert remembering.call("ask", "How many valves does part 2 have?").code == 0
    recorded = cli.call("cbr", "bandit", "--explore", "0", "--json").json
    assert (recorded["explore"], recorded["experiences"], recorded["explored"]) == (0.0, 1, 1)
    assert recorded["verdict"] == "not enough data"
    text = cli.call("cbr", "bandit")
    assert max(map(len, text.out.splitlines())) <= 80
    assert "dtrag cbr bandit --explore 5" in text.out
    assert cli.call("cbr", "bandit", "--explore", "101").code == 2
