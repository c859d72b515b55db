"""`/isolation`: test that no caller reads outside its scope, for administrators of the whole tree."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from dtrag.delivery.api.dependencies import service_of
from dtrag.delivery.api.permissions import ADMIN_WHOLE_TREE
from dtrag.delivery.api.routing import JsonRoute, StrictBody, failures
from dtrag.isolation.runs import State

router = APIRouter(route_class=JsonRoute, tags=["audit"])


class IsolationBody(StrictBody):
    """What a run tests. More requests take longer: about a minute for a thousand."""

    requests: int = Field(1_000, ge=50, le=100_000, description="Minimum number of requests.")
    documents: int = Field(500, ge=10, le=100_000, description="Documents of the test index.")
    nodes: int = Field(50, ge=4, le=2_000, description="Categories of the test index.")
    live: bool = Field(False, description="Test the index of the service; nothing is written.")


class IsolationShape(BaseModel):
    """The last run of the isolation test in this service."""

    model_config = ConfigDict(from_attributes=True)
    state: State = Field(description="never, running, finished or failed.")
    started_at: str | None = Field(description="When it was started, ISO 8601 in UTC; null for never.")
    finished_at: str | None = Field(description="When it ended.")
    outcome: Literal["isolated", "leaks"] | None = Field(
        description="isolated: no response differed, nothing from outside was returned; null without a report."
    )
    report: dict[str, Any] | None = Field(description="The report of `dtrag audit isolation --json`.")
    problem: str = Field(description="Why there is no report; empty otherwise.")


@router.get("/isolation", responses=failures(403, 503), dependencies=ADMIN_WHOLE_TREE)
async def show(request: Request) -> IsolationShape:
    """The state and the report of the last run since the service was started."""
    return IsolationShape.model_validate(service_of(request).isolation.last)


@router.post(
    "/isolation",
    status_code=202,
    responses=failures(400, 403, 409, 413, 415, 422, 503, 507),
    dependencies=ADMIN_WHOLE_TREE,
)
async def start(request: Request, body: IsolationBody) -> IsolationShape:
    """Start the isolation test; GET /isolation has its report when it is done.

    It runs in a process of its own, with a temporary index on the same database server.
    """
    service = service_of(request)
    return IsolationShape.model_validate(service.isolation.start(service.settings, body.model_dump()))
