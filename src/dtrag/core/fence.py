"""Text of others in a prompt: between lines that nothing written before can hold. It is data, whatever it says."""

from __future__ import annotations

import secrets


def boundary() -> str:
    """A line for one prompt, drawn at random."""
    return f"~~~{secrets.token_hex(8)}~~~"


def fenced(name: str, text: str, fence: str) -> str:
    """The text between two boundaries, under its name."""
    return f"{name}\n{fence}\n{text}\n{fence}"
