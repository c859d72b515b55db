"""`/evaluations`: runs of evaluations that were kept, for administrators of the whole tree."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from dtrag.core.evaluation_run import EvaluationRun, RunReport, RunSummary
from dtrag.delivery.api.dependencies import app_of
from dtrag.delivery.api.permissions import ADMIN_WHOLE_TREE
from dtrag.delivery.api.routing import failures
from dtrag.governance.evaluations import MAX_LISTED

router = APIRouter(tags=["evaluations"], dependencies=ADMIN_WHOLE_TREE)


class RunList(BaseModel):
    """The kept runs, the newest first."""

    evaluations: list[RunSummary] = Field(description="The runs.")


@router.get("/evaluations", responses=failures(403, 404, 422, 503))
async def evaluations(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED, description="Maximum number of entries.")] = 20,
    after: Annotated[
        str | None, Query(max_length=100, description="Only runs older than the one with this id.")
    ] = None,
) -> RunList:
    """The runs that `dtrag eval ... --keep` stored, the newest first."""
    runs = await app_of(request).evaluations.newest(limit, after)
    return RunList(evaluations=runs)


@router.get("/evaluations/{run_id}", responses=failures(403, 404, 422, 503))
async def evaluation(request: Request, run_id: str) -> RunReport:
    """One run with its questions."""
    run: EvaluationRun = await app_of(request).evaluations.get(run_id)
    request.state.subjects = [str(run.run_id)]
    return await asyncio.to_thread(run.report)
