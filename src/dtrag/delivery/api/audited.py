"""Writes an audit log line for every request: caller, route, scope and decision.

Pure ASGI, between the request log and everything that may refuse. Lines of changes and refusals are on disk before the
response starts; lines of reads follow shortly after. No line contains text of a question, a body or a document.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable

from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dtrag import logs
from dtrag.core.access.api_key import Caller
from dtrag.core.access.audit_chain import Decision
from dtrag.core.access.scope import scope_rows
from dtrag.core.documents import Answer
from dtrag.counts import Counts
from dtrag.delivery.api.clients import rate_limit
from dtrag.delivery.api.errors import error_response
from dtrag.delivery.api.permissions import READING, SUPERVISED, Needs, is_page_file
from dtrag.errors import DatabaseUnavailable, DtragError
from dtrag.governance.audit import Audit

NO_SPACE = 507
"""The disk is full and nothing was changed, so the line may wait like that of a read."""
UNLOGGED = SUPERVISED | {"/health", "/metrics"}
"""Routes that supervisors request every few seconds; they contain nothing of any document."""
REFUSED = frozenset({401, 403, 404, 429})
CHEAP_REFUSALS = frozenset({401, 429})
"""Refusals that cost the client nothing and that come in floods."""
CHEAP_REFUSALS_PER_MINUTE = 60
"""Their lines per caller and minute (all clients without a key count as one): a flood must not fill the log. The next
line has the number of those left out."""
_CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})


def add_subjects(request: Request, ids: Iterable[str]) -> None:
    """Add ids of objects in the response to the audit log line."""
    known: list[str] = getattr(request.state, "subjects", [])
    request.state.subjects = list(dict.fromkeys([*known, *ids]))


def add_answer(request: Request, answer: Answer) -> None:
    """Add the documents of an answer, its trace and the digest of its record to the audit log line."""
    add_subjects(request, answer.audited_ids)
    request.state.audited = {**getattr(request.state, "audited", {}), **answer.audited_details}


class Audited:
    """Writes the line of a request when its response starts. If it cannot be written, the response is a 503.

    `outcome` of the request's state is the status of what a protocol asked for inside of it, `audited` more details.
    """

    def __init__(
        self, app: ASGIApp, audit: Callable[[], Audit], counts: Counts, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._app = app
        self._audit = audit
        self._monotonic = monotonic
        self._lines = rate_limit(counts, "limit of audit lines")
        self._left_out: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http" or scope["path"] in UNLOGGED or is_page_file(scope["path"]):
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
                    await self._write_line(scope, scope["state"].get("outcome", message["status"]))
                except DtragError as error:
                    unrecorded = True
                    await _refusal(error, _changes(scope))(scope, receive, send)
                    return
            await send(message)

        await self._app(scope, receive, recorded)

    async def _write_line(self, scope: Scope, status: int) -> None:
        state = scope["state"]
        if state.get("preflight"):
            return  # a preflight shows nothing, and its caller is unknown
        caller = state.get("caller")
        actor = caller.name if isinstance(caller, Caller) else "anonymous"
        details: dict[str, object] = {"status": status, "request_id": logs.request_id.get()}
        details |= state.get("audited", {})
        if state.get("from_owner"):
            details["local_socket"] = True
        if status in CHEAP_REFUSALS:
            if self._lines.take(actor, CHEAP_REFUSALS_PER_MINUTE, self._monotonic()).wait_s:
                self._left_out[actor] += 1
                return
            if self._left_out[actor]:
                details["left_out"] = self._left_out.pop(actor)
        action = f"{scope['method'][:10]} {getattr(scope.get('route'), 'path_format', '(none)')}"
        try:
            audit = self._audit()
        except DatabaseUnavailable:
            return  # before the start and after the stop there is no data and no log
        must_be_durable = status in REFUSED or (_changes(scope) and status != NO_SPACE)
        write = audit.record if must_be_durable else audit.note
        await write(
            actor,
            action,
            scope=scope_rows(caller.access) if isinstance(caller, Caller) else [],
            subjects=state.get("subjects", ()),
            decision=_decision(scope, status),
            details=details,
        )


def _decision(scope: Scope, status: int) -> Decision:
    if status in REFUSED or status == NO_SPACE:
        return "denied"
    return "done" if _changes(scope) else "allowed"


def _changes(scope: Scope) -> bool:
    """Whether the route changes something, by its method and its declared right."""
    if scope["method"] not in _CHANGING:
        return False
    needed = [depends.dependency for depends in getattr(scope.get("route"), "dependencies", ())]
    return any(isinstance(need, Needs) and need.need not in READING for need in needed)


def _refusal(error: DtragError, changes: bool) -> ASGIApp:
    outcome = "The change may have been made" if changes else "The result is withheld"
    return error_response(503, f"{outcome}, because the audit log cannot be written: {error}", type(error).__name__)
