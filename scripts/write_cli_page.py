"""Writes the usage lines and option tables of docs/reference/cli.md from the commands themselves.

    .venv/bin/python scripts/write_cli_page.py

Each heading `dtrag …` of the page is followed by a generated block between two comments; prose and JSON examples around
the blocks are written by hand. A test compares the page with the output of this script.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from dtrag.delivery.cli.commands import app

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "cli.md"
BEGIN = "<!-- made by scripts/write_cli_page.py -->\n"
END = "<!-- end -->\n"
HEADING = re.compile(rf"^(##+ (dtrag [a-z -]+)\n\n)(?:{BEGIN}.*?{END}\n)?", re.MULTILINE | re.DOTALL)
EVERYWHERE = {"--help", "--json"}
"""Options of every command, described once at the top of the page."""


def commands(command: Any, path: tuple[str, ...] = ("dtrag",)) -> Iterator[tuple[str, Any, Any]]:
    """Each command that does something: its full name, the command, and a context to describe it in."""
    subcommands = getattr(command, "commands", {})
    if not subcommands:
        yield " ".join(path), command, command.make_context(path[-1], [], resilient_parsing=True)
    for name, subcommand in subcommands.items():
        yield from commands(subcommand, (*path, name))


def cell(text: str) -> str:
    """The text for a cell of a Markdown table: one line, with `|` escaped."""
    return " ".join(text.split()).replace("|", "\\|")


def block(name: str, command: Any, context: Any) -> str:
    """The generated block of a command: its usage, and a table of arguments and options."""
    usage, rows = f"{name} [OPTIONS]", []
    for parameter in command.params:
        label, meaning = parameter.get_help_record(context)
        if parameter.param_type_name == "argument":
            label = parameter.metavar
            usage += f" {label}" if label.startswith("[") or parameter.required else f" [{label}]"
        if not EVERYWHERE & set(parameter.opts):
            rows.append(f"| `{cell(label)}` | {cell(meaning)} |\n")
    table = "\n| Argument or option | Meaning |\n| --- | --- |\n" + "".join(rows) if rows else ""
    return f"{BEGIN}```text\n{usage}\n```\n{table}{END}"


def page(text: str) -> str:
    """The page with its generated blocks made again. Raises `KeyError` for a heading that names no command."""
    blocks = {name: block(name, command, context) for name, command, context in commands(typer.main.get_command(app))}

    def described(heading: re.Match[str]) -> str:
        name = heading[2] if heading[2] in blocks else f"{heading[2]} list"
        return f"{heading[1]}{blocks[name]}\n"

    return HEADING.sub(described, text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
