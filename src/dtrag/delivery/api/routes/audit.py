"""`GET /audit`: the audit log, for administrators of the whole tree."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from dtrag.core.access.audit_chain import AuditRow
from dtrag.delivery.api.dependencies import app_of
from dtrag.delivery.api.permissions import ADMIN_WHOLE_TREE
from dtrag.delivery.api.schemas.errors import failures

router = APIRouter(tags=["audit"], dependencies=ADMIN_WHOLE_TREE)

MAX_LIMIT = 1_000
MAX_NUMBER = 2**63 - 1


class AuditLine(BaseModel):
    """One line of the audit log."""

    number: int = Field(description="Counts from 1 without gaps.")
    at: str = Field(description="When, in ISO 8601 and UTC.")
    actor: str = Field(description="Name of the key, `local` or `anonymous`.")
    action: str = Field(description="Method and route, or the operation.")
    scope: list[object] | None = Field(description="Branches the caller may see; null for the whole tree.")
    subjects: list[str] = Field(description="Ids of the objects of the request or the response.")
    decision: str = Field(description="allowed, denied or done.")
    details: dict[str, object] = Field(description="Status, request id and the like; never content.")
    hash: str = Field(description="SHA-256 of the previous hash and the line, in hexadecimal digits.")

    @classmethod
    def of(cls, row: AuditRow) -> AuditLine:
        """From the stored line."""
        entry = row.entry
        return cls(
            number=row.number,
            at=entry.at.astimezone(UTC).isoformat(),
            actor=entry.actor,
            action=entry.action,
            scope=None if entry.scope is None else list(entry.scope),
            subjects=list(entry.subjects),
            decision=entry.decision,
            details=dict(entry.details),
            hash=row.hash.hex(),
        )


class AuditPage(BaseModel):
    """Lines of the audit log, the newest first."""

    lines: list[AuditLine] = Field(description="The lines.")
    before: int | None = Field(description="The `before` parameter of the next page; null on the last page.")


@router.get("/audit", responses=failures(403, 422, 503))
async def audit(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Maximum number of entries.")] = 100,
    before: Annotated[int | None, Query(ge=1, le=MAX_NUMBER, description="Only lines below this number.")] = None,
    since: Annotated[datetime | None, Query(description="Only lines since this time (UTC if it has no zone).")] = None,
    actor: Annotated[str | None, Query(max_length=100, description="Only lines of this caller.")] = None,
) -> AuditPage:
    """The audit log, the newest lines first. This request itself appears in later ones."""
    earliest = since.replace(tzinfo=UTC) if since is not None and since.tzinfo is None else since
    name = None if actor is None else actor.replace("\x00", "")
    rows = await app_of(request).audit.newest(limit=limit, before=before, since=earliest, actor=name)
    more = len(rows) == limit and rows[-1].number > 1
    return AuditPage(lines=[AuditLine.of(row) for row in rows], before=rows[-1].number if more else None)
