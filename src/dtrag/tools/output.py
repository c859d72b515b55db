"""Outputs of tools as plain JSON values of limited size."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dtrag.tools.registry import JsonObject

CHARACTERS = 64 * 1024
"""Maximum characters of all strings of an output: about 16,000 tokens, more than a prompt can use."""
DEPTH = 32
"""Maximum nesting; deeper parts of an output are left out."""
DIGITS = 1_000
"""Longer integers are replaced by their size, because converting them to decimal takes quadratic time."""


class NotPlain(TypeError):
    """A tool returned a value that JSON cannot represent."""


def plain(value: Any, characters: int = CHARACTERS) -> tuple[Any, bool]:
    """A copy of the value as plain JSON, and whether something was left out.

    Strings are truncated once `characters` are used up, and what follows is left out. Every value counts as at least
    one character, so that the copy ends even for a value that contains itself. Raises `NotPlain`.
    """
    copier = _Copier(characters)
    return copier.copy(value, DEPTH), copier.cut


class _Copier:
    """Copies a value while counting down its characters."""

    def __init__(self, characters: int) -> None:
        self.left = characters
        self.cut = False

    def copy(self, value: Any, depth: int) -> Any:
        self.left -= 1
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return int(value) if value.bit_length() < DIGITS * 3.3 else self._string(f"({value.bit_length()} bits)")
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else repr(float(value))
        if isinstance(value, str):
            return self._string(value)
        if isinstance(value, Mapping):
            return self._mapping(value, depth)
        if isinstance(value, (list, tuple)):
            return self._sequence(value, depth)
        raise NotPlain(f"the tool returned a value of type {type(value).__name__}, which is not JSON")

    def _string(self, text: str) -> str:
        shortened = text[: max(0, self.left)]
        self.cut = self.cut or len(shortened) < len(text)
        self.left -= len(shortened)
        return shortened.encode("utf-8", "replace").decode("utf-8")

    def _exhausted(self, depth: int) -> bool:
        if self.left > 0 and depth > 0:
            return False
        self.cut = True
        return True

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> JsonObject:
        copied: JsonObject = {}
        for key, item in value.items():
            if self._exhausted(depth):
                break
            if not isinstance(key, str):
                raise NotPlain("the tool returned a mapping whose keys are not strings, which is not JSON")
            name = self._string(key)  # before the value, which may use up the rest
            copied[name] = self.copy(item, depth - 1)
        return copied

    def _sequence(self, value: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
        copied: list[Any] = []
        for item in value:
            if self._exhausted(depth):
                break
            copied.append(self.copy(item, depth - 1))
        return copied
