"""Refuses filters that try to bypass the caller's scope, before a request searches."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from fastapi import Request

from dtrag.core.access.api_key import Caller
from dtrag.core.access.filter_attacks import PATH_KEYS, FilterAttack, attack_in
from dtrag.core.access.scope import Access, SearchFilters, reaches_out, scope_rows
from dtrag.delivery.api.dependencies import app_of, service_of
from dtrag.errors import FilterBypass


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
