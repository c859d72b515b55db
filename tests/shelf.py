"""A source whose files, rights and groups a test changes, and what its users may read there, found in another way."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dtrag.core.source_rights import Gate, Rights, RightsEntry, everyone, group, user
from dtrag.errors import SourceUnavailable
from dtrag.ports import SourceItem

SITE = "site"
USERS = tuple(user(SITE, name) for name in ("ann", "bo", "cho", "dan", "eve"))
STRANGER = user(SITE, "nobody-knows")
GROUPS = tuple(group(SITE, name) for name in ("staff", "board", "law", "guests", "all"))


@dataclass
class Shelf:
    """`Connector` over what is in memory. `broken` groups cannot be read, and nothing can while `lost`."""

    files: dict[str, str] = field(default_factory=dict)
    rights: dict[str, Rights] = field(default_factory=dict)
    direct: dict[str, set[str]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    unreadable: set[str] = field(default_factory=set)
    lost: bool = False
    site: str = SITE
    address: str = "shelf:one"
    fetched: list[str] = field(default_factory=list)

    async def items(self) -> Sequence[SourceItem]:
        if self.lost:
            raise SourceUnavailable(address=self.address, reason="it is away")
        return [
            SourceItem(
                f"shelf://one/{name}",
                name,
                hashlib.sha256(text.encode()).hexdigest(),
                self.rights.get(name, Rights()) if self.site else None,
            )
            for name, text in self.files.items()
        ]

    async def fetch(self, item: SourceItem, path: Path) -> None:
        if self.lost or item.path in self.unreadable:
            raise SourceUnavailable(address=self.address, reason=f"{item.path} is away")
        self.fetched.append(item.path)
        path.write_text(self.files[item.path])  # noqa: ASYNC240 - a few bytes

    async def members(self, principal: str) -> Collection[str]:
        if self.lost or principal in self.broken:
            raise SourceUnavailable(address=self.address, reason="the directory is away")
        return self.direct.get(principal, set())

    async def close(self) -> None:
        """Nothing to close."""

    def is_in(self, who: str, principal: str, seen: frozenset[str] = frozenset()) -> bool:
        """Whether the user is the principal, or in this group directly or through others."""
        members = self.direct.get(principal, set())
        below = (m for m in members if m not in seen and self.is_in(who, m, seen | {principal}))
        return who == principal or who in members or any(below)

    def may_read(self, who: str, name: str) -> bool:
        """As the source itself decides it."""
        if who not in self.direct[everyone(SITE)]:
            return False
        gates = self.rights.get(name, Rights()).gates
        return bool(gates) and all(
            next((entry.allow for entry in gate if self.is_in(who, entry.principal)), False) for gate in gates
        )


def random_gate(chance: random.Random) -> Gate:
    """An ordered list of entries, refusals among them; often with everyone at the end, as in POSIX."""
    principals = chance.sample((*USERS, *GROUPS), chance.randint(0, 4))
    entries = [RightsEntry(principal, chance.random() < 0.65) for principal in principals]
    if chance.random() < 0.4:
        entries.append(RightsEntry(everyone(SITE), chance.random() < 0.8))
    return tuple(entries)


def change(shelf: Shelf, chance: random.Random, names: Sequence[str]) -> None:
    """Change rights, members, nesting, names of groups, files, and what fails."""
    for principal in chance.sample(GROUPS, chance.randint(1, 3)):
        shelf.direct[principal] = set(chance.sample((*USERS, *GROUPS), chance.randint(0, 4)))
    if chance.random() < 0.3:  # two groups change names
        one, other = chance.sample(GROUPS, 2)
        shelf.direct[one], shelf.direct[other] = shelf.direct.get(other, set()), shelf.direct.get(one, set())
    shelf.direct[everyone(SITE)] = set(USERS) - set(chance.sample(USERS, chance.randint(0, 1)))
    for name in names:
        if chance.random() < 0.5:
            shelf.rights[name] = Rights.of(random_gate(chance) for _ in range(chance.randint(0, 2)))
    shelf.broken = set(chance.sample((*GROUPS, everyone(SITE)), chance.choice((0, 0, 1, 2))))
