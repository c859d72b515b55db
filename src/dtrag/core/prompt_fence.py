"""Untrusted text in a prompt, between random delimiter lines that it cannot contain: data, never instructions."""

from __future__ import annotations

import secrets

from dtrag.core.text.hidden_characters import neutralised


def boundary() -> str:
    """A random delimiter line for one prompt."""
    return f"~~~{secrets.token_hex(8)}~~~"


def fenced(name: str, text: str, fence: str) -> str:
    """The text under its name between two delimiters; without hidden characters and chat template tokens."""
    return f"{name}\n{fence}\n{neutralised(text)}\n{fence}"
