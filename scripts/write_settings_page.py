"""Writes docs/reference/settings.md from the declarations in src/dtrag/settings.py.

    .venv/bin/python scripts/write_settings_page.py

A test compares the page with the output of this script.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, Field
from pathlib import Path
from typing import Any

from dtrag.settings import FLAGS, LIVE, NOT_IN_PROJECT, PREFIX, declarations

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "settings.md"
DATA_DIR = "the user's data folder (`~/.local/share/dtrag` on Linux), as root `/var/lib/dtrag`"
"""The default of `data_dir` in words: its value depends on the user and the system."""

HEAD = """\
# Settings and flags

Made by `scripts/write_settings_page.py` from `settings.py`; do not edit it by hand.

A setting is read once, when a command or the service starts. Options of the command line override the
environment, the environment overrides the files, and these override the default. An empty variable counts as not set.
Those marked *Changeable* may also be changed while services run ([how](../how-to/change-settings.md)): what is stored
in the database comes after the files and before the default.
`dtrag settings` shows the current values and their sources, and `dtrag config explain port` all sources of one setting;
secrets are hidden. In Python, a setting is a keyword argument: `dtrag.open(embedder="none")`.

## Files

A setting is also a line of a TOML file, by its name in lower case, such as `port = 8002`. Relative paths count from the
folder of the file. The first of these files that has the setting decides:

| File | Path |
| --- | --- |
| project | `dtrag.toml` in the working directory, not in the folders above it |
| user | `$XDG_CONFIG_HOME/dtrag/config.toml`, by default `~/.config/dtrag/config.toml` on Linux |
| system | `/etc/dtrag/config.toml` |

`DTRAG_CONFIG` is the path of a file that is read instead of these, or `none`. Flags and the variables of the last table
are read live and therefore only from the environment.

- An unknown name is refused, with file, line and the nearest name.
- A file is refused if a user other than its reader and root owns it, its link or its folder, or if others can write it:
  the owner of a folder cannot redirect the database or the model of an administrator who works in it. The message names
  the command that repairs it. On Windows this is not checked.
- A file with a secret is refused while every user of the machine can read it. A system file that only the service can
  read is skipped by other users.
- The project file comes with its folder, perhaps from a repository that others wrote. It cannot set secrets, addresses
  of servers, {not_in_project}. It can set the data folder and the
  models: run commands only in folders that you trust, as for `make`.

## Settings

"""
FLAGS_HEAD = """
## Flags

A flag is read for every request. It is on when its variable is `1`, `true`, `yes` or `on`, and off otherwise.

"""


LIVE_HEAD = """
## Others that are read live

"""


def default_of(declared: Field[Any]) -> str:
    """The default of a setting as a cell of the table."""
    if declared.default is MISSING:
        return DATA_DIR
    return "not set" if declared.default is None else f"`{declared.default}`"


def table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [heads, ("---",) * len(heads), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def page() -> str:
    """The whole page."""
    settings = [
        (
            f"`{PREFIX}{declared.name.upper()}`",
            default_of(declared),
            declared.metadata["help"]
            + (" Secret." if declared.metadata["secret"] else "")
            + (" Changeable." if declared.metadata["changeable"] else ""),
        )
        for declared in declarations()
    ]
    flags = [
        (", ".join(f"`{name}`" for name in (f"FEATURE_{flag.name.upper()}", *flag.aliases)), flag.help)
        for flag in FLAGS
    ]
    live = [(f"`{name}`", meaning) for name, meaning in LIVE]
    return (
        HEAD.replace("{not_in_project}", ", ".join(f"`{name}`" for name in sorted(NOT_IN_PROJECT)))
        + table(("Variable", "Default", "Meaning"), settings)
        + FLAGS_HEAD
        + table(("Variable", "Meaning"), flags)
        + LIVE_HEAD
        + table(("Variable", "Meaning"), live)
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
