"""`dtrag jobs`: the work that is done in the background, such as uploads and vectors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.delivery.cli.console import Facts, ListFormat, Rows, plural, show_result
from dtrag.delivery.cli.context import Form, Json, ListedId, Offset, with_app
from dtrag.delivery.cli.exit_codes import OK

if TYPE_CHECKING:
    from dtrag.core.job import Job
    from dtrag.jobs.queue import Jobs

app = typer.Typer(
    rich_markup_mode=None, no_args_is_help=True, help="Jobs: uploads, vectors and other work in the background."
)
Limit = Annotated[int, typer.Option(min=1, max=1_000, help="Maximum number of entries.")]
States = Annotated[
    list[str] | None,
    typer.Option("--state", metavar="STATE", help="Only waiting, running, done, failed or cancelled jobs."),
]


@app.command("list")
def list_jobs(
    context: typer.Context,
    *,
    limit: Limit = 100,
    offset: Offset = 0,
    state: States = None,
    as_json: Json = False,
    form: Form = ListFormat.table,
) -> int:
    """List the jobs, the newest first. Those that ended are kept for a week."""
    from typing import cast, get_args

    from dtrag.core.access.api_key import LOCAL
    from dtrag.core.job import State

    if unknown := set(state or ()) - set(get_args(State)):
        raise typer.BadParameter(f"{min(unknown)!r} is no state: give {', '.join(get_args(State))}")
    states = cast("list[State] | None", state or None)
    jobs, total = with_app(context, lambda opened: opened.jobs.every(LOCAL, limit, offset, states))
    value = {"jobs": [job.view() for job in jobs], "total": total, "limit": limit, "offset": offset}
    cells = [(str(job.job_id), job.kind, job.state, _progress(job), _about(job)) for job in jobs]
    listed = Rows(("Id", "Kind", "State", "Done", "About"), cells, whole=("Id", "Kind", "State"))
    count = f"{len(jobs):,} of {plural(total, 'job')}" if total else "There are no jobs."
    return show_result(as_json or form, value, listed, notes=[count])


@app.command("show")
def show(context: typer.Context, job_id: ListedId, as_json: Json = False) -> int:
    """Show one job: its state, its progress, and what it did."""
    from dtrag.core.access.api_key import LOCAL

    return _shown(with_app(context, lambda opened: opened.jobs.get(job_id, LOCAL)), as_json)


@app.command("cancel")
def cancel(context: typer.Context, job_id: ListedId, as_json: Json = False) -> int:
    """End a job. What it has written stays, and it writes nothing more."""
    return _changed(context, lambda jobs: jobs.cancel, job_id, as_json)


@app.command("retry")
def retry(context: typer.Context, job_id: ListedId, as_json: Json = False) -> int:
    """Let a job that failed run again, or one that waits for its next attempt run now."""
    return _changed(context, lambda jobs: jobs.retry, job_id, as_json)


def _changed(
    context: typer.Context, change: Callable[[Jobs], Callable[..., Awaitable[Job]]], job_id: str, as_json: bool
) -> int:
    from dtrag.core.access.api_key import LOCAL

    return _shown(with_app(context, lambda opened: change(opened.jobs)(job_id, LOCAL)), as_json)


def _shown(job: Job, as_json: bool) -> int:
    rows = [("Id", str(job.job_id)), ("Kind", job.kind), ("State", job.state), ("Progress", _progress(job))]
    rows += [("Requested", f"{job.created_at:%Y-%m-%d %H:%M:%S} by {job.maker_name or 'the service'}")]
    rows += [("Attempts", str(job.attempts))]
    rows += [("Reason", job.reason)] if job.reason else []
    rows += [("File" if not number else "", name) for number, name in enumerate(job.view().files)]
    rows += [(name.capitalize(), f"{value:,}") for name, value in (job.result or {}).get("counts", {}).items()]
    show_result(as_json, job.view(), Facts(rows))
    return OK


def _progress(job: Job) -> str:
    return f"{job.done:,}/{job.total:,}" if job.total else ""


def _about(job: Job) -> str:
    return job.reason or ", ".join(job.view().files)
