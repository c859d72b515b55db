"""`dtrag cbr same`: the table, the JSON, standard input, and errors."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from dtrag.delivery.cli import exit_codes
from dtrag.delivery.cli.main import main

LINES = [
    {
        "id": "a",
        "base": "When does the pool open?",
        "other": "when does the pool open??",
        "same": True,
        "kind": "light",
    },
    {
        "id": "b",
        "base": "When does the pool open?",
        "other": "When does the pool close?",
        "same": False,
        "kind": "aspect",
    },
    {"id": "c", "base": "수영장은 언제 여나요?", "other": "수영장은 어디에 있나요?"},
]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    file = tmp_path / "pairs.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in LINES), "utf-8")
    return file


def test_the_json_has_decisions_and_counts(pairs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cbr", "same", str(pairs), "--json"]) == exit_codes.OK
    shown = json.loads(capsys.readouterr().out)
    assert [(row["id"], row["same"]) for row in shown["pairs"]] == [("a", True), ("b", False), ("c", False)]
    assert all(row["reason"] for row in shown["pairs"])
    assert {key: shown[key] for key in ("traps", "false_hits", "paraphrases", "hits")} == {
        "traps": 1, "false_hits": 0, "paraphrases": 1, "hits": 1,
    }  # fmt: skip
    assert shown["upper_bound"] == pytest.approx(0.95)


def test_the_table_fits_80_columns(pairs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cbr", "same", str(pairs)]) == exit_codes.OK
    out, err = capsys.readouterr()
    assert "aspect" in out and "light" in out and max(map(len, out.splitlines())) <= 80
    assert "0 false hits in 1 traps (95 % upper bound 95.00 %); 1 hit in 1 paraphrases" in err


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(LINES[0])))
    assert main(["cbr", "same", "-", "--json"]) == exit_codes.OK
    assert json.loads(capsys.readouterr().out)["hits"] == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [(b'{"id": 1}', "pairs.jsonl, line 1"), (b"\xff\xfe\x00", "not UTF-8"), (None, "cannot be read")],
)
def test_what_cannot_be_read_is_explained(
    content: bytes | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "pairs.jsonl"
    if content is not None:
        file.write_bytes(content)
    assert main(["cbr", "same", str(file), "--json"]) == exit_codes.USAGE
    out, err = capsys.readouterr()
    assert message in err and json.loads(out)["error"]["type"] == "InvalidInput"
