"""Who asks over HTTP, and what a route needs of them."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import Request

from dtrag.core.access.api_key import Caller, Need
from dtrag.delivery.api.dependencies import app_of
from dtrag.errors import Forbidden, Unauthorized


def caller_of(request: Request) -> Caller:
    """The caller whom the surroundings of the routes have recognised. Raises `Unauthorized` when there is none."""
    found = getattr(request.state, "caller", None)
    if not isinstance(found, Caller):
        raise Unauthorized
    return found


@dataclass(frozen=True, slots=True)
class Needs:
    """The dependency of a route: the right that its caller needs, and whether they must see the whole tree."""

    need: Need
    whole_tree: bool = False

    async def __call__(self, request: Request) -> None:
        """Asynchronous only so that no thread is used for it.

        Raises `Unauthorized` and `Forbidden`, and `StorageFull` for what adds something while the disk is full.
        """
        self._check_caller(caller_of(request))
        if self.need != "read" and request.method in _ADDING:
            app_of(request).storage.require_space(UPLOAD_COPIES * _body_bytes(request))

    def _check_caller(self, caller: Caller) -> None:
        if not caller.may(self.need):
            raise Forbidden(needed=_ROLE[self.need], role=caller.role)
        if self.whole_tree and caller.access.grants:
            raise Forbidden(
                "This is about the whole tree, and your key sees a part of it only. Use a key without scope."
            )


UPLOAD_COPIES = 2
"""A body is on disk as a file and in the database."""
_ADDING = frozenset({"POST", "PUT", "PATCH"})
_ROLE = {"read": "reader", "write": "editor", "admin": "admin"}


def _body_bytes(request: Request) -> int:
    declared = request.headers.get("content-length", "0")
    return int(declared) if declared.isdecimal() and len(declared) < 19 else 0


def needs(need: Need, *, whole_tree: bool = False) -> Needs:
    """For `dependencies=[Depends(needs("read"))]` of a route; every route but the public ones has one.

    `whole_tree` is for figures and changes that are about everybody's documents.
    """
    return Needs(need, whole_tree)
