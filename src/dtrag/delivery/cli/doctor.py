"""`dtrag doctor`: checks the installation and says how to fix problems."""

from __future__ import annotations

from dataclasses import asdict

import typer

from dtrag.delivery.cli.context import Json, invocation, run_async
from dtrag.delivery.cli.exit_codes import DATABASE_UNREACHABLE, FAILURE, OK

_MARKS = {"ok": ("ok  ", "green"), "warn": ("warn", "yellow"), "fail": ("FAIL", "bold red")}


def doctor(context: typer.Context, as_json: Json = False) -> int:
    """Check the machine, the database, the models and the index."""
    settings = invocation(context).settings()
    from dtrag.delivery.cli.checks import examine

    report = run_async(examine(settings))
    from rich.table import Table
    from rich.text import Text

    from dtrag.delivery.cli.console import data, safe, show_json

    if as_json:
        show_json({"ok": report.ok, "checks": [asdict(check) for check in report.checks]})
    else:
        grid = Table.grid(padding=(0, 2))
        for check in report.checks:
            mark, style = _MARKS[check.state]
            detail = Text(safe(check.detail), overflow="fold")
            if check.advice:
                detail.append(f"\n{safe(check.advice)}", style="bold")
            grid.add_row(Text(mark, style=style), check.name, detail)
        data().print(grid)
    if report.ok:
        return OK
    return FAILURE if report.reachable else DATABASE_UNREACHABLE
