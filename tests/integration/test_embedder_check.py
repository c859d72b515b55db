"""`dtrag embedder check` on the samples: the documented shape, and an index that stays as it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dtrag.adapters.postgres.server.server import EmbeddedServer
from dtrag.evaluation.embedder_check import PAGE_BYTES, resident
from tests.integration.cli_process import Cli, assert_shape, documented_shapes
from tests.unit.adapters.embedders.folders import write_tiny
from tests.unit.adapters.rerankers.tiny import write_model

SAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    folder = tmp_path_factory.mktemp("check")
    with EmbeddedServer.open(folder / "data"):
        yield Cli(folder / "data", (("DTRAG_EMBEDDER", "none"),))


def test_it_measures_and_changes_nothing(cli: Cli, tmp_path: Path) -> None:
    assert cli.call("embedder", "check", "--json").code == 2
    few = cli.call("embedder", "check", str(write_tiny(tmp_path / "tiny")))
    assert few.code == 2 and "ingest more" in few.err
    assert cli.call("ingest", SAMPLES).code == 0
    before = cli.call("doctor", "--json").json["checks"]

    reranker = f"dir:{write_model(tmp_path / 'reranker')}"
    options = ("--passages", "100", "--questions", "40")
    ran = cli.call("embedder", "check", tmp_path / "tiny", *options, "--json", DTRAG_RERANKER=reranker)
    assert ran.code == 0, ran.err
    assert_shape(ran.json, documented_shapes()["dtrag embedder check"])
    report = ran.json
    assert report["model"].startswith("dir@") and report["dim"] == 8
    assert 50 < report["passages"] <= 100 and 20 <= sum(report["kinds"].values()) <= 40
    assert report["words"] > report["vectors"], "random vectors find nothing"
    assert report["by_weight"][5] == report["fused"]
    assert sum(each["questions"] for each in report["languages"]) == sum(report["kinds"].values())
    assert {each["language"] for each in report["languages"]} >= {"ko", "en"}
    assert all(each["unknown_tokens"] > 0.5 for each in report["languages"])
    assert report["reranker"]["model"] == "dir:reranker" and report["reranker"]["questions"] > 0
    again = cli.call("embedder", "check", f"dir:{tmp_path / 'tiny'}", *options, "--json").json
    timings = {"ms_per_question", "ms_per_passage", "memory_bytes", "reranker"}
    assert {name: again[name] for name in again if name not in timings} == {
        name: report[name] for name in report if name not in timings
    }
    text = cli.call("embedder", "check", tmp_path / "tiny", *options)
    assert "DTRAG_VECTOR_WEIGHT=" in text.out
    assert "does not know many words of" in text.err and "do not show how well questions of users" in text.err
    assert cli.call("doctor", "--json").json["checks"] == before


def test_memory_is_measured_where_the_system_reports_it() -> None:
    value = resident()
    assert value is None or (value % PAGE_BYTES == 0 and value > 10_000_000)
