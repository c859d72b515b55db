"""`/evaluations`: runs of evaluations that were kept, for administrators of the whole tree."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from dtrag.core.evaluation_run import EvaluationRun
from dtrag.delivery.api.dependencies import app_of
from dtrag.delivery.api.permissions import ADMIN_WHOLE_TREE
from dtrag.delivery.api.schemas.errors import failures
from dtrag.governance.evaluations import MAX_LISTED

router = APIRouter(tags=["evaluations"], dependencies=ADMIN_WHOLE_TREE)


class MeasureShape(BaseModel):
    """A measure with its 95 % interval."""

    value: float = Field(description="Its value.")
    low: float = Field(description="Lower end of the interval.")
    high: float = Field(description="Upper end of the interval.")


class RunLine(BaseModel):
    """A run in the list."""

    run_id: str = Field(description="Its id.")
    created_at: str = Field(description="When it ended, ISO 8601 in UTC.")
    kind: str = Field(description="retrieval, answers or quality.")
    dataset: str = Field(description="The name of the set.")
    version: str = Field(description="The version of dtrag.")
    settings: dict[str, str] = Field(description="What it ran with: models, judge, mode.")
    questions: int = Field(description="Number of questions.")
    measures: dict[str, MeasureShape | None] = Field(
        description="The measures; null for one that the set does not judge."
    )


class RunRowShape(BaseModel):
    """A question of a run."""

    id: str = Field(description="The id of the question.")
    question: str = Field(description="The question.")
    ratios: dict[str, tuple[float, float]] = Field(
        description="What it adds to numerator and denominator of each measure."
    )
    details: dict[str, object] = Field(description="Answer, decision and reasons.")


class RunShape(RunLine):
    """A run with its questions."""

    format: int = Field(description="Version of this form; `dtrag eval` reads it with --against.")
    rows: list[RunRowShape] = Field(description="The questions.")


class RunList(BaseModel):
    """The kept runs, the newest first."""

    evaluations: list[RunLine] = Field(description="The runs.")


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
    return RunList(evaluations=[RunLine.model_validate(run.as_dict()) for run in runs])


@router.get("/evaluations/{run_id}", responses=failures(403, 404, 422, 503))
async def evaluation(request: Request, run_id: str) -> RunShape:
    """One run with its questions."""
    run: EvaluationRun = await app_of(request).evaluations.get(run_id)
    request.state.subjects = [str(run.run_id)]
    return RunShape.model_validate(await asyncio.to_thread(run.as_dict))
