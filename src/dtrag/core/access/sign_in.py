"""People who sign in with an identity provider (OpenID Connect): what its file says, and which rights groups give.

A group belongs to its provider: groups of the same name at two providers are two groups. Groups only ever add rights,
and a person of whom they cannot be read has none.
"""

from __future__ import annotations

import datetime
import re
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from dtrag.core.access.api_key import Role, is_origin
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.errors import InvalidInput, SignInRefused

MAX_GROUPS = 1_000
"""Groups of a person; of one with more none is read."""
MAX_NAME = 40
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,18}[a-z0-9])?")
_ROLES: tuple[Role, ...] = ("reader", "editor", "admin")
"""From the least to the most."""
_FIELDS = {"name", "title", "issuer", "client_id", "client_secret_file", "scopes", "groups_claim", "group"}
_GROUP_FIELDS = {"name", "role", "branches"}


@dataclass(frozen=True, slots=True)
class GroupRights:
    """A role, and the branches in which it applies; None: the whole tree."""

    role: Role
    branches: tuple[CategoryPath, ...] | None


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """An identity provider. `name` stands in addresses and before the names of its people, `title` on the page.

    `secret_file` holds the secret of this service at the provider; "" for a client that has none. `groups_claim` is
    the claim with the groups; a dot leads into an object. `groups` has the rights of each group.
    """

    name: str
    title: str
    issuer: str
    client_id: str
    secret_file: str
    scopes: tuple[str, ...]
    groups_claim: str
    groups: Mapping[str, GroupRights]

    def rights(self, groups: Collection[str]) -> GroupRights | None:
        """What these groups give together; None for nothing.

        The highest role, in the branches of the groups that have it: those of a lower role would be widened by it.
        """
        matching = [self.groups[group] for group in groups if group in self.groups]
        if not matching:
            return None
        role = max((rights.role for rights in matching), key=_ROLES.index)
        branches = [rights.branches for rights in matching if rights.role == role]
        if any(paths is None for paths in branches):
            return GroupRights(role, None)
        return GroupRights(role, tuple(sorted({path for paths in branches for path in paths or ()}, key=str)))

    def groups_in(self, claims: Mapping[str, Any]) -> frozenset[str]:
        """The groups in the claims about a person. Raises `SignInRefused` where they are missing or left out."""
        name = self.groups_claim
        # A provider that would have to list too many names another place instead, or says only that there are some.
        left_out = name in (claims.get("_claim_names") or {}) or claims.get("hasgroups")
        listed: Any = claims.get(name)
        if listed is None:
            listed = claims
            for part in name.split("."):
                listed = listed.get(part) if isinstance(listed, Mapping) else None
        groups = [listed] if isinstance(listed, str) else listed
        if left_out or (isinstance(groups, list) and len(groups) > MAX_GROUPS):
            raise SignInRefused(
                reason=f"the provider left out your groups, because there are too many (at most {MAX_GROUPS:,})."
            )
        if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
            raise SignInRefused(reason=f"the provider sent no list of groups in the claim {name!r}.")
        return frozenset(groups)


@dataclass(frozen=True, slots=True)
class Identity:
    """A person as a provider says. `subject` never changes and is never another person's; `name` may be either.

    `tokens` are what the provider is asked with whether this still holds.
    """

    subject: str
    name: str
    groups: frozenset[str]
    tokens: Mapping[str, str] = field(repr=False)

    def key_name(self, provider: ProviderSettings) -> str:
        """The name that keys, audit log and page show."""
        shown = "".join(letter for letter in self.name if letter.isprintable()).strip()[:MAX_NAME].strip()
        return f"{provider.name}/{shown or 'person'}"


@dataclass(frozen=True, slots=True)
class Person:
    """A person who has signed in, and the key that stands for them: it has no secret, and rights after the groups."""

    key_id: uuid.UUID
    issuer: str
    subject: str
    groups: frozenset[str]
    checked_at: datetime.datetime


@dataclass(frozen=True, slots=True)
class SignInFile:
    """The file in the setting `sign_in`: the origin of the service's page, and its providers by name."""

    origin: str
    providers: Mapping[str, ProviderSettings]

    @classmethod
    def of(cls, table: Mapping[str, Any], place: str) -> SignInFile:
        """The checked content of the file at `place`. Raises `InvalidInput`, with the form of what is wrong."""
        _known(table, {"origin", "provider"}, place)
        origin = _text(table, "origin", place)
        if not is_origin(origin):
            raise InvalidInput(
                f'{place}: origin is the address of the page, such as origin = "https://ask.example.org"'
            )
        providers: dict[str, ProviderSettings] = {}
        for row in _tables(table, "provider", place):
            provider = _provider(row, place)
            if provider.name in providers or any(provider.issuer == other.issuer for other in providers.values()):
                raise InvalidInput(f"{place}: two providers have the name or the issuer of {provider.name!r}.")
            providers[provider.name] = provider
        if not providers:
            raise InvalidInput(f"{place}: there is no [[provider]].")
        return cls(origin.lower(), providers)

    def of_issuer(self, issuer: str) -> ProviderSettings | None:
        """The provider with this issuer; None: it is not in the file any more."""
        return next((provider for provider in self.providers.values() if provider.issuer == issuer), None)


def _provider(row: Mapping[str, Any], place: str) -> ProviderSettings:
    _known(row, _FIELDS, place)
    name, issuer = _text(row, "name", place), _text(row, "issuer", place)
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"{place}: the name of a provider has up to 20 small letters, digits and hyphens, not {name[:40]!r}."
        )
    if not is_safe(issuer) or urlsplit(issuer).query or urlsplit(issuer).fragment:
        raise InvalidInput(f"{place}: the issuer of {name!r} is an https:// address (http:// only on this machine).")
    groups: dict[str, GroupRights] = {}
    for listed in _tables(row, "group", place):
        _known(listed, _GROUP_FIELDS, place)
        group, role = _text(listed, "name", place), listed.get("role", "reader")
        if role not in _ROLES:
            raise InvalidInput(f"{place}: the role of the group {group!r} is one of {', '.join(_ROLES)}.")
        if group in groups:
            raise InvalidInput(f"{place}: the group {group!r} of {name!r} is listed twice.")
        groups[group] = GroupRights(role, _branches(listed, group, place))
    scopes = row.get("scopes", ["openid", "profile"])
    if not isinstance(scopes, list) or "openid" not in scopes or not all(isinstance(scope, str) for scope in scopes):
        raise InvalidInput(f'{place}: scopes is a list with "openid", such as ["openid", "profile", "groups"].')
    return ProviderSettings(
        name,
        _text(row, "title", place, name),
        issuer,
        _text(row, "client_id", place),
        _text(row, "client_secret_file", place, ""),
        tuple(scopes),
        _text(row, "groups_claim", place, "groups"),
        groups,
    )


def is_safe(address: str) -> bool:
    """Whether secrets may be sent to the address: by https, or to this machine."""
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and host in {"localhost", "127.0.0.1"}))


def _branches(row: Mapping[str, Any], group: str, place: str) -> tuple[CategoryPath, ...] | None:
    """None for `branches = "all"`: the whole tree must be asked for."""
    branches = row.get("branches")
    if branches == "all":
        return None
    if not isinstance(branches, list) or not branches or not all(isinstance(path, str) for path in branches):
        raise InvalidInput(f'{place}: the group {group!r} needs branches = ["Path/Of/Category"], or branches = "all".')
    return tuple(CategoryPath.parse(path) for path in branches)


def _tables(table: Mapping[str, Any], name: str, place: str) -> list[Mapping[str, Any]]:
    rows = table.get(name, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InvalidInput(f"{place}: {name} is written as [[{name}]] tables.")
    return rows


def _text(row: Mapping[str, Any], name: str, place: str, default: str | None = None) -> str:
    value = row.get(name, default)
    if not isinstance(value, str) or (default is None and not value.strip()):
        raise InvalidInput(f"{place}: {name} is missing, or is not a text in quotes.")
    return value.strip()


def _known(row: Mapping[str, Any], names: Collection[str], place: str) -> None:
    for name in row.keys() - names:
        raise InvalidInput(f"{place}: there is no field {str(name)[:40]!r}. Known: {', '.join(sorted(names))}.")
