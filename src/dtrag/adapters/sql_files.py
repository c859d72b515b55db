"""Reads `.sql` files: statements under `-- name:` lines, with fragments of the same file filled in."""

from __future__ import annotations

import functools
import re
from importlib import resources
from typing import LiteralString

_HEADING = re.compile(r"^-- (name|fragment): ([\w.]+)\s*$", re.MULTILINE)
_COMMENT = re.compile(r"^--.*\n", re.MULTILINE)


@functools.cache
def statements(package: str, path: str) -> dict[str, LiteralString]:
    """The statements by name as they are written, without comments, each fragment in place of its `{name}`."""
    text = resources.files(package).joinpath(path).read_text("utf-8")
    pieces = _HEADING.split(text)[1:]
    named: dict[str, LiteralString] = {}
    fragments: dict[str, LiteralString] = {}
    for kind, name, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        statement = _COMMENT.sub("", body).strip()
        for fragment, inserted in fragments.items():
            statement = statement.replace(f"{{{fragment}}}", inserted)
        (fragments if kind == "fragment" else named)[name] = statement
    return named
