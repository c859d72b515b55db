"""`GET /audit` and `GET /audit/verify`: the audit log, for administrators of the whole tree."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from dtrag.core.access.audit_chain import AuditLine, ChainHead, ChainVerdict, Decision
from dtrag.delivery.api.dependencies import app_of, service_of
from dtrag.delivery.api.permissions import ADMIN_WHOLE_TREE
from dtrag.delivery.api.request_tasks import until_gone
from dtrag.delivery.api.routing import failures

router = APIRouter(tags=["audit"], dependencies=ADMIN_WHOLE_TREE)

MAX_LIMIT = 1_000
MAX_NUMBER = 2**63 - 1


class AuditPage(BaseModel):
    """Lines of the audit log, the newest first."""

    lines: list[AuditLine] = Field(description="The lines.")
    before: int | None = Field(description="The `before` parameter of the next page; null on the last page.")


@router.get("/audit", responses=failures(403, 422, 503))
async def audit(
    request: Request,
    *,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Maximum number of entries.")] = 100,
    before: Annotated[int | None, Query(ge=1, le=MAX_NUMBER, description="Only lines below this number.")] = None,
    since: Annotated[datetime | None, Query(description="Only lines since this time (UTC if it has no zone).")] = None,
    until: Annotated[datetime | None, Query(description="Only lines before this time (UTC if it has no zone).")] = None,
    actor: Annotated[str | None, Query(max_length=100, description="Only lines of this caller.")] = None,
    action: Annotated[
        str | None,
        Query(max_length=100, description="Only lines whose action contains this, in any case, such as `/search`."),
    ] = None,
    decision: Annotated[Decision | None, Query(description="allowed, denied or done.")] = None,
    subject: Annotated[
        str | None, Query(max_length=200, description="Only lines about the object with this id, such as a document.")
    ] = None,
) -> AuditPage:
    """The audit log, the newest lines first. This request itself appears in later ones."""
    rows = await app_of(request).audit.newest(
        limit=limit,
        before=before,
        since=_in_utc(since),
        until=_in_utc(until),
        actor=_without_nul(actor),
        action=_without_nul(action),
        decision=decision,
        subject=_without_nul(subject),
    )
    more = len(rows) == limit and rows[-1].number > 1
    return AuditPage(lines=list(map(AuditLine.of, rows)), before=rows[-1].number if more else None)


@router.get("/audit/verify", responses=failures(403, 422, 503))
async def verify(
    request: Request,
    expect: Annotated[
        str | None,
        Query(max_length=100, description="The `head` of an earlier check, which the log must still contain."),
    ] = None,
) -> ChainVerdict:
    """Check that no line of the audit log was changed, removed or added by hand.

    Without `expect`, the removal of the newest lines cannot be noticed.
    """
    expected = ChainHead.parse(expect) if expect else None
    work = app_of(request).audit.verify(expected)
    return await until_gone(request, service_of(request).in_flight, work)


def _in_utc(moment: datetime | None) -> datetime | None:
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


def _without_nul(text: str | None) -> str | None:
    """PostgreSQL stores no NUL, so no line contains one."""
    return None if text is None else text.replace("\x00", "")
