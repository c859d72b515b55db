"""The caller of a request, the rights that routes require, filters that exceed them, and routes that need no key."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import Depends, Request

from dtrag.core.access.api_key import Caller, Need
from dtrag.core.access.filter_attacks import PATH_KEYS, FilterAttack, attack_in
from dtrag.core.access.scope import Access, SearchFilters, reaches_out, scope_rows
from dtrag.delivery.api.dependencies import app_of, service_of
from dtrag.errors import FilterBypass, Forbidden, Unauthorized


def caller_of(request: Request) -> Caller:
    """The caller that the authentication middleware recognised. Raises `Unauthorized` if there is none."""
    caller = getattr(request.state, "caller", None)
    if not isinstance(caller, Caller):
        raise Unauthorized
    return caller


@dataclass(frozen=True, slots=True)
class Needs:
    """A route dependency that checks the caller's right, and whether the caller may see the whole tree."""

    need: Need
    whole_tree: bool = False

    async def __call__(self, request: Request) -> None:
        """Check the caller. Asynchronous so that FastAPI uses no thread for it.

        Raises `Unauthorized` and `Forbidden`, and `StorageFull` for a write while the disk is full.
        """
        self._check_caller(caller_of(request))
        if self.need not in READING and request.method in _ADDING:
            app_of(request).database.require_space(UPLOAD_COPIES * _body_bytes(request))

    def _check_caller(self, caller: Caller) -> None:
        if not caller.may(self.need):
            if caller.keyless:
                raise Unauthorized(KEY_NEEDED)
            if self.need == "originals" and caller.may("read"):
                raise Forbidden(ORIGINALS_NEEDED)
            raise Forbidden(needed=_ROLE.get(self.need, "reader"), role=caller.role)
        if self.whole_tree and caller.access.grants:
            raise Forbidden(
                "This concerns the whole tree, and your key is restricted to a part of it. Use a key without scope."
            )


KEY_NEEDED = (
    "Without a key only questions and reading are allowed here. Send one as `Authorization: Bearer <key>` or as "
    "`X-API-Key`; an administrator makes one with: dtrag keys create"
)
ORIGINALS_NEEDED = (
    "Your key may not see original files, only the texts of documents. An administrator makes a key that may with: "
    "dtrag keys create --originals"
)
UPLOAD_COPIES = 2
"""An uploaded body is stored as a file and in the database."""
_ADDING = frozenset({"POST", "PUT", "PATCH"})
READING: frozenset[Need] = frozenset({"ask", "browse", "read", "originals"})
"""Needs of routes that change nothing."""
_ROLE = {"ask": "public", "write": "editor", "admin": "admin"}
"""The role that a need requires, unless it is reader."""


def _body_bytes(request: Request) -> int:
    declared = request.headers.get("content-length", "0")
    return int(declared) if declared.isdecimal() and len(declared) < 19 else 0


def needs(need: Need, *, whole_tree: bool = False) -> Needs:
    """For `dependencies=[Depends(needs("read"))]` of a route; every non-public route has one.

    `whole_tree` is for metrics and changes that concern all documents.
    """
    return Needs(need, whole_tree)


ASK, BROWSE = [Depends(needs("ask"))], [Depends(needs("browse"))]
ORIGINALS = [Depends(needs("originals"))]
READ, WRITE, ADMIN = [Depends(needs("read"))], [Depends(needs("write"))], [Depends(needs("admin"))]
READ_WHOLE_TREE = [Depends(needs("read", whole_tree=True))]
ADMIN_WHOLE_TREE = [Depends(needs("admin", whole_tree=True))]
"""The `dependencies` of routes."""

ASSETS = "/assets/{name}"
"""Files of the built page; their names contain a hash of their content."""
WIDGET = "/widget.js"
PAGE_FILES = frozenset({"/", WIDGET})
SUPERVISED = frozenset({"/livez", "/readyz"})
SIGN_IN = ("POST", "/session")
PROVIDERS = "/sign-in"
PROVIDER, SIGN_OUT, CALLBACK = (PROVIDERS + "/{provider}" + rest for rest in ("", "/sign-out", "/callback"))
"""Sign-in with an identity provider."""
OPEN = frozenset(
    {("GET", path) for path in PAGE_FILES | SUPERVISED | {ASSETS, PROVIDERS, PROVIDER, SIGN_OUT, CALLBACK}} | {SIGN_IN}
)
"""Routes that need no key: the built page, what supervisors request, and the sign-in, whose proof is in the request."""
_ASSETS_START = ASSETS.partition("{")[0]


def is_page_file(path: str) -> bool:
    """Whether the path is that of a file of the page: the same for everybody, and without any document."""
    return path in PAGE_FILES or path.startswith(_ASSETS_START)


def is_open(method: str, path: str) -> bool:
    """Whether a request of this path needs no key."""
    if is_page_file(path) or path in SUPERVISED or (method, path) == SIGN_IN:
        return True
    return method == "GET" and (path == PROVIDERS or path.startswith(f"{PROVIDERS}/"))


async def refuse_bypass(
    request: Request, filters: Mapping[str, Any] | None, caller: Caller, access: Access | None = None
) -> None:
    """Raises `FilterBypass` after writing an audit log line, and `InvalidInput` for invalid filters.

    `access` restricts what the caller may see here, such as to an agent's branches.
    """
    if not filters:
        return
    started = time.perf_counter()
    attempt = attack_in(filters) or await _path_outside_scope(request, filters, access or caller.access)
    seconds = time.perf_counter() - started
    telemetry = service_of(request).telemetry.filters
    telemetry.examined(seconds)
    if attempt is None:
        return
    telemetry.attempted(attempt.kind)
    await app_of(request).audit.record(
        caller.name,
        "filters",
        scope=scope_rows(access or caller.access),
        subjects=(),
        decision="denied",
        details={"kind": attempt.kind, "reason": attempt.reason, "path": request.url.path},
    )
    raise FilterBypass(reason=attempt.reason)


async def _path_outside_scope(request: Request, filters: Mapping[str, Any], access: Access) -> FilterAttack | None:
    if not access.grants or PATH_KEYS.isdisjoint(filters):
        return None
    app = app_of(request)
    paths = SearchFilters.parse(filters, app.engine.filter_keys).paths or ()
    taxonomy = (await app.index.snapshot()).taxonomy
    if reaches_out(paths, access, taxonomy):
        return FilterAttack("bypass", "a path lies outside your scope.")
    return None
