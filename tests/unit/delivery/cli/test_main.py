"""The seam between a command and the shell."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dtrag.delivery.cli import exit_codes, ingest
from dtrag.delivery.cli.main import main
from dtrag.settings import Settings


@pytest.fixture(autouse=True)
def logging_stays_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command meets an error that nobody has thought of."""

    def load(*_: Any, **__: Any) -> Settings:
        raise RuntimeError("the moon is in the way\nsecond line")

    monkeypatch.setattr(Settings, "load", load)


def test_an_unexpected_error_is_one_line(broken: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["settings"]) == exit_codes.FAILURE
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "RuntimeError: the moon is in the way" in err and "dtrag --debug" in err


def test_debug_shows_the_traceback(broken: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--debug", "settings", "--json"]) == exit_codes.FAILURE
    out, err = capsys.readouterr()
    assert "Traceback" in err
    assert json.loads(out)["error"]["type"] == "Unexpected"


def test_ctrl_c_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def load(*_: Any, **__: Any) -> Settings:
        raise KeyboardInterrupt

    monkeypatch.setattr(Settings, "load", load)
    monkeypatch.setattr("signal.signal", lambda *_: None)  # this process has tests to run after this one
    assert main(["settings"]) == exit_codes.INTERRUPTED
    assert capsys.readouterr().err == "dtrag: Interrupted; what was acknowledged is kept.\n"


def test_json_behind_a_double_dash_is_an_argument(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["documents", "show", "--", "--json", "more"]) == exit_codes.USAGE
    assert capsys.readouterr().out == ""


def test_without_the_samples_the_demo_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ingest, "SAMPLES", {"Samples": ("no-such-sample",)})
    monkeypatch.setenv("DTRAG_DATA_DIR", str(tmp_path / "data"))
    assert main(["demo"]) == exit_codes.FAILURE
    err = capsys.readouterr().err
    assert "dtrag ingest FOLDER" in err and "examples" in err
    assert not (tmp_path / "data").exists()
