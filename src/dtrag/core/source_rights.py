"""Rights of a source: who may read its files there, and which categories a caller sees because of that.

A source states rights as gates, one for each thing that must let a reader through: the file, a folder above it, the
space that holds it. A gate is a list of entries in order, and the first one that names the reader decides, as in POSIX
and NFSv4 access control lists; without one the reader is refused. Principals are written `site/user/name`,
`site/group/name` and `site/everyone`, so that the same name at another site is another user.

Membership is read as far as it can be. Of a group that could not be read completely, members that are known are let in
where it is allowed, and no user passes where it is refused: what is not known never widens a right.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from dtrag.errors import InvalidInput

MAX_PRINCIPAL = 300


def user(site: str, name: str) -> str:
    """The principal of a user at a site."""
    return f"{site}/user/{name}"


def group(site: str, name: str) -> str:
    """The principal of a group at a site."""
    return f"{site}/group/{name}"


def everyone(site: str) -> str:
    """The principal of all users that the site knows: a group, outside of which no user is let in anywhere."""
    return f"{site}/everyone"


def parse_user(text: str) -> str:
    """The principal of a user, from `site/name`. Raises `InvalidInput`."""
    site, slash, name = text.partition("/")
    if not (slash and site and name) or len(text) > MAX_PRINCIPAL or not text.isprintable() or text != text.strip():
        raise InvalidInput(f"{text[:60]!r} is not a user of a source: write its site and name, such as posix/kim.")
    return user(site, name)


def shown(principal: str) -> str:
    """The inverse of `parse_user`."""
    site, _, name = principal.split("/", 2)
    return f"{site}/{name}"


@dataclass(frozen=True, slots=True, order=True)
class RightsEntry:
    """Whether a principal is let through."""

    principal: str
    allow: bool


Gate = tuple[RightsEntry, ...]


@dataclass(frozen=True, slots=True)
class Rights:
    """Who may read a file: every user whom each of the gates lets through; without a gate none."""

    gates: tuple[Gate, ...] = ()

    @classmethod
    def of(cls, gates: Iterable[Sequence[RightsEntry]]) -> Rights:
        """The rights in one form for all orders that mean the same."""
        return cls(tuple(sorted({_reduced(gate) for gate in gates})))

    @classmethod
    def from_json(cls, rows: Iterable[Iterable[tuple[str, bool]]]) -> Rights:
        """The inverse of `as_json`."""
        return cls(tuple(tuple(RightsEntry(principal, allow) for principal, allow in gate) for gate in rows))

    def as_json(self) -> list[list[tuple[str, bool]]]:
        """Pairs of a principal and whether it is let through, for each gate."""
        return [[(entry.principal, entry.allow) for entry in gate] for gate in self.gates]

    @property
    def digest(self) -> str:
        """Names the category of files with these rights: 16 hexadecimal digits."""
        return blake2b(json.dumps(self.as_json()).encode(), digest_size=8).hexdigest()

    @property
    def groups(self) -> frozenset[str]:
        """The groups whose members have to be known."""
        return frozenset(entry.principal for gate in self.gates for entry in gate if is_group(entry.principal))

    def admit(self, identities: Collection[str], incomplete: Collection[str]) -> bool:
        """Whether a user with these identities (user, groups, everyone) passes; `incomplete` groups as above."""
        return bool(self.gates) and all(_passes(gate, identities, incomplete) for gate in self.gates)


NO_READERS = Rights()


def is_group(principal: str) -> bool:
    """Whether it is the principal of a group, or everyone."""
    return principal.split("/", 2)[1] != "user"


def _passes(gate: Gate, identities: Collection[str], incomplete: Collection[str]) -> bool:
    for entry in gate:
        if entry.principal in identities:
            return entry.allow
        if not entry.allow and entry.principal in incomplete:
            return False
    return False


def _reduced(gate: Sequence[RightsEntry]) -> Gate:
    """Without refusals at the end, which change nothing; entries that all allow have no order."""
    entries = list(gate)
    while entries and not entries[-1].allow:
        entries.pop()
    return tuple(sorted(set(entries)) if all(entry.allow for entry in entries) else entries)


@dataclass(frozen=True, slots=True)
class Membership:
    """The users in a group, also through other groups. `complete`: all of these could be read."""

    users: frozenset[str]
    complete: bool = True


def memberships(groups: Iterable[str], members: Callable[[str], Collection[str] | None]) -> dict[str, Membership]:
    """Group -> who is in it. `members` gives users and groups directly in a group; None: it could not be read.

    Groups may contain each other in circles.
    """
    direct: dict[str, Collection[str] | None] = {}

    def read(name: str) -> Collection[str] | None:
        if name not in direct:
            direct[name] = members(name)
        return direct[name]

    result: dict[str, Membership] = {}
    for top in groups:
        seen, queue, users, complete = {top}, [top], set[str](), True
        while queue:
            known = read(queue.pop())
            complete &= known is not None
            for member in known or ():
                if not is_group(member):
                    users.add(member)
                elif member not in seen:
                    seen.add(member)
                    queue.append(member)
        result[top] = Membership(frozenset(users), complete)
    return result


@dataclass(frozen=True, slots=True)
class SourceAccess:
    """Which categories the rights of one source restrict, and who is let into each, in one state of the index.

    `rights` holds each restricted category. `groups_of` holds the groups, everyone included, of the users for whom
    keys exist; `incomplete` the groups that could not be read completely.
    """

    rights: Mapping[int, Rights] = field(default_factory=dict)
    groups_of: Mapping[str, frozenset[str]] = field(default_factory=dict)
    incomplete: frozenset[str] = frozenset()

    def admitted(self, principals: Iterable[str]) -> frozenset[int]:
        """The restricted categories that one of these users may read at its source."""
        nodes: set[int] = set()
        for principal in principals:
            groups = self.groups_of.get(principal, frozenset())
            if everyone(principal.split("/", 1)[0]) in groups:  # no user whom the site does not know
                identities = groups | {principal}
                nodes.update(node for node, rights in self.rights.items() if rights.admit(identities, self.incomplete))
        return frozenset(nodes)
