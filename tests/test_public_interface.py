"""No public name, route, parameter, JSON field, command, option, setting or flag of the baseline is lost.

`public_interface.txt` lists those of commit 7e57849. `python -m tests.test_public_interface` prints those of today.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

import dtrag
from dtrag.delivery.api.app import create_app
from dtrag.delivery.cli.commands import app
from dtrag.settings import FLAGS, Settings, declarations

BASELINE = Path(__file__).with_name("public_interface.txt")
RENAMED: dict[str, str] = {}
"""Lines of the baseline that are gone on purpose -> what to use now; each with a line in CHANGELOG.md."""


def interface() -> set[str]:
    """A line for each thing that programs, clients, scripts and operators may rely on."""
    lines = {f"name {name}" for name in (*dtrag.__all__, "open")}
    lines.update(_http(create_app(Settings.load(environ={})).openapi()))
    lines.update(_commands(typer.main.get_command(app), "dtrag"))
    lines.update(f"setting {declared.name}" for declared in declarations())
    lines.update(f"flag {name}" for declared in FLAGS for name in (declared.name, *declared.aliases))
    return lines


def _http(specification: dict[str, Any]) -> Iterator[str]:
    for path, operations in specification["paths"].items():
        for method, operation in operations.items():
            yield f"route {method.upper()} {path}"
            for parameter in operation.get("parameters", ()):
                yield f"parameter {method.upper()} {path} {parameter['in']} {parameter['name']}"
    for name, schema in specification["components"]["schemas"].items():
        yield from (f"field {name}.{field}" for field in schema.get("properties", ()))


def _commands(command: Any, name: str) -> Iterator[str]:
    yield f"command {name}"
    for parameter in command.params:
        if parameter.param_type_name == "option":
            yield from (f"option {name} {option}" for option in (*parameter.opts, *parameter.secondary_opts))
    for child, below in getattr(command, "commands", {}).items():
        yield from _commands(below, f"{name} {child}")


def test_nothing_of_the_baseline_is_lost() -> None:
    baseline = set(BASELINE.read_text("utf-8").splitlines())
    assert len(baseline) > 500
    assert sorted(baseline - interface() - RENAMED.keys()) == []
    assert sorted(RENAMED.keys() - baseline) == []
    assert sorted(RENAMED.keys() & interface()) == []


if __name__ == "__main__":
    sys.stdout.write("\n".join(sorted(interface())) + "\n")
