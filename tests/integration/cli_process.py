"""Runs `dtrag` as people do: with nothing inherited from the developer's settings, in a process of its own where
processes matter (signals, pipes, terminals), else by the same `main` in this one."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import logging
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import typer.main

from dtrag.delivery.cli.main import main

COMMAND = functools.cache(typer.main.get_command)
"""All commands, built once in this process: that takes longer than most of them run."""
PROGRAM = Path(sys.executable).with_name("dtrag")
DOCS = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
OPEN_MAPS = {"facts", "metadata", "structure", "stages", "details", "kinds", "paths", "weights", "input_schema"} | {
    "category_distribution",
    "similarity_method_usage",
    "titles",
    "values",
}


@dataclass(frozen=True)
class Ran:
    """What a process left."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its standard output, which must be one JSON value and nothing else."""
        return json.loads(self.out)


@dataclass(frozen=True)
class Cli:
    """The command line on one data folder."""

    data_dir: Path
    settings: tuple[tuple[str, str], ...] = ()

    def environment(self, **more: str) -> dict[str, str]:
        """Ours, without the settings of whoever runs the tests."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("DTRAG_", "FEATURE_")) and k != "NO_COLOR"}
        ours = {"DTRAG_DATA_DIR": str(self.data_dir), "COLUMNS": "80", "DTRAG_CONFIG": "none"}
        return {**kept, **ours, **dict(self.settings), **more}

    def run(self, *arguments: str | Path, **environment: str) -> Ran:
        """Run a command to its end."""
        done = subprocess.run(
            [PROGRAM, *arguments],
            env=self.environment(**environment),
            capture_output=True,
            timeout=120,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def call(self, *arguments: str | Path, **environment: str) -> Ran:
        """Run a command to its end in this process, which saves the start of an interpreter."""
        out, err = io.StringIO(), io.StringIO()
        root = logging.getLogger()
        handlers, level = list(root.handlers), root.level
        try:
            with (
                patch.object(typer.main, "get_command", COMMAND),
                patch.dict(os.environ, self.environment(**environment), clear=True),
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(err),
            ):
                code = main([str(argument) for argument in arguments])
        finally:
            root.handlers[:] = handlers
            root.setLevel(level)
        assert "Traceback" not in err.getvalue(), err.getvalue()
        return Ran(code, out.getvalue(), err.getvalue())

    def start(self, *arguments: str | Path) -> subprocess.Popen[bytes]:
        """Start a command, in a session of its own so that only we signal it."""
        return subprocess.Popen(
            [PROGRAM, *arguments],
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )


def documented_shapes() -> dict[str, Any]:
    """Command -> the JSON example below its heading in docs/reference/cli.md."""
    sections = re.split(r"^##+ ", DOCS.read_text("utf-8"), flags=re.M)[1:]
    shapes = {}
    for section in sections:
        block = re.search(r"```json\n(.*?)```", section, re.S)
        if block:
            shapes[section.splitlines()[0].strip()] = json.loads(block[1])
    return shapes


def assert_shape(actual: Any, documented: Any, where: str = "$") -> None:
    """Same keys, same types, at every depth; null fits everywhere, an empty list fits any list."""
    if actual is None or documented is None:
        return
    if isinstance(documented, dict):
        assert isinstance(actual, dict), where
        if where.rpartition(".")[2] not in OPEN_MAPS:
            assert list(actual) == list(documented), where
            for key, value in actual.items():
                assert_shape(value, documented[key], f"{where}.{key}")
    elif isinstance(documented, list):
        assert isinstance(actual, list), where
        for item in actual:
            assert_shape(item, documented[0], f"{where}[]")
    elif isinstance(documented, bool | str):
        assert type(actual) is type(documented) or where.endswith((".value", ".default")), where
    else:
        assert isinstance(actual, int | float), where
        assert not isinstance(actual, bool), where


def children(pid: int) -> dict[int, str]:
    """Living children of a process and their command lines (Linux)."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if parent == pid:
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except (OSError, IndexError):
                continue
    return found
