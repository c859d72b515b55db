"""How people type: help, words without quotes, standard input, addresses, mistakes."""

from __future__ import annotations

import io
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from dtrag.delivery.cli import exit_codes, reading
from dtrag.delivery.cli.context import question_of
from dtrag.delivery.cli.main import main
from dtrag.errors import InvalidInput


class Requested:
    """In the place of an app: remembers what it is asked."""

    def __init__(self) -> None:
        self.made: list[tuple[object, ...]] = []

    async def categories(self) -> list[str]:
        return ["HR"]

    async def ask(self, *arguments: object) -> None:
        self._note(arguments)

    async def search(self, *arguments: object) -> None:
        self._note(arguments)

    def _note(self, arguments: tuple[object, ...]) -> None:
        self.made.append(arguments)
        raise exit_codes.Ended(exit_codes.OK)


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """What commands ask for, instead of a result."""
    requested = Requested()

    def note(context: object, work: Callable[[Any], Coroutine[Any, Any, None]], *, direct: bool) -> None:
        work(requested).send(None)

    monkeypatch.setattr(reading, "read", note)
    return requested.made


@pytest.mark.parametrize("path", [(), ("ask",), ("documents",), ("documents", "show"), ("taxonomy", "tree")])
def test_h_is_help_everywhere(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*path, "-h"]) == exit_codes.OK
    assert "Usage: dtrag" in capsys.readouterr().out


def test_a_question_needs_no_quotes(requests: list[tuple[object, ...]]) -> None:
    assert main(["ask", "how", "many", "days", "--category", "HR", "of", "leave"]) == exit_codes.OK
    assert main(["search", "annual", "leave"]) == exit_codes.OK
    assert requests[0] == ("how many days of leave", {"taxonomy_paths": ["HR"]}, None)
    assert requests[1][0] == "annual leave"


def test_a_dash_reads_standard_input(requests: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("  휴학은 최대\n몇 학기인가요?\n"))
    assert main(["ask", "-"]) == exit_codes.OK
    assert requests[0][0] == "휴학은 최대\n몇 학기인가요?"


def test_standard_input_without_a_question_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(" \n"))
    with pytest.raises(InvalidInput, match="Standard input is empty"):
        question_of(["-"])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe"), encoding="utf-8"))
    with pytest.raises(InvalidInput, match="not UTF-8"):
        question_of(["-"])


def test_an_address_is_no_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["ingest", "https://example.org/a/book.pdf", str(tmp_path)]) == exit_codes.USAGE
    said = capsys.readouterr().err
    assert said == "dtrag: dtrag reads files; download https://example.org/a/book.pdf first, then: dtrag ingest FILE\n"


def test_a_mistyped_command_is_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serch", "x"]) == exit_codes.USAGE
    assert "Did you mean 'search'?" in capsys.readouterr().err


def test_completion_can_be_installed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["--help"]) == exit_codes.OK
    assert "--install-completion" in capsys.readouterr().out
    monkeypatch.setenv("_DTRAG_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "dtrag sea")
    monkeypatch.setenv("COMP_CWORD", "1")
    with pytest.raises(SystemExit):
        main([])
    assert capsys.readouterr().out.split() == ["search"]
