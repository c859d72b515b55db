"""Every command of docs/tutorial/first-collection.md runs, in order, and prints what the page shows.

`…` on the page stands for any text; a line of `…` alone for any number of lines. `dtrag` commands run in this process,
the service in one of its own, and `curl` lines are sent by the standard library.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from dtrag.adapters.postgres.server.server import EmbeddedServer
from tests.integration.cli_process import Cli

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial" / "first-collection.md").read_text("utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SETUP = {"make setup", "source .venv/bin/activate", "export DTRAG_DATA_DIR=$PWD/tutorial-data"}
"""Lines that `make test` itself, and the fixture, have run."""


def shown(output: str) -> str:
    """The pattern of an output as the page shows it."""
    pattern = ""
    for line in output.splitlines():
        pattern += r"(?:.*\n)*?" if line == "…" else re.escape(line.rstrip()).replace("…", ".*") + "\n"
    return pattern


def assert_shown(expected: str, actual: str) -> None:
    lines = "".join(f"{line.rstrip()}\n" for line in actual.rstrip().splitlines())
    assert re.fullmatch(shown(expected), lines), f"the page shows\n{expected}\nbut the command prints\n{lines}"


class Reader:
    """Somebody who types the commands of the page."""

    def __init__(self, cli: Cli, folder: Path) -> None:
        self.cli = cli
        self.folder = folder
        self.secret = ""
        self.port = 0

    def console(self, block: str) -> None:
        for command, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            actual = self.sent(command) if command.startswith("curl ") else self.typed(command)
            assert_shown(output, actual)

    def typed(self, command: str) -> str:
        program, *words = shlex.split(command)
        assert program == "dtrag", command
        words = [str(self.folder / word) if word == "change.yaml" else word for word in words]
        ran = self.cli.call(*words)
        assert ran.code == 0, ran.err
        if words[:2] == ["keys", "create"]:
            self.secret = ran.out.split()[0]
        return ran.out

    def sent(self, command: str) -> str:
        words = shlex.split(command.replace("$KEY", self.secret))
        assert words[:2] == ["curl", "-s"], command
        address = words[2].replace("localhost:8001", f"http://127.0.0.1:{self.port}")
        options = dict(zip(words[3::2], words[4::2], strict=True)) if "-d" in words else {}
        headers = dict(
            value.split(": ", 1) for name, value in zip(words[3::2], words[4::2], strict=True) if name == "-H"
        )
        body = options["-d"].encode() if "-d" in options else None
        try:
            with urllib.request.urlopen(urllib.request.Request(address, body, headers), timeout=30) as response:
                return str(response.read().decode())
        except urllib.error.HTTPError as refusal:
            return refusal.read().decode()

    @contextlib.contextmanager
    def service(self) -> Iterator[None]:
        """`dtrag up` of the second terminal, on a free port in place of 8001."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        process = self.cli.start("up", "--port", str(self.port))
        try:
            for _ in range(300):
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5).close()
                    break
                time.sleep(0.1)
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)

    def executed(self, code: str) -> str:
        out = io.StringIO()
        with patch.dict(os.environ, self.cli.environment(), clear=True), contextlib.redirect_stdout(out):
            exec(compile(code, "tutorial", "exec"), {})
        return out.getvalue()


def test_the_tutorial_does_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    blocks: list[tuple[str, str]] = BLOCK.findall(PAGE)
    with EmbeddedServer.open(tmp_path / "data"), contextlib.ExitStack() as running:
        reader = Reader(Cli(tmp_path / "data"), tmp_path)
        printed = ""
        for language, block in blocks:
            if language == "console":
                reader.console(block)
            elif language == "yaml":
                (tmp_path / "change.yaml").write_text(block, "utf-8")
            elif language == "python":
                printed = reader.executed(block)
            elif language == "text":
                assert_shown(block, printed)
            elif language == "json":
                judged = (ROOT / "examples" / "judged.jsonl").read_text("utf-8").splitlines()
                assert set(block.splitlines()) <= set(judged)
            elif block == "dtrag up\n":
                running.enter_context(reader.service())
            else:
                assert set(block.splitlines()) <= SETUP | {"export KEY=dtrag_…"}, block


def test_a_difference_is_detected() -> None:
    assert_shown("a\n…\nb … d\n", "a\nx\ny\nb c d\n\n")
    with pytest.raises(AssertionError, match="the page shows"):
        assert_shown("a\nb\n", "a\nc\n")
