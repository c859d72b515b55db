"""Addresses and paths of files at a source, whatever characters their names contain."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import quote

IN_ADDRESS = "#%? "
"""Characters that are percent-encoded in an address, besides those that cannot be shown."""


def readable(path: str, encoded: str = "") -> str:
    """The path with `.`, `..` and everything that cannot be printed percent-encoded, and the characters of `encoded`.

    With `IN_ADDRESS`, different paths stay different. Bytes that are not UTF-8 are surrogates, as `os.fsdecode` has it.
    """
    return "/".join("%2E" * len(part) if part in {".", ".."} else _shown(part, encoded) for part in path.split("/"))


def _shown(name: str, encoded: str) -> str:
    return "".join(
        each if each.isprintable() and each not in encoded else quote(each, safe="", errors="surrogateescape")
        for each in name
    )


class WithoutRights:
    """The part of a connector of a source that has no users, groups and rights."""

    site = ""

    async def members(self, group: str) -> Collection[str]:
        """No principals: the source has no groups."""
        return ()

    async def close(self) -> None:
        """Nothing is open between calls."""
