"""Depth of values from outside, measured without recursion: a deep one would exhaust the stack of its reader."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any


def children(value: Any) -> Collection[Any]:
    """The values of a mapping or the items of a list; nothing for other values."""
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, (list, tuple)) else ()


def deeper_than(value: Any, levels: int) -> bool:
    """Whether mappings and lists are nested in more than so many levels."""
    level = [value]
    for _ in range(levels):
        level = [inner for outer in level for inner in children(outer)]
        if not level:
            return False
    return True
