"""`dtrag search` on a real index: marks, reasons, filters on facts."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli_process import Cli, assert_shape, documented_shapes
from tests.integration.conftest import MakeCli

NOTES = [
    {"id": "tea", "text": "Green tea is steeped for two minutes.", "metadata": {"colour": "green", "minutes": 2}},
    {"id": "mate", "text": "Mate tea is steeped for five minutes.", "metadata": {"colour": "brown", "minutes": 5}},
]


@pytest.fixture(scope="module")
def cli(make_cli: MakeCli) -> Iterator[Cli]:
    folder = Path(tempfile.mkdtemp(prefix="dtrag-cli-search-"))
    notes = folder / "notes.jsonl"
    notes.write_text("".join(json.dumps(note) + "\n" for note in NOTES))
    made = make_cli(DTRAG_FILTER_KEYS="colour,minutes")
    ran = made.call("ingest", notes)
    assert ran.code == 0, ran.err
    yield made
    shutil.rmtree(folder)


def test_marks_come_from_the_search(cli: Cli) -> None:
    (first, *_) = cli.call("search", "steeping green tea", "--json").json["results"]
    assert {first["text"][start:end] for start, end in first["highlights"]} == {"Green", "tea", "steeped"}


def test_reasons_come_from_the_search(cli: Cli) -> None:
    nobody = "00000000-0000-4000-8000-000000000000"
    ran = cli.call("search", "green tea", "--top-k", "1", "--explain", "--why", nobody, "--json")
    assert_shape(ran.json, documented_shapes()["dtrag search"])
    (first,) = ran.json["results"]
    assert first["explanation"]["fused_rank"] == 1
    assert [absent["document_id"] for absent in ran.json["metrics"]["absent"]] == [nobody]
    text = cli.call("search", "green tea", "--top-k", "1", "--why", nobody)
    assert "rank 1" in text.out and f"Not found: {nobody}" in text.out


@pytest.mark.parametrize(
    ("fact", "found"), [("colour=brown", 1), ("minutes=5", 1), ('minutes="5"', 0), ("minutes=6", 0)]
)
def test_metadata_filters_narrow_the_search(cli: Cli, fact: str, found: int) -> None:
    ran = cli.call("search", "tea", "--metadata", fact, "--json")
    assert ran.code == 0, ran.err
    assert len(ran.json["results"]) == found


def test_undeclared_metadata_fields_are_a_mistake(cli: Cli) -> None:
    ran = cli.call("search", "tea", "--metadata", "taste=sweet")
    assert ran.code == 2
    assert "Declared in the setting filter_keys: colour, minutes." in ran.err
