"""Destinations of texts outside of this process, and the highest grade of text that each may be sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from dtrag.core.taxonomy.grades import MOST_GRADES, Grades
from dtrag.errors import InvalidInput

Kind = Literal["model", "embedder", "web_search", "mcp", "export"]
UNLIMITED = MOST_GRADES
"""The limit of what runs in this process: more than any grade."""
KINDS: tuple[Kind, ...] = ("model", "embedder", "web_search", "mcp", "export")


@dataclass(frozen=True, slots=True)
class Recipient:
    """A server or program that texts are sent to, or a kind of exported file. `address` is the base of a server's."""

    kind: Kind
    name: str
    address: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}{f' ({self.address})' if self.address else ''}"


@dataclass(frozen=True, slots=True)
class Limits:
    """The grades of the setting by what names a destination: an address, `kind`, or `kind:name`.

    A destination has the limit of its name, else that of the longest address, else that of its kind, else 0, the lowest
    grade. Loopback addresses and programs on this machine are no exception: they may pass on what they get.
    """

    entries: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, setting: str, grades: Grades) -> Limits:
        """From `https://llm.example.org/v1=S; mcp:hr=C; web_search=O`. Raises `InvalidInput`."""
        entries: dict[str, int] = {}
        for entry in filter(None, (part.strip() for part in setting.split(";"))):
            named, _, grade = entry.rpartition("=")
            named = named.strip().rstrip("/")
            try:
                limit = grades.named(grade)
            except InvalidInput:
                raise _refusal(entry, grades) from None
            if named in entries or not _is_valid(named):
                raise _refusal(entry, grades)
            entries[named] = limit
        return cls(entries)

    def of(self, destination: Recipient) -> int:
        """The highest grade of text that it may be sent."""
        entry = self.entry(destination)
        return 0 if entry is None else self.entries[entry]

    def entry(self, destination: Recipient) -> str | None:
        """What names the destination in the setting; None: nothing."""
        address = destination.address.rstrip("/")
        addresses = [each for each in self.entries if address == each or address.startswith(f"{each}/")]
        named = (f"{destination.kind}:{destination.name}", max(addresses, key=len, default=""), destination.kind)
        return next((each for each in named if each in self.entries), None)


def _is_valid(named: str) -> bool:
    if named.startswith(("http://", "https://")):
        return bool(urlsplit(named).hostname)
    kind, colon, name = named.partition(":")
    return kind in KINDS and bool(name.strip()) == bool(colon)


def _refusal(entry: str, grades: Grades) -> InvalidInput:
    return InvalidInput(
        f"DTRAG_GRADE_LIMITS has {entry[:80]!r}, but an entry is DESTINATION=GRADE, each destination once, with "
        "semicolons between entries, such as: http://127.0.0.1:11434/v1=C; mcp:hr=S; web_search=O. A destination is "
        f"the base address of a server, {', '.join(KINDS)}, or one of these with a name (model:openai:gpt-4o-mini, "
        f"mcp:NAME); a grade is one of {', '.join(grades.names)}."
    )
