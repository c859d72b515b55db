"""`/jobs`: work that was accepted and is done later, such as uploads with `wait=false`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from dtrag.core.job import Job, JobView, State
from dtrag.delivery.api.audited import add_subjects
from dtrag.delivery.api.dependencies import app_of
from dtrag.delivery.api.permissions import ADMIN_WHOLE_TREE, READ, WRITE, caller_of
from dtrag.delivery.api.routing import Offset, Page, failures
from dtrag.jobs.queue import MAX_LISTED

router = APIRouter(tags=["jobs"])


class QueuedJob(BaseModel):
    """A job that was stored and runs later."""

    job_id: str = Field(description="Its id.")
    status_url: str = Field(description="Where its state and result are.")

    @classmethod
    def of(cls, job: Job) -> QueuedJob:
        """The body of a 202."""
        return cls(job_id=str(job.job_id), status_url=f"/jobs/{job.job_id}")


class JobList(Page):
    """A page of your jobs, the newest first; administrators of the whole tree see all."""

    jobs: list[JobView] = Field(description="The jobs of this page.")


@router.get("/jobs", responses=failures(403, 422, 503), dependencies=READ)
async def jobs(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED, description="Maximum number of entries.")] = 100,
    offset: Offset = 0,
    state: Annotated[list[State] | None, Query(description="Only jobs in these states.")] = None,
    kind: Annotated[str | None, Query(max_length=40, pattern=r"^\w*$", description="Only jobs of this kind.")] = None,
) -> JobList:
    """Your jobs, the newest first. Jobs that ended are kept for a week."""
    page, total = await app_of(request).jobs.every(caller_of(request), limit, offset, state, kind)
    return JobList(jobs=[job.view() for job in page], total=total, limit=limit, offset=offset)


@router.post(
    "/backups",
    status_code=202,
    responses=failures(400, 403, 413, 422, 503, 507),
    dependencies=ADMIN_WHOLE_TREE,
)
async def back_up(request: Request) -> QueuedJob:
    """Back up the database into the folder of the setting `backup_dir`; `result` of the job names the file.

    The file has all documents, keys and settings: see the guide on backups.
    """
    queued = await app_of(request).queue_backup(caller=caller_of(request))
    add_subjects(request, [str(queued.job_id)])
    return QueuedJob.of(queued)


class SyncRequest(BaseModel):
    """Which source to read."""

    category: str | None = Field(
        None, max_length=500, description="That of one source of the setting `sources`; without it all."
    )


@router.post(
    "/sources/sync",
    status_code=202,
    responses=failures(400, 403, 413, 415, 422, 503, 507),
    dependencies=ADMIN_WHOLE_TREE,
)
async def sync(request: Request, body: SyncRequest) -> QueuedJob:
    """Bring branches of the tree into step with sources of the setting `sources`: their files, and their rights."""
    queued = await app_of(request).queue_sync(body.category, caller=caller_of(request))
    add_subjects(request, [str(queued.job_id)])
    return QueuedJob.of(queued)


@router.get("/jobs/{job_id}", responses=failures(403, 404, 422, 503), dependencies=READ)
async def job(request: Request, job_id: str) -> JobView:
    """One of your jobs: its state, its progress, and what it did."""
    stored = await app_of(request).jobs.get(job_id, caller_of(request))
    add_subjects(request, [str(stored.job_id)])
    return stored.view()


@router.post("/jobs/{job_id}/cancel", responses=failures(400, 403, 404, 409, 413, 422, 503, 507), dependencies=WRITE)
async def cancel(request: Request, job_id: str) -> JobView:
    """End one of your jobs. What it has written stays, and it writes nothing more."""
    ended = await app_of(request).jobs.cancel(job_id, caller_of(request))
    add_subjects(request, [str(ended.job_id)])
    return ended.view()


@router.post("/jobs/{job_id}/retry", responses=failures(400, 403, 404, 409, 413, 422, 503, 507), dependencies=WRITE)
async def retry(request: Request, job_id: str) -> JobView:
    """Let one of your jobs that failed run again, or one that waits for its next attempt run now."""
    again = await app_of(request).jobs.retry(job_id, caller_of(request))
    add_subjects(request, [str(again.job_id)])
    return again.view()
