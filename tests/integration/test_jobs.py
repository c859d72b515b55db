"""Jobs of an app: uploads that are indexed later, with the access and in the tree of that moment."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from dtrag.adapters.backup_file import BackupFile
from dtrag.adapters.postgres.index_writer import PostgresWriter
from dtrag.app import App, open_app
from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.access.confinement import confined
from dtrag.core.job import Job
from dtrag.errors import Conflict, Forbidden, InvalidInput, NotFound, Overloaded
from dtrag.ingestion.sources import Source
from dtrag.jobs import queue
from dtrag.jobs.queue import Jobs
from dtrag.settings import Settings
from dtrag.testing import add_texts
from tests.store import Store

LEAVE = "# Leave\n\nParental leave lasts a year and is granted on request.\n"


async def uploaded(
    app: App,
    folder: Path,
    text: str = LEAVE,
    *,
    category: str | None = None,
    caller: Caller = LOCAL,
    name: str = "a.md",
) -> Job:
    path = folder / f"sent-{name}"
    path.write_text(text, "utf-8")
    return await app.queue_upload([Source(path, name, f"upload:{name}")], category, caller=caller)


@asynccontextmanager
async def serving(app: App, folder: Path) -> AsyncIterator[None]:
    """A service that takes jobs while the block runs."""
    files = folder / "service"
    files.mkdir(parents=True, exist_ok=True)
    task = asyncio.create_task(app.jobs.serve(files))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert list(files.iterdir()) == []


async def until(condition: Callable[[], Awaitable[object]]) -> None:
    """Return when the condition holds, which another task or process brings about."""
    async with asyncio.timeout(60):
        while not await condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def state_of(app: App, job: Job) -> Job:
    return await app.jobs.get(str(job.job_id), LOCAL)


async def ended(app: App, job: Job) -> Job:
    async def over() -> bool:
        return (await state_of(app, job)).state not in {"waiting", "running"}

    await until(over)
    return await state_of(app, job)


async def idle(app: App) -> None:
    """Return when the app runs no job."""

    async def nothing() -> bool:
        return not app.jobs._running

    await until(nothing)


async def run(app: App, folder: Path, job: Job) -> Job:
    async with serving(app, folder):
        return await ended(app, job)


def result_of(job: Job) -> Mapping[str, Any]:
    assert job.result is not None, job
    return job.result


async def test_an_upload_is_indexed_later(app: App, store: Store, tmp_path: Path) -> None:
    job = await uploaded(app, tmp_path)
    (tmp_path / "sent-a.md").unlink()  # its bytes are in the database
    assert await app.documents() == []
    done = await run(app, tmp_path, job)
    assert (done.state, done.reason, done.done, done.total, done.attempts) == ("done", "", 1, 1, 1)
    assert result_of(done)["counts"] == {"documents": 1, "chunks": 1, "unchanged": 0, "removed": 0, "failed": 0}
    [document] = await app.documents()
    assert result_of(done)["document_ids"] == [document.document_id]
    assert store.value("select count(*) from job_files") == store.value("select count(*) from job_locks") == 0
    line = (await app.audit.newest(limit=1))[0]
    assert (line.entry.action, line.entry.decision) == ("job ingest", "done")
    assert document.document_id in line.entry.subjects
    store.assert_whole()


async def test_uploads_of_one_file_are_indexed_in_order(app: App, tmp_path: Path) -> None:
    jobs = [await uploaded(app, tmp_path, f"# Leave\n\nEdition {number}.\n") for number in range(4)]
    async with serving(app, tmp_path):
        for job in jobs:
            assert (await ended(app, job)).state == "done"
    [document] = await app.documents()
    assert "Edition 3" in (await app.document(document.document_id))[1]


async def test_an_unreadable_file_is_not_tried_again(app: App, store: Store, tmp_path: Path) -> None:
    job = await run(app, tmp_path, await uploaded(app, tmp_path, "%PDF-1.4 broken", name="a.pdf"))
    assert (job.state, job.attempts) == ("failed", 1)
    assert job.reason.startswith("a.pdf: ")
    assert result_of(job)["failed"][0]["file"] == "a.pdf"
    assert str(tmp_path) not in str(job)
    assert store.value("select count(*) from job_files") == 1
    again = await app.jobs.retry(str(job.job_id), LOCAL)
    assert again.state == "waiting"
    assert (await run(app, tmp_path, job)).state == "failed"


async def test_failures_are_tried_again_later(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "FIRST_PAUSE_S", 0.01)
    failures = [Overloaded(seconds=1), RuntimeError("secret text")]
    write = PostgresWriter.write

    async def failing(self: PostgresWriter, *values: Any) -> None:
        if failures:
            raise failures.pop()
        await write(self, *values)

    monkeypatch.setattr(PostgresWriter, "write", failing)
    job = await uploaded(app, tmp_path)
    async with serving(app, tmp_path):

        async def failed() -> str:
            return (await state_of(app, job)).reason

        await until(failed)
        reason = await failed()
        assert "RuntimeError" in reason
        assert "secret" not in reason
        done = await ended(app, job)
    assert (done.state, done.attempts, done.reason) == ("done", 3, "")


async def test_attempts_end(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "FIRST_PAUSE_S", 0.01)

    async def failing(self: PostgresWriter, *values: Any) -> None:
        raise Overloaded(seconds=1)

    monkeypatch.setattr(PostgresWriter, "write", failing)
    job = await run(app, tmp_path, await uploaded(app, tmp_path))
    assert (job.state, job.attempts) == ("failed", 6)
    assert "overloaded" in job.reason


def test_pauses_grow() -> None:
    kind = queue.JobKind(lambda running: asyncio.sleep(0), longest_pause=timedelta(seconds=30))
    assert [queue._pause(kind, attempts).total_seconds() for attempts in (1, 2, 5, 99)] == [2, 4, 30, 30]


async def test_a_cancelled_job_writes_nothing(
    app: App, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go = asyncio.Event(), asyncio.Event()
    write = PostgresWriter.write

    async def stalled(self: PostgresWriter, *values: Any) -> None:
        begun.set()
        await go.wait()
        await write(self, *values)

    monkeypatch.setattr(PostgresWriter, "write", stalled)
    job = await uploaded(app, tmp_path)
    async with serving(app, tmp_path):
        await begun.wait()
        cancelled = await app.jobs.cancel(str(job.job_id), LOCAL)
        assert (cancelled.state, cancelled.reason) == ("cancelled", "Cancelled by local.")
        with pytest.raises(Conflict):
            await app.jobs.cancel(str(job.job_id), LOCAL)
        go.set()
        await idle(app)
    assert await app.documents() == []
    assert store.value("select count(*) from job_files") == 0
    assert (await app.jobs.get(str(job.job_id), LOCAL)).state == "cancelled"
    with pytest.raises(Conflict):
        await app.jobs.retry(str(job.job_id), LOCAL)


async def test_a_stalled_process_writes_nothing_after_another_has_taken_its_job(
    settings: Settings, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first stops before it writes; the second does the whole job; then the first goes on."""
    begun, go = asyncio.Event(), asyncio.Event()
    write = PostgresWriter.write
    monkeypatch.setattr(queue, "BEAT_S", 60.0)

    async def stalled(self: PostgresWriter, *values: Any) -> None:
        if not begun.is_set():
            begun.set()
            await go.wait()
        await write(self, *values)

    monkeypatch.setattr(PostgresWriter, "write", stalled)
    async with open_app(settings) as first, open_app(settings) as second:
        job = await uploaded(first, tmp_path)
        async with serving(first, tmp_path):
            await begun.wait()
            store.rows("update jobs set lease_until = now() - interval '1 second'")
            done = await run(second, tmp_path / "second", job)
            assert (done.state, done.attempts) == ("done", 2)
            written = store.rows("select document_id, xmin::text from documents")
            assert len(written) == 1
            go.set()
            await idle(first)
        assert store.rows("select document_id, xmin::text from documents") == written
        assert (await second.jobs.get(str(job.job_id), LOCAL)).result == done.result
    store.assert_whole()


async def test_a_service_that_stops_leaves_its_job_to_another(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = asyncio.Event()

    async def stalled(self: PostgresWriter, *values: Any) -> None:
        begun.set()
        await asyncio.sleep(60)

    job = await uploaded(app, tmp_path)
    with monkeypatch.context() as stopping:
        stopping.setattr(PostgresWriter, "write", stalled)
        async with serving(app, tmp_path):
            await begun.wait()
    left = await app.jobs.get(str(job.job_id), LOCAL)
    assert (left.state, left.attempts) == ("waiting", 0)
    assert (await run(app, tmp_path, job)).state == "done"


async def editor(app: App, *scope: str) -> Caller:
    return (await app.keys.create("ann", list(scope) or None, "editor")).key.caller()


async def test_a_job_has_the_access_of_its_maker_when_it_runs(app: App, tmp_path: Path) -> None:
    ann = await editor(app)
    queued, refused = await uploaded(app, tmp_path, caller=ann), await uploaded(app, tmp_path, caller=ann, name="b.md")
    assert (await run(app, tmp_path, queued)).state == "done"
    waiting = await uploaded(app, tmp_path, caller=ann, name="c.md")
    await app.keys.revoke("ann")
    for job in (waiting,):
        ended_job = await run(app, tmp_path, job)
        assert (ended_job.state, ended_job.attempts) == ("failed", 1)
        assert "not valid any more" in ended_job.reason
    assert refused.maker == ann.key_id
    assert {document.title for document in await app.documents()} == {"Leave"}
    assert len(await app.documents()) == 2


async def test_a_key_that_is_revoked_while_its_job_runs_ends_it(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "BEAT_S", 0.05)
    begun = asyncio.Event()

    async def stalled(self: PostgresWriter, *values: Any) -> None:
        begun.set()
        await asyncio.sleep(60)

    monkeypatch.setattr(PostgresWriter, "write", stalled)
    job = await uploaded(app, tmp_path, caller=await editor(app))
    async with serving(app, tmp_path):
        await begun.wait()
        await app.keys.revoke("ann")
        done = await ended(app, job)
    assert (done.state, await app.documents()) == ("failed", [])


async def changed(app: App, *operations: Mapping[str, object]) -> None:
    version = await app.taxonomy.propose(list(operations), "A change.")
    await app.taxonomy.activate(version.version)


@pytest.mark.parametrize(
    ("operation", "path"),
    [
        ({"op": "rename", "path": "HR/Leave", "name": "Absence"}, ("HR", "Absence")),
        ({"op": "move", "path": "HR/Leave", "to": "People"}, ("People", "Leave")),
        ({"op": "merge", "paths": ["HR/Leave"], "into": "People"}, ("People",)),
    ],
)
@pytest.mark.parametrize("during", [False, True])
async def test_a_change_of_the_tree_behind_an_upload_applies_to_it(  # noqa: PLR0917 - fixtures and a table
    app: App,
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    operation: dict[str, object],
    path: tuple[str, ...],
    during: bool,
) -> None:
    """Whether the tree changes while the upload waits, or between reading and writing it."""
    await changed(app, *({"op": "add", "path": name} for name in ("HR", "HR/Leave", "People")))
    analysed = app._ingestion.__class__.analysed
    if during:

        async def changing(self: Any, *values: Any) -> Any:
            documents = await analysed(self, *values)
            await changed(app, operation)
            return documents

        monkeypatch.setattr(app._ingestion.__class__, "analysed", changing)
    job = await uploaded(app, tmp_path, category="HR/Leave", caller=await editor(app, "HR/Leave", "People"))
    if not during:
        await changed(app, operation)
    assert (await run(app, tmp_path, job)).state == "done"
    [document] = await app.documents()
    assert tuple(document.taxonomy_path) == path
    store.assert_whole()


async def test_a_decision_of_a_reviewer_behind_an_upload_applies_to_it(app: App, store: Store, tmp_path: Path) -> None:
    await changed(app, {"op": "add", "path": "HR"}, {"op": "add", "path": "People"})
    assert (await run(app, tmp_path, await uploaded(app, tmp_path, category="HR"))).state == "done"
    [document] = await app.documents()
    again = await uploaded(app, tmp_path, LEAVE + "\nMore.\n", category="HR")
    node = (await app.index.snapshot()).taxonomy
    people = next(key for key in node.nodes if node.path(key) == ("People",))
    store.rows("insert into classification_signals values (%s, %s, now(), 'bob')", document.document_id, people)
    assert (await run(app, tmp_path, again)).state == "done"
    [moved] = await app.documents()
    assert tuple(moved.taxonomy_path) == ("People",)
    store.assert_whole()
    later = await uploaded(app, tmp_path, LEAVE + "\nStill more.\n", category="HR")
    assert (await run(app, tmp_path, later)).state == "done"
    assert tuple((await app.documents())[0].taxonomy_path) == ("HR",), "an upload after the decision names a category"


async def test_an_upload_outside_the_branches_is_refused_at_once(app: App, tmp_path: Path) -> None:
    await changed(app, {"op": "add", "path": "HR"}, {"op": "add", "path": "People"})
    ann = await editor(app, "HR")
    with pytest.raises(Forbidden):
        await uploaded(app, tmp_path, category="People", caller=ann)
    with pytest.raises(InvalidInput):
        await uploaded(app, tmp_path, caller=ann)
    assert (await app.jobs.every(LOCAL, 10, 0)) == ([], 0)


async def test_a_branch_that_left_the_scope_of_the_maker_takes_nothing(app: App, tmp_path: Path) -> None:
    await changed(app, *({"op": "add", "path": path} for path in ("HR", "HR/Leave", "People")))
    job = await uploaded(app, tmp_path, category="HR/Leave", caller=await editor(app, "HR"))
    await changed(app, {"op": "move", "path": "HR/Leave", "to": "People"})
    done = await run(app, tmp_path, job)
    assert (done.state, await app.documents()) == ("failed", [])
    assert "inside your own branches" in done.reason


async def test_callers_see_their_own_jobs(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ann, bob = await editor(app), (await app.keys.create("bob", None, "editor")).key.caller()
    root = (await app.keys.create("root", None, "admin")).key.caller()
    part = (await app.keys.create("part", ["HR"], "admin")).key.caller()
    job = await uploaded(app, tmp_path, caller=ann)
    for caller, count in ((ann, 1), (bob, 0), (part, 0), (root, 1), (LOCAL, 1)):
        assert (await app.jobs.every(caller, 10, 0))[1] == count
    for caller in (bob, part):
        for act in (app.jobs.get, app.jobs.cancel, app.jobs.retry):
            with pytest.raises(NotFound):
                await act(str(job.job_id), caller)
    with pytest.raises(NotFound):
        await app.jobs.get("no id", root)
    monkeypatch.setattr(queue, "MOST_WAITING", 1)
    with pytest.raises(Overloaded):
        await uploaded(app, tmp_path, caller=ann)
    assert (await uploaded(app, tmp_path, caller=bob)).state == "waiting"
    assert (await app.jobs.cancel(str(job.job_id), root)).reason == "Cancelled by root."


async def test_jobs_that_no_process_takes_are_noticed(app: App, store: Store, tmp_path: Path) -> None:
    jobs: Jobs = app.jobs
    await uploaded(app, tmp_path)
    assert not await jobs.not_taken(await jobs.counts())
    store.rows("update jobs set run_at = now() - interval '5 minutes'")
    assert await jobs.not_taken(await jobs.counts())
    await jobs.store.announce("other", ["ingest"])
    assert not await jobs.not_taken(await jobs.counts())


async def test_a_service_that_is_woken_while_it_stops_stops(app: App, tmp_path: Path) -> None:
    for steps in range(5):
        task = asyncio.create_task(app.jobs.serve(tmp_path))
        await until(app.jobs.store.served)
        await asyncio.sleep(0.05)
        app.jobs.wake()
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        assert (await asyncio.wait({task}, timeout=30))[0], steps


async def test_what_waits_is_not_overtaken(app: App, tmp_path: Path) -> None:
    """A file is not written beside a job that would replace it by an earlier version."""
    job = await uploaded(app, tmp_path)
    sources = [Source(tmp_path / "sent-a.md", "a.md", "upload:a.md")]
    with pytest.raises(Conflict, match="wait=false"):
        await app.require_no_queued(sources)
    await app.require_no_queued([Source(tmp_path / "sent-a.md", "b.md", "upload:b.md")])
    await app.require_no_queued(sources, replace(LOCAL, role="editor", key_id=uuid.uuid4()))
    await app.jobs.cancel(str(job.job_id), LOCAL)
    await app.require_no_queued(sources)


async def test_a_job_of_confined_code_needs_a_caller(app: App, tmp_path: Path) -> None:
    await add_texts(app, {"leave.md": LEAVE}, "HR")
    with confined(await app.branch("HR")), pytest.raises(Forbidden, match="caller="):
        await uploaded(app, tmp_path, category="HR")


async def test_a_backup_is_a_job(settings: Settings, tmp_path: Path) -> None:
    async with open_app(settings) as app:
        with pytest.raises(InvalidInput, match="backup_dir"):
            await app.queue_backup()
    folder = tmp_path / "backups"
    async with open_app(replace(settings, backup_dir=folder)) as app:
        await add_texts(app, {"leave.md": LEAVE})
        async with serving(app, tmp_path):
            job = await ended(app, await app.queue_backup())
    assert (job.state, job.reason) == ("done", "")
    assert job.result is not None
    [file] = folder.iterdir()
    manifest = BackupFile.open(file, None).manifest
    assert (file.name, manifest.tables["documents"]) == (job.result["file"], 1)
    assert job.result["backup_id"] == manifest.backup_id


async def test_an_evaluation_is_a_job(app: App, store: Store, tmp_path: Path) -> None:
    """It keeps its run once, as its maker sees the documents, and leaves no traces."""
    await add_texts(app, {"leave.md": LEAVE})
    question = "How long does parental leave last?"
    rows = [{"id": "1", "text": question, "answers": ["a year"]}, {"text": "Who was Cicero?", "answerable": False}]
    for wrong in ([], [{"text": question}], [{"id": "1", "text": question, "must": "year"}]):
        with pytest.raises(InvalidInput, match="handbook"):
            await app.queue_evaluation("handbook", wrong)
    async with serving(app, tmp_path):
        job = await ended(app, await app.queue_evaluation("handbook", rows))
    assert (job.state, job.reason, job.done, job.total) == ("done", "", 2, 2)
    assert result_of(job)["run_id"] == str(job.job_id)
    [run] = await app.evaluations.newest()
    assert (run.run_id, run.kind, run.dataset, run.questions) == (job.job_id, "answers", "handbook", 2)
    sufficient = run.measures["sufficient"]
    assert sufficient is not None
    assert sufficient.value == 1.0
    assert store.value("select count(*) from traces") == 0
