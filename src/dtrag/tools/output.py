"""What a tool gave back, made small and plain: only what JSON knows, and no more of it than is allowed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

CHARACTERS = 64 * 1024
"""Of all texts of an output together: some 16,000 tokens, more than a prompt can use, little enough to keep."""
DEPTH = 32
"""Nested deeper, an output is left out; JSON that means something is not."""
DIGITS = 1_000
"""Longer whole numbers become a text that says how long they are: writing them out takes the square of the length."""


class NotPlain(TypeError):
    """A tool returned something that JSON does not know."""


def plain(value: Any, characters: int = CHARACTERS) -> tuple[Any, bool]:
    """A copy of the value in what JSON knows, and whether something had to be left out.

    Texts are cut where `characters` are used up, and what comes after is left out; a number or a key counts as one
    character at least, so that the walk ends whatever the value refers to. Raises `NotPlain`.
    """
    copier = _Copier(characters)
    return copier.copy(value, DEPTH), copier.cut


class _Copier:
    """Walks a value with a purse of characters."""

    def __init__(self, characters: int) -> None:
        self.left = characters
        self.cut = False

    def copy(self, value: Any, depth: int) -> Any:
        self.left -= 1
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return int(value) if value.bit_length() < DIGITS * 3.3 else self._text(f"({value.bit_length()} bits)")
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else repr(float(value))
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return self._mapping(value, depth)
        if isinstance(value, (list, tuple)):
            return self._list(value, depth)
        raise NotPlain(f"the tool returned a value of type {type(value).__name__}, which is not JSON")

    def _text(self, text: str) -> str:
        kept = text[: max(0, self.left)]
        self.cut = self.cut or len(kept) < len(text)
        self.left -= len(kept)
        return kept.encode("utf-8", "replace").decode("utf-8")

    def _full(self, depth: int) -> bool:
        if self.left > 0 and depth > 0:
            return False
        self.cut = True
        return True

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        copied: dict[str, Any] = {}
        for key, item in value.items():
            if self._full(depth):
                break
            if not isinstance(key, str):
                raise NotPlain("the tool returned a mapping whose keys are not texts, which is not JSON")
            name = self._text(key)  # before the value, which may use up what is left
            copied[name] = self.copy(item, depth - 1)
        return copied

    def _list(self, value: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
        copied: list[Any] = []
        for item in value:
            if self._full(depth):
                break
            copied.append(self.copy(item, depth - 1))
        return copied
