"""A line of the audit log for every request: who asked which route over which scope, and how it was decided.

Pure ASGI, between the request log and everything that may refuse. Lines of changes and refusals are on disk before the
answer begins; lines of reads follow within a moment. No line holds anything of a question, a body or a document.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dtrag import logs
from dtrag.core.access.api_key import Caller
from dtrag.core.access.audit_chain import Decision
from dtrag.core.access.scope import scope_rows
from dtrag.core.rate_limit import RateLimit
from dtrag.delivery.api.errors import error_response
from dtrag.delivery.api.permissions import Needs
from dtrag.errors import DatabaseUnavailable, DtragError
from dtrag.governance.audit import Audit

NO_SPACE = 507
"""Nothing was changed for want of space, so that the line is like that of a read: it may wait for space."""
UNLOGGED = frozenset({"/", "/livez", "/readyz", "/health", "/metrics"})
"""What supervisors ask every few seconds; nothing of any document is in it."""
REFUSED = frozenset({401, 403, 404, 429})
TURNED_AWAY = frozenset({401, 429})
"""Refusals that cost whoever asks nothing, and that come in floods."""
TURNED_AWAY_PER_MINUTE = 60
"""Lines about them for each caller, all who send no key being one: the log must not be what a flood fills. Those left
out are counted in the next line."""
_CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})


def add_subjects(request: Request, ids: Iterable[str]) -> None:
    """Remember for the audit log which objects the answer is about."""
    known: list[str] = getattr(request.state, "subjects", [])
    request.state.subjects = list(dict.fromkeys([*known, *ids]))


class Audited:
    """Writes the line of a request when its answer begins. An answer that cannot be recorded is not given: 503."""

    def __init__(
        self, app: ASGIApp, audit: Callable[[], Audit], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._app = app
        self._audit = audit
        self._monotonic = monotonic
        self._lines = RateLimit()
        self._left_out: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http" or scope["path"] in UNLOGGED:
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})
        unrecorded = False

        async def recorded(message: Message) -> None:
            nonlocal unrecorded
            if unrecorded:
                return
            if message["type"] == "http.response.start":
                try:
                    await self._written(scope, message["status"])
                except DtragError as error:
                    unrecorded = True
                    await _refusal(error, _changes(scope))(scope, receive, send)
                    return
            await send(message)

        await self._app(scope, receive, recorded)

    async def _written(self, scope: Scope, status: int) -> None:
        state = scope["state"]
        if state.get("preflight"):
            return  # a browser asks what its pages may send; nothing is shown, and nobody is known yet
        caller = state.get("caller")
        actor = caller.name if isinstance(caller, Caller) else "anonymous"
        details: dict[str, Any] = {"status": status, "request_id": logs.request_id.get()}
        if status in TURNED_AWAY:
            if self._lines.take(actor, TURNED_AWAY_PER_MINUTE, self._monotonic()).wait_s:
                self._left_out[actor] += 1
                return
            if self._left_out[actor]:
                details["left_out"] = self._left_out.pop(actor)
        line: dict[str, Any] = {
            "scope": scope_rows(caller.access) if isinstance(caller, Caller) else [],
            "subjects": state.get("subjects", ()),
            "decision": _decision(scope, status),
            "details": details,
        }
        action = f"{scope['method'][:10]} {getattr(scope.get('route'), 'path_format', '(none)')}"
        try:
            audit = self._audit()
        except DatabaseUnavailable:
            return  # before the start and after the stop there is nothing to see, and no log
        must_be_durable = status in REFUSED or (_changes(scope) and status != NO_SPACE)
        write = audit.record if must_be_durable else audit.note
        await write(actor, action, **line)


def _decision(scope: Scope, status: int) -> Decision:
    if status in REFUSED or status == NO_SPACE:
        return "denied"
    return "done" if _changes(scope) else "allowed"


def _changes(scope: Scope) -> bool:
    """Whether the route changes something: by its method, and by the right that it declares."""
    if scope["method"] not in _CHANGING:
        return False
    needed = [found.dependency for found in getattr(scope.get("route"), "dependencies", ())]
    return any(isinstance(need, Needs) and need.need != "read" for need in needed)


def _refusal(error: DtragError, changes: bool) -> ASGIApp:
    done = "It may have been done" if changes else "It is not shown"
    return error_response(503, f"{done}, but the audit log cannot be written: {error}", type(error).__name__)
