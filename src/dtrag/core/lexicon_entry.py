"""Own entries of the lexicon: everyday words of an organisation and the official words for them."""

from __future__ import annotations

from dataclasses import dataclass

SETTING = "lexicon"
"""Name of the index setting that holds the own entries."""


@dataclass(frozen=True, slots=True)
class LexiconEntry:
    """An own entry: `spoken` forms, their `official` words (best first), and a number that is never used again."""

    number: int
    spoken: tuple[str, ...]
    official: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        """The entry as JSON values."""
        return {"number": self.number, "spoken": list(self.spoken), "official": list(self.official)}
