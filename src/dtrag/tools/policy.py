"""The administrator's whitelist of tools, read again at every execution."""

from __future__ import annotations

from collections.abc import Collection

from dtrag.settings import development, tool_whitelist


def get_tool_whitelist() -> list[str] | None:
    """The names in TOOL_WHITELIST; None allows every tool.

    An empty list allows every tool only while DTRAG_ENV is `development`, which is its default; elsewhere it allows
    none.
    """
    names = tool_whitelist()
    if names is None:
        return None if development() else []
    return names


def validate_tool(name: str, whitelist: Collection[str] | None) -> bool:
    """Whether the list holds exactly this name (None: yes); `*` has no special meaning."""
    return whitelist is None or name in whitelist
