"""Who asks: a name, a role, and what may be seen."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Literal, get_args

from dtrag.core.access.scope import Access

Role = Literal["reader", "editor", "admin"]
Need = Literal["read", "write", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
_ALLOWED: dict[Role, frozenset[Need]] = {
    "reader": frozenset({"read"}),
    "editor": frozenset({"read", "write"}),
    "admin": frozenset({"read", "write", "admin"}),
}


@dataclass(frozen=True, slots=True)
class Caller:
    """One caller. `name` is that of the key, or `local` where no keys are needed; `key_id` is None then."""

    name: str
    role: Role
    access: Access
    key_id: uuid.UUID | None = None

    @property
    def owner(self) -> str:
        """Whose conversations and traces are the caller's: the id of the key, "" where no keys are needed."""
        return str(self.key_id) if self.key_id is not None else ""

    def may(self, need: Need) -> bool:
        """Whether the role allows it."""
        return need in _ALLOWED[self.role]


LOCAL = Caller("local", "admin", Access())
"""Whoever uses the machine itself: the command line, and the service while no key is configured."""
