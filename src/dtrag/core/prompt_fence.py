"""Text of others in a prompt: between lines that nothing written before can hold. It is data, whatever it says."""

from __future__ import annotations

import secrets

from dtrag.core.text.hidden_characters import neutralised


def boundary() -> str:
    """A line for one prompt, drawn at random."""
    return f"~~~{secrets.token_hex(8)}~~~"


def fenced(name: str, text: str, fence: str) -> str:
    """The text between two boundaries, under its name; without hidden characters and marks of chat templates."""
    return f"{name}\n{fence}\n{neutralised(text)}\n{fence}"
