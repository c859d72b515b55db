"""`dtrag settings`: every setting and flag, its value and what it is for."""

from __future__ import annotations

from typing import Any

import typer

from dtrag.delivery.cli.context import Json, invocation
from dtrag.delivery.cli.exit_codes import OK


def settings(context: typer.Context, as_json: Json = False) -> int:
    """Show every setting, its value and what it is for."""
    rows = invocation(context).settings().rows()
    flags = _flags()
    from dtrag.delivery.cli.console import data, note, show_json, table

    if as_json:
        show_json({"settings": rows, "flags": flags})
        return OK
    listed = [(row["environment"], _shown(row["value"]), row["help"]) for row in rows]
    listed += [(row["environment"][0], "on" if row["on"] else "off", row["help"]) for row in flags]
    data().print(table(("Environment", "Value", "Help"), listed, whole=("Environment",)))
    note("Settings (DTRAG_…) are read at the start, flags (FEATURE_…) at every request.")
    return OK


def _shown(value: object) -> str:
    return "–" if value is None else str(value)


def _flags() -> list[dict[str, Any]]:
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
