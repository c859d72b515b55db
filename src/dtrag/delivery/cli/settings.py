"""`dtrag settings`: all settings and flags with their values and descriptions."""

from __future__ import annotations

from typing import TypedDict

import typer

from dtrag.delivery.cli.context import Json, invocation
from dtrag.delivery.cli.exit_codes import OK


class FlagRow(TypedDict):
    """A feature flag; the first name of `environment` is its own, others are aliases."""

    name: str
    environment: list[str]
    on: bool
    help: str


def settings(context: typer.Context, as_json: Json = False) -> int:
    """Show all settings with their values and descriptions."""
    rows = invocation(context).settings().rows()
    flags = _flags()
    from dtrag.delivery.cli.console import data, note, show_json, table

    if as_json:
        show_json({"settings": rows, "flags": flags})
        return OK
    listed = [(row["environment"], _text(row["value"]), row["help"]) for row in rows]
    listed += [(row["environment"][0], "on" if row["on"] else "off", row["help"]) for row in flags]
    data().print(table(("Environment", "Value", "Help"), listed, whole=("Environment",)))
    note("Settings (DTRAG_…) are read at the start, flags (FEATURE_…) at every request.")
    return OK


def _text(value: object) -> str:
    return "–" if value is None else str(value)


def _flags() -> list[FlagRow]:
    from dtrag.settings import FLAGS, flag

    return [
        {
            "name": declared.name,
            "environment": [f"FEATURE_{declared.name.upper()}", *declared.aliases],
            "on": flag(declared.name),
            "help": declared.help,
        }
        for declared in FLAGS
    ]
